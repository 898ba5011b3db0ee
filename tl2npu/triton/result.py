"""A file with Triton kernels, all the way: TileLang for a GPU, then Developer mode, as one result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path, PurePath
from types import MappingProxyType

from tl2npu import marked
from tl2npu.across.symbols import Symbols
from tl2npu.codes import CODES, finding
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import Change, Diagnostic, Disposition, FileResult, KernelResult
from tl2npu.source.layout import broken
from tl2npu.source.notebook import is_notebook
from tl2npu.suppress import Suppressions
from tl2npu.triton.a5.reader import is_ascend
from tl2npu.triton.check import launches, masks
from tl2npu.triton.evaluate.comparison import Comparison
from tl2npu.triton.host.imported import Placed, placed
from tl2npu.triton.host.source import TritonFile, parse
from tl2npu.triton.host.wrapped import of_module
from tl2npu.triton.migrate import Outcome, Translated, to_tilelang


def check(file: TritonFile, name: str, options: Options) -> Iterator[Diagnostic]:
    """Findings about a kernel of a file and its launches; nothing where the file does not show what they are."""
    yield from masks.check(file, name)
    yield from launches.check(file, name, options)


_BY_SIZE = frozenset({"TL164", "TL700", "TL801", "TL890"})
"""Why a kernel may be refused with one configuration of ``autotune`` and not with another."""
_MOST = 8
"""Configurations of ``autotune`` that are tried for one kernel."""
_EVENTS = frozenset({"TL561", "TL562"})
"""Faults of a kernel with scopes, whoever runs it."""
_ALSO = frozenset({"TL620"})
"""Notes of the second half that say more than that it was done."""
_LINE = re.compile(r"(\bTL\d+) line \d+")
"""A line of the translation, which nobody sees, in a reason."""


def migrate_triton(
    text: str, path: str, options: Options, leave_lines: Mapping[int, Sequence[Diagnostic]] = MappingProxyType({})
) -> FileResult:
    """Migrate the Triton kernels of a file; the new text belongs beside it, in ``FileResult.beside``.

    ``leave_lines``: line of a kernel's ``def`` -> why it stays. A kernel that the second half refuses stays as it is,
    with that refusal at its Triton line. What else is in the file is migrated as ever: in place, where no Triton
    kernel is. Never raises for bad input.
    """
    symbols, place = Symbols(), Path(path).absolute()
    found: list[KernelResult] = []
    told: list[Diagnostic] = []
    refused: list[str] = []
    try:
        symbols.reads(place, text)
        while True:
            given = placed(text, place, symbols, refused)
            left = {number: leave_lines[line] for number, (line, _) in enumerate(given.lines, 1) if line in leave_lines}
            symbols.reads(place, given.text)
            result = _migrated(given.text, path, options, left, symbols)
            result = result if not given.kernels else _in_lines(result, text, given)
            if not (stuck := {k.name for k in result.kernels if k.disposition == "refused"} & given.kernels.keys()):
                break
            refused += sorted(stuck)
            found += [kernel for kernel in result.kernels if kernel.name in stuck]
            told += [item for item in result.diagnostics if item.kernel in stuck]
    except (SyntaxError, ValueError) as error:
        return FileResult(path, text, text, f"line {getattr(error, 'lineno', 1)}: {error}")
    return _sorted(result, [*result.kernels, *found], [*result.diagnostics, *told])


def launches_others(text: str, path: str) -> bool:
    """True for a file that launches kernels of other files of the repository."""
    symbols, place = Symbols(), Path(path).absolute()
    try:
        symbols.reads(place, text)
        return bool(placed(text, place, symbols).kernels)
    except (SyntaxError, ValueError):
        return False


def _in_lines(result: FileResult, text: str, given: Placed) -> FileResult:
    """The result of a text with kernels of other files as that of the text without them."""

    def moved(item: Diagnostic) -> Diagnostic:
        end = None if item.end_line is None else given.line(item.end_line)
        message = f"{item.message}{given.said(item.line)}"
        return replace(item, line=given.line(item.line), end_line=end, message=message)

    return replace(
        result,
        old_text=text,
        new_text=text if result.new_text == given.text else result.new_text,
        kernels=tuple(replace(kernel, line=given.line(kernel.line)) for kernel in result.kernels),
        diagnostics=tuple(map(moved, result.diagnostics)),
        changes=tuple(replace(item, line=given.line(item.line)) for item in result.changes),
    )


def _migrated(
    text: str, path: str, options: Options, leave_lines: Mapping[int, Sequence[Diagnostic]], symbols: Symbols
) -> FileResult:
    """The result for a text that has all its kernels."""
    plain, place = replace(options, notes=False), Path(path).absolute()
    file = parse(text, place, symbols)
    leave = dict(_left(file, path, options, leave_lines))
    one_row: dict[str, str] = {}
    chosen: dict[str, int] = {}
    constant = set(file.kernels) if options.target == "npuir" else set()  # no kernel there takes a float
    while True:
        translated = to_tilelang(
            text, leave, options.rows_per_block, one_row, chosen, options.tuned, place, symbols, constant, file
        )
        stuck = [kernel.name for kernel in translated.kernels if kernel.refused and kernel.name not in leave]
        if back := {name: _next(translated, name, chosen) or 0 for name in stuck if chosen.get(name)}:
            chosen |= back
            continue
        if translated.text == text:
            return _resting(_with_kept(migrate_text(text, path, options, leave_lines), translated), symbols)
        sources = {name: Comparison(spec) for name, spec in translated.specs.items()}
        done = migrate_text(translated.text, beside(path), plain, sources=sources)
        if done.error is not None:
            return FileResult(path, text, text, done.error)
        homes = _Homes(translated)
        refused = _refused(done, homes)
        by_value = {kernel.name for kernel in translated.kernels if kernel.scalars} & refused.keys()
        constant |= by_value  # what is a constant may be written in another way
        wide = {} if options.rows_per_block == 1 else _overflowing(done, homes) | refused
        too_wide = {name: f"{item.code}: {item.message}" for name, item in wide.items() if name not in one_row}
        large = _overflowing(done, homes) | {name: it for name, it in refused.items() if it.code in _BY_SIZE}
        others = {name: number for name in large if (number := _next(translated, name, chosen)) is not None}
        again = by_value | too_wide.keys()
        one_row |= {name: why for name, why in too_wide.items() if name not in by_value}
        chosen |= {name: number for name, number in others.items() if name not in again}
        leave |= (stays := {name: why for name, why in refused.items() if name not in again | others.keys()})
        if again or others or stays:
            continue
        done = _noted(done, plain, translated, homes) if options.notes else done
        return _resting(_result(path, text, done, translated, homes), symbols)


def _noted(done: FileResult, options: Options, translated: Translated, homes: _Homes) -> FileResult:
    """The result with notes: what the first half says of a kernel stands above its factory."""
    said: dict[str, list[Diagnostic]] = {kernel.name: kernel.notes for kernel in translated.kernels}
    above = [(line, note) for name, line in homes.factories() for note in said[name] if marked.matters(note)]
    more = [(line, note.code, note.message) for line, note in above]

    def work(given: str, leave: marked.Leave, alone: Mapping[int, str]) -> FileResult:
        return migrate_text(given, done.path, replace(options, self_check=False), leave, alone=alone)

    return marked.noted(translated.text, options, work, {}, {}, more)


def _resting(result: FileResult, symbols: Symbols) -> FileResult:
    """The result with the other files that it rests on."""
    depends, places = {*result.depends, *symbols.files}, {*result.places, *symbols.modules}
    return replace(result, depends=tuple(sorted(depends)), places=tuple(sorted(places)))


def _next(translated: Translated, name: str, chosen: Mapping[str, int]) -> int | None:
    """The configuration of ``autotune`` to try where a kernel's tiles do not fit with the one that it has: the next,
    and after the last the first again; None where all were tried."""
    many = min(next(kernel.configurations for kernel in translated.kernels if kernel.name == name), _MOST)
    number = chosen.get(name, 0)
    return None if many == 1 or (name in chosen and number == 0) else (number + 1) % many


def _refused(done: FileResult, homes: _Homes) -> dict[str, Diagnostic]:
    """The Triton kernels whose translation the second half refuses, with that refusal at their lines."""
    refused = {}
    for kernel in done.kernels:
        name = homes.of(kernel.line)
        if kernel.disposition == "refused" and name is not None:
            found = next((d for d in done.diagnostics if d.kernel == kernel.name and d.severity == "error"), None)
            if found is not None:
                refused[name] = replace(found, line=homes.lines[name], column=1, end_line=None, kernel=name)
            else:
                code = next((code for code in kernel.codes if CODES[code].severity == "error"), "TL530")
                refused[name] = finding(code, homes.lines[name], kernel.reason, name)
    return refused


def _overflowing(done: FileResult, homes: _Homes) -> dict[str, Diagnostic]:
    """The Triton kernels whose tiles do not fit."""
    names = {kernel.name: homes.of(kernel.line) for kernel in done.kernels}
    found = {names.get(item.kernel or ""): item for item in done.diagnostics if item.code == "TL801"}
    return {name: item for name, item in found.items() if name is not None}


def check_triton(result: FileResult, options: Options) -> FileResult:
    """What ``check`` says of a file, with its Triton kernels."""
    if result.error is not None or result.old_text is None:
        return result
    kernels, found = list(result.kernels), list(result.diagnostics)
    file, suppressions = parse(result.old_text), Suppressions.of(result.old_text)
    found += [item for item in _events(file, result) if not suppressions.covers(item.line, item.code)]
    for name, node in [*file.kernels.items(), *((node.name, node) for node in file.unread)]:
        if options.selects(result.path, name):
            kernels.append(KernelResult(name, node.lineno, "triton", "none", "unchanged", "Triton", ("TL501",)))
            mine = list(check(file, name, options)) if name in file.kernels else []
            found += [item for item in mine if not suppressions.covers(item.line, item.code)]
            text = f"`{name}` is a Triton kernel: checked are its masks and launches, not what it computes"
            said = finding("TL501", node.lineno, text, name)
            found.append(replace(said, help="translate it with `tl2npu migrate`"))
    unused = set(suppressions.unused())
    found = [item for item in found if item.code != "TL904" or (item.line, item.message) in unused]
    return _sorted(result, kernels, found)


def _events(file: TritonFile, result: FileResult) -> Iterator[Diagnostic]:
    """What orders the cores of A5 in a kernel with scopes, and is missing or left over: its reader proves that."""
    if not any(map(is_ascend, file.source.aliases.values())):
        return
    assert result.old_text is not None
    symbols, place = Symbols(), Path(result.path).absolute()
    symbols.reads(place, result.old_text)
    for outcome in to_tilelang(result.old_text, path=place, symbols=symbols).kernels:
        if outcome.refused is not None and outcome.refused.code in _EVENTS:
            yield outcome.refused


def _left(
    file: TritonFile, path: str, options: Options, lines: Mapping[int, Sequence[Diagnostic]]
) -> Iterator[tuple[str, Diagnostic]]:
    """The kernels that nobody tries, and why."""
    for name, node in file.kernels.items():
        if why := lines.get(node.lineno):
            yield name, why[0]
        elif not options.selects(path, name):
            yield name, finding("TL501", node.lineno, "not selected", name)
        elif is_notebook(path):
            found = finding("TL501", node.lineno, "Triton kernels in notebooks are not translated", name)
            yield name, replace(found, severity="error", help="move the kernel and its launch into a `.py` file")


def _with_kept(result: FileResult, translated: Translated) -> FileResult:
    """The result of a file of which every Triton kernel stays."""
    kernels = [*result.kernels, *(_verdict(outcome, None) for outcome in translated.kernels)]
    found = [*result.diagnostics, *(outcome.refused for outcome in translated.kernels if outcome.refused is not None)]
    return _sorted(result, kernels, found)


def _sorted(result: FileResult, kernels: list[KernelResult], found: list[Diagnostic]) -> FileResult:
    """The result with these kernels and findings, by line."""
    kernels.sort(key=lambda kernel: kernel.line)
    found.sort(key=lambda item: (item.line, item.code))
    return replace(result, kernels=tuple(kernels), diagnostics=tuple(found))


def beside(path: str) -> str:
    """Where the result goes: ``kernel.py`` becomes ``kernel_tilelang.py``."""
    place = PurePath(path)
    return place.with_name(f"{place.stem}_tilelang{place.suffix}").as_posix()


def _result(path: str, old: str, done: FileResult, translated: Translated, homes: _Homes) -> FileResult:
    """The result of the translated text as that of the Triton file: lines are those of the user."""
    own = {homes.of(kernel.line): kernel for kernel in done.kernels}
    same = _same_lines(translated.text, old)
    others = {kernel.name for kernel in done.kernels if homes.of(kernel.line) is None}
    kernels = [replace(kernel, line=same.get(kernel.line, 1)) for kernel in done.kernels if kernel.name in others]
    diagnostics = []
    for item in done.diagnostics:
        if item.kernel in others or item.line in same:
            diagnostics.append(replace(item, line=same.get(item.line, 1)))
        elif item.severity != "info" or item.code in _ALSO:
            diagnostics.append(homes.moved(item))
    changes = [replace(item, line=same.get(item.line, 1)) for item in done.changes if item.kernel in others]
    for outcome in translated.kernels:
        kernels.append(_verdict(outcome, own.get(outcome.name)))
        diagnostics += outcome.notes if outcome.refused is None else [outcome.refused]
        if outcome.refused is None:
            text = f"`{outcome.name}` became a TileLang factory"
            changes.append(Change("TL501", outcome.line, text, outcome.name, CODES["TL501"].safety))
            edits = [note for note in outcome.notes if note.safety == "safe"]
            changes += [Change(note.code, note.line, note.message, outcome.name, note.safety) for note in edits]
    new = broken(old, done.new_text or old, path)
    where = beside(path) if new != old else ""
    result = FileResult(path, old, new, None, changes=tuple(changes), beside=where)
    return _sorted(result, kernels, diagnostics)


def _same_lines(new: str, old: str) -> dict[int, int]:
    """Line of the translation -> line of the Triton file, for lines that the translation left as they were."""
    blocks = SequenceMatcher(None, new.splitlines(), old.splitlines(), autojunk=False).get_matching_blocks()
    return {block.a + n + 1: block.b + n + 1 for block in blocks for n in range(block.size)}


def _verdict(outcome: Outcome, kernel: KernelResult | None) -> KernelResult:
    if outcome.refused is not None:
        found = outcome.refused
        stays: Disposition = "unchanged" if found.severity == "info" else "refused"
        return KernelResult(outcome.name, outcome.line, "triton", "none", stays, found.message, (found.code,))
    codes = tuple(sorted({"TL501", *(note.code for note in outcome.notes)}))
    target = kernel.target if kernel is not None else "developer"
    reason = _LINE.sub(r"\1", kernel.reason) if kernel is not None else ""
    checked = None if kernel is None else kernel.checked
    return KernelResult(outcome.name, outcome.line, "triton", target, "migrated", reason, codes, checked=checked)


class _Homes:
    """Which Triton kernel a line of the translation comes from; ``lines``: those of the kernels in the Triton file."""

    def __init__(self, translated: Translated) -> None:
        self.lines = {kernel.name: kernel.line for kernel in translated.kernels}
        self._functions = []
        for node in of_module(ast.parse(translated.text).body):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
                self._functions.append((first, node.end_lineno or first, node.name))

    def of(self, line: int) -> str | None:
        """The Triton kernel; None for a line of something else."""
        return next((self._known(name) for first, last, name in self._functions if first <= line <= last), None)

    def _known(self, factory: str) -> str | None:
        """The Triton kernel that became a factory of this name, perhaps with a number."""
        stem, _, number = factory.rpartition("_")
        return factory if factory in self.lines else stem if number.isdigit() and stem in self.lines else None

    def factories(self) -> Iterator[tuple[str, int]]:
        """Each Triton kernel that was translated, with a line of a factory that it became."""
        for first, _, name in self._functions:
            if (known := self._known(name)) is not None:
                yield known, first

    def moved(self, item: Diagnostic) -> Diagnostic:
        """A finding at a line of the translation, at the kernel's line in the Triton file."""
        name = self.of(item.line) or self._known((item.kernel or "").partition(".")[0])  # it may be at a launch
        return replace(item, line=self.lines.get(name or "", 1), column=1, end_line=None, kernel=name)
