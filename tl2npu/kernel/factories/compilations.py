"""One compilation of a kernel: ``tilelang.jit``, ``tilelang.compile`` and the like, with what it is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.dialects.compilation import CERTAIN, COMPILERS, Compiler, order
from tl2npu.kernel.expressions import code
from tl2npu.source.names import Names
from tl2npu.source.tree import argument, remembered

_OF_ALL = frozenset({"out_idx", "verbose"})
_LITERAL = (cst.BaseList, cst.Tuple, cst.BaseNumber, cst.BaseString, cst.BaseDict, cst.UnaryOperation)


@dataclass(eq=False)
class Compilation:
    """One ``tilelang.jit(...)`` or ``tilelang.compile(...)``: ``call`` is None for a bare ``@tilelang.jit``.

    ``kwargs`` are the arguments by name, also those of a literal dict passed as ``**name`` and those by position;
    ``unread`` is set where arguments come from somewhere that could not be read, ``spread`` to what stands behind
    ``**``. ``unnamed``: arguments by position that have other names in other languages, until that is known.
    """

    node: cst.CSTNode
    call: cst.Call | None
    kwargs: dict[str, cst.BaseExpression]
    unread: cst.CSTNode | None = None
    spread: cst.BaseExpression | None = None
    compiler: Compiler = "jit"
    unnamed: Sequence[cst.Arg] = field(default=())

    @property
    def why_unread(self) -> str:
        """What to say of ``unread``."""
        if isinstance(self.unread, cst.Arg) and not self.unread.star:
            return f"`{code(self.unread.value)}` is not valid as a positional argument: pass it by keyword"
        return "cannot read the arguments of `tilelang.jit`"

    def name_rest(self, dialect: str) -> None:
        """Give the other arguments by position the names that they have in a language."""
        names = order(self.compiler, dialect)[len(CERTAIN) :]
        for name, arg in zip(names, self.unnamed, strict=False):
            self.kwargs[name] = arg.value
        if len(self.unnamed) > len(names):
            self.unread = self.unnamed[len(names)]
        self.unnamed = ()


def jit_call(node: cst.BaseExpression, names: Names) -> bool:
    """True if the expression is ``tilelang.jit``, ``tilelang.compile`` or another that compiles."""
    return names.resolve(node) in COMPILERS


def compilation(node: cst.BaseExpression, names: Names, module: cst.Module) -> Compilation | None:
    """Read ``tilelang.jit`` or ``tilelang.jit(...)`` or ``tilelang.compile(...)``; None for anything else.

    ``tilelang.jit`` may be ``functools.partial(tilelang.jit, out_idx=[-1])``, under a name of the module.
    """
    call = node if isinstance(node, cst.Call) else None
    func = node if call is None else call.func
    made = None if jit_call(func, names) else _partial(func, names, module)
    if not jit_call(func, names) and made is None:
        return None
    compiler = COMPILERS[names.resolve(func if made is None else made.args[0].value) or ""]
    result = Compilation(node, call, {}, compiler="jit" if call is None else compiler)
    if made is not None:
        result.spread = func
        result.kwargs = {arg.keyword.value: arg.value for arg in made.args if arg.keyword is not None}
    positional: list[cst.Arg] = []
    for arg in call.args if call is not None else ():
        if arg.star == "**":
            literal = _dict_of(arg.value, module)
            if literal is None:
                result.unread = arg
                continue
            result.spread = arg.value
            for element in literal.elements:
                if isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString):
                    result.kwargs[str(element.key.evaluated_value)] = element.value
                else:
                    result.unread = arg
        elif arg.star:
            result.unread = arg
        elif arg.keyword is not None:
            if arg.keyword.value != "func":
                result.kwargs[arg.keyword.value] = arg.value
        else:
            positional.append(arg)
    _place(result, positional)
    return result


def _partial(node: cst.BaseExpression, names: Names, module: cst.Module) -> cst.Call | None:
    """``functools.partial(tilelang.jit, ...)`` that a name of the module stands for; None for anything else.

    None also where it gives more than an edit of one kernel can leave to the others.
    """
    call = _held(node.value, module) if isinstance(node, cst.Name) else None
    if not isinstance(call, cst.Call) or names.resolve(call.func) != "functools.partial" or not call.args:
        return None
    first, *rest = call.args
    plain = all(arg.keyword is not None and arg.keyword.value in _OF_ALL for arg in rest)
    is_jit = first.keyword is None and not first.star and COMPILERS.get(names.resolve(first.value) or "") == "jit"
    return call if is_jit and plain else None


def decorating(function: cst.FunctionDef, names: Names, module: cst.Module) -> Iterator[Compilation]:
    """The compilations among the decorators of a function: what is decorated is the function, so that nothing else
    can be given by position."""
    for decorator in function.decorators:
        found = compilation(decorator.decorator, names, module)
        if found is not None:
            by_position = [
                arg for arg in (found.call.args if found.call else ()) if arg.keyword is None and not arg.star
            ]
            found.unread = by_position[0] if by_position else found.unread
            yield found


def _place(result: Compilation, positional: list[cst.Arg]) -> None:
    """Names for the arguments by position, as far as all languages agree on them."""
    if result.compiler == "jit":
        # `@tilelang.jit([3])` gives no `out_idx`: it takes the list for the function.
        wrong = [arg for place, arg in enumerate(positional) if place or isinstance(arg.value, _LITERAL)]
        result.unread = wrong[0] if wrong else result.unread
        return
    for name, arg in zip(CERTAIN, positional, strict=False):
        if name != "func":
            result.kwargs[name] = arg.value
    result.unnamed = positional[len(CERTAIN) :]


def kernel_argument(call: cst.Call) -> cst.BaseExpression | None:
    """What ``tilelang.compile(...)`` compiles: its first argument, or ``func=``."""
    named = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "func"]
    return next(iter([*named, *(arg.value for arg in call.args[:1] if arg.keyword is None and not arg.star)]), None)


def tuned_kernel(call: cst.Call, names: Names) -> cst.BaseExpression | None:
    """The kernel in ``AutoTuner.from_kernel(kernel, ...).set_compile_args(...)``."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "set_compile_args":
        return None
    made: cst.BaseExpression = call.func.value
    while isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute):
        if (names.resolve(made.func) or "").endswith(".AutoTuner.from_kernel"):
            return argument(made, "kernel", 0)
        made = made.func.value
    return None


