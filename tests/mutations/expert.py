"""``python -m tests.mutations.expert``: mutants of working Expert kernels, and who finds them.

First ``check``, then ``run``; what neither finds may be equivalent. Each is one slip of a person who synchronises by
hand: a flag or a barrier that is missing, two lines the wrong way round, a tile that is too small, a slice that is one
off, another type. **Equivalent** is decided by :mod:`tests.mutations.order`, which shares nothing with ``check`` and
``run``: the same results bit for bit, no flag left, and no pair of accesses that was ordered and is not any more.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fixture_case import Case, load_all
from tests.mutations.mutants import Mutant
from tests.mutations.order import Trace
from tl2npu.checking import check_text
from tl2npu.options import Options
from tl2npu.simulator.hazards import Report
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.drawing import draw
from tl2npu.verify.launching import allocate, built
from tl2npu.verify.loading import Source, anything_importable, execute

GROUPS = ("expert", "mma", "workspace", "cube", "vid")
PER_KIND = 3
"""Mutants of each kind that are made of one kernel at most."""
_FLAG = re.compile(r"^(\s*)T\.(set_flag|wait_flag|set_cross_flag|wait_cross_flag)\(.*\)\s*$")
_BARRIER = re.compile(r"^(\s*)T\.(barrier_all|sync_all)\(.*\)\s*$")
_TILE = re.compile(r"T\.alloc_(?:ub|L1|L0C|L0A|L0B|shared|fragment)\((?:\(|\[)([^,\]\)]+)")
_TYPE = re.compile(r'"(float32|float16|float|bfloat16|int32)"\)\s*$|, (dtype|accum_dtype|accum|in_dtype)\)\s*$')
_SOURCE = re.compile(r"\s*T\.copy\(\w+\[([^,\]:]+)[,\]]")
_TARGET = re.compile(r"\s*T\.copy\(.*, \w+\[([^,\]:\[]+)(?:, [^,\]]+)*\]\)$")
_OTHER = {"float32": "float16", "float": "float16", "float16": "float32", "bfloat16": "float32", "int32": "float32"}
ORDER = ("drop flag", "swap", "drop barrier")
"""The kinds that change nothing but the order of what a kernel does."""


def cases() -> list[Case]:
    """The fixtures whose old kernel names its cores."""
    return [c for c in load_all() if c.name.split("/")[0] in GROUPS and "T.Scope" in c.before]


def mutants(case: Case) -> list[Mutant]:
    """All mutants of the kernel that a case runs, in the order of its lines."""
    lines = case.before.split("\n")
    factories = [f for f in ast.parse(case.before).body if isinstance(f, ast.FunctionDef) and f.decorator_list]
    others = {n for f in factories if f.name != case.factory for n in range(f.lineno - 1, f.end_lineno or 0)}
    return [
        Mutant(f"{kind}: {lines[n].strip()}", kind, n + 1, "\n".join([*lines[:n], *new, *lines[n + len(new) :]]))
        for n in range(len(lines))
        if n not in others or _is_macro(factories, n)
        for kind, new in _of_line(lines, n)
    ]


def _is_macro(factories: list[ast.FunctionDef], line: int) -> bool:
    found = (f for f in factories if f.lineno <= line < (f.end_lineno or 0))
    return any("macro" in ast.unparse(f.decorator_list[0]) for f in found)


def _of_line(lines: list[str], n: int) -> Iterator[tuple[str, list[str]]]:
    """The kinds that a line allows, each with the lines that stand in its place."""
    line, following = lines[n], lines[n + 1] if n + 1 < len(lines) else ""
    if found := _FLAG.match(line):
        yield "drop flag", [f"{found[1]}pass"]
        if following.startswith(f"{found[1]}T.") and following.rstrip().endswith(")") and not _FLAG.match(following):
            yield "swap", [following, line]
    if found := _BARRIER.match(line):
        yield "drop barrier", [f"{found[1]}pass"]
    if found := _TILE.search(line):
        yield "halve buffer", [_put(line, found, 1, f"({found[1]}) // 2")]
        if dtype := _TYPE.search(line):
            group = 1 if dtype[1] else 2
            yield "type", [_put(line, dtype, group, _OTHER.get(dtype[group], '"int16"'))]
    for pattern in (_SOURCE, _TARGET):
        if found := pattern.match(line):
            yield "shift slice", [_put(line, found, 1, f"{found[1]} + 1")]


def _put(line: str, found: re.Match[str], group: int, text: str) -> str:
    return line[: found.start(group)] + text + line[found.end(group) :]


def sample(chosen: list[Case], seed: int = 1) -> list[tuple[Case, Mutant]]:
    """At most ``PER_KIND`` of each kind of each kernel."""
    dice, made = random.Random(seed), []
    for case in chosen:
        kinds: dict[str, list[Mutant]] = {}
        for mutant in mutants(case):
            kinds.setdefault(mutant.kind, []).append(mutant)
        made += [(case, m) for found in kinds.values() for m in dice.sample(found, min(PER_KIND, len(found)))]
    return made


@dataclass
class Ran:
    """A launch: its tensors, or None with the error if it did not come to an end."""

    tensors: dict[str, np.ndarray] | None
    error: str = ""


def run(case: Case, text: str, watch: Callable[[], Any]) -> Ran:
    """Run the kernel of a case, in some text, on the inputs of the case."""
    session = Session(watch=watch)
    with contextlib.redirect_stdout(io.StringIO()), installed(session), anything_importable():
        try:
            module = execute(Source(text, "before.py", "before.py"), "expert_mutant", ())
            compiled = built(module, case.builder or case.factory, dict(case.args), session)
            drawn = draw(compiled, 0, case.inputs, {})
            known = [p for p in compiled.kernel.params if isinstance(p, Var) and p.name in drawn.scalars]
            scalars = {p: drawn.scalars[p.name] for p in known}
            arrays = allocate(compiled, session, drawn.tensors, {**drawn.symbols, **scalars})
            session.execute(compiled, compiled.kernel, arrays, scalars)
        except Exception as error:  # a mutant may fail in any way
            return Ran(None, f"{type(error).__name__}: {error}")
    names = {p.number: p.name for p in (*compiled.kernel.params, *compiled.kernel.outputs) if not isinstance(p, Var)}
    return Ran({names[number]: array for number, array in arrays.items()})


class Judged:
    """One kernel, and what is said of its mutants."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.said = _findings(case.before)
        self.ran, self.trace = self._traced(case.before)

    def _traced(self, text: str) -> tuple[Ran, tuple[set[Any], set[str]]]:
        traces: list[Trace] = []

        def watch() -> Trace:
            traces.append(Trace())
            return traces[-1]

        ran = run(self.case, text, watch)
        source = text.split("\n")  # a line is known by its text: a swap moves it
        pairs = {(name, *(_shown(source, line) for line in lines)) for t in traces for name, *lines in t.pairs}
        return ran, (pairs, {flag for t in traces for flag in t.flags})

    def verdict(self, mutant: Mutant) -> str:
        """``check`` or ``run``: who finds it; ``equivalent``; ``missed``."""
        if self.by_check(mutant):
            return "check"
        return "run" if self.by_run(mutant) else "equivalent" if self.equivalent(mutant) else "missed"

    def by_check(self, mutant: Mutant) -> set[tuple[str, str]]:
        """What ``check`` says more than of the kernel itself."""
        return _findings(mutant.text) - self.said

    def by_run(self, mutant: Mutant) -> str:
        """What ``run`` says: a hazard, an error, or results that the script's own comparison would not take."""
        report = Report()
        ran = run(self.case, mutant.text, report.observer)
        if ran.tensors is None:
            return ran.error
        if report.errors:
            return report.errors[0].message
        return "" if self._agree(ran) else "other results"

    def _agree(self, ran: Ran) -> bool:
        assert self.ran.tensors is not None
        assert ran.tensors is not None
        pairs = [(self.ran.tensors[name], array) for name, array in ran.tensors.items() if "workspace" not in name]
        return all(np.allclose(a, b, equal_nan=True, **self.case.tolerance) for a, b in pairs if a.dtype.kind != "V")

    def equivalent(self, mutant: Mutant) -> bool:
        """The same order of all accesses of one byte, and the same results; only for the kinds that change no more."""
        if mutant.kind not in ORDER:
            return False
        ran, (pairs, flags) = self._traced(mutant.text)
        if ran.tensors is None or self.ran.tensors is None:
            return False
        same = all(a.tobytes() == self.ran.tensors[name].tobytes() for name, a in ran.tensors.items())
        return same and not pairs - self.trace[0] and not flags - self.trace[1]


