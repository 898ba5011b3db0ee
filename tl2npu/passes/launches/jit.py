"""What must compile a factory whose launches are separated: ``tilelang.jit`` above it, and nothing but a tuner."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.compilations import Compilation, decorating
from tl2npu.passes.launches.tuner import tuner_of
from tl2npu.source.index import Index
from tl2npu.source.names import Names


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