def tuner_arguments(call: cst.Call) -> Compilation:
    """What ``set_compile_args(...)`` says."""
    result = Compilation(call, call, {}, compiler="tuner")
    names = iter(order("tuner", ""))
    for arg in call.args:
        name = arg.keyword.value if arg.keyword is not None else None if arg.star else next(names, None)
        if name is None:
            result.unread = arg
        else:
            result.kwargs[name] = arg.value
    return result


def _dict_of(node: cst.BaseExpression, module: cst.Module) -> cst.Dict | None:
    """The literal behind ``**name``, if a module-level name is assigned a literal exactly once."""
    found = _held(node.value, module) if isinstance(node, cst.Name) else node
    return found if isinstance(found, cst.Dict) else None


def _held(name: str, module: cst.Module) -> cst.BaseExpression | None:
    """What a name of the module is assigned, if that happens exactly once."""
    found = _assigned(module).get(name, ())
    return found[0] if len(found) == 1 else None


@remembered
def _assigned(module: cst.Module) -> dict[str, list[cst.BaseExpression]]:
    found: dict[str, list[cst.BaseExpression]] = {}
    for line in module.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.Assign):
                names = (target.target for target in small.targets)
                for name in (name.value for name in names if isinstance(name, cst.Name)):
                    found.setdefault(name, []).append(small.value)
    return found
