"""The scratch tiles of instructions, as ``InjectTmpBuffer`` of the compiler made them (95acbd7f)."""

from __future__ import annotations

import pytest

from tests.checks.support import ONE, findings, source
from tl2npu.checks.memory_plan.capacity import Needs
from tl2npu.checks.memory_plan.program import Builder
from tl2npu.checks.subject import Subject
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.memory.inferred import infer_memory
from tl2npu.options import Options
from tl2npu.source.index import Index

TILES = """
t = T.alloc_ub((32, 128), "float32")
u = T.alloc_ub((32, 128), "float32")
m = T.alloc_ub((32, 16), "uint8")
i = T.alloc_ub((32, 128), "int16")
n = T.alloc_ub((32, 128), "uint32")
rows = T.alloc_ub((32,), "float32")
columns = T.alloc_ub((128,), "float32")
line = T.alloc_ub((512,), "float32")
half = T.alloc_ub((512,), "float16")
pairs = T.alloc_ub((1024,), "float32")
half_pairs = T.alloc_ub((1024,), "float16")
"""
SELECT = 'T.tile.select(u, m, t, t, "VSEL_CMPMASK_SPR")'
CLAMP = "T.tile.clamp_max(u, t, 1.0, 4096)"


def subject(body: str) -> Subject:
    file = FileKernels(Index.parse(source(body, launch=ONE)))
    (located,) = file.located
    kernel = located.read()
    infer_memory(kernel)
    return Subject(kernel, file, located, Options())


@pytest.mark.parametrize(
    ("statement", "ascendc", "pto"),
    [
        ("T.reduce_max(t, rows, dim=1)", {"tmp_ub": 16384}, {"tmp_ub": 8192}),
        ("T.reduce_sum(t, columns, dim=0)", {"tmp_ub": 16384}, {"tmp_ub": 2048}),
        ("T.reduce_min(t, columns, dim=0)", {"tmp_ub": 16384}, {"tmp_ub": 32}),
        (
            "T.reduce_sum(t, rows, 1, False)",
            {"tmp_ub": 16384},
            {"tmp_ub": 8192, "tmp_ub_reduce_out": 128},
        ),
        (CLAMP, {"tmp_ub": 16384}, {"tmp_ub": 16384}),
        (f"T.tile.sigmoid(u, t)\n{CLAMP}", {"tmp_ub": 16384}, {"tmp_ub": 32}),
        (f"{CLAMP}\nT.tile.sigmoid(u, t)", {"tmp_ub": 16384}, {"tmp_ub": 16384}),
        (f"T.reduce_min(t, columns, dim=0)\n{CLAMP}", {"tmp_ub": 16384}, {"tmp_ub": 16384}),
        ("T.tile.round(u, t, 4096)", {"tmp_ub": 16384}, {"tmp_ub": 32}),
        ("T.tile.pow(u, t, t)", {"tmp_ub": 32768}, {"tmp_ub": 32}),
        (SELECT, {}, {"tmp_ub": 16384}),
        ("T.tile.bitwise_xor(i, i, i)", {"tmp_ub": 8192}, {"tmp_ub_int16": 8192}),
        (
            "T.tile.sort(pairs, line, 512)",
            {"tmp_ub_float32": 16384, "tmp_ub": 16384},
            {"tmp_ub_float32": 8192},
        ),
        (
            "T.tile.sort(half_pairs, half, 512)",
            {"tmp_ub_float16": 8192, "tmp_ub": 8192},
            {"tmp_ub_float16": 16384},
        ),
        (
            "T.tile.topk(pairs, line, 100, 512)",
            {"tmp_ub_float32": 8192, "tmp_ub": 2048},
            {"tmp_ub_float32": 12288},
        ),
        ("T.tile.merge_sort(pairs, line, line)", {"tmp_ub": 4096}, {"tmp_ub_float32": 4096}),
        ('T.tile.gather_mask(u, t, "P0101")', {}, {"tmp_ub": 32}),
        ("T.tile.gather_mask(u, t, n)", {}, {"tmp_ub_uint32": 16384}),
        ("T.tile.gather(u, t, n, 0)", {}, {"tmp_ub_uint32": 32}),
        ("T.tile.sin(u, t)", {"tmp_ub": 32768}, {}),
        ("T.tile.broadcast(u, rows)", {"tmp_ub": 4096}, {"tmp_ub": 32}),
    ],
)
def test_sizes(statement: str, ascendc: dict[str, int], pto: dict[str, int]) -> None:
    one = subject(TILES + statement)
    for target, expected in (("ascendc", ascendc), ("pto", pto)):
        tiles = Builder(one, frozenset(), {}, target).build().tiles
        assert {tile.name: tile.bytes({}, {}) for tile in tiles if tile.name.startswith("tmp_ub")} == expected


def test_a_sort_makes_the_scratch_of_others_larger() -> None:
    """It asks for a tile of bytes that it never uses: 16384 bytes of it, where the reduction wants 128."""
    body = TILES + "T.reduce_max(half, rows, dim=0)\nT.tile.sort(pairs, line, 512)"
    tiles = {tile.name: tile.bytes({}, {}) for tile in Builder(subject(body), frozenset(), {}).build().tiles}
    assert tiles["tmp_ub"] == 16384


def body(rows: int) -> str:
    return f"""
    t = T.alloc_ub(({rows}, 256), "float32")
    u = T.alloc_ub(({rows}, 256), "float32")
    m = T.alloc_ub(({rows}, 32), "uint8")
    T.tile.fill(t, 1.0)
    T.tile.fill(m, 1)
    T.tile.select(u, m, t, t, "VSEL_CMPMASK_SPR")
    T.copy(u, O[0, 0])
    """


def test_a_kernel_that_fits_for_ascendc_only() -> None:
    """72 rows: 146 KB with the mask, 219 KB with the scratch tile of the selection."""
    found = [f for f in findings(source(body(72), launch=ONE)) if f.code == "TL801"]
    assert [(f.severity, f.message.split(":")[0]) for f in found] == [("warning", "for target pto")]
    named = [f for f in findings(source(body(72), launch=ONE, jit='target="ascendc"')) if f.code == "TL801"]
    assert named == []
    asked = [f for f in findings(source(body(72), launch=ONE, jit='target="pto"')) if f.code == "TL801"]
    assert [f.severity for f in asked] == [None]
    assert "for target" not in asked[0].message


def test_a_kernel_that_fits_for_both_or_for_none() -> None:
    assert [f for f in findings(source(body(60), launch=ONE)) if f.code == "TL801"] == []
    (found,) = (f for f in findings(source(body(100), launch=ONE)) if f.code == "TL801")
    assert found.severity is None
    assert list(Needs(subject(body(100)), "pto").overflows({}, {}))
