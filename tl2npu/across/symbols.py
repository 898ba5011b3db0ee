"""What the names of another module mean, read with ``ast``: functions, constants, and what it imports itself."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tl2npu.across import classes, instances
from tl2npu.across.modules import locate, may_be_inside
from tl2npu.across.tables import Binding, Module, digest_of, module_at, table_of
from tl2npu.across.values import Dotted, Value, evaluate
from tl2npu.source.bound import is_tilelang
from tl2npu.source.constants import NoValue, item

_MAX_DEPTH = 32


@dataclass(frozen=True, eq=False)
class Function:
    """A function of a module of the repository."""

    module: Module
    node: ast.FunctionDef


@dataclass(frozen=True)
class Chosen:
    """What a module takes for a function where an environment variable is not set; who takes it, too, must say so."""

    found: Function | External
    variable: str


@dataclass(frozen=True)
class Constant:
    """A value without side effects: an integer, float, string, boolean, None, or a tuple, list or dict of such."""

    value: Value


@dataclass(frozen=True)
class External:
    """Something of a module outside of the repository, by its dotted name.

    ``through``: an object of the repository stands for it, which has other things of its own.
    """

    dotted: str
    through: bool = False


@dataclass(frozen=True)
class Submodule:
    """A module of the repository."""

    path: Path


@dataclass(frozen=True, eq=False)
class Class:
    """A class of a module of the repository."""

    module: Module
    node: ast.ClassDef


@dataclass(frozen=True, eq=False)
class Instance:
    """What a call of a class, or of ``SimpleNamespace``, made. ``attributes``: those that its making gave it.

    ``fixed``: whoever gets it cannot change it.
    """

    attributes: Mapping[str, Value]
    scope: Class | None = None
    fixed: bool = False


@dataclass(frozen=True)
class Member:
    """A member of an enumeration that is no number or string itself, but its ``value`` is."""

    value: Value


@dataclass(frozen=True)
class ValueMember(Constant):
    """A member that is a number or a string as well."""


@dataclass(frozen=True)
class Key:
    """What stands in the brackets of ``container[key]``."""

    value: int | str


Definition = Function | Chosen | Constant | External | Submodule | Class | Instance | Member


@dataclass(eq=False)
class Symbols:
    """Looks names up through the modules of a repository.

    What is found rests on two things: ``depends``, the files that were read with their digests, and ``places``, where
    the modules were found that a file imports; None for those that are not in the repository, as yet.
    """

    depends: dict[Path, str] = field(default_factory=dict)
    places: dict[tuple[Path, str], Path | None] = field(default_factory=dict)
    _texts: dict[Path, Module] = field(default_factory=dict)
    _open: set[tuple[Path, str]] = field(default_factory=set)

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """``depends`` as results have it."""
        return tuple(sorted((path.as_posix(), digest) for path, digest in self.depends.items()))

    @property
    def modules(self) -> tuple[tuple[str, str, str], ...]:
        """``places`` as results have it."""
        found = self.places.items()
        return tuple(
            sorted((file.as_posix(), name, place.as_posix() if place else "") for (file, name), place in found)
        )

    def reads(self, file: Path, text: str, tree: ast.Module | None = None) -> None:
        """Take a text, which parses, for that of a file, whatever the file holds; the result does not rest on that."""
        self._texts[file] = table_of(file, text, tree or ast.parse(text), "")

    def locate(self, file: Path, dotted: str) -> Path | None:
        """Where the module lies that ``dotted`` names in a file: :func:`tl2npu.across.modules.locate`."""
        found = locate(file, dotted)
        if may_be_inside(dotted):
            self.places[file, dotted] = found
        return found

    def imported(self, file: Path, dotted: str, attribute: str | None) -> Definition | None:
        """What ``from dotted import attribute`` (or ``import dotted``) gives in a file; None if that cannot be told."""
        place = self.locate(file, dotted)
        if place is None:
            if dotted.startswith("."):
                return None
            return External(dotted if attribute is None else f"{dotted}.{attribute}")
        if attribute is None:
            return Submodule(place)
        return self.attribute(Submodule(place), attribute)

    def attribute(self, module: Submodule, name: str) -> Definition | None:
        """``module.name``: what the module binds, else a module in the package."""
        if module.path.is_file():
            found = self.defined(module.path, name)
            if found is not None:
                return found
            table = self.module(module.path)
            if table is None or name in table.bindings:
                return None
        if module.path.is_file() and module.path.name != "__init__.py":
            return None
        package = module.path.parent if module.path.is_file() else module.path
        below = self.locate(package / "__init__.py", f".{name}")
        return Submodule(below) if below is not None else None

    def part(self, whole: Definition | None, link: str | Key) -> Definition | None:
        """``whole.link``, or ``whole[link]``."""
        if isinstance(link, Key):
            try:
                return Constant(item(whole.value, link.value)) if isinstance(whole, Constant) else None
            except NoValue:
                return None
        if isinstance(whole, Submodule):
            return self.attribute(whole, link)
        if isinstance(whole, Class):
            return self._of_class(whole, link)
        if isinstance(whole, Instance):
            if link in whole.attributes:
                value = whole.attributes[link]
                return Constant(value) if value is not ... else None
            return self._of_class(whole.scope, link) if whole.scope is not None else None
        if isinstance(whole, (Member, ValueMember)):
            return Constant(whole.value) if link == "value" else None
        return External(f"{whole.dotted}.{link}") if isinstance(whole, External) else None

    def _of_class(self, found: Class, name: str) -> Definition | None:
        """An attribute that the body of a class gives a value, or that of a base in the repository."""
        kind = self._kind(found)
        if kind is None:
            return None
        bases = [self.valued(found.module, base) for base in found.node.bases]
        outside = self._outside(found)
        value = classes.assigned(found.node, name)
        if value is None:
            inherited = [base for base in bases if isinstance(base, Class)]
            own = any(classes.binds(statement, name) for statement in found.node.body)
            return self.part(inherited[0], name) if len(bases) == len(inherited) == 1 and not own else None

        def meaning(node: ast.expr) -> Definition | None:
            if isinstance(node, ast.Name) and any(classes.binds(statement, node.id) for statement in found.node.body):
                inner = classes.assigned(found.node, node.id)
                return self.constant(inner, meaning) if inner is not None and inner.lineno < node.lineno else None
            return self.valued(found.module, node)

        made = self.constant(value, meaning)
        if made is None or kind == "plain":
            return made
        if kind == "members" or name.startswith("_"):
            return None if name.startswith("_") else Member(made.value)
        is_text = "str" in outside or "enum.StrEnum" in outside
        return ValueMember(made.value) if type(made.value) is (str if is_text else int) else None

    def _outside(self, found: Class) -> list[str]:
        """The bases of a class that are not in the repository."""
        bases = [(self.valued(found.module, base), base) for base in found.node.bases]
        return [
            base.dotted if isinstance(base, External) else ast.unparse(node)
            for base, node in bases
            if not isinstance(base, Class)
        ]

    def _kind(self, found: Class) -> classes.Kind | None:
        decorators = [n.func if isinstance(n, ast.Call) else n for n in found.node.decorator_list]
        marks = [d.dotted if isinstance(d := self.valued(found.module, node), External) else "" for node in decorators]
        return classes.kind_of(found.node, self._outside(found), marks)

    def module(self, path: Path) -> Module | None:
        """The table of a module; None if it cannot be read or parsed."""
        if path in self._texts:
            return self._texts[path]
        try:
            stat = path.stat()
            found = module_at(path, stat.st_mtime_ns, stat.st_size)
            self.depends[path] = found.digest if found is not None else digest_of(path.read_bytes())
        except OSError:
            self.depends[path] = ""
            return None
        return found

    def defined(self, path: Path, name: str) -> Definition | None:
        """What the module at ``path`` binds a name to; None if nothing, or if it cannot be told."""
        table = self.module(path)
        key = path, name
        if table is None or key in self._open or len(self._open) > _MAX_DEPTH:
            return None
        self._open.add(key)
        try:
            bindings = table.bindings.get(name)
            if bindings is None:
                return self._from_stars(table, name)
            found = [self._meaning(table, binding) for binding in bindings]
        finally:
            self._open.discard(key)
        if len(found) > 1:  # the ways of a `try` to import the same thing
            if not all(binding.fallback for binding in bindings):
                return None
            language = {item.dotted for item in found if isinstance(item, External) and is_tilelang(item.dotted)}
            if len(language) == 1:  # the others stand in for it where it is not installed
                return External(language.pop())
            if any(binding.dotted is None for binding in bindings):
                return None
            found = [item for item in found if item is not None and not isinstance(item, External)] or found
        first = found[0]
        if _may_have_changed(first, name, table):
            return None
        return first if all(_same(first, other) for other in found[1:]) else None

    def _meaning(self, table: Module, binding: Binding) -> Definition | None:
        if binding.unset:
            found = self._meaning(table, replace(binding, unset=""))
            return Chosen(found, binding.unset) if isinstance(found, (Function, External)) else None
        if binding.function is not None:
            return Function(table, binding.function)
        if binding.scope is not None:
            return Class(table, binding.scope)
        if binding.dotted is not None:
            return self.imported(table.path, binding.dotted, binding.attribute)
        if binding.value is None:
            return None
        return self.valued(table, binding.value)

    def valued(self, table: Module, node: ast.expr) -> Definition | None:
        """What an expression of a module means."""
        if isinstance(node, ast.Name):
            return self.defined(table.path, node.id)
        if isinstance(node, ast.Attribute):
            return self.part(self.valued(table, node.value), node.attr)
        if isinstance(node, ast.Call):
            pairs = instances.of_dict(node) if "dict" not in table.bindings else None
            return self._instance(table, node) if pairs is None else self.valued(table, pairs)
        return self.constant(node, lambda inner: self.valued(table, inner))

    def _instance(self, table: Module, call: ast.Call) -> Instance | External | None:
        """What a call makes, if it is one of a plain class, or of one that stands in for TileLang."""
        made = self.valued(table, call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else None
        outside = self._known(lambda inner: self.valued(table, inner))
        if isinstance(made, External) and made.dotted == "types.SimpleNamespace":
            attributes = instances.named(call, outside)
            return Instance(attributes) if attributes is not None else None
        if not isinstance(made, Class) or self._kind(made) != "plain":
            return None
        if (dotted := classes.stands_in_for(made.node, made.module.text)) is not None:
            return External(dotted, through=True)
        inside = self._known(lambda inner: self.valued(made.module, inner))
        given = instances.initial(made.node, call, outside, inside)
        return Instance(given, made, instances.is_frozen(made.node)) if given is not None else None

    @staticmethod
    def constant(node: ast.expr, meaning: Callable[[ast.expr], Definition | None]) -> Constant | None:
        """The value of an expression, by the meaning of the names and attributes in it."""

        try:
            return Constant(evaluate(node, Symbols._known(meaning)))
        except NoValue:
            return None

    @staticmethod
    def _known(meaning: Callable[[ast.expr], Definition | None]) -> Callable[[ast.expr], Value]:
        """The values of names and attributes, by their meaning. What it gives raises NoValue."""

        def known(inner: ast.expr) -> Value:
            found = meaning(inner)
            if isinstance(found, External):
                return Dotted(found.dotted)
            if not isinstance(found, Constant):
                raise NoValue
            return found.value

        return known

    def attributed(self, path: Path, tree: ast.Module, node: ast.expr) -> Definition | None:
        """What ``a.b.c`` means in a file, by any import of the file that binds ``a``."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        for statement in ast.walk(tree):
            found: Definition | None = None
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    if (alias.asname or alias.name.split(".")[0]) == node.id:
                        dotted = alias.name if alias.asname else alias.name.split(".")[0]
                        found = self.imported(path, dotted, None)
            elif isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    if (alias.asname or alias.name) == node.id:
                        dotted = "." * statement.level + (statement.module or "")
                        found = self.imported(path, dotted, alias.name)
            for attribute in attributes if isinstance(found, Submodule) else ():
                found = self.attribute(found, attribute) if isinstance(found, Submodule) else None
            if found is not None:
                return found
        return None

    def _from_stars(self, table: Module, name: str) -> Definition | None:
        """A name that only a star import can have brought: of the last module that gives it."""
        for dotted in reversed(table.stars):
            place = self.locate(table.path, dotted)
            if place is None:
                return None  # of a module outside: it may give the name or not
            if self.gives(place, name):
                return self.attribute(Submodule(place), name)
        return None

    def gives(self, path: Path, name: str) -> bool:
        """True if ``from module import *`` binds the name."""
        table = self.module(path) if path.is_file() else None
        if table is None:
            return False
        if table.exports is not None:
            return name in table.exports
        return not name.startswith("_") and (name in table.bindings or self.defined(path, name) is not None)


def link_of(node: ast.Attribute | ast.Subscript) -> str | Key | None:
    """What ``.name`` or ``[key]`` adds to a chain; None for a key that has to be worked out."""
    if isinstance(node, ast.Attribute):
        return node.attr
    try:
        key = ast.literal_eval(node.slice)
    except (ValueError, TypeError):
        return None
    return Key(key) if type(key) in (int, str) else None


def _may_have_changed(found: Definition | None, name: str, table: Module) -> bool:
    """What a name is bound to may not be any more what it was then."""
    if isinstance(found, Class):
        return name in table.changes.stored
    held = isinstance(found, Constant) and isinstance(found.value, (list, dict))
    made = isinstance(found, Instance) and not found.fixed
    return (held or made) and name in table.changes.stored | table.changes.handed


def _same(one: Definition | None, other: Definition | None) -> bool:
    if isinstance(one, Function) and isinstance(other, Function):
        return one.node is other.node
    return one == other
