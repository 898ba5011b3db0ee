"""Which factory a name stands for where the file compiles something.

Names are looked up as Python does, from the inside out: every factory of a file may call its prim_func ``main``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from tl2npu.kernel.factories.located import Factory, Located
from tl2npu.source.index import Index

Owner = Factory | Located
"""What is compiled: a factory, or a prim_func without one."""


def called(node: cst.BaseExpression | None) -> cst.Name | None:
    """The function that ``make(...)`` or ``make(...)(...)`` calls, or the name itself."""
    while isinstance(node, cst.Call):
        node = node.func
    return node if isinstance(node, cst.Name) else None


class Makers:
    """Functions and variables of a file that are, give, or hold the kernel of one factory, or one without a factory."""

    def __init__(self, index: Index, located: Iterable[Located]) -> None:
        self._index = index
        self._bound: dict[tuple[int, str], Owner] = {}
        self._gives: dict[int, Owner] = {}
        self._holders = [item.factory.node for item in located if item.factory is not None]
        for item in located:
            if item.factory is not None:
                self._bind(item.factory.node, item.factory.node.name.value, item.factory)
            self._bind(item.node, item.node.name.value, item.factory or item)
        self._bind_givers()
        self._bind_made()
        self._anywhere: dict[str, set[Owner]] = {}
        for (_, name), factory in self._bound.items():
            self._anywhere.setdefault(name, set()).add(factory)

    def factory(self, node: cst.BaseExpression | None) -> Owner | None:
        """The factory behind what is compiled; a name that is bound elsewhere only, such as a parameter, must be the
        only one of its kind."""
        name = called(node)
        if name is None:
            return None
        found = self._seen_from(name)
        others = self._anywhere.get(name.value, set())
        return found if found is not None or len(others) != 1 else next(iter(others))

    def given(self, function: cst.FunctionDef) -> Owner | None:
        """The factory whose kernel the function returns."""
        return self._gives.get(id(function))

    def _bind(self, node: cst.CSTNode, name: str, factory: Owner) -> None:
        self._bound[id(self._index.enclosing(node, cst.FunctionDef)), name] = factory

    def _seen_from(self, name: cst.Name) -> Owner | None:
        scope = self._index.enclosing(name, cst.FunctionDef)
        while (id(scope), name.value) not in self._bound and scope is not None:
            scope = self._index.enclosing(scope, cst.FunctionDef)
        return self._bound.get((id(scope), name.value))

    def _bind_givers(self) -> None:
        """Functions that return a factory, or what one gives, and nothing else."""
        open_ends = list(self._returns())
        grown = True
        while grown:  # a function may return what another returns
            left = []
            for function, returned in open_ends:
                found = {self._seen_from(name) if name is not None else None for name in returned}
                owner = found.pop() if len(found) == 1 else None
                if owner is None:
                    left.append((function, returned))
                else:
                    self._bind(function, function.name.value, owner)
                    self._gives[id(function)] = owner
            grown = len(left) < len(open_ends)
            open_ends = left

    def _returns(self) -> Iterator[tuple[cst.FunctionDef, list[cst.Name | None]]]:
        """What each function returns that holds no kernel itself."""
        own = {id(node) for node in self._holders}
        found: dict[int, tuple[cst.FunctionDef, list[cst.Name | None]]] = {}
        for small in self._index.statements:
            if isinstance(small, cst.Return):
                function = self._index.enclosing(small, cst.FunctionDef)
                if function is not None and id(function) not in own:
                    found.setdefault(id(function), (function, []))[1].append(called(small.value))
        yield from found.values()

    def _bind_made(self) -> None:
        """``program = factory(...)``: what a factory returned, to be compiled later."""
        for small in self._index.statements:
            if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.value, cst.Call):
                target, name = small.targets[0].target, called(small.value)
                factory = self._seen_from(name) if name is not None else None
                if isinstance(target, cst.Name) and factory is not None:
                    self._bind(small, target.value, factory)
