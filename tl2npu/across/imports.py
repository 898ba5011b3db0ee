"""What a file imports from other modules of its repository, as far as its kernels use it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import libcst as cst

from tl2npu.across.functions import kind_of
from tl2npu.across.symbols import (
    Class,
    Constant,
    Definition,
    External,
    Function,
    Instance,
    Key,
    Submodule,
    Symbols,
    link_of,
)
from tl2npu.kernel.expressions import unparenthesised, where_installed
from tl2npu.source.bound import is_tilelang
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import children

_HOLDERS = (ast.Dict, ast.Call)


def own_roots(index: Index, text: str) -> dict[str, cst.CSTNode]:
    """The statements of the module that bind a name of which ``name.part`` or ``name["part"]`` is read, by name."""
    candidates: set[str] = set()
    for statement in index.python.body:
        if isinstance(statement, ast.ClassDef):
            candidates.add(statement.name)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, _HOLDERS):
            candidates |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.value, _HOLDERS):
            candidates |= {statement.target.id} if isinstance(statement.target, ast.Name) else set()
    wanted = {name for name in candidates if re.search(rf"\b{name}\s*[.\[]", text)}
    found: dict[str, cst.CSTNode] = {}
    for line in index.module.body if wanted else ():
        if isinstance(line, cst.ClassDef):
            found |= {line.name.value: line} if line.name.value in wanted else {}
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            targets = [t.target for t in small.targets] if isinstance(small, cst.Assign) else []
            targets += [small.target] if isinstance(small, cst.AnnAssign) else []
            found |= {t.value: small for t in targets if isinstance(t, cst.Name) and t.value in wanted}
    return found


DOT = "\u00b7"
"""Stands for the dot of ``module.name`` where that is one name: a middle dot, which identifiers may hold.

