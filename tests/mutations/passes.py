"""``python -m tests.mutations.passes``: breaks passes, and counts which wrong kernels the check of every run refuses.

A mutation takes one condition out of a function of ``tl2npu/passes``, or turns it round. Inputs are random programs,
which have an oracle of their own, and GPU fixtures, whose old kernel is executed; each mutation is tried on some that
reach its function. ``--count N --seed S``: how many mutations that change a text, and which; ``-j``: processes;
``--style triton``: of the reader of Triton and the tile IR, on random Triton programs; ``--style npuir``: GPU kernels
that become ones for AscendNPU IR.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import gc
import multiprocessing
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType

import tl2npu
import tl2npu.triton.result  # its functions must be there to be broken
from tests.fixture_case import Case, load_all
from tests.generated.judge import INVALID, OK, _executed, expected_of, inputs_of
from tests.generated.styles import STYLES, Style
from tests.generated.values import Discard
from tests.test_fixtures import run_both
from tl2npu import migrate
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.verify.judge import CHANGED

PACKAGE = Path(tl2npu.__file__).parent
BROKEN = {"gpu": ("passes/",), "npuir": ("passes/npuir/",), "triton": ("triton/read/", "tile/")}
"""By style, the folders whose functions are broken."""
READ = {"npuir": "gpu"}
"""The style of the old kernels, where it is another one."""
PROGRAMS, TRIED, TIME = 48, 10, 20
"""Random programs; inputs for each mutation; seconds for each of them."""
CAUGHT, TOLD, VISIBLE, SILENT, RIGHT, SAME = "refused", "told", "fails", "SILENT", "right", "same"
"""Refused by the check of every run (TL970), told by another one, no kernel or none that runs, wrong and not told."""

Place = tuple[str, int]
"""The file and the first line of a function."""


@dataclass(frozen=True)
class Mutation:
    """``number``: which of the changes of the function that begins there."""

    place: Place
    number: int
    shown: str


class Overdue(BaseException):
    """Not an Exception: nobody on the way may catch it."""


def changes(function: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """What can be broken in a function: a text, and what does it to the tree."""
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.IfExp)):
            test = node.test
            leaves = isinstance(node, ast.If) and isinstance(node.body[-1], (ast.Raise, ast.Return, ast.Continue))
            new = ast.Constant(False) if leaves else ast.UnaryOp(ast.Not(), test)
            what = "never" if leaves else "not"
            yield f"{node.lineno}: {what} `{ast.unparse(test)}`", lambda node=node, new=new: setattr(node, "test", new)
        elif isinstance(node, ast.BoolOp):
            for place, value in enumerate(node.values):
                rest = [*node.values[:place], *node.values[place + 1 :]]
                text = f"{node.lineno}: without `{ast.unparse(value)}`"
                yield text, lambda node=node, rest=rest: setattr(node, "values", [*rest, rest[-1]])


@cache
def functions(path: str) -> dict[int, ast.FunctionDef]:
    """The functions of a file by the first line of their code objects, decorators included."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {min([f.lineno, *(d.lineno for d in f.decorator_list)]): f for f in found}


