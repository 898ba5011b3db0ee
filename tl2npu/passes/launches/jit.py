"""What must compile a factory whose launches are separated: ``tilelang.jit`` above it, and nothing but a tuner."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.compilations import Compilation, decorating
from tl2npu.passes.launches.tuner import tuner_of
from tl2npu.source.index import Index
from tl2npu.source.names import Names

_CACHES = frozenset({"functools.cache", "functools.lru_cache"})


def inseparable(node: cst.CSTNode, why: str) -> Blocked:
    """The refusal of a prim_func that stays in one piece."""
    return Blocked("TL107", node, f"cannot split the launches of this prim_func: {why}")


def only_jit(index: Index, names: Names, factory: cst.FunctionDef, at: cst.FunctionDef) -> Compilation:
    """The only decorator of a factory, but for a tuner above. Raises :class:`Blocked` for none, another, or more."""
    name = factory.name.value
    found = list(decorating(factory, names, index.module))
    if not found:
        why = f"`{name}` has no `@tilelang.jit`, so its parts cannot be compiled one by one"
        raise inseparable(at, why)
    known = [jit.node for jit in found]
    if (tuner := tuner_of(index, names, factory)) is not None:
        known.append(tuner.decorator)
    others = [item.decorator for item in factory.decorators if all(item.decorator is not node for node in known)]
    if others:
        other = code(others[0].func if isinstance(others[0], cst.Call) else others[0])
        raise inseparable(at, f"`{name}` also has the decorator `{other}`, which may need one compiled kernel")
    if len(found) > 1:
        raise inseparable(at, f"`{name}` has `tilelang.jit` twice")
    return found[0]


def check_place(index: Index, names: Names, factory: cst.FunctionDef, at: cst.FunctionDef) -> None:
    """A factory may stand in the module, or in a function there that nothing but a cache decorates.

    Several factories in its place see the same variables around them. Raises :class:`Blocked` elsewhere.
    """
    name = factory.name.value
    outer = index.enclosing(factory, cst.FunctionDef, cst.ClassDef)
    if outer is None:
        return
    if not isinstance(outer, cst.FunctionDef) or index.enclosing(outer, cst.FunctionDef, cst.ClassDef) is not None:
        raise inseparable(at, f"the factory `{name}` is neither at module level nor in a function there")
    if tuner_of(index, names, factory) is not None:
        raise inseparable(at, f"the factory `{name}`, which is tuned, is not at module level")
    for item in outer.decorators:
        called = item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator
        if names.resolve(called) not in _CACHES:
            why = f"`{outer.name.value}` has the decorator `{code(called)}`, which may need one compiled kernel"
            raise inseparable(at, why)
