from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import Kernel
from tl2npu.verify.matching import Match, Unmatched, match
from tl2npu.verify.recording import Recording


def tensor(name: str, *shape: Any, dtype: str = "float32") -> Buffer:
    return Buffer(name, shape, dtype, "global")


def old(given: str = "", returned: str = "", scratch: str = "", scalars: str = "") -> Recording:
    """Letters are names; all tensors are 4x4 float32, W and V 8x4."""
    names = tuple(given + returned + scratch)
    arrays = {n: np.zeros((8 if n in "WV" else 4, 4), np.float32) for n in names}
    return Recording(
        0, "k", 0, "k()", "k", {}, names, frozenset(returned + scratch), frozenset(scratch),
        tuple(given), tuple(returned), {}, arrays, arrays,
        dict.fromkeys(scalars, 1), {}, {}, {},
    )  # fmt: skip


def new(given: str = "", returned: str = "", scratch: str = "", scalars: str = "") -> Any:
    tensors = [tensor(n, 8 if n in "WV" else 4, 4) for n in given + returned + scratch]
    first, second = len(given), len(given) + len(returned)
    kernel = Kernel("k", [*tensors, *(Var(n, "int32") for n in scalars)])
    return SimpleNamespace(kernel=kernel, out_idx=range(first, second), workspace_idx=range(second, len(tensors)))


def test_names_belong_together() -> None:
    assert match(old("AB", "C", "W"), new("BA", "C", "W")) == Match(
        {"B": "B", "A": "A", "C": "C", "W": "W"}, {}, (), ()
    )


def test_a_workspace_may_be_gone() -> None:
    assert match(old("A", "C", "W"), new("A", "C")).gone == ("W",)
    assert match(old("AW", "C"), new("A", "C")).gone == ("W",)


def test_a_renamed_workspace_is_found_by_its_shape() -> None:
    assert match(old("A", "C", "WX"), new("A", "C", "V")).tensors["V"] == "W"
    assert match(old("AXW", "C"), new("AV", "C")).tensors["V"] == "W"


def test_a_renamed_output_is_an_output() -> None:
    """X is a tensor that the caller gives, of the same shape: it is not taken for the output."""
    found = match(old("AX", "C"), new("A", "D"))
    assert found.tensors == {"A": "A", "D": "C"}
    assert found.gone == ("X",)


def test_what_the_new_call_makes_in_addition() -> None:
    assert match(old("A", "C"), new("A", "C", "W")).made == ("W",)


def test_what_nobody_can_pass() -> None:
    with pytest.raises(Unmatched, match="the new kernel has a parameter W"):
        match(old("A", "C"), new("AW", "C"))
    with pytest.raises(Unmatched, match="the new kernel has a parameter n"):
        match(old("A", "C"), new("A", "C", scalars="n"))


def test_scalars() -> None:
    assert match(old("A", scalars="nm"), new("A", scalars="mk")).scalars == {"m": "m", "k": "n"}
