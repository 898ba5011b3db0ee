"""TL102 to TL105: eager kernels become a factory with a prim_func, before the kernels of a file are looked for.

An eager kernel is a function under ``tilelang.jit`` that launches by itself: ``T.const`` extents, tensors declared in
the body (``A: T.Tensor(...)``), outputs from ``T.empty``, and a ``return`` of them. The Ascend compiler takes only
prim_funcs, so ``f(a, b, 128)`` becomes ``f(M, N, 128)(a, b)``. The result is still a GPU kernel, of the lazy style.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.across.users import Users
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.compilations import compilation
from tl2npu.kernel.factories.factory import is_prim_func
from tl2npu.passes.eager.calls import Callers
from tl2npu.passes.eager.kernel import Plan
from tl2npu.passes.eager.text import rebuilt_parts
from tl2npu.passes.eager.wrapper import wrapper_of
from tl2npu.source.edits import EditError, Edits
from tl2npu.source.index import Index
from tl2npu.source.names import LANGUAGE, Names, names_of
from tl2npu.source.tree import SubclassesOf, children

_LAUNCHES = frozenset({"Kernel", "ClusterKernel", "CUDASourceCodeKernel"})
_WITHOUT_BLOCKS = SubclassesOf(cst.BaseExpression, cst.BaseSmallStatement)
_WITHOUT_LAUNCHES = SubclassesOf(cst.BaseExpression, cst.BaseSmallStatement, cst.FunctionDef, cst.ClassDef)


@dataclass(frozen=True, eq=False)
class Eager:
    """A kernel of the input that gets another form before it is migrated.

    ``name`` is that of reports, ``line`` that of its ``def``. ``is_prim_func``: not eager, but
    with several launches.
    """

    node: cst.FunctionDef
    name: str
    line: int
    is_prim_func: bool = False


@dataclass(eq=False)
class Lazy:
    """A file without its eager kernels, except those that are ``left`` as they were, each with the reason.

    ``whole``: prim_funcs whose launches cannot be separated; ``cut``: lines of kernels with a launch that was cut in
    two. ``changes``: rule code, node and message of every edit,
    with the kernel that it belongs to.
    """

    module: cst.Module
    left: list[tuple[Eager, Blocked | None]] = field(default_factory=list)
    whole: list[tuple[Eager, Blocked]] = field(default_factory=list)
    cut: set[int] = field(default_factory=set)
    changes: list[tuple[Eager, str, cst.CSTNode, str]] = field(default_factory=list)
    _factories: dict[int, tuple[cst.Name, Eager]] = field(default_factory=dict)

    def origin(self, factory: cst.FunctionDef) -> Eager | None:
        """The eager kernel that a factory was made of; None for any other function."""
        found = self._factories.get(id(factory.name))
        return found[1] if found is not None else None

    def made(self, name: cst.Name, eager: Eager) -> None:
        """Remember a factory by the node of its name, which later edits keep."""
        self._factories[id(name)] = name, eager


def to_lazy(index: Index, leave: Container[int] = (), users: Users | None = None) -> Lazy:
    """Turn every eager kernel of a file into a factory, call sites included.

    ``leave``: lines of the ``def`` of kernels that stay as they are, and so do their calls. ``users`` knows the other
    files that call them.
    """
    result = Lazy(index.module)
    current = index
    for eager in find_eager(index):
        if eager.line in leave:
            result.left.append((eager, None))
            continue
        try:
            current = _converted(current, eager, result, users)
        except Blocked as blocked:
            result.left.append((eager, blocked))
    result.module = current.module
    return result


def find_eager(index: Index) -> list[Eager]:
    """Every function that launches by itself and is neither a prim_func nor a macro, in text order."""
    names = names_of(index)
    found: list[Eager] = []
    for node, around in _functions(index.module, ()):
        if launches(node.body, names) and not _is_part_of_a_kernel(node, around, names):
            name = ".".join([*(f.name.value for f in around), node.name.value])
            found.append(Eager(node, name, index.position(node).line))
    return found


def launches(node: cst.CSTNode, names: Names) -> list[cst.With]:
    """The ``with T.Kernel(...)`` below a node, those in nested functions left out."""
    found: list[cst.With] = []
    for child in children(node):
        if type(child) is cst.With and any(is_launch(item.item, names) for item in child.items):
            found.append(child)
        if not _WITHOUT_LAUNCHES[type(child)]:
            found += launches(child, names)
    return found


def is_launch(node: cst.BaseExpression, names: Names) -> bool:
    """True for ``T.Kernel(...)``, however it is spelled."""
    return isinstance(node, cst.Call) and names.operator(node.func) in _LAUNCHES


def _functions(
    node: cst.CSTNode, around: tuple[cst.FunctionDef | cst.ClassDef, ...]
) -> Iterator[tuple[cst.FunctionDef, tuple[cst.FunctionDef | cst.ClassDef, ...]]]:
    for child in children(node):
        if type(child) is cst.FunctionDef:
            yield child, around
        inside = (*around, child) if type(child) is cst.FunctionDef or type(child) is cst.ClassDef else around
        if not _WITHOUT_BLOCKS[type(child)]:
            yield from _functions(child, inside)


def _is_part_of_a_kernel(
    node: cst.FunctionDef, around: tuple[cst.FunctionDef | cst.ClassDef, ...], names: Names
) -> bool:
    """A prim_func, a macro, or a function inside a prim_func."""
    if any(isinstance(outer, cst.FunctionDef) and is_prim_func(outer, names) for outer in around):
        return True
    macro = any(_decorator(item, names) == LANGUAGE + "macro" for item in node.decorators)
    return macro or is_prim_func(node, names)


def _decorator(node: cst.Decorator, names: Names) -> str | None:
    target = node.decorator
    return names.resolve(target.func if isinstance(target, cst.Call) else target)


def _converted(index: Index, eager: Eager, result: Lazy, users: Users | None) -> Index:
    """The file with one kernel turned into a factory. Raises :class:`Blocked` where it cannot be."""
    names = names_of(index)
    node = eager.node
    jit = next((d for d in node.decorators if compilation(d.decorator, names, index.module) is not None), None)
    if jit is None:
        raise Blocked(
            "TL103", node, f"`{node.name.value}` launches a kernel, but has neither `@T.prim_func` nor `@tilelang.jit`"
        )
    plan = Plan(index, names, node, jit)
    callers = Callers(index, names, plan, users)
    callers.read()
    edits = Edits(index)
    if callers.wrapped:
        factory_name = cst.Name(callers.factory_name)
        edits.replace(node.name, factory_name)
    else:
        factory_name = node.name
    rebuilt_parts(plan, edits)
    callers.edit(edits)
    try:
        module = edits.apply(index.module)
    except EditError as error:
        raise Blocked("TL104", node, f"cannot rewrite a call of `{node.name.value}`: {error}") from None
    current = callers.finish(index.after(module))
    if callers.wrapped:
        attributes = [cst.parse_statement(text, module.config_for_parsing) for text in callers.attributes]
        wrapper = wrapper_of(plan, callers.factory_name, callers.axes)
        current = _with_wrapper(current, factory_name, [wrapper, *_set_off(attributes, index, node)])
    result.made(factory_name, eager)
    result.changes.append((eager, "TL102", node, f"wrote a factory with a prim_func for `{eager.name}`"))
    result.changes += [(eager, "TL105", call, message) for call, message in callers.changes]
    return current


def _set_off(
    lines: list[cst.SimpleStatementLine | cst.BaseCompoundStatement], index: Index, node: cst.FunctionDef
) -> list[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
    """Statements behind a function of the module or of another function."""
    blank = [cst.EmptyLine(indent=False)] * (2 if isinstance(index.parent(node), cst.Module) else 1)
    return [line.with_changes(leading_lines=[] if place else blank) for place, line in enumerate(lines)]


def _with_wrapper(
    index: Index, name: cst.Name, wrapper: list[cst.SimpleStatementLine | cst.BaseCompoundStatement]
) -> Index:
    factory = cst.ensure_type(index.parent(name), cst.FunctionDef)
    edits = Edits(index)
    edits.replace_many(factory, [factory, *wrapper])
    return index.after(edits.apply(index.module))
