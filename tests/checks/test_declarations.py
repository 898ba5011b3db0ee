"""What a factory declares: types, outputs, its return, accumulators (TL785, TL787, TL788, TL899)."""

from __future__ import annotations

import pytest

from tests.checks.support import PLAIN, errors, source
from tl2npu.migration import check_text
from tl2npu.options import Options

BODY = """
x = T.alloc_ub((32, 64), "float32")
T.copy(A[cid * 32, 0], x)
T.tile.exp(x, x)
T.copy(x, O[cid * 32, 0])
"""
KEYS = ("AUTO_SYNC", "MEMORY_PLANNING")


@pytest.mark.parametrize(
    ("name", "exists"),
    [
        *((name, True) for name in "float32 float int float16 bfloat16 uint8 int64 bool int32x4".split()),
        *((name, False) for name in "fp32 fp16 half double bf16 f32 long Float32 torch.float32".split()),
    ],
)
def test_names_of_types(name: str, exists: bool) -> None:
    text = f'v = T.alloc_ub((32, 64), "{name}")\n{BODY}'
    assert ("TL787" in errors(text, launch=PLAIN, keys=KEYS)) is not exists
    by_default = f"v = T.alloc_ub((32, 64), dtype)\n{BODY}"
    assert ("TL787" in errors(by_default, launch=PLAIN, keys=KEYS, args=f'dtype="{name}"')) is not exists


@pytest.mark.parametrize(
    ("jit", "codes"),
    [
        ("out_idx=[1]", []),
        ("out_idx=[-1]", []),
        ("out_idx=-1", []),
        ("", []),
        ("out_idx=[0]", ["TL788"]),
        ("out_idx=[0, 1]", ["TL788"]),
        ("out_idx=[-2]", ["TL788"]),
        ("out_idx=[2]", ["TL788"]),
        ("out_idx=[-3]", ["TL788"]),
        ("out_idx=[1], workspace_idx=[2]", ["TL788"]),
        ("out_idx=[1], workspace_idx=[0]", ["TL788"]),
        ("workspace_idx=[1]", ["TL788"]),  # written, and lost
    ],
)
def test_positions(jit: str, codes: list[str]) -> None:
    assert errors(BODY, launch=PLAIN, keys=KEYS, jit=jit) == codes


def test_an_output_that_nothing_touches_may_be_for_later() -> None:
    params = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32"), P: T.Tensor((256, 64), "float32")'
    assert errors(BODY, launch=PLAIN, keys=KEYS, params=params, jit="out_idx=[1, 2]") == []
    assert errors(BODY, launch=PLAIN, keys=KEYS, params=params, jit="out_idx=[1], workspace_idx=[2]") == []


def test_a_scalar_is_no_output() -> None:
    params = 'A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32"), n: T.int32'
    assert errors(BODY, launch=PLAIN, keys=KEYS, params=params, jit="out_idx=[2]") == ["TL788"]


@pytest.mark.parametrize("write", ["T.tile.atomic_add(O[cid * 32, 0], x)", "O[cid, 0] = 1.0"])
def test_other_ways_to_write(write: str) -> None:
    body = BODY.replace("T.copy(x, O[cid * 32, 0])", write)
    assert "TL788" not in errors(body, launch=PLAIN, keys=KEYS)


@pytest.mark.parametrize("end", ["", "    return\n", "    main\n"])
def test_a_factory_that_returns_nothing(end: str) -> None:
    text = source(BODY, launch=PLAIN, keys=KEYS).replace("    return main\n", end)
    found = [item for item in check_text(text, "k.py", Options()).diagnostics if item.severity == "error"]
    assert [(item.code, item.line) for item in found] == [("TL785", 4)]


@pytest.mark.parametrize("end", ["    return main\n", "    if True:\n        return main\n", "    return (main)\n"])
def test_a_factory_that_returns_its_kernel(end: str) -> None:
    text = source(BODY, launch=PLAIN, keys=KEYS).replace("    return main\n", end)
    assert [item.code for item in check_text(text, "k.py", Options()).diagnostics if item.severity == "error"] == []


GEMM = """
a = T.alloc_L1((32, 64), "{of}")
b = T.alloc_L1((64, 64), "{of}")
c = T.alloc_L0C((32, 64), {to})
T.copy(A[cid * 32, 0], a)
T.copy(B[0, 0], b)
T.gemm_v0(a, b, c, init=True)
T.copy(c, O[cid * 32, 0])
"""


@pytest.mark.parametrize(
    ("of", "to", "args", "codes"),
    [
        ("float16", '"float32"', "", []),
        ("float16", '"float"', "", []),
        ("float16", '"float16"', "", ["TL899"]),
        ("bfloat16", '"bfloat16"', "", ["TL899"]),
        ("int8", '"int32"', "", []),
        ("int8", '"int16"', "", ["TL899"]),
        ("float16", "accum", 'accum="float16"', ["TL899"]),
        ("float16", "accum", 'accum="float32"', []),
        ("float16", "accum", "accum", []),
    ],
)
def test_accumulators(of: str, to: str, args: str, codes: list[str]) -> None:
    params = f'A: T.Tensor((256, 64), "{of}"), B: T.Tensor((64, 64), "{of}"), O: T.Tensor((256, 64), "float32")'
    body = GEMM.format(of=of, to=to)
    keys = ("AUTO_SYNC", "MEMORY_PLANNING")
    assert errors(body, launch=PLAIN, keys=keys, params=params, jit="out_idx=[2]", args=args) == codes
