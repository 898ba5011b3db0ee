"""The text of one call of a macro: its body with the arguments in the place of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import body_of
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Env, Helper
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Memory
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import Names
from tl2npu.passes.writing.substitute import Unclear, bound_names, loop_targets, reads, substituted
from tl2npu.source.named_by_call import returns
from tl2npu.source.tree import is_docstring, mentioned, names_in, nodes_of, walk


@dataclass(frozen=True, eq=False)
class Site:
    """A call in the kernel: ``statement`` is the small statement (or loop, or branch) that holds it."""

    call: cst.Call
    helper: Helper
    env: Env
    statement: cst.CSTNode


@dataclass(frozen=True, eq=False)
class Body:
    """What a call becomes: statements, then its value (None: it has none)."""

    statements: list[cst.CSTNode]
    value: cst.BaseExpression | None


class Inliner:
    """Writes calls of helpers in place; one for all calls that are replaced together.

    With ``separate`` each call is a launch of its own, whose names are seen by no other.
    """

    def __init__(self, job: Job, separate: bool = False) -> None:
        self.job, self.separate = job, separate
        self.fresh = Names(job)
        around = job.located.node
        self.taken = _parameters(around) if separate else mentioned(around)

    def body(self, site: Site, target: str | None) -> Body:
        """The text for a call; its value is to be called ``target`` where it is a variable of the helper."""
        node = site.helper.node
        arguments = self._arguments(site)
        statements = [s for s in body_of(node) if not is_docstring(s)]
        result = _result(node, statements)
        if result is not None:
            statements = _without_last(statements)
        block: cst.CSTNode = cst.Module(body=[s for s in statements if isinstance(s, _LINES)])
        local = bound_names(block)
        self._check_free_names(site, local | set(arguments))
        values: dict[str, cst.BaseExpression] = {}
        lets: list[cst.CSTNode] = []
        references = _references(node)
        for name, value in arguments.items():
            if name in references or self._may_stand_for(site, name, value, block, result, local):
                values[name] = value
                continue
            values[name] = cst.Name(self._own(name, site))
            lets.append(cst.parse_statement(f"{code(values[name])} = {code(value)}"))
        passed = {n.value for value in arguments.values() for n in names_in(value)}
        if target is not None and isinstance(result, cst.Name) and result.value in local and target not in passed:
            values[result.value] = cst.Name(target)
        looped = loop_targets(block)
        for name in sorted(local):
            if name not in values and self._clashes(name, site, name in looped):
                values[name] = cst.Name(self.fresh.fresh(name))
        try:
            new = [substituted(s, values) for s in statements]
            final = None if result is None else substituted(result, values)
        except Unclear as unclear:
            raise Blocked("TL118", unclear.node, f"`{node.name.value}`: {unclear}") from None
        if not self.separate:
            self.taken |= {name.value for statement in (*lets, *new) for name in names_in(statement)}
        assert final is None or isinstance(final, cst.BaseExpression)
        return Body([*lets, *_with_comments(node, new)], final)

    # -- arguments ----------------------------------------------------------------------------------------------------

    def _arguments(self, site: Site) -> dict[str, cst.BaseExpression]:
        node = site.helper.node
        params = node.params
        if isinstance(params.star_arg, cst.Param) or params.star_kwarg is not None:
            raise Blocked("TL118", site.call, f"`{node.name.value}` takes any number of arguments")
        listed = [*params.posonly_params, *params.params, *params.kwonly_params]
        positions = [p.name.value for p in (*params.posonly_params, *params.params)]
        found: dict[str, cst.BaseExpression] = {}
        for arg in site.call.args:
            if arg.star or (arg.keyword is None and not positions):
                raise Blocked(
                    "TL118", site.call, f"cannot match the arguments of `{node.name.value}` with its parameters"
                )
            name = arg.keyword.value if arg.keyword is not None else positions[0]
            if name in positions:
                positions.remove(name)
            found[name] = arg.value
        for param in listed:
            if param.name.value not in found:
                if param.default is None:
                    raise Blocked("TL118", site.call, f"the argument `{param.name.value}` is missing")
                found[param.name.value] = param.default
        return found

    def _may_stand_for(
        self,
        site: Site,
        name: str,
        value: cst.BaseExpression,
        block: cst.CSTNode,
        result: cst.BaseExpression | None,
        local: set[str],
    ) -> bool:
        """An argument is worked out once, at the call: its text may stand in the body where that is the same."""
        uses = [*reads(block, name), *(reads(result, name) if result is not None else ())]
        if name in local:
            return False
        if (
            not _is_simple(value)
            and any(isinstance(part, (cst.Call, cst.BinaryOperation)) for part in walk(value))
            and len(uses) > 2
        ):
            return False
        evaluator = self.job.file.evaluator
        if evaluator.operand(value, site.env) is not None and self._is_whole(value, site.env, block, name):
            return True
        loads = [load for load in evaluator.loads(value, site.env) if load.buffer.memory is not None]
        assert isinstance(block, cst.Module)
        if not block.body:
            return True  # the value is worked out at the call, and nothing happens before
        first = _first_statement(block)
        return (
            not loads
            or not uses
            or (len(uses) == 1 and first is not None and any(found is uses[0] for found in names_in(first)))
        )

    def _is_whole(self, value: cst.BaseExpression, env: Env, block: cst.CSTNode, name: str) -> bool:
        """A buffer or a region of one, not an element whose value is meant."""
        operand = self.job.file.evaluator.operand(value, env)
        assert operand is not None
        if operand.dims is None:
            return operand.buffer.memory is not Memory.VAR or not _writes(block, name)
        return any(not dim.is_point for dim in operand.dims) or len(operand.dims) < len(operand.buffer.shape)

    # -- names --------------------------------------------------------------------------------------------------------

    def _own(self, name: str, site: Site) -> str:
        return self.fresh.fresh(name) if self._clashes(name, site, False) else name

    def _clashes(self, name: str, site: Site, looped: bool) -> bool:
        if name not in self.taken:
            return False
        if not looped:
            return True
        kernel = self.job.located.node
        if name not in loop_targets(kernel) and name in bound_names(kernel) | _parameters(kernel):
            return True
        around = [a for a in self.job.file.index.ancestors(site.statement) if isinstance(a, cst.For)]
        if any(found.value == name for loop in around for found in names_in(loop.target)):
            return True
        inside = {
            id(n) for loop in nodes_of(kernel.body, cst.For) for n in names_in(loop) if name in mentioned(loop.target)
        }
        return any(id(found) not in inside for found in reads(kernel, name))

    def _check_free_names(self, site: Site, bound: set[str]) -> None:
        """What the helper sees around it must be what the kernel sees at the call."""
        helper = site.helper
        if helper.env is site.env or helper.env.depth >= site.env.depth:
            return  # defined in the kernel itself
        inner = {p for part in nodes_of(helper.node.body, cst.FunctionDef) for p in _parameters(part)}
        for name in sorted(mentioned(helper.node.body) - bound - inner):
            here, there = site.env.lookup(name), helper.env.lookup(name)
            if here is not there and here != there and not (isinstance(here, Buffer) and here is there):
                text = f"`{helper.node.name.value}` uses `{name}`, which means something else at this call"
                raise Blocked("TL118", site.call, text)


_LINES = (cst.SimpleStatementLine, cst.BaseCompoundStatement)


def _parameters(node: cst.FunctionDef) -> set[str]:
    return {p.name.value for p in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)}


def _references(node: cst.FunctionDef) -> set[str]:
    """Parameters annotated ``T.Ref`` (or ``T.Var``, its old name): they stand for a place, not for a value."""
    found = set()
    for param in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params):
        if param.annotation is not None and code(param.annotation.annotation).rsplit(".", 1)[-1] in ("Ref", "Var"):
            found.add(param.name.value)
    return found


def _result(node: cst.FunctionDef, statements: Sequence[cst.CSTNode]) -> cst.BaseExpression | None:
    """What the helper returns at its end; raises :class:`Blocked` for any other return."""
    found = returns(node)
    if not found:
        return None
    last = statements[-1] if statements else None
    at_end = isinstance(last, cst.SimpleStatementLine) and last.body[-1] is found[0]
    if len(found) != 1 or not at_end:
        raise Blocked("TL118", found[0], f"`{node.name.value}` returns from the middle of its body")
    return found[0].value


def _without_last(statements: list[cst.CSTNode]) -> list[cst.CSTNode]:
    last = cst.ensure_type(statements[-1], cst.SimpleStatementLine)
    if len(last.body) == 1:
        return statements[:-1]
    kept = [*last.body[:-2], last.body[-2].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]
    return [*statements[:-1], last.with_changes(body=kept)]


def _first_statement(block: cst.CSTNode) -> cst.CSTNode | None:
    """What runs first, if it runs once."""
    assert isinstance(block, cst.Module)
    first = block.body[0] if block.body else None
    return None if isinstance(first, (cst.For, cst.While)) else first


def _writes(block: cst.CSTNode, name: str) -> bool:
    return any(
        isinstance(part, (cst.AssignTarget, cst.AugAssign)) and name in mentioned(part.target) for part in walk(block)
    )


def _is_simple(value: cst.BaseExpression) -> bool:
    return isinstance(value, (cst.Name, cst.Attribute, cst.BaseNumber, cst.SimpleString))


def _with_comments(node: cst.FunctionDef, statements: list[cst.CSTNode]) -> list[cst.CSTNode]:
    """Comments behind the last statement of the helper go above it, so that they are not lost."""
    footer = node.body.footer if isinstance(node.body, cst.IndentedBlock) else ()
    kept = [line for line in footer if line.comment is not None]
    if not kept or not statements:
        return statements
    last = statements[-1]
    lines = [*last.leading_lines, *kept]  # type: ignore[attr-defined]
    return [*statements[:-1], last.with_changes(leading_lines=lines)]
