"""A file with Triton kernels as a file with TileLang kernels for a GPU: text to text."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, cast

from tl2npu.across.symbols import Symbols
from tl2npu.codes import finding
from tl2npu.results import Diagnostic
from tl2npu.tile.check import Malformed, check
from tl2npu.tile.ir import Kernel, statements, writes
from tl2npu.tile.row_blocks import DependentRows, with_row_blocks
from tl2npu.tile.unit_axis import with_unit_axes
from tl2npu.tile.write.tilelang import factory
from tl2npu.triton.a5.reader import AscendReader, is_ascend
from tl2npu.triton.comments import comments_of, placed_comments
from tl2npu.triton.host.binding import Binding, bind
from tl2npu.triton.host.decorators import Tuning, tuning
from tl2npu.triton.host.expressions import LaunchSite
from tl2npu.triton.host.guesses import Guesses
from tl2npu.triton.host.held import Unneeded, bookkeeping
from tl2npu.triton.host.idle import grids, idle
from tl2npu.triton.host.imported import launched_in
from tl2npu.triton.host.rewrite import (
    Launched,
    Splice,
    asserted,
    call,
    checks,
    copies,
    defaults,
    spliced,
    with_imports,
    without,
    without_blocks,
)
from tl2npu.triton.host.source import TritonFile, parse
from tl2npu.triton.host.variants import LIMIT, Choice, Tree, leaves, stable
from tl2npu.triton.host.wrapped import of_module, unused_helpers, unused_names
from tl2npu.triton.read.kernel import read
from tl2npu.triton.read.spec import Spec
from tl2npu.triton.read.tle import Reader
from tl2npu.triton.refused import Refused, Undecided

FoundT = TypeVar("FoundT")

_LANGUAGE = re.compile(r"\bT\.(?=[A-Za-z])")
"""TileLang's names in a text of the writer."""


@dataclass
class Outcome:
    """What became of a Triton kernel: ``refused`` says why it stays; ``configurations``: of how many it has one;
    ``scalars``: it takes some itself.
    """

    name: str
    line: int
    refused: Diagnostic | None = None
    configurations: int = 1
    scalars: bool = False
    notes: list[Diagnostic] = field(default_factory=list)


@dataclass(frozen=True)
class Translated:
    """The new text, which is the old one where nothing could be translated, and every kernel of the file; ``specs``:
    factory -> the launch that it was made for."""

    text: str
    kernels: tuple[Outcome, ...]
    specs: Mapping[str, Spec] = field(default_factory=dict)


def to_tilelang(
    text: str,
    leave: Mapping[str, Diagnostic] = MappingProxyType({}),
    rows_per_block: int = 1,
    one_row: Mapping[str, str] = MappingProxyType({}),
    chosen: Mapping[str, int] = MappingProxyType({}),
    tuned: Sequence[str] = (),
    path: Path | None = None,
    symbols: Symbols | None = None,
    constant: Collection[str] = (),
    file: TritonFile | None = None,
) -> Translated:
    """Translate every kernel that can be. ``leave``: kernels that stay, and why.

    ``rows_per_block``: how many rows a block computes where one of the Triton kernel computes one. ``one_row``: kernels
    for which it stays one, and why. ``chosen``: the configurations of ``autotune`` that kernels get, if not the first.
    ``tuned``: ``NAME=VALUE`` for constants whose configurations are not seen. ``path``: where the file stands, and
    ``symbols`` what looks up the names that it imports; without them only the file itself is read. ``constant``:
    kernels whose scalars are constants of the factory. ``file``: the text as it was read before, with the same path.

    Raises ``SyntaxError`` for text that is no Python.
    """
    file = file or parse(text, path, symbols)
    leave = {**dict(_launched_elsewhere(file, path)), **leave} if path is not None else leave
    return _Translation(text, file, leave, rows_per_block, one_row, chosen, tuned, constant).done()


