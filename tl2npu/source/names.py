"""What names mean: imports, aliases and shadowing, as dotted canonical names; and how a file spells such a name."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import libcst as cst

from tl2npu.source.bound import (
    IS_STATEMENT,
    MAY_NAME,
    REEXPORTS,
    UNKNOWN,
    Binding,
    bound_in,
    canonical,
    has_members,
    is_tilelang,
    only_imports,
    params_of,
    stands_for,
    targets_of,
)
from tl2npu.source.index import Index
from tl2npu.source.named_by_call import attribute_of, element_of, imported_by, key_of_globals, members_of, returned_by
from tl2npu.source.tree import SubclassesOf, mentioned, nodes_of, remembered

# A star import of the language replaces these builtins by operators; the others keep their Python meaning.
_FROM_LANGUAGE = frozenset({"abs", "max", "min", "pow", "print", "round"})
_NOT_FROM_STAR = frozenset(dir(builtins)) - _FROM_LANGUAGE


_IS_COMPREHENSION, _IS_BLOCK = SubclassesOf(cst.BaseComp), SubclassesOf(cst.BaseSuite)
_BINDING_EXPRESSIONS: tuple[type[cst.Lambda | cst.CompFor], ...] = (cst.Lambda, cst.CompFor)
LANGUAGE = "tilelang.language."
"""What the names of operators begin with."""
_MODULES = frozenset({"tilelang", "tilelang.language"})
_MOST_STEPS = 1000
"""What takes longer is no module, but variables that get each other's values: ``if c: a = b``, ``if d: b = a``, ..."""


def _is_other(module: str) -> bool:
    """A module of TileLang, not the language itself: it has no operators, and takes no name from Python."""
    return module.startswith("tilelang.") and module not in _MODULES


@dataclass(eq=False)
class _Scope:
    outer: _Scope | None
    is_class: bool = False
    bindings: dict[str, list[Binding]] = field(default_factory=dict)

    def bind(self, name: str, binding: Binding) -> None:
        self.bindings.setdefault(name, []).append(binding)


