from __future__ import annotations

from typing import Any

import pytest

from tests.verify.support import HEAD, by_calls, source
from tl2npu.simulator.ir.stmt import Kernel
from tl2npu.simulator.standin.package import installed
from tl2npu.verify.launching import build
from tl2npu.verify.loading import execute
from tl2npu.verify.sessions import observe
from tl2npu.verify.settings import Call
from tl2npu.verify.shrink import shrunk

TEXT = (
    HEAD
    + """

@tilelang.jit(out_idx=[2], pass_configs=pass_configs)
def matmul(M, N, K, tile=64, heads=1):
    assert M % tile == 0

    @T.prim_func
    def main(
        A: T.Tensor((heads * M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((heads * M, N), "float32"),
    ):
        with T.Kernel(heads * M // tile * (N // tile), is_npu=True) as (cid, vid):
            a = T.alloc_L1((tile, tile), "float16")
            b = T.alloc_L1((tile, tile), "float16")
            c = T.alloc_L0C((tile, tile), "float32")
            for k in T.serial(K // tile):
                T.copy(A[cid // (N // tile) * tile, k * tile], a)
                T.copy(B[k * tile, cid % (N // tile) * tile], b)
                T.gemm_v0(a, b, c, init=(k == 0))
            T.copy(c, C[cid // (N // tile) * tile, cid % (N // tile) * tile])

    return main
"""
)


def result(**arguments: Any) -> tuple[dict[str, Any], str]:
    session = observe("precise", "actual", "off", "A2").session
    with installed(session):
        module = execute(source(TEXT), "matmul", ())

        def trace(tried: dict[str, Any]) -> Kernel:
            return build(module, "matmul", tried, session).kernel

        return shrunk(trace, arguments)


def test_tiles_stay_and_several_remain() -> None:
    arguments, said = result(M=65536, N=32768, K=16384, tile=64)
    assert arguments["tile"] == 64
    for name in "MNK":
        assert arguments[name] % 64 == 0
        assert arguments[name] // 64 >= 2
        assert f"{name} from" in said
    assert arguments["M"] * arguments["N"] * arguments["K"] <= 1 << 33


def test_what_was_one_stays_one() -> None:
    arguments, _ = result(M=1 << 22, N=64, K=64, tile=64)
    assert (arguments["N"], arguments["K"]) == (64, 64)
    assert arguments["M"] < 1 << 22


def test_small_problems_stay() -> None:
    arguments = {"M": 256, "N": 256, "K": 256, "tile": 64}
    assert result(**arguments) == (arguments, "nothing was shrunk: the shapes are small enough")


def test_where_nothing_can_be_halved() -> None:
    arguments, said = result(M=64, N=64, K=64, heads=1_000_001)
    assert arguments["heads"] == 1_000_001
    assert said == "nothing was shrunk: no argument can be halved without changing the tiles"


@pytest.mark.thorough
@pytest.mark.parametrize("shrink", [True, False])
def test_a_verification_says_what_was_shrunk(shrink: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The traced shapes are what counts: the tensors of the shrunk call are small, so it ends at once."""
    monkeypatch.setattr("tl2npu.verify.shrink.ENOUGH", 1 << 22)
    arguments = {"M": 1 << 18, "N": 128, "K": 128} if shrink else {"M": 128, "N": 128, "K": 128}
    found = by_calls(TEXT, TEXT.replace("k == 0", "0 == k"), Call("matmul", arguments), shrink=shrink)
    assert found.ok
    assert any("matmul: shrunk M from 262144 to" in note for note in found.notes) is shrink