def _launched_elsewhere(file: TritonFile, path: Path) -> Iterator[tuple[str, Diagnostic]]:
    """The kernels that other files of the repository launch, and this one does not: each goes to those."""
    here = {site.kernel for site in file.launches}
    for name, node in file.kernels.items():
        if name not in here and (others := launched_in(path, node)):
            text = f"`{name}` is launched in {' and '.join(others)}: migrate that, its factory stands beside the launch"
            yield name, replace(finding("TL501", node.lineno, text, name), help="")


class _Translation:
    def __init__(
        self,
        text: str,
        file: TritonFile,
        leave: Mapping[str, Diagnostic],
        rows: int,
        one_row: Mapping[str, str],
        chosen: Mapping[str, int],
        tuned: Sequence[str],
        constant: Collection[str],
    ) -> None:
        self.constant = constant
        self.text, self.file, self.leave, self.rows, self.one_row = text, file, leave, rows, one_row
        self.chosen = chosen
        self.tuned = {
            name.strip(): ast.literal_eval(value.strip()) for name, _, value in (t.partition("=") for t in tuned)
        }
        self.reader = AscendReader if any(map(is_ascend, file.source.aliases.values())) else Reader
        self.splices: list[Splice] = []
        self.guesses: dict[tuple[int, int, str], Guesses] = {}
        self.arms: dict[int, str] = {}
        self.comments = comments_of(text)
        self.specs: dict[str, Spec] = {}
        names = {item.id for item in ast.walk(file.tree) if isinstance(item, ast.Name)}
        names |= {item.arg for item in ast.walk(file.tree) if isinstance(item, ast.arg)}
        self.names = names | {item.name for item in ast.walk(file.tree) if isinstance(item, ast.FunctionDef)}
        self.alias = "T" if "T" not in names else "TL"

    def done(self) -> Translated:
        outcomes = []
        gone: set[str] = set()
        for name, node in self.file.kernels.items():
            outcome = Outcome(name, node.lineno)
            outcomes.append(outcome)
            if name in self.leave:
                outcome.refused = self.leave[name]
                continue
            try:
                number = self.chosen.get(name, 0)
                tuned = tuning(node, self.file.scope, number, path=self.file.path, given=self.tuned)
                outcome.configurations = tuned.many
                splices, outcome.notes, outcome.scalars = self.kernel(name, node, tuned)
            except Refused as refused:
                found = finding(refused.code, refused.line, refused.message, name)
                outcome.refused = replace(found, help=refused.help or found.help)
                continue
            self.splices += splices
            gone.add(name)
        for node in self.file.unread:
            text = f"`{node.name}` runs as a kernel, and nothing that is read makes it one"
            outcomes.append(Outcome(node.name, node.lineno, finding("TL560", node.lineno, text, node.name)))
        if not gone:
            return Translated(self.text, tuple(outcomes))
        self.splices += self.device_functions(gone)
        self.splices += filter(None, map(self.branches, self.file.chosen))
        self.splices = list(dict.fromkeys(self.splices))  # a statement may serve two kernels
        device = {n.id for f in self.file.jitted.values() for n in ast.walk(f) if isinstance(n, ast.Name)}
        text = spliced(self.text, self.splices)
        decorators = [item for name in gone for item in self.file.kernels[name].decorator_list]
        left = [Unneeded(stmt, last=False) for stmt in unused_names(text, self.file.source.aliases)]
        helpers = unused_helpers(text, decorators)
        device |= {n.id for f in helpers for n in ast.walk(f) if isinstance(n, ast.Name)}
        left += [Unneeded(stmt, last=False) for stmt in helpers]
        text = spliced(text, without(text, left))
        names = grids(site.call for site in self.file.launches if site.kernel in gone)
        while dead := list(idle(text, names)):  # `blocks = cdiv(...)` is idle once `grid = (blocks,)` is gone
            names |= {node.id for stmt in dead for node in ast.walk(stmt) if isinstance(node, ast.Name)}
            text = spliced(text, without(text, [Unneeded(stmt, last=False) for stmt in dead]))
        return Translated(with_imports(text, self.alias, device), tuple(outcomes), self.specs)

    def kernel(self, name: str, node: ast.FunctionDef, tuned: Tuning) -> tuple[list[Splice], list[Diagnostic], bool]:
        """The edits for one kernel and its launches, what is worth a note, and whether it takes scalars itself."""
        sites = [site for site in self.file.launches if site.kernel == name]
        if not sites:
            raise Refused("TL510", node.lineno, f"nothing in the file launches `{name}`")
        if not any(node is stmt for stmt in of_module(self.file.tree.body)):
            raise Refused("TL543", node.lineno, f"`{name}` is defined inside of another function")
        if name in self.file.twice:
            raise Refused("TL543", node.lineno, f"`{name}` is defined more than once")
        rows = self.rows, self.one_row.get(name)
        key = name, str(tuned.values), rows, name in self.constant
        trees = self.once(key, lambda: [self.variants(site, node, tuned) for site in sites])
        texts: dict[str, str] = {}

        def with_name(tree: Tree[Launched]) -> Tree[Launched]:
            if isinstance(tree, Choice):
                yes, no = with_name(tree.yes), with_name(tree.no)
                return yes if _lines(yes, "") == _lines(no, "") else Choice(tree.test, yes, no)
            if tree is None:
                return None
            text = self.once(id(tree), lambda: self.factory(tree, node, tuned))
            if text not in texts:
                texts[text] = self.free_name(name, set(texts.values()))
                self.specs[texts[text]] = tree.binding.spec
            return replace(tree, kernel=replace(tree.kernel, name=texts[text]))

        trees = [with_name(tree) for tree in trees]
        launches = [launched for tree in trees for launched in leaves(tree)]
        parts = [_at_launch(site, tree) for site, tree in zip(sites, trees, strict=True)]
        arms = {id(arm) for node in self.file.chosen for arm in (*node.body, *node.orelse)}
        new = {id(site.call): "\n".join(e.text for e in part) for site, part in zip(sites, parts, strict=True)}
        unneeded = bookkeeping(self.file.tree, name, self.file.jitted.values(), new)
        edits = without(self.text, unneeded)
        for site, tree, part in zip(sites, trees, parts, strict=True):
            if id(site.stmt) in arms:
                self.arms[id(site.stmt)] = "\n".join(_lines(tree, "    "))
            else:
                edits += part
        edits += without(self.text, [Unneeded(stmt, last=False) for stmt in self.file.made.get(name, ())])
        first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
        factories = [self.named(text, name, kernel) for text, kernel in texts.items()]
        text = textwrap.indent("\n\n\n".join(factories), " " * node.col_offset)
        edits.append(Splice((first, 0), (node.end_lineno or first, _width(self.text, node)), text))
        notes = self.notes(name, node, tuned, launches)
        if unneeded:
            count = "this statement is" if len(unneeded) == 1 else f"this and {len(unneeded) - 1} more statements are"
            keeps = (item.stmt for item in unneeded if name in ast.unparse(item.stmt))
            text = f"{count} left out: the new launch needs nothing of the compiled `{name}`"
            notes.append(finding("TL507", next(keeps).lineno, text, name))
        return edits, notes, any(launched.kernel.scalars for launched in launches)

    def once(self, key: object, work: Callable[[], FoundT]) -> FoundT:
        """What does not change where the file is translated again, with other kernels left as they are."""
        kept = self.file.kept
        if key not in kept:
            try:
                kept[key] = work()
            except Refused as refused:
                kept[key] = refused
        found = kept[key]
        if isinstance(found, Refused):
            raise found
        return cast(FoundT, found)

    def variants(self, site: LaunchSite, node: ast.FunctionDef, tuned: Tuning) -> Tree[Launched]:
        """One launch, in each case where conditions of the host code decide what the kernel is."""
        try:
            return self.in_memory(site, node, tuned)
        except Undecided as undecided:
            test, assumed, given = undecided.test, site.scope.assumed, site.given
            if test in {**assumed, **given} or len(assumed) + len(given) == LIMIT or not site.alone:
                raise
            if stable(test, site.function):
                cases = [self.file.under(site, {**assumed, test: holds}) for holds in (True, False)]
            else:
                cases = [site.where({**given, test: holds}) for holds in (True, False)]
                if None in cases:
                    raise
            yes, no = (None if case is None else self.variants(case, node, tuned) for case in cases)
            if yes is None and no is None:
                raise
            return Choice(test, yes, no)

    def in_memory(self, site: LaunchSite, node: ast.FunctionDef, tuned: Tuning) -> Launched:
        """One launch; tensors that are accessed as no shape of them fits are taken as they lie in memory."""
        guesses = self.guesses.setdefault(site.place, Guesses())  # those of another case of the same launch
        first, found, binding = cast(Refused | None, None), cast(Launched | None, None), cast(Binding | None, None)
        seen, ranks = site, dict[str, int]()
        while True:
            if guesses.ranks != ranks:
                ranks = dict(guesses.ranks)
                seen = self.file.under(site, site.scope.assumed, ranks) or site
            try:
                binding = bind(seen, node, self.file.source, tuned, guesses.flat)
                made = self.launched(seen, node, binding)
                if not guesses.another(binding, guesses.doubtful(binding), True):
                    return made
                found = found or made
            except Refused as refused:
                if found is None and isinstance(refused, Undecided):
                    raise
                first = first or refused
                if refused.tensor and guesses.another(binding, refused.tensor):
                    continue
                if found is None and binding is not None and binding.tests:
                    asks, function = first.asks, site.function
                    _, test = min(binding.tests, key=lambda t: (t[0] not in asks, not stable(t[1], function)))
                    raise Undecided(first.code, first.line, first.message, test, first.help) from None
                if not guesses.another(binding, guesses.last):
                    if found is not None:
                        return found
                    raise first from None

    def launched(self, site: LaunchSite, node: ast.FunctionDef, binding: Binding) -> Launched:
        """One launch as a kernel of the IR."""
        kernel = read(binding.spec, self.reader)
        if any(isinstance(item, ast.With) for item in ast.walk(node)):
            _apart(binding, kernel)
        if kernel.name in self.constant:
            order = [arg.arg for arg in node.args.args]
            sizes = sorted((*kernel.sizes, *kernel.scalars), key=lambda n: order.index(n) if n in order else len(order))
            kernel = replace(kernel, sizes=tuple(sizes), scalars=())
        kernel, one_row = self.with_rows(kernel)
        kernel = with_unit_axes(kernel)
        try:
            check(kernel)
        except Malformed as error:
            text = f"internal error: the translation is not well formed, {error}; report it with the kernel"
            raise Refused("TL902", node.lineno, text) from error
        if any(extent.names - set(kernel.sizes) for extent in kernel.launch.grid):
            raise Refused("TL511", site.call.lineno, "the grid is not known")
        return Launched(binding, kernel, checks(binding, kernel), one_row)

    def with_rows(self, kernel: Kernel) -> tuple[Kernel, str]:
        """The kernel with as many rows in a block as asked for, and what to say of a block that has one."""
        idle = "each block computes one row, which leaves most of the vector unit idle"
        try:
            wide = with_row_blocks(kernel, max(2, self.rows))
        except DependentRows as found:
            return kernel, f"`--rows-per-block` does not apply: line {found.line}: {found.reason}" * (self.rows > 1)
        if self.rows == 1:
            return kernel, idle
        if kernel.name in self.one_row:
            return kernel, f"{idle}; with {self.rows} rows it is refused: {self.one_row[kernel.name]}"
        return wide, ""

    def factory(self, launched: Launched, node: ast.FunctionDef, tuned: Tuning) -> str:
        """The text of the factory."""
        kernel, binding = launched.kernel, launched.binding
        comments = placed_comments(self.comments, kernel, node, list(self.file.jitted.values()))
        text = factory(kernel, defaults(binding, kernel), comments, _docstring(node))
        if self.alias != "T":
            text = _LANGUAGE.sub(f"{self.alias}.", text)
        return _black(text).rstrip("\n")

    def branches(self, node: ast.If) -> Splice | None:
        """The launch of either of two kernels; one that stays is launched by its own name. None if both stay."""
        arms = (*node.body, *node.orelse)
        if not any(id(arm) in self.arms for arm in arms):
            return None
        old = [f"    {ast.unparse(arm)}" for arm in arms]
        yes, no = (self.arms.get(id(arm), text) for arm, text in zip(arms, old, strict=True))
        text = f"if {ast.unparse(node.test)}:\n{yes}\nelse:\n{no}".replace("\n", f"\n{' ' * node.col_offset}")
        return Splice((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0), text)

    def free_name(self, name: str, taken: set[str]) -> str:
        """``name``, or for one more factory ``name_2`` and so on, as verification expects it."""
        number, found = 1, name
        while found in taken or (number > 1 and found in self.names):
            number += 1
            found = f"{name}_{number}"
        return found

    def named(self, text: str, old: str, new: str) -> str:
        """A second factory goes by another name."""
        return text if old == new else text.replace(f"def {old}(", f"def {new}(", 1)

    def device_functions(self, gone: set[str]) -> list[Splice]:
        """Device functions that only translated kernels call go with them."""
        left = {name: node for name, node in self.file.jitted.items() if name not in gone}
        needed = {name for name in self.file.kernels if name not in gone}
        while True:
            more = {
                item.id
                for name in needed
                for item in ast.walk(self.file.jitted[name])
                if isinstance(item, ast.Name) and item.id in left
            } - needed
            if not more:
                break
            needed |= more
        called = {
            item.id
            for part in (*map(self.file.jitted.get, gone), *(s.call for s in self.file.launches if s.kernel in gone))
            for item in ast.walk(part or ast.Pass())
            if isinstance(item, ast.Name) and item.id in left
        }
        found: list[Splice] = []
        for name in sorted(self.closure(called, left) - needed):
            node = left[name]
            if node.col_offset == 0:
                first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
                found.append(Splice((first, 0), (node.end_lineno or first, _width(self.text, node)), ""))
        return found

    def closure(self, names: set[str], left: Mapping[str, ast.FunctionDef]) -> set[str]:
        """Names with those that they call."""
        while True:
            more = {
                item.id
                for name in names
                for item in ast.walk(left[name])
                if isinstance(item, ast.Name) and item.id in left
            } - names
            if not more:
                return names
            names = names | more

    def notes(self, name: str, node: ast.FunctionDef, tuned: Tuning, launches: Sequence[Launched]) -> list[Diagnostic]:
        """What a reader of the result should know."""
        found = []
        for launched in launches:
            line = launched.binding.site.call.lineno
            for text in launched.checks:
                code = "TL502" if ".is_contiguous()" in text else "TL503"
                found.append(finding(code, line, f"the host checks `{text}` before the launch", name))
            for option in launched.binding.options:
                text = f"`{option}` is an option of another compiler, which is left out"
                found.append(finding("TL504", line, text, name))
            if launched.one_row:
                note = finding("TL506", line, launched.one_row, name)
                found.append(note if self.rows == 1 else replace(note, help=""))  # the option was given
            for tensor in sorted(launched.binding.spec.flat & {param.name for param in launched.kernel.params}):
                text = f"`{tensor}` is moved row by row: the steps of its accesses are those of no shape that is known"
                found.append(finding("TL508", line, text, name))
            for tensor in launched.binding.spec.assumed:
                if any(param.name == tensor for param in launched.kernel.params):
                    kind = launched.binding.spec.tensors[tensor].dtype
                    listed = next((types for types in launched.binding.site.scope.listed if f"{kind}+" in types), "")
                    shows = "nothing in the file shows" if kind in ("float32", "int32") else "only the kernel shows"
                    why = "the host allows others" if listed else f"{shows} its element type"
                    found.append(finding("TL505", line, f"`{tensor}` is taken for {kind}: {why}", name))
        for function, variable in sorted({one for launched in launches for one in launched.binding.spec.unset}):
            text = f"`{function}` is read as it is without the environment variable `{variable}`"
            found.append(finding("TL509", node.lineno, text, name))
        extrema = {line for launched in launches for line in launched.binding.spec.extrema}
        if extrema:
            text = (
                "Triton leaves NaN in the data out of this maximum or minimum, the result of an NPU is not documented"
            )
            found.append(replace(finding("TL742", min(extrema), text, name), severity="info"))
        for line, text in self.file.hints[name]:
            found.append(finding("TL593", line, f"{text} orders the work or assigns cores, which is left out", name))
        if tuned.given:
            shown = ", ".join(f"{key}={value!r}" for key, value in tuned.values.items())
            text = f"{shown} by `--tuned`; what the configurations of `autotune` do besides, as a hook, is lost"
            found.append(finding("TL504", tuned.line or node.lineno, text, name))
        if tuned.many > 1 or tuned.filtered:
            rest = "1 other is" if tuned.many == 2 else f"{tuned.many - 1 or 'all'} others are"
            text = f"the first configuration of `autotune` is the default, {rest} not tried"
            if tuned.number:
                text = f"configuration {tuned.number + 1} of `autotune` is the default: those before it do not fit"
            found.append(finding("TL504", tuned.line or node.lineno, text, name))
        return list(dict.fromkeys(found))


