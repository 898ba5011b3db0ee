"""A file as if it held what its kernels import: macros, helpers and constants stand behind the imports that bring them.

The passes then need no notion of other files. What was put in is taken out again at the end; text of another file is
never changed, so a kernel whose macro would have to change is refused (TL914).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst

from tl2npu.across.functions import (
    Surroundings,
    Ungraftable,
    forwarded_to,
    kind_of,
    made_by,
    operand,
    text_of,
    value_text,
)
from tl2npu.across.imports import DOT, Import, Imports, Made
from tl2npu.across.modules import display
from tl2npu.across.symbols import Constant, Definition, External, Function, Symbols
from tl2npu.across.values import Value
from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.source.bound import canonical, is_tilelang
from tl2npu.source.edits import Edits
from tl2npu.source.index import Foreign, Index
from tl2npu.source.names import Names
from tl2npu.source.tree import mentioned, walk

_LIMIT = 200


@dataclass(frozen=True, eq=False)
class Graft:
    """One statement that was put in. ``anchor`` is the node of the name that it binds, which every edit keeps.

    ``imported``: the file itself imports the name, or assigns it; else the name is only there for other grafts.
    ``through``: the module of TileLang for which it imports an object of the repository.
    """

    node: cst.BaseStatement
    anchor: cst.Name
    name: str
    imported: bool
    foreign: Foreign
    through: str | None = None


@dataclass(eq=False)
class Grafted:
    """A file with its grafts. ``made``: name -> the assignment of the file that its macro stands behind.

    ``symbols`` knows what all of it rests on. ``texts``: what stands in the file for names that stand for several.
    """

    index: Index
    grafts: list[Graft]
    made: dict[str, cst.Assign]
    symbols: Symbols
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """The other files that were read with the digests of their bytes, as results have them."""
        return self.symbols.files

    @property
    def places(self) -> tuple[tuple[str, str, str], ...]:
        """Where the modules are that were looked for, as results have it."""
        return self.symbols.modules


def grafted(original: Index, path: str, text: str) -> Grafted:
    """The file with what its kernels take from other modules of the repository.

    ``path``: where the file stands, or would stand.
    """
    file = Path(path).absolute()
    symbols = Symbols()
    imports = Imports(original, file, text, symbols)
    if not imports:
        return Grafted(original, [], {}, symbols)
    symbols.reads(file, text, original.python)
    return _Grafter(original, imports, symbols).run()


@dataclass(eq=False)
class _Grafter:
    original: Index
    imports: Imports
    symbols: Symbols
    behind: dict[int, tuple[cst.CSTNode, list[Graft]]] = field(default_factory=dict)
    made: dict[str, cst.Assign] = field(default_factory=dict)
    known: dict[int, str] = field(default_factory=dict)  # function -> the name of its graft

    def run(self) -> Grafted:
        index = self.original
        uses = self.imports.attributes()
        if uses:
            edits = Edits(index)
            for use in uses:
                edits.replace(use.node, cst.Name(use.name, use.node.lpar, use.node.rpar))
            index = index.including(edits.apply(index.module), {})
        self.names = Names(index)
        every = {use.name: found for use in uses if (found := self.imports.import_of(use)) is not None}
        for item in (*self.imports.wanted(), *every.values()):
            self._import(item)
        moved = {id(old): new for old, new in zip(self.original.statements, index.statements, strict=True)}
        self.behind = {id(moved[key]): (moved[key], grafts) for key, (_, grafts) in self.behind.items()}
        for made in self.imports.makers(index):
            self._make(index, made)
        edits = Edits(index)
        for node, grafts in self.behind.values():
            line = index.parent(node) if isinstance(node, cst.BaseSmallStatement) else node
            if isinstance(line, (cst.SimpleStatementLine, cst.Try, cst.ClassDef)) and grafts:
                edits.replace_many(line, [line, *(graft.node for graft in grafts)])
        grafts = [graft for _, several in self.behind.values() for graft in several]
        foreign = {
            id(inner): graft.foreign
            for graft in grafts
            for inner in walk(graft.node)
            if isinstance(inner, (cst.BaseSmallStatement, cst.BaseCompoundStatement))
        }
        done = self.original.including(edits.apply(index.module), foreign) if edits else index
        return Grafted(done, grafts, self.made, self.symbols, {use.name: use.text for use in uses})

    def _import(self, item: Import) -> None:
        found = item.definition
        if isinstance(found, Constant):
            self._put(item.statement, item.name, f"_ = {_literal(found.value)}\n", None)
        elif isinstance(found, External):
            self._language(item, found.dotted, found.through)
        elif isinstance(found, Function) and (dotted := forwarded_to(found, self.symbols)) is not None:
            self._language(item, dotted)
        elif isinstance(found, Function) and kind_of(found, self.symbols) in ("macro", "helper", "importer"):
            self.known[id(found.node)] = item.name
            if not self._function(item.statement, item.name, found, found.node, {}):
                del self.known[id(found.node)]

    def _language(self, item: Import, dotted: str, through: bool = False) -> None:
        """An import of what the name means, if that is of TileLang and the file does not say so itself."""
        module, _, name = dotted.rpartition(".")
        if is_tilelang(dotted) and self.names.resolve(cst.Name(item.name)) != canonical(dotted):
            text = f"from {module} import {name} as _\n" if module else f"import {name} as _\n"
            self._put(item.statement, item.name, text, None, through=dotted if through else None)

    def _function(
        self,
        at: cst.CSTNode,
        name: str,
        function: Function,
        node: ast.FunctionDef,
        given: Mapping[str, str],
        own: bool = True,
    ) -> bool:
        """Put a function behind a statement, with all that it needs; False if that cannot be."""
        before = {key: len(several) for key, (_, several) in self.behind.items()}
        try:
            text, bare = text_of(function, node, self.symbols, self.surroundings(at), given)
        except Ungraftable:
            for key, (_, several) in self.behind.items():
                del several[before.get(key, 0) :]
            return False
        self._put(at, name, text, (function, node), bare, own)
        return True

    def _put(
        self,
        at: cst.CSTNode,
        name: str,
        text: str,
        source: tuple[Function, ast.FunctionDef] | None,
        bare: frozenset[str] = frozenset(),
        own: bool = True,
        through: str | None = None,
    ) -> None:
        index = Index.parse(text, own=True)
        node = index.module.body[0]
        anchor = cst.Name(name)
        path, line = "", 1
        if isinstance(node, cst.FunctionDef) and source is not None:
            path, line = display(source[0].module.path), first_line(source[1])
            node = node.with_changes(name=anchor, returns=None, params=_without_annotations(node.params, bare))
        else:
            placeholder = next(n for n in walk(node) if isinstance(n, cst.Name) and n.value == "_")
            edits = Edits(index)
            edits.replace(placeholder, anchor)
            node = edits.apply(index.module).body[0]
        assert isinstance(node, cst.BaseStatement)
        graft = Graft(node, anchor, name, own, Foreign(path, line, index), through)
        self.behind.setdefault(id(at), (at, []))[1].append(graft)

    def surroundings(self, at: cst.CSTNode) -> Surroundings:
        """The file, for texts that go behind a statement."""

        def keeps(name: str, found: Definition) -> bool:
            if isinstance(found, External):
                return self.names.resolve(cst.Name(name)) == canonical(found.dotted)
            return isinstance(found, Constant) and name in self.imports.used and self.imports.means(name) == found

        def helper(function: Function) -> str:
            name = self.known.get(id(function.node))
            if name is not None and DOT not in name:
                return name
            if kind_of(function, self.symbols) not in ("macro", "helper") or len(self.known) > _LIMIT:
                raise Ungraftable(f"it calls `{function.node.name}`")
            name = self.imports.free_name(function.node.name, function.module.path.stem, self.known.values())
            self.known[id(function.node)] = name
            if not self._function(at, name, function, function.node, {}, own=False):
                raise Ungraftable(f"it calls `{function.node.name}`")
            return name

        def spell(dotted: str) -> str | None:
            return self.names.spell(canonical(dotted))

        return Surroundings(spell, keeps, self.imports.binds, helper)

    def _make(self, index: Index, made: Made) -> None:
        """``x = make_macro(a, b)``: the macro that it makes stands behind it, with the arguments in its text."""
        macros = made_by(made.maker, self.symbols)
        if macros is None or len(macros) != len(made.targets):
            return
        try:
            given = arguments(index, made, self.symbols, self.surroundings(made.statement))
        except Ungraftable:
            return
        for target, macro in zip(made.targets, macros, strict=True):
            if self._function(made.statement, target, made.maker, macro, given):
                self.made[target] = made.statement


def _literal(value: Value) -> str:
    """The text of a value; the keys of dicts as most files write them, since new keys are written alike."""
    if not isinstance(value, dict):
        return repr(value)
    keys = [json.dumps(key) if isinstance(key, str) else repr(key) for key in value]
    return f"{{{', '.join(f'{key}: {item!r}' for key, item in zip(keys, value.values(), strict=True))}}}"


def first_line(node: ast.FunctionDef) -> int:
    """Where a function begins, its decorators included."""
    return min([node.lineno, *(item.lineno for item in node.decorator_list)])


def _without_annotations(params: cst.Parameters, bare: frozenset[str]) -> cst.Parameters:
    def stripped(several: object) -> object:
        assert isinstance(several, (list, tuple))
        return [p.with_changes(annotation=None) if p.name.value in bare else p for p in several]

    if not bare:
        return params
    fields = ("posonly_params", "params", "kwonly_params")
    return params.with_changes(**{name: stripped(getattr(params, name)) for name in fields})


_LONGEST = 160
_PURE = (
    *(cst.Name, cst.Attribute, cst.BaseNumber, cst.SimpleString, cst.Tuple),
    *(cst.BinaryOperation, cst.UnaryOperation, cst.BooleanOperation, cst.Comparison, cst.IfExp),
)


def arguments(index: Index, made: Made, symbols: Symbols, there: Surroundings) -> dict[str, str]:
    """The variables of a function that makes macros, when it returns.

    Raises :class:`Ungraftable` where an argument may change later.
    """
    params = made.maker.node.args
    if params.vararg is not None or params.kwarg is not None:
        raise Ungraftable("it takes any number of arguments")
    positional = [arg.arg for arg in (*params.posonlyargs, *params.args)]
    given: dict[str, str] = {}
    for number, arg in enumerate(made.call.args):
        if arg.star or (arg.keyword is None and number >= len(positional)):
            raise Ungraftable("its arguments cannot be told apart")
        _refuse_late(index, made, arg.value)
        given[arg.keyword.value if arg.keyword is not None else positional[number]] = operand(_one_line(arg.value))
    defaults = dict(zip(reversed(positional), reversed(params.defaults), strict=False))
    defaults |= {arg.arg: value for arg, value in zip(params.kwonlyargs, params.kw_defaults, strict=True) if value}
    for name in [*positional, *(arg.arg for arg in params.kwonlyargs)]:
        if name not in given:
            if name not in defaults:
                raise Ungraftable(f"`{name}` is not given")
            given[name] = value_text(made.maker, defaults[name], symbols, there, {})
    for statement in made.maker.node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            given[statement.targets[0].id] = value_text(made.maker, statement.value, symbols, there, given)
    if any(len(text) > _LONGEST for text in given.values()):
        raise Ungraftable("its values are long expressions")
    return given


def _one_line(value: cst.BaseExpression) -> str:
    text = code(value)
    if "\n" in text or "\r" in text:
        raise Ungraftable("an argument is broken over several lines")
    return text


def _refuse_late(index: Index, made: Made, value: cst.BaseExpression) -> None:
    """An argument is worked out once, at the call: its names must keep their values from there on."""
    if any(isinstance(part, cst.BaseExpression) and not isinstance(part, _PURE) for part in walk(value)):
        raise Ungraftable(f"`{code(value)}` may do something")
    around = index.enclosing(made.statement, cst.FunctionDef)
    if index.enclosing(made.statement, cst.For, cst.While) is not None:
        raise Ungraftable("it is called in a loop")
    names = mentioned(value)
    later = False
    for statement in index.statements:
        if later and names & assigned_names(statement) and index.enclosing(statement, cst.FunctionDef) is around:
            raise Ungraftable(f"`{code(value)}` changes later")
        later = later or statement is made.statement