class Names:
    """The names of one file. Control flow within a scope is not followed, except that where the branches of an ``if``
    disagree, the one that means TileLang counts: kernels are written for it."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._module = _Scope(None)
        self._inner: dict[int, _Scope] = {}  # function or class -> the scope of its body
        self._resolving: set[int] = set()
        self._steps = 0  # bindings that were looked at for the name that is asked for
        self._resolved: dict[int, tuple[cst.CSTNode, str | None]] = {}
        self._found: dict[tuple[str, int], str | None] = {}  # name, scope -> what it means there
        self._scopes: dict[int, _Scope] = {}  # block -> the scope that it is in
        self._everywhere: dict[str, str | None] = {}  # names that mean the same wherever they stand
        self.star: tuple[str, ...] = ()  # modules that were imported with *
        self._telling: set[str] = set()  # names that something may be known of, in some scope
        self._classes: list[cst.ClassDef] = []  # those that have a member of which something may be known
        self._collect(index.module, self._module)
        self._bound_inside = frozenset[str]().union(*(scope.bindings for scope in self._inner.values()))

    def after(self, index: Index, chain: Sequence[tuple[cst.CSTNode, cst.CSTNode]]) -> Names:
        """The names of a tree in which one function has another body, and nothing else changed.

        ``chain``: the old and the new node of what stands around that body, the module first, the function last. No
        import, function or ``global`` statement came or went.
        """
        new = Names.__new__(Names)
        new.__dict__ |= vars(self)
        new.__dict__.pop("functions", None)
        new.__dict__.pop("_bound_in_expressions", None)
        now = {id(old): node for old, node in chain}
        scopes: dict[int, _Scope] = {}
        *_, (_, function) = chain
        assert isinstance(function, cst.FunctionDef)
        before = next(scope for key, scope in self._inner.items() if now.get(key) is function)
        new._index, new._module = index, _copied(self._module, now, scopes)
        new._inner = {
            id(now[key]) if key in now else key: _copied(scope, now, scopes) for key, scope in self._inner.items()
        }
        new._telling, new._classes, new._resolving = set(self._telling), list(self._classes), set()
        assert before.outer is not None
        new._collect_function(function, _copied(before.outer, now, scopes))
        mine = new._inner[id(function)].bindings
        new._bound_inside = self._bound_inside | mine.keys()
        told = [{name: bound[name] for name in bound.keys() & new._telling} for bound in (before.bindings, mine)]
        new._found, new._scopes = {}, {}
        new._everywhere = {name: found for name, found in self._everywhere.items() if name not in mine}
        new._resolved = dict(self._resolved) if told[0] == told[1] else {}
        return new

    @cached_property
    def functions(self) -> dict[str, list[cst.FunctionDef]]:
        """Every function of the file, by name."""
        found: dict[str, list[cst.FunctionDef]] = {}
        for node in nodes_of(self._index.module, cst.FunctionDef):
            found.setdefault(node.name.value, []).append(node)
        return found

    @property
    def imported(self) -> Iterator[str]:
        """Every module, or thing of one, that an import of the file names, with the dots of relative ones."""
        for scope in (self._module, *self._inner.values()):
            for several in scope.bindings.values():
                yield from (item.dotted for item in several if item.dotted is not None)
        yield from self.star

    def has_fallback(self, name: str) -> bool:
        """True for a name of the module that is something else where an import fails."""
        return any(item.weak for item in self._module.bindings.get(name, ()))

    def is_of_module(self, name: str) -> bool:
        """True for a name that means the same wherever it stands: no function, class or expression binds it."""
        return name not in self._bound_inside and name not in self._bound_in_expressions

    @cached_property
    def _bound_in_expressions(self) -> frozenset[str]:
        """Parameters of lambdas and variables of comprehensions."""
        return frozenset(_bound_in_expressions(self._index.module))

    def is_bound_in_expressions(self, name: str) -> bool:
        """True for a parameter of some lambda, or a variable of some comprehension."""
        return name in self._bound_in_expressions

    def visible(self, at: cst.CSTNode) -> set[str]:
        """The names that some statement binds in the scopes which a place sees."""
        return set[str]().union(*(scope.bindings for scope in _outwards(self._scope(at))))

    def resolve(self, node: cst.BaseExpression, at: cst.CSTNode | None = None) -> str | None:
        """The canonical dotted name of ``a`` or ``a.b.c``, e.g. ``tilelang.language.tile.add``.

        None for anything else and for names that are variables, unknown or ambiguous. A node that is not in the tree
        is looked up as if it stood at ``at``, without that at the end of the module.
        """
        known = self._resolved.get(id(node))
        if known is not None and known[0] is node and at is None:
            return known[1]
        found = self._resolve(node, at)
        if at is None and not self._resolving:
            self._resolved[id(node)] = node, found
        return found

    def operator(self, node: cst.BaseExpression) -> str:
        """What :meth:`resolve` finds in ``tilelang.language``, as ``alloc_shared`` or ``tile.add``; else empty."""
        found = self.resolve(node) or ""
        return found.removeprefix(LANGUAGE) if found.startswith(LANGUAGE) else ""

    def _resolve(self, node: cst.BaseExpression, at: cst.CSTNode | None) -> str | None:
        attributes: list[str] = []
        while type(node) is cst.Attribute:
            attributes.append(node.attr.value)
            node = node.value
        if type(node) is not cst.Name:
            dotted = self._of_expression(node, at) if MAY_NAME[type(node)] else None
        elif attributes and self._may_have_members(node.value) and (found := self._member(node, attributes[-1], at)):
            attributes.pop()
            dotted = found
        elif not self._may_tell(node.value):
            return None
        elif node.value in self._everywhere:
            dotted = self._everywhere[node.value]
        else:
            dotted = self._lookup(node.value, node if node in self._index else at)
        if dotted is None or not attributes:
            return dotted
        for attribute in reversed(attributes):
            dotted = f"{dotted}.{attribute}"
            dotted = REEXPORTS.get(dotted, dotted)
        return dotted

    def spell(self, canonical: str, at: cst.CSTNode | None = None) -> str | None:
        """The shortest text by which the file can name ``canonical`` at a node; None if it needs a new import.

        What is imported under a condition, as in ``if __name__ == "__main__":``, counts only where it is named already.
        """
        best: tuple[int, str] | None = None
        scopes = list(_outwards(self._module if at is None else self._scope(at)))
        for scope in scopes:
            for name, several in scope.bindings.items():
                dotted = self._lookup(name, at) if name in self._telling else None
                if dotted is None or not (canonical + ".").startswith(dotted + "."):
                    continue
                around = set[str]() if at is None else mentioned(self._index.top(at))
                if name not in around and not any(item.sure for item in several):
                    continue
                if best is None or len(dotted) > best[0]:
                    best = len(dotted), name + canonical[len(dotted) :]
        for star in self.star:
            first = canonical[len(star) + 1 :].split(".")[0]
            bound = any(first in scope.bindings for scope in scopes)
            if canonical.startswith(star + ".") and not bound and (best is None or len(star) > best[0] - 1):
                best = len(canonical), canonical[len(star) + 1 :]
        return None if best is None else best[1]

    # -- expressions that are no names ------------------------------------------------------------------------------

    def _of_expression(self, node: cst.BaseExpression, at: cst.CSTNode | None) -> str | None:
        """What ``importlib.import_module("a.b")``, ``getattr(a, "b")``, ``a if c else b`` and the like mean."""

        def meaning(part: cst.BaseExpression) -> str | None:
            return self.resolve(part, at)

        found: str | None = None
        if type(node) is cst.Call:
            found = imported_by(node, meaning(node.func), meaning) or attribute_of(node, meaning)
            if found is None and self._function(node.func, at) is not None:
                found = _preferred(map(self._once, self._elements(node, ())))
                found = found if found is not None and is_tilelang(found) else None
        elif type(node) is cst.Subscript:
            key = key_of_globals(node)
            found = self._lookup(key, None) if key is not None else attribute_of(node, meaning)
        elif type(node) is cst.IfExp:
            found = _preferred([meaning(node.body), meaning(node.orelse)])
        elif type(node) is cst.BooleanOperation:
            rest = [] if type(node.operator) is cst.And else [node.left]
            found = _preferred(meaning(part) for part in (*rest, node.right))
        return canonical(found) if found is not None else None

    def _elements(self, node: cst.BaseExpression, part: tuple[int, ...]) -> list[cst.BaseExpression | None]:
        """The expressions that an element of another may be: of a tuple, or of one that a function returns."""
        function = self._function(node.func, None) if type(node) is cst.Call else None
        return [element_of(node, part)] if function is None else returned_by(function, part)

    def _once(self, node: cst.BaseExpression | None) -> str | None:
        """The meaning of an expression; None where it is just being looked for: ``self.x = self.x or y``."""
        if node is None or id(node) in self._resolving:
            return None
        self._resolving.add(id(node))
        try:
            return self.resolve(node)
        finally:
            self._resolving.discard(id(node))

    def _function(self, node: cst.BaseExpression, at: cst.CSTNode | None) -> cst.FunctionDef | None:
        """The function of the file that an expression names, if nothing else binds the name."""
        found = self._definition(node.value, node if node in self._index else at) if type(node) is cst.Name else None
        return found if type(found) is cst.FunctionDef else None

    def _definition(self, name: str, at: cst.CSTNode | None) -> cst.FunctionDef | cst.ClassDef | None:
        for scope in _outwards(self._scope(at) if at is not None else self._module):
            if name in scope.bindings:
                several = scope.bindings[name]
                *before, last = several  # a definition takes the place of what was imported
                return last.definition if not last.weak and all(item.dotted for item in before) else None
        return None

    def _may_have_members(self, name: str) -> bool:
        """False for what is neither a class of which something may be known nor bound in a function, as ``self`` is."""
        return bool(self._classes) and (name in self._bound_inside or name in self._class_names)

    @cached_property
    def _class_names(self) -> frozenset[str]:
        return frozenset(node.name.value for node in self._classes)

    def _member(self, root: cst.Name, name: str, at: cst.CSTNode | None) -> str | None:
        """The module of TileLang that ``self.name`` or ``Class.name`` stands for; None for anything else."""
        place = root if root in self._index else at
        owner: cst.CSTNode | None = self._definition(root.value, place)
        if owner is None and place is not None:
            method = self._index.enclosing(place, cst.FunctionDef)
            while method is not None and all(param.name.value != root.value for param in params_of(method.params)):
                method = self._index.enclosing(method, cst.FunctionDef)
            if method is not None and next(params_of(method.params)).name.value == root.value:
                owner = self._index.enclosing(method, cst.ClassDef, cst.FunctionDef)
        if type(owner) is not cst.ClassDef:
            return None
        given = {self._once(value) for value in members_of(owner).get(name, ())}
        own = self._inner[id(owner)].bindings.get(name) if id(owner) in self._inner else None
        given |= {self._meaning(own)} if own is not None and not all(item.weak for item in own) else set()
        found = given.pop() if len(given) == 1 else None
        return found if found in _MODULES else None

    # -- lookup -----------------------------------------------------------------------------------------------------

    def _lookup(self, name: str, at: cst.CSTNode | None) -> str | None:
        if not self._may_tell(name):
            return None
        in_some = self._index.binds_in_expressions and name in self._bound_in_expressions
        if in_some and at is not None and self._bound_around(name, at):
            return None
        inside = name in self._bound_inside
        scope = self._scope(at) if at is not None and inside else self._module
        key = name, id(scope)
        if key in self._found:
            return self._found[key]
        found = self._look_outwards(name, scope)
        if not self._resolving:  # else an alias that is being looked up counts as unknown
            self._found[key] = found
            if not inside and not in_some:
                self._everywhere[name] = found
        return found

    def _may_tell(self, name: str) -> bool:
        """False for what is a variable wherever it is bound: that is known without looking for the place."""
        return name in self._telling or bool(self.star)

    def _look_outwards(self, name: str, innermost: _Scope) -> str | None:
        for scope in _outwards(innermost):
            several = scope.bindings.get(name)
            if several is not None and not (scope.is_class and all(id(item) in self._resolving for item in several)):
                return self._meaning(several)
        stars = self.star if name not in _FROM_LANGUAGE else [star for star in self.star if not _is_other(star)]
        return f"{stars[-1]}.{name}" if stars and name not in _NOT_FROM_STAR else None

    def _meaning(self, bindings: list[Binding]) -> str | None:
        if len(bindings) == 1:
            return self._dotted(bindings[0])
        bindings = [item for item in bindings if id(item) not in self._resolving] or bindings  # `x, y = x, x.y`
        strong = [binding for binding in bindings if not binding.weak] or bindings
        found = {self._dotted(binding) for binding in strong}
        if found == {None, *_MODULES & found} and len(found) > 1:  # a stand-in, until a function imports the real thing
            found = {self._dotted(binding) for binding in strong if binding.late}
        return found.pop() if len(found) == 1 else None

    def _dotted(self, binding: Binding) -> str | None:
        self._steps = self._steps + 1 if self._resolving else 1
        if self._steps > _MOST_STEPS:
            return None
        if binding.branches:
            return _preferred(self._meaning(list(several)) for several in binding.branches)
        if binding.alias is None or id(binding) in self._resolving:  # `x = x.y` would go round for ever
            return binding.dotted
        self._resolving.add(id(binding))
        try:
            if binding.part:
                return _preferred(map(self._once, self._elements(binding.alias, binding.part)))
            found = self.resolve(binding.alias)
            if binding.definition is not None:
                return found if found is not None and stands_for(found, binding.always) else None
            return found if not binding.default or found in _MODULES else None
        finally:
            self._resolving.discard(id(binding))

    def _scope(self, node: cst.CSTNode) -> _Scope:
        block: cst.CSTNode | None = node
        while block is not None and not _IS_BLOCK[type(block)]:
            block = self._index.parent(block)
        if block is None:
            return self._module
        if id(block) not in self._scopes:
            above = self._index.parent(block)
            body = above is not None and id(above) in self._inner and _is_body(above, block)
            self._scopes[id(block)] = self._inner[id(above)] if body else self._scope(above or self._index.module)
        return self._scopes[id(block)]

    def _bound_around(self, name: str, node: cst.CSTNode) -> bool:
        """True for parameters of lambdas and variables of comprehensions around a node."""
        for above in self._index.ancestors(node):
            if IS_STATEMENT[type(above)]:
                return False
            if type(above) is cst.Lambda and any(param.name.value == name for param in params_of(above.params)):
                return True
            if _IS_COMPREHENSION[type(above)]:
                assert isinstance(above, cst.BaseComp)
                comp: cst.CompFor | None = above.for_in
                while comp is not None:
                    if name in targets_of(comp.target):
                        return True
                    comp = comp.inner_for_in
        return False

    # -- collecting -------------------------------------------------------------------------------------------------

    def _collect(self, block: cst.Module | cst.BaseSuite, scope: _Scope, weak: bool = False) -> None:
        """Bind what the statements of a module, function or class bind. ``weak``: it stands in a fall-back."""
        outside = frozenset[str]().union(*(bound_in(statement).outside for statement in block.body))
        fresh: set[str] = set()  # bound by the imports just above: a further one replaces what they gave
        for statement in block.body:
            bound = bound_in(statement)
            imports = only_imports(statement)
            if not imports and type(statement) is not cst.Try:
                fresh.clear()
            for name, binding in bound.bindings:
                target = self._module if name in outside else scope
                if imports and name in fresh:
                    target.bindings.pop(name, None)
                fresh |= set() if name in target.bindings else {name}
                if weak or name in outside:
                    binding = replace(binding, weak=weak or binding.weak, late=name in outside)
                target.bind(name, binding)
                if binding.tells:
                    self._telling.add(name)
            self.star += bound.stars
            for node in bound.inner:
                if type(node) is cst.ClassDef and has_members(node):
                    self._classes.append(node)
                self._collect_function(node, scope)

    def _collect_function(self, node: cst.FunctionDef | cst.ClassDef, outer: _Scope) -> None:
        """What a function or class in a scope binds."""
        inner = self._inner[id(node)] = _Scope(outer, type(node) is cst.ClassDef)
        if type(node) is cst.FunctionDef:
            for param in params_of(node.params):
                self._bind_parameter(inner, param)
        handler = self._index.enclosing(node, cst.ExceptHandler)
        self._collect(node.body, inner, weak=handler is not None)

    def _bind_parameter(self, scope: _Scope, param: cst.Param) -> None:
        """What a parameter is without an argument, if that may be a module."""
        name, default = param.name.value, param.default
        if default is not None and type(default) in (cst.Name, cst.Attribute) and not _is_constant(default):
            scope.bind(name, Binding(alias=default, default=True))
            self._telling.add(name)
        else:
            scope.bind(name, UNKNOWN)


@remembered
def names_of(index: Index) -> Names:
    """The names of a tree, for those who look at it one after the other."""
    return Names(index)


def _copied(scope: _Scope, now: Mapping[int, cst.CSTNode], done: dict[int, _Scope]) -> _Scope:
    """A scope of its own, and those around it, with the definitions that are other nodes now."""
    if id(scope) not in done:
        outer = _copied(scope.outer, now, done) if scope.outer is not None else None
        done[id(scope)] = _Scope(outer, scope.is_class, _moved(scope.bindings, now))
    return done[id(scope)]


def _moved(bindings: dict[str, list[Binding]], now: Mapping[int, cst.CSTNode]) -> dict[str, list[Binding]]:
    """What a scope binds, with the definitions that are other nodes now."""
    old = [name for name, several in bindings.items() for one in several if id(one.definition) in now]
    return bindings | {name: [_redefined(one, now) for one in bindings[name]] for name in old} if old else bindings


def _redefined(binding: Binding, now: Mapping[int, cst.CSTNode]) -> Binding:
    found = now.get(id(binding.definition))
    return replace(binding, definition=found) if isinstance(found, cst.FunctionDef | cst.ClassDef) else binding


def _bound_in_expressions(node: cst.CSTNode) -> Iterator[str]:
    """Parameters of lambdas and variables of comprehensions below a node."""
    for found in nodes_of(node, *_BINDING_EXPRESSIONS):
        if isinstance(found, cst.Lambda):
            yield from (param.name.value for param in params_of(found.params))
        else:
            yield from targets_of(found.target)


def _outwards(innermost: _Scope) -> Iterator[_Scope]:
    """The scopes that a place sees, innermost first; class bodies are seen only from directly inside."""
    scope: _Scope | None = innermost
    while scope is not None:
        if scope is innermost or not scope.is_class:
            yield scope
        scope = scope.outer


def _is_body(above: cst.CSTNode, below: cst.CSTNode) -> bool:
    return (type(above) is cst.FunctionDef or type(above) is cst.ClassDef) and above.body is below


def _preferred(several: Iterable[str | None]) -> str | None:
    """The one thing that several may mean; where they disagree, the only one of TileLang."""
    found = set(several)
    if len(found) > 1:
        found = {item for item in found if item is not None and is_tilelang(item)}
    return found.pop() if len(found) == 1 else None


def _is_constant(node: cst.BaseExpression) -> bool:
    return type(node) is cst.Name and node.value in ("None", "True", "False")