def _apart(binding: Binding, kernel: Kernel) -> None:
    """Refuse one tensor under two names, one of them written, where cores run at the same time."""
    written = {name for stmt in statements(kernel.body) for name in writes(stmt)}
    texts: dict[str, str] = {}
    for param in kernel.params:
        other = texts.setdefault(binding.arguments[param.name], param.name)
        if other != param.name and {other, param.name} & written:
            text = f"`{other}` and `{param.name}` are the same tensor, and the kernel writes it"
            raise Refused("TL561", binding.site.call.lineno, text)


def _at_launch(site: LaunchSite, tree: Tree[Launched]) -> list[Splice]:
    """The new call, and the checks in front of its statement; a choice of calls in place of the statement."""
    node, stmt = site.call, site.stmt
    indent = " " * stmt.col_offset
    alone = site.alone
    if isinstance(tree, Choice) or (tree is not None and alone and copies(tree)):
        text = "\n".join(_lines(tree, "")).replace("\n", f"\n{indent}")
        return [Splice((stmt.lineno, stmt.col_offset), (stmt.end_lineno or 0, stmt.end_col_offset or 0), text)]
    assert tree is not None
    if copies(tree):
        raise Refused("TL521", node.lineno, "a part of another tensor is written in the middle of a statement")
    new = f"\n{indent}".join(_guarded(tree) if alone else [call(tree)])
    edits = [Splice((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0), new)]
    if tree.checks:
        lines = "".join(f"{asserted(check)}\n{indent}" for check in tree.checks)
        edits.append(Splice((stmt.lineno, stmt.col_offset), (stmt.lineno, stmt.col_offset), lines))
    return edits


