"""TL730: calls that Python does not let through while the compiler traces the kernel."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, STORE, TILES, findings, source
from tl2npu.options import Options

BODY = f"{TILES}{LOAD}{{}}\n{STORE}"


def found(body: str, version: str = "2026-06", **settings: str) -> list[str]:
    text = source(BODY.format(body), **settings)  # type: ignore[arg-type]
    options = Options(ascend_version=version)  # type: ignore[arg-type]
    return [item.message for item in findings(text, options) if item.code == "TL730"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "for i in T.serial(0, 8, bogus=1):\n    T.tile.exp(b, a)",
            "T.serial() got an unexpected keyword argument 'bogus'",
        ),
        (
            "for i in T.serial(0, 8, 2):\n    T.tile.exp(b, a)",
            "T.serial() takes 2 positional arguments but 3 were given",
        ),
        (
            "for i in range(0, 8, 2):\n    T.tile.exp(b, a)",
            "`range` is T.serial in a kernel: T.serial() takes 2 positional arguments but 3 were given",
        ),
        ("for i in T.Pipelined(4, stages=2):\n    T.tile.exp(b, a)", "T.Pipelined() got an unexpected keyword"),
        ("for i, j in T.Parallel(32, 64, loop_layout=1):\n    b[i, j] = a[i, j]", "T.Parallel() got an unexpected"),
        ("T.copy(a, b, 1, 2, 3, 4)", "T.copy() takes"),
        ("T.copy(a)", "T.copy() misses 1 required argument(s): 'dst'"),
        ("T.tile.exp(b)", "tile.exp() misses"),
        ("T.tile.exp(b, a, dst=b)", "multiple values for argument 'dst'"),
        ("T.reduce_sum(a, b, 1, keepdims=True)", "T.reduce_sum() got an unexpected keyword argument 'keepdims'"),
        ("c = T.alloc_ub((32, 64), 'float32', bogus=1)", "T.alloc_ub() got an unexpected keyword argument"),
        ("b[0, 0] = T.max(a[0, 0], 1.0, 2.0)", "T.max() takes 2 positional arguments but 3 were given"),
    ],
)
def test_calls(body: str, message: str) -> None:
    (told,) = found(body)
    assert message in told


def test_launch_and_tensors() -> None:
    (told,) = found("T.tile.exp(b, a)", launch="T.Kernel(8, threads=2, is_npu=True, bogus=1) as (cid)")
    assert "T.Kernel() got an unexpected keyword argument 'bogus'" in told
    params = 'A: T.Tensor((256, 64), "float32", layout=1), O: T.Tensor((256, 64), "float32")'
    (told,) = found("T.tile.exp(b, a)", params=params)
    assert "T.Tensor() got an unexpected keyword argument 'layout'" in told


def test_compilation() -> None:
    assert found("T.tile.exp(b, a)", jit="out_idx=[1], compile_flags=[]") == [
        "tilelang.jit does not support the argument `compile_flags` on the NPU"
    ]
    assert found("T.tile.exp(b, a)", jit="out_idx=[1], target='ascendc', verbose=True, debug_root_path='x'") == []


def test_macros_and_helpers_of_the_factory() -> None:
    macro = "@T.macro\ndef twice(x):\n    T.tile.mul(x, x, 2.0, bogus=1)\n"
    (told,) = found("twice(b)", factory=macro)
    assert "tile.mul() got an unexpected keyword argument 'bogus'" in told
    unused = "@T.macro\ndef unused(x):\n    T.tile.mul(x, x, 2.0, bogus=1)\n"
    assert found("T.tile.exp(b, a)", factory=unused) == []


def test_arguments_that_cannot_be_counted() -> None:
    assert found("T.copy(*[a, b])") == []


def test_by_version() -> None:
    body = "c = T.alloc_L0C((32, 64), 'float32')\nT.gemm_v0(a, b, c, init=True, kL0Size=64)"
    assert found(body, "2026-09") == []
    assert found(body) == ["T.gemm_v0() got the argument 'kL0Size', which this version lacks"]