def broken(mutation: Mutation) -> CodeType:
    """The code of a function with a change."""
    path, line = mutation.place
    functions.cache_clear()
    function = functions(path)[line]
    _, change = list(changes(function))[mutation.number]
    change()
    tree = ast.fix_missing_locations(ast.Module([_plain(function)], []))
    code = compile(tree, path, "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    return next(part for part in code.co_consts if isinstance(part, CodeType) and part.co_name == function.name)


def _plain(function: ast.FunctionDef) -> ast.FunctionDef:
    function.decorator_list = []
    return function


def put_in(mutation: Mutation) -> bool:
    """Replace the code of a function wherever it is held; False where that cannot be."""
    new = broken(mutation)
    old = [
        item
        for item in gc.get_objects()
        if isinstance(item, FunctionType)
        and (item.__code__.co_filename, item.__code__.co_firstlineno) == mutation.place
        and item.__code__.co_name == new.co_name
    ]
    if not old or any(item.__code__.co_freevars != new.co_freevars for item in old):
        return False
    for item in old:
        item.__code__ = new
    return True


@dataclass(frozen=True)
class Input:
    """A random program, by its number, or a fixture."""

    seed: int = 0
    case: Case | None = None
    style: str = "gpu"

    @property
    def of(self) -> Style:
        return STYLES[READ.get(self.style, self.style)]

    @property
    def text(self) -> str:
        return self.case.before if self.case else self.of.text(self.of.draw(self.seed))

    @property
    def name(self) -> str:
        return self.case.name if self.case else f"program {self.seed}"

    def migrated(self) -> FileResult:
        options = Options(**(self.case.options if self.case else {}))
        options = replace(options, target="npuir") if self.style == "npuir" else options
        return migrate(self.text, filename="k.py", options=options)

    def judged(self, new: str) -> str:
        """What a new kernel is, by the oracle or by the simulator: a text that does not run is seen at once."""
        if self.case is not None:
            found = run_both(self.case, new)
            wrong = any(item.code == CHANGED for item in found.diagnostics)
            return RIGHT if found.ok else SILENT if wrong else VISIBLE
        program = self.of.draw(self.seed)
        given = inputs_of(program, self.seed)
        kind, _ = _executed(program, new, given, expected_of(program, given))
        return {OK: RIGHT, INVALID: VISIBLE}.get(kind, SILENT)


def verdict(given: Input, known: str) -> str:
    """What becomes of an input while a pass is broken; ``known``: the text that it has otherwise."""
    try:
        result = given.migrated()
        if result.new_text == known:
            return SAME
        if any(d.code == "TL970" for d in result.diagnostics):
            return CAUGHT
        if result.error or {kernel.disposition for kernel in result.kernels} != {"migrated"}:
            return VISIBLE
        found = given.judged(result.new_text or "")
        return TOLD if found == SILENT and any(kernel.errors for kernel in result.kernels) else found
    except (Exception, Overdue):
        return VISIBLE


def inputs(style: str) -> list[Input]:
    """Those that migrate."""
    read = READ.get(style, style)
    found = [Input(case=case, style=style) for case in load_all() if case.name.startswith(f"{read}/")]
    for seed in range(PROGRAMS):
        program = STYLES[read].draw(seed)
        try:
            expected_of(program, inputs_of(program, seed))
        except Discard:
            continue
        found.append(Input(seed, style=style))
    return found


def reached(given: Input) -> tuple[str | None, set[Place]]:
    """The text that an input becomes, None if it is not migrated, and which functions to break it calls."""
    seen: set[Place] = set()
    folders = tuple(str(PACKAGE / folder) for folder in BROKEN[given.style])

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(folders):
            seen.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    sys.setprofile(note)
    try:
        result = given.migrated()
    finally:
        sys.setprofile(None)
    migrated = {kernel.disposition for kernel in result.kernels} == {"migrated"}
    return (result.new_text if migrated and not any(k.errors for k in result.kernels) else None), seen


def tried(task: tuple[Mutation, list[tuple[Input, str]]]) -> tuple[Mutation, list[tuple[str, str]]]:
    """A mutation in this process, which ends behind it."""
    mutation, known = task

    def overdue(*_: object) -> None:
        raise Overdue

    if not put_in(mutation):
        return mutation, []
    signal.signal(signal.SIGVTALRM, overdue)
    found = []
    for given, text in known:
        signal.setitimer(signal.ITIMER_VIRTUAL, TIME)
        found.append((verdict(given, text), given.name))
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return mutation, found


def main() -> int:
    """Count. The exit code is 1 if less than 95 of 100 wrong kernels are refused or told."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.passes")
    parser.add_argument("--count", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("-j", type=int, default=1, dest="jobs", metavar="N")
    parser.add_argument("--style", choices=sorted(BROKEN), default="gpu")
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    known: dict[Place, list[tuple[Input, str]]] = {}
    every = inputs(asked.style)
    copies = multiprocessing.get_context("fork")
    with copies.Pool(asked.jobs) as pool:
        for given, (text, places) in zip(every, pool.imap(reached, every), strict=True):
            for place in places if text is not None else ():
                known.setdefault(place, []).append((given, text or ""))
    drawn = [
        Mutation(place, number, f"{place[0].removeprefix(str(PACKAGE))}:{text}")
        for place in sorted(known)
        if place[1] in functions(place[0])
        for number, (text, _) in enumerate(changes(functions(place[0])[place[1]]))
    ]
    rng.shuffle(drawn)
    tasks = [(one, rng.sample(known[one.place], min(TRIED, len(known[one.place])))) for one in drawn]
    mutants: Counter[str] = Counter()
    outputs: Counter[str] = Counter()
    with copies.Pool(asked.jobs, maxtasksperchild=1) as pool:
        for mutation, found in pool.imap(tried, tasks):
            kinds = {kind for kind, _ in found} - {SAME}
            if not kinds:
                continue
            outputs.update(kind for kind, _ in found if kind != SAME)
            worst = next(kind for kind in (SILENT, CAUGHT, TOLD, VISIBLE, RIGHT) if kind in kinds)
            mutants[worst] += 1
            if worst == SILENT:
                print(f"SILENT {mutation.shown} in {[name for kind, name in found if kind == SILENT]}", flush=True)
            if mutants.total() == asked.count:
                break
    print(f"{mutants.total()} mutations that change a text: {dict(mutants)}; kernels: {dict(outputs)}")
    wrong = mutants[CAUGHT] + mutants[TOLD] + mutants[SILENT]
    print(f"of {wrong} that make a kernel wrong, {mutants[CAUGHT] + mutants[TOLD]} are refused or told everywhere")
    return int(mutants[SILENT] > 0.05 * wrong)


if __name__ == "__main__":
    raise SystemExit(main())