def _findings(text: str) -> set[tuple[str, str]]:
    result = check_text(text, "kernel.py", Options())
    return {(d.code, d.message) for d in result.diagnostics if d.severity in ("error", "warning")}


def _shown(source: list[str], line: str) -> str:
    return source[int(line.rpartition(":")[2]) - 1].strip()


def main() -> int:
    """Count. The exit code is 1 if a mutant that is not equivalent is found by neither."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.expert")
    parser.add_argument("--all", action="store_true", help="judge the order of those that are found, too")
    parser.add_argument("--fixture", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    asked = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    judged: dict[str, Judged] = {}
    started = time.process_time()
    chosen = [c for c in cases() if not asked.fixture or any(text in c.name for text in asked.fixture)]
    for case, mutant in sample(chosen, asked.seed):
        if case.name not in judged:
            judged[case.name] = Judged(case)
        by = judged[case.name].verdict(mutant)
        if by == "missed":
            print(f"MISSED {case.name}:{mutant.line} {mutant.name}", flush=True)
        if asked.all and by in ("check", "run") and judged[case.name].equivalent(mutant):
            print(f"{by} finds what is in order here: {case.name}:{mutant.line} {mutant.name}", flush=True)
        counts.setdefault(mutant.kind, Counter())[by] += 1
    columns = ("check", "run", "equivalent", "missed")
    print(f"{'kind':14} {' '.join(f'{c:>10}' for c in columns)}")
    total: Counter[str] = Counter()
    for kind, found in counts.items():
        print(f"{kind:14} {' '.join(f'{found[c]:10}' for c in columns)}")
        total += found
    wrong = total.total() - total["equivalent"]
    caught = total["check"] + total["run"]
    print(f"{total.total()} mutants of {len(chosen)} kernels, {wrong} of them not equivalent: {caught} found")
    print(f"{time.process_time() - started:.0f} s of CPU time")
    return int(bool(total["missed"]))


if __name__ == "__main__":
    sys.exit(main())
