from __future__ import annotations

import numpy as np
import pytest

from tests.verify.support import HEAD, source
from tl2npu.simulator.standin.package import installed
from tl2npu.verify.drawing import SYMBOLIC_EXTENT, Drawn, draw
from tl2npu.verify.launching import build
from tl2npu.verify.loading import execute
from tl2npu.verify.sessions import observe
from tl2npu.verify.settings import UsageError

TEXT = (
    HEAD
    + """

@tilelang.jit(out_idx=[4], pass_configs=pass_configs)
def gathers(rows):
    M = T.symbolic("M")

    @T.prim_func
    def main(
        X: T.Tensor((M, 48), "bfloat16"),
        Index: T.Tensor((rows, 7), "int32"),
        Mask: T.Tensor((rows,), "bool"),
        Small: T.Tensor((rows,), "int8"),
        Y: T.Tensor((rows, 48), "bfloat16"),
        scale: T.float32,
        count: T.int32,
    ):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((16, 48), "bfloat16")
            T.copy(X[0, 0], x)
            T.copy(x, Y[0, 0])

    return main
"""
)


def drawn(seed: int = 0, inputs: dict[str, str] | None = None, symbols: dict[str, int] | None = None) -> Drawn:
    session = observe("precise", "actual", "off", "A2").session
    with installed(session):
        module = execute(source(TEXT), "gathers", ())
        return draw(build(module, "gathers", {"rows": 200}, session), seed, inputs or {}, symbols or {})


def test_what_is_drawn() -> None:
    found = drawn()
    assert sorted(found.tensors) == ["Index", "Mask", "Small", "X"]
    assert found.tensors["X"].shape == (SYMBOLIC_EXTENT, 48)
    assert found.tensors["X"].dtype.name == "bfloat16"
    assert 0.9 < found.tensors["X"].astype(np.float32).std() < 1.1
    assert abs(found.tensors["X"].astype(np.float32).mean()) < 0.1
    assert found.tensors["Index"].dtype == np.int32
    assert set(np.unique(found.tensors["Index"])) == set(range(7))  # the smallest extent is 7: inside of every axis
    assert set(np.unique(found.tensors["Mask"])) == {False, True}
    assert found.tensors["Small"].max() < 7
    assert sorted(found.scalars) == ["count", "scale"]
    assert 1 <= found.scalars["count"] < 7
    assert "X standard normal" in found.said
    assert "Index integers 0 to 6" in found.said
    assert f"M = {SYMBOLIC_EXTENT}" in found.said


def test_the_seed_and_the_name_decide() -> None:
    first, again, other = drawn(), drawn(), drawn(seed=1)
    for name, array in first.tensors.items():
        assert np.array_equal(array, again.tensors[name])
        assert not np.array_equal(array, other.tensors[name])
    assert first.scalars == again.scalars != other.scalars


def test_expressions_and_symbols() -> None:
    inputs = {"Index": "rng.integers(100, 300, shape)", "Mask": "1", "X": "np.arange(48) * 0.5", "count": "2 + 3"}
    found = drawn(0, inputs, {"M": 32})
    assert found.tensors["X"].shape == (32, 48)
    assert found.tensors["X"][31, 4] == 2.0
    assert found.tensors["Index"].min() >= 100
    assert found.tensors["Mask"].all()
    assert found.scalars["count"] == 5
    assert "Index = rng.integers(100, 300, shape)" in found.said


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"Index": "np.zeros((3, 3))"}, "--input Index"),
        ({"Index": "1 /"}, "SyntaxError"),
        ({"Index": "open('x')"}, "NameError"),
        ({"Z": "1"}, "no such parameter"),
    ],
)
def test_expressions_that_do_not_fit(inputs: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        drawn(0, inputs)


def test_symbols_that_nothing_has() -> None:
    with pytest.raises(UsageError, match="no such parameter"):
        drawn(0, {}, {"N": 3})
