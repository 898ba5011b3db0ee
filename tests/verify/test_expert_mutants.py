"""Slips of people who synchronise by hand: ``check`` or ``run`` finds each, or it changes no order and no value.

``python -m tests.mutations.expert`` counts over all Expert fixtures.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.mutations.expert import ORDER, Judged, cases, mutants, sample
from tests.mutations.order import Trace
from tl2npu import check
from tl2npu.simulator.hazards import Report
from tl2npu.simulator.run import run_script
from tl2npu.simulator.standin.session import Session

pytestmark = pytest.mark.thorough

KERNELS = Path(__file__).parents[1] / "simulator" / "hazards" / "kernels" / "in_core.py"
X = np.random.default_rng(0).standard_normal((48, 16)).astype(np.float32)
CASES = {case.name: case for case in cases()}
SAMPLE = (
    "cube/aliased_addresses",
    "expert/fallback_gather",
    "expert/vec_center_rows_cast",
    "mma/barriers_only",
    "mma/two_source_scores",
)
KNOWN: frozenset[tuple[str, str]] = frozenset({("mma/int8_product", "type")})
"""Missed: ``T.mma`` of int8 into a float32 accumulator."""


class Traced:
    """The kernels of a file under the judge."""

    def __init__(self, path: Path) -> None:
        self.traces: list[Trace] = []
        self.names = run_script(path, [], Session(watch=self._trace), "kernels")
        self.text = path.read_text(encoding="utf-8").splitlines()

    def _trace(self) -> Trace:
        self.traces.append(Trace())
        return self.traces[-1]

    def pairs(self, factory: str, *arrays: Any, **arguments: Any) -> set[tuple[str, str, str]]:
        """The hazards of a call, with the text of their lines."""
        self.names[factory](**arguments)(*arrays)
        shown = {line: self.text[int(line.rpartition(":")[2]) - 1].strip() for p in self.last.pairs for line in p[1:]}
        return {(name, shown[first], shown[second]) for name, first, second in self.last.pairs}

    @property
    def last(self) -> Trace:
        return self.traces[-1]


@pytest.fixture(scope="module")
def traced() -> Traced:
    return Traced(KERNELS)


NAMES = ("loaded", "stored", "read_free", "write_free", "after_load", "after_add", "at_end")


def test_the_judge_by_a_formula(traced: Traced) -> None:
    """Load, add, store in a loop: which flags and barriers order what, thought out by hand."""
    for present in list(itertools.product((False, True), repeat=len(NAMES)))[::3]:
        on = dict(zip(NAMES, present, strict=True))
        found = {(name, "copy(A" in second, "copy(b" in second) for name, _, second in traced.pairs("loop", X, **on)}
        wanted = set()
        if not (on["loaded"] or on["after_load"]):
            wanted.add(("a", False, False))  # the sum reads what is not loaded yet
        if not (on["stored"] or on["after_add"]):
            wanted.add(("b", False, True))  # the store reads what is not summed yet
        if not (on["read_free"] or on["after_add"] or on["at_end"]):
            wanted.add(("a", True, False))  # the next load overwrites what the sum still reads
        if not (on["write_free"] or on["at_end"] or on["after_load"]):
            wanted.add(("b", False, False))  # the next sum overwrites what is still stored
        assert found == wanted, on


SCALARS = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def {name}():
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), C: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((64,), "float32")
            s = T.alloc_ub((64,), "float32")
            with T.Scope("V"):
                T.copy(A[0, 0], a)
                T.copy(A[1, 0], s)
                T.barrier_all()
                T.tile.add(s, s, 1.0)
                {line}
                T.barrier_all()
                T.copy(a, C[vid, 0])

    return main
"""


@pytest.mark.parametrize(
    ("line", "loose"),
    [
        ("T.tile.mul(a, a, s[3])", set()),
        ("T.tile.axpy(a, a, s[3])", {"s"}),
        ("T.tile.fill(a, s[3])", {"s"}),
        ("T.tile.leaky_relu(a, a, s[3])", {"s"}),
        ("a[3] = s[3]", {"s"}),
        ("T.tile.mul(a, a, s)", set()),
        ("T.tile.reduce_sum_experiment(s, a, 64)\n                a[3] = s[0]", set()),
        ("T.tile.reduce_sum_experiment(s, a, 64)\n                T.tile.fill(a, s[0])", set()),
        ("T.tile.reduce_sum_experiment(s, a, 64)\n                T.copy(s, C[vid + 2, 0])", set()),
        ("T.tile.add(s, a, 64.0)\n                T.copy(s, C[vid + 2, 0])", {"s"}),
    ],
)
def test_elements_that_the_scalar_unit_reads(line: str, loose: set[str], tmp_path: Path) -> None:
    """The compiler's own barrier stands in front of some operators only; ``check`` and ``run`` say the same."""
    path = tmp_path / "scalars.py"
    path.write_text(SCALARS.format(name="scalars", line=line), encoding="utf-8")
    judge, report = Traced(path), Report()
    found = {name for name, _, _ in judge.pairs("scalars", X[:4].repeat(4, axis=1))}
    assert found == loose
    names = run_script(path, [], Session(watch=report.observer), "kernels")
    names["scalars"]()(X[:4].repeat(4, axis=1))
    assert {hazard.buffer for hazard in report.errors} == loose
    assert bool({d.code for d in check(path).diagnostics} & {"TL780", "TL781"}) == bool(loose)


@pytest.mark.parametrize("name", SAMPLE)
def test_each_is_found_or_changes_no_order(name: str) -> None:
    judged = Judged(CASES[name])
    assert not judged.trace[0]
    found = [(mutant, judged.verdict(mutant)) for _, mutant in sample([CASES[name]])]
    assert [m.name for m, by in found if by == "missed" and (name, m.kind) not in KNOWN] == []
    assert sum(by in ("check", "run") for _, by in found) > len(found) // 2


def test_what_is_not_in_order_is_not_equivalent() -> None:
    """The barrier between the load and the product's own waits does nothing; the one before vector work does."""
    of_gemm, of_rows = (Judged(CASES[name]) for name in ("cube/grouped_rows", "expert/vec_center_rows_cast"))
    barriers = [m for m in mutants(of_gemm.case) if m.kind == "drop barrier"]
    assert [of_gemm.equivalent(m) for m in barriers] == [True, True]
    first, *_, last = (m for m in mutants(of_rows.case) if m.kind == "drop barrier")
    assert not of_rows.equivalent(first)
    assert not of_rows.equivalent(last)
    assert all(m.kind in ORDER for m in barriers)