Brackets of ``NAME["key"]`` are written with it as well.
"""

_KERNELS = frozenset({"prim_func", "Kernel"})


@dataclass(frozen=True, eq=False)
class Import:
    """A name that the file imports: ``name``, as the file spells it, is bound by (or used behind) ``statement``."""

    name: str
    definition: Definition
    statement: cst.CSTNode


@dataclass(frozen=True, eq=False)
class Use:
    """``module.name``, ``Class.name`` or ``NAME[key]`` in the code of the file; ``name`` is one name for what follows.

    ``links``: what stands behind ``root``. ``text``: as the file has it.
    """

    node: cst.Attribute | cst.Subscript
    name: str
    root: str
    links: tuple[str | Key, ...]
    text: str


@dataclass(frozen=True, eq=False)
class Made:
    """``a, b = maker(...)``: an assignment of macros that a function makes."""

    targets: tuple[str, ...]
    call: cst.Call
    maker: Function
    statement: cst.Assign


class Imports:
    """The imports of one file; false if none of them leads into the repository and no function makes macros."""

    def __init__(self, index: Index, file: Path, text: str, symbols: Symbols) -> None:
        self._index, self._file, self._text, self.symbols = index, file, text, symbols
        self._bound: dict[str, list[cst.CSTNode]] = {}  # name -> the import statements of the module that bind it
        self._inner: list[tuple[str, str, str | None, cst.CSTNode]] = []
        self._stars: list[cst.CSTNode] = []
        self._leads_inside = False
        self._own = own_roots(index, text)
        self._uses: dict[str, Use] = {}  # by name, the first
        for statement in index.statements:
            if isinstance(statement, (cst.Import, cst.ImportFrom)):
                self._read(statement)

    def __bool__(self) -> bool:
        return self._leads_inside or bool(self._own) or self._may_make_macros

    def _read(self, node: cst.Import | cst.ImportFrom) -> None:
        inside = self._index.enclosing(node, cst.FunctionDef, cst.ClassDef) is not None
        prefix = ""
        if type(node) is cst.ImportFrom:
            prefix = "." * len(node.relative) + (dotted_text(node.module) if node.module else "")
            located = self.symbols.locate(self._file, prefix) is not None
            self._leads_inside |= located
            if type(node.names) is cst.ImportStar:
                self._stars += [node] if located else []
                return
        assert not isinstance(node.names, cst.ImportStar)
        for alias in node.names:
            dotted = dotted_text(alias.name)
            if type(node) is cst.Import:
                located = self.symbols.locate(self._file, dotted) is not None
                self._leads_inside |= located
            name = alias.asname.name if alias.asname is not None else None
            bound = name.value if type(name) is cst.Name else dotted.split(".")[0]
            if not inside:
                self._bound.setdefault(bound, []).append(node)
            elif located and type(node) is cst.ImportFrom:
                self._inner.append((bound, prefix, dotted, node))

    @cached_property
    def _may_make_macros(self) -> bool:
        """A function of the module defines a macro: it may return it."""
        if "macro" not in self._text:
            return False
        return any(
            isinstance(inner, ast.FunctionDef) and any("macro" in ast.unparse(d) for d in inner.decorator_list)
            for statement in self._index.python.body
            if isinstance(statement, ast.FunctionDef) and isinstance(statement.body[-1], ast.Return)
            for inner in statement.body
        )

    @cached_property
    def used(self) -> frozenset[str]:
        """The names in those parts of the file that hold kernels, and in what these use of the file."""
        parts: list[tuple[frozenset[str], frozenset[str], bool]] = []
        owners: dict[str, list[int]] = {}
        configs: set[str] = set()  # host code may compile a kernel
        for number, statement in enumerate(self._index.python.body):
            names: set[str] = set()
            bound: set[str] = {statement.name} if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) else set()
            has_kernel = False
            for node in ast.walk(statement):
                if isinstance(node, ast.Name):
                    names.add(node.id)
                    has_kernel |= node.id in _KERNELS
                    if not isinstance(node.ctx, ast.Load) and not isinstance(statement, ast.FunctionDef):
                        bound.add(node.id)
                elif isinstance(node, ast.Attribute):
                    has_kernel |= node.attr in _KERNELS
                elif isinstance(node, ast.keyword) and node.arg == "pass_configs":
                    configs |= {inner.id for inner in ast.walk(node.value) if isinstance(inner, ast.Name)}
            parts.append((frozenset(names), frozenset(bound), has_kernel))
            for name in bound:
                owners.setdefault(name, []).append(number)
        open_ends = [number for number, part in enumerate(parts) if part[2]]
        found = configs
        seen = set(open_ends)
        while open_ends:
            for name in parts[open_ends.pop()][0] - found:
                found.add(name)
                fresh = [number for number in owners.get(name, ()) if number not in seen]
                seen.update(fresh)
                open_ends += fresh
        return frozenset(found)

    def wanted(self) -> Iterator[Import]:
        """The imported functions, constants and modules of the language that kernels use by a bare name."""
        for name in sorted(self.used):
            if name in self._bound:
                anchor = self._anchor(self._bound[name])
                found = self.means(name) if anchor is not None else None
            elif self._stars and self.defines(name) is None:
                anchor, found = self._stars[-1], self.means(name)
            else:
                continue
            if anchor is not None and found is not None and not isinstance(found, Submodule):
                yield Import(name, found, anchor)
        for name, dotted, attribute, statement in self._inner:
            found = self.symbols.imported(self._file, dotted, attribute) if name in self.used else None
            plain = self._index.enclosing(statement, cst.Try, cst.If) is None
            if plain and (isinstance(found, (Constant, Function)) or (found is not None and _is_language(found))):
                yield Import(name, found, statement)

    def _anchor(self, statements: list[cst.CSTNode]) -> cst.CSTNode | None:
        """Behind what the definition goes: the import, or the ``try`` that holds all ways to import the name."""
        around = {id(t): t for s in statements if (t := self._index.enclosing(s, cst.Try)) is not None}
        if len(around) == 1:
            return next(iter(around.values()))
        plain = len(statements) == 1 and self._index.enclosing(statements[0], cst.If, cst.With, cst.For) is None
        return statements[0] if plain and not around else None

    def attributes(self) -> list[Use]:
        """Every part of a module, a class or a constant of the repository that the file names."""
        roots = {name for name in {*self._bound, *self._own} if name in self.used and self._has_parts(name)}
        if not roots or DOT in self._text:
            return []
        names = Names(self._index)
        found: list[Use] = []
        stack: list[cst.CSTNode] = [self._index.module]
        while stack:
            node = stack.pop()
            use = self._use(node, roots) if isinstance(node, (cst.Attribute, cst.Subscript)) else None
            own = use is not None and use.root in self._own and names.is_of_module(use.root)
            if use is None or not (own or names.resolve(_root(use.node)) is not None):
                stack += children(node)
            else:
                found.append(use)
        return found

    def _has_parts(self, name: str) -> bool:
        found = self.means(name)
        if isinstance(found, Submodule):  # the file may change it
            table = self.symbols.module(self._file)
            return table is not None and name not in table.changes.stored
        return isinstance(found, (Class, Instance)) or (
            isinstance(found, Constant) and isinstance(found.value, (tuple, list, dict))
        )

    def _use(self, node: cst.Attribute | cst.Subscript, roots: set[str]) -> Use | None:
        """A chain of attributes and fixed keys that leads to a constant or a function."""
        root = _root(node)
        if type(root) is not cst.Name or root.value not in roots:
            return None
        text = unparenthesised(node)
        links = _links(text)
        found = self.behind(root.value, links) if links is not None else None
        if links and _is_language(found) and not _is_language(self.behind(root.value, links[:-1])):
            pass  # `library.T`: what stands behind it is the language's
        elif links is None or not isinstance(found, (Constant, Function)):
            return None
        if root.value in self._own and not (isinstance(found, Constant) and isinstance(found.value, (int, float, str))):
            return None  # what is more than a number or a string stays in sight: it may be text to be changed
        known = next((use for use in self._uses.values() if use.text == text), None)
        if known is not None:
            return replace(known, node=node)
        name = re.sub(r"\W+", DOT, text).strip(DOT)
        while name in self._uses:
            name += f"{DOT}{len(self._uses)}"
        return self._uses.setdefault(name, Use(node, name, root.value, links, text))

    def behind(self, name: str, links: Iterable[str | Key]) -> Definition | None:
        """What ``name.attribute[key]`` means in the file."""
        found = self.means(name)
        for link in links:
            found = self.symbols.part(found, link)
        return found

    def import_of(self, use: Use) -> Import | None:
        """The definition of ``module.name``, behind the import of the module."""
        anchor = self._own.get(use.root) or self._anchor(self._bound[use.root])
        found = self.behind(use.root, use.links)
        return Import(use.name, found, anchor) if found is not None and anchor is not None else None

    def makers(self, index: Index) -> Iterator[Made]:
        """Every assignment of what a maker of macros returns; ``index`` has the dotted names as one name."""
        for statement in index.statements:
            if type(statement) is not cst.Assign or len(statement.targets) != 1:
                continue
            call, target = where_installed(statement.value), statement.targets[0].target
            if type(call) is not cst.Call or type(call.func) is not cst.Name:
                continue
            name = call.func.value
            use = self._uses.get(name)
            found = self.behind(use.root, use.links) if use is not None else None
            if use is None:
                found = self.means(name) if name in self.used else None
            if found is None and use is None:
                found = self._imported_around(index, statement, name)
            if not isinstance(found, Function) or kind_of(found, self.symbols) != "maker":
                continue
            items = [e.value for e in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
            names = tuple(item.value for item in items if type(item) is cst.Name)
            if len(names) == len(items):
                yield Made(names, call, found, statement)

    def _imported_around(self, index: Index, statement: cst.Assign, name: str) -> Definition | None:
        """What a name means that a function imports for itself."""
        around = {f.name.value for f in index.ancestors(statement) if type(f) is cst.FunctionDef}
        for bound, dotted, attribute, node in self._inner:
            function = self._index.enclosing(node, cst.FunctionDef)
            if bound == name and function is not None and function.name.value in around:
                return self.symbols.imported(self._file, dotted, attribute)
        return None

    def means(self, name: str) -> Definition | None:
        """What a name of the module of the file means."""
        return self.symbols.defined(self._file, name)

    def defines(self, name: str) -> bool | None:
        """True if the file binds the name at its top level itself; None if it does not."""
        table = self.symbols.module(self._file)
        return True if table is not None and name in table.bindings else None

    def free_name(self, wish: str, also: str, others: Iterable[str]) -> str:
        """A name that nothing in the file has: the wish, else with another word before it."""
        taken = self._every_name | set(others)
        wishes = [wish, f"{also}_{wish}", *(f"{wish}_{number}" for number in range(2, 99))]
        return next(name for name in wishes if name not in taken)

    def binds(self, name: str) -> bool:
        """True if the name may mean something else than a builtin somewhere in the file."""
        table = self.symbols.module(self._file)
        return table is None or name in table.bindings

    @cached_property
    def _every_name(self) -> set[str]:
        found: set[str] = set()
        for node in ast.walk(self._index.python):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.alias):
                found.add(node.asname or node.name)
        return found


def _is_language(found: Definition | None) -> bool:
    """True for TileLang and everything in it."""
    return isinstance(found, External) and is_tilelang(found.dotted)


def _root(node: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node


def _links(text: str) -> tuple[str | Key, ...] | None:
    """What stands behind the name that a chain begins with; None if it is broken over lines or has other keys."""
    if "\n" in text or "\r" in text:
        return None
    found: list[str | Key] = []
    node = ast.parse(text, mode="eval").body
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        link = link_of(node)
        if link is None:
            return None
        found.insert(0, link)
        node = node.value
    return tuple(found)


def dotted_text(node: cst.BaseExpression) -> str:
    """``a.b.c`` of a name with attributes."""
    if type(node) is cst.Attribute:
        return f"{dotted_text(node.value)}.{node.attr.value}"
    return node.value if type(node) is cst.Name else ""
