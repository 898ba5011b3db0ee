"""TL604, TL605: functions that callers give a factory, ``make(N, relu)``, and that the kernel calls by a parameter.

What such a call computes is known only where all calls of the factory in the file are: then the kernel calls the
function by its name, under a condition of Python where there are several. The factory raises for any other function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Loop, walk_with_parents
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.names.definitions import bound_inside, defined_function, visible_uses
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.substitute import substituted
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.tree import argument, calls_in, mentioned, names_in, nodes_of

_LANGUAGE = "tilelang.language."
_MOST = 8
"""More functions than that would be as many versions of a loop."""


class _Unknown(Exception):
    """Why it cannot be told which functions a parameter stands for."""


@dataclass(eq=False)
class _Given:
    """The functions that callers give a parameter, as texts; ``lambdas`` need a name first."""

    texts: list[str] = field(default_factory=list)
    lambdas: list[cst.Lambda] = field(default_factory=list)


def name_functions(job: Job) -> bool:
    """Write the functions for one parameter that the kernel calls with its data; whether there was one."""
    for stmt, parents in walk_with_parents(job.kernel.body):
        if stmt.via or not isinstance(stmt.node, cst.BaseSmallStatement):
            continue
        loop = next((parent for parent in parents if isinstance(parent, Loop) and parent.kind == "parallel"), None)
        for call in calls_in(stmt.node):
            owner = _owner(job, stmt.env, call.func) if isinstance(call.func, cst.Name) else None
            if owner is not None and (loop is not None or job.file.evaluator.buffers_in(call, stmt.env)):
                assert isinstance(call.func, cst.Name)
                place = loop.node if loop is not None else job.file.index.parent(stmt.node)
                _write(job, place, call, owner, call.func.value)
                return True
    return False


def _owner(job: Job, env: Env, name: cst.Name) -> cst.FunctionDef | None:
    """The function around the kernel whose parameter a name is; None if it is something else."""
    if not isinstance(env.lookup(name.value), Sym):
        return None
    for above in job.file.index.ancestors(name):
        if isinstance(above, cst.FunctionDef) and name.value in bound_inside(above):
            own = name.value in {param.name.value for param in _params(above)}
            rebound = any(name.value in assigned_names(line) for line in above.body.body)
            return above if own and not rebound and above is not job.located.node else None
    return None


def _functions(index: Index, node: cst.CSTNode) -> list[cst.CSTNode]:
    """What around a node binds names of its own."""
    return [above for above in index.ancestors(node) if isinstance(above, (cst.FunctionDef, cst.Lambda, cst.BaseComp))]


def _params(node: cst.FunctionDef) -> list[cst.Param]:
    return [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]


def _write(job: Job, place: cst.CSTNode | None, call: cst.Call, owner: cst.FunctionDef, name: str) -> None:
    """``place``: the loop or the line that there is a version of for each function."""
    index, given = job.file.index, _Given()
    try:
        _collect(job, owner, name, given, ())
        if len(given.texts) + len(given.lambdas) > _MOST:
            raise _Unknown(f"its callers give more than {_MOST}")
        if not given.texts and not given.lambdas:
            raise _Unknown(f"no call of `{owner.name.value}` gives it")
        hidden = {inner for above in _functions(index, call) for inner in bound_inside(above)}
        for text in given.texts:
            if text.split(".")[0] in hidden:
                raise _Unknown(f"the kernel has another `{text.split('.')[0]}`")
    except _Unknown as unknown:
        text = f"`{owner.name.value}` takes `{name}`, and cannot tell which function that is: {unknown}"
        raise Blocked("TL605", call, text) from None
    edits, names = Edits(index), Names(job)
    functions, above = list(given.texts), list[str]()
    for node in given.lambdas:
        functions.append(names.fresh(f"{name}_{len(functions) + 1}", f"{name}_function"))
        above.append(f"def {functions[-1]}({code(node.params)}):\n    return {code(node.body)}\n")
        edits.replace(node, cst.Name(functions[-1]))
    if above:
        top = [owner, *index.ancestors(owner)][-2]
        lines = [line.with_changes(leading_lines=()) for line in parse(job, "".join(above), top)]
        blank = [cst.EmptyLine(indent=False)] * 2
        first = [lines[0].with_changes(leading_lines=top.leading_lines)]  # type: ignore[attr-defined]
        rest = [line.with_changes(leading_lines=blank) for line in lines[1:]]
        edits.replace_many(top, [*first, *rest, top.with_changes(leading_lines=blank)])
        job.apply(edits)
        return  # and again, with functions that have names
    known = {code(line).strip() for line in owner.body.body}
    flags: list[str] = []
    for text in functions[:-1]:
        flag = f"{name}_is_{text.rsplit('.', 1)[-1]}"
        flags.append(flag if f"{flag} = {name} is {text}" in known else names.fresh(flag, f"{flag}_function"))
    _guard(job, edits, owner, name, functions, flags)
    job.apply(edits)
    edits = Edits(job.file.index)
    assert isinstance(place, (cst.For, cst.SimpleStatementLine))
    edits.replace_many(place, [_versions(place, name, functions, flags)])
    shown = " or ".join(f"`{text}`" for text in functions)
    job.change(
        "TL604", call, f"`{name}` is {shown} in every call of `{owner.name.value}`: the kernel calls it by its name"
    )
    job.apply(edits)


def _versions(
    place: cst.For | cst.SimpleStatementLine, name: str, functions: Sequence[str], flags: Sequence[str]
) -> cst.CSTNode:
    """The code, or a choice of versions of it, with functions in place of the parameter."""
    made = [substituted(place, {name: cst.parse_expression(text)}) for text in functions]
    if not flags:
        return made[0]
    bodies = [cst.IndentedBlock([cst.ensure_type(one, type(place)).with_changes(leading_lines=())]) for one in made]
    last: cst.If | cst.Else = cst.Else(bodies[-1])
    for flag, body in reversed(list(zip(flags, bodies[:-1], strict=True))):
        last = cst.If(cst.Name(flag), body, orelse=last)
    return last.with_changes(leading_lines=place.leading_lines)


def _guard(
    job: Job, edits: Edits, owner: cst.FunctionDef, name: str, functions: Sequence[str], flags: Sequence[str]
) -> None:
    """The factory refuses any other function, and works out which one it has."""
    test = f"{name} is not {functions[0]}" if len(functions) == 1 else f"{name} not in ({', '.join(functions)})"
    lines = [f'if {test}:\n    raise ValueError(f"there is no kernel for {{{name}}}")\n']
    lines += [f"{flag} = {name} is {text}\n" for flag, text in zip(flags, functions, strict=False)]
    there = {code(line).strip() for line in owner.body.body}
    new = [line for text in lines if text.strip() not in there for line in parse(job, text, owner)]
    if not new:
        return
    first = owner.body.body[0]
    docstring = isinstance(first, cst.SimpleStatementLine) and isinstance(first.body[0], cst.Expr)
    edits.replace_many(first, [first, *new] if docstring else [*new, first])


# -- callers ----------------------------------------------------------------------------------------------------------


def _collect(job: Job, owner: cst.FunctionDef, name: str, given: _Given, seen: tuple[object, ...]) -> None:
    """Add what every call of a function gives a parameter. Raises :class:`_Unknown`."""
    index = job.file.index
    if (owner, name) in seen:
        return
    if not isinstance(index.parent(owner), cst.Module):
        raise _Unknown(f"`{owner.name.value}` is not a function of the module")
    inside = {id(node) for node in names_in(owner)}
    uses = [use for use in visible_uses(index.module, owner.name.value) if id(use) not in inside]
    if not uses:
        raise _Unknown(f"nothing in this file calls `{owner.name.value}`")
    for use in uses:
        call = index.parent(use)
        if not isinstance(call, cst.Call) or call.func is not use:
            raise _Unknown(f"line {_line(job, use)} uses `{owner.name.value}` without calling it")
        value = _argument(job, owner, call, name)
        _value(job, value, call, given, (*seen, (owner, name)))


def _line(job: Job, node: cst.CSTNode) -> int | None:
    """The line of a node in the file that the user has."""
    return job.original.first_line(node) or job.file.index.first_line(node)


def _argument(job: Job, owner: cst.FunctionDef, call: cst.Call, name: str) -> cst.BaseExpression:
    if any(arg.star for arg in call.args):
        raise _Unknown(f"line {_line(job, call)} gives arguments by a star")
    order = [param.name.value for param in (*owner.params.posonly_params, *owner.params.params)]
    given = argument(call, name, order.index(name) if name in order else None)
    if given is not None:
        return given
    default = next(param.default for param in _params(owner) if param.name.value == name)
    if default is None:
        raise _Unknown(f"line {_line(job, call)} does not give it")
    return default


def _value(job: Job, node: cst.BaseExpression, call: cst.Call, given: _Given, seen: tuple[object, ...]) -> None:
    """Add the functions that an argument may be."""
    index = job.file.index
    around = _functions(index, node)
    root = node
    while isinstance(root, cst.Attribute):
        root = root.value
    holder = next((above for above in around if isinstance(root, cst.Name) and root.value in bound_inside(above)), None)
    if isinstance(node, cst.IfExp):
        _value(job, node.body, call, given, seen)
        _value(job, node.orelse, call, given, seen)
    elif isinstance(node, cst.Lambda) and _is_closed(node, around):
        if all(code(node) != code(known) for known in given.lambdas):
            given.lambdas.append(node)
        else:
            raise _Unknown(f"line {_line(job, node)} repeats a lambda: give it a name")
    elif isinstance(node, cst.Name) and isinstance(holder, cst.FunctionDef):
        params = {param.name.value for param in _params(holder)}
        if node.value not in params or any(node.value in assigned_names(line) for line in holder.body.body):
            raise _Unknown(f"line {_line(job, call)} gives `{node.value}`, which `{holder.name.value}` binds")
        _collect(job, holder, node.value, given, seen)
    elif holder is None and _is_function(job, node, call):
        if code(node) not in given.texts:
            given.texts.append(code(node))
    else:
        raise _Unknown(f"line {_line(job, call)} gives `{code(node)}`")


def _is_function(job: Job, node: cst.BaseExpression, call: cst.Call) -> bool:
    """A function of the module, or one of TileLang."""
    if isinstance(node, cst.Name) and defined_function(job.file.index, node.value, [call]):
        return True
    return (job.file.names.resolve(node) or "").startswith(_LANGUAGE)


def _is_closed(node: cst.Lambda, around: Sequence[cst.CSTNode]) -> bool:
    """A lambda that uses nothing but its parameters and what the module binds, so that it may stand there."""
    params = node.params
    if (
        params.star_arg is not cst.MaybeSentinel.DEFAULT
        or params.kwonly_params
        or params.star_kwarg
        or params.posonly_params
    ):
        return False
    own = {param.name.value for param in params.params}
    free = mentioned(node.body) - own
    bound = {name for above in around for name in bound_inside(above)}
    bound |= {name.value for above in around for line in nodes_of(above, cst.ImportFrom) for name in names_in(line)}
    return not free & bound and all(param.default is None for param in params.params)