def _guarded(launched: Launched) -> list[str]:
    """The call, where there may be no block under a condition."""
    guard = without_blocks(launched)
    return [call(launched)] if guard is None else [f"if {guard}:", f"    {call(launched)}"]


def _lines(tree: Tree[Launched], indent: str) -> list[str]:
    """A tree of launches as statements."""
    if tree is None:
        return [f"{indent}pass"]
    if not isinstance(tree, Choice):
        copied = copies(tree)
        before = [*map(asserted, tree.checks), *(f"{n} = {t}.contiguous()" for t, n in copied.items())]
        after = [f"{text}.copy_({name})" for text, name in copied.items()]
        return [f"{indent}{line}" for line in (*before, *_guarded(tree), *after)]
    rest = _lines(tree.no, indent if isinstance(tree.no, Choice) else f"{indent}    ")
    tail = [f"{indent}el{rest[0].strip()}", *rest[1:]] if isinstance(tree.no, Choice) else [f"{indent}else:", *rest]
    return [f"{indent}if {tree.test}:", *_lines(tree.yes, f"{indent}    "), *(tail if tree.no is not None else [])]


def _width(text: str, node: ast.FunctionDef) -> int:
    return len(text.splitlines()[(node.end_lineno or 1) - 1].encode())


def _docstring(node: ast.FunctionDef) -> str | None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return f'"""{first.value.value}"""'
    return None


def _black(text: str) -> str:
    import black

    return black.format_str(text, mode=black.Mode(line_length=110))
