"""TL202, TL203: from half tiles per vector core to whole tiles.

The analysis (:mod:`tl2npu.kernel.rows`) says which value every index, extent and count must have once the two cores are
one. This pass finds the text: for each expression the smallest rewrite whose value is proved to be the wanted one.
Names that hold half an extent (``v_block = H // 2``) are redefined where every use wants the double, else replaced at
their uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from tl2npu.dialects.catalogue import Role
from tl2npu.kernel.bindings import assigned_names, is_arithmetic
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.environment import Changed, Env
from tl2npu.kernel.expressions import Evaluator, code, without_parentheses
from tl2npu.kernel.factories.assertions import multiples
from tl2npu.kernel.model import (
    Alloc,
    Branch,
    Buffer,
    Copy,
    Dim,
    Inlined,
    Let,
    Loop,
    Memory,
    Op,
    Operand,
    Range,
    Scalar,
    Stmt,
    Store,
)
from tl2npu.kernel.rows import Axis, Parity, Rows, at
from tl2npu.kernel.symbolic import Sym, const, product
from tl2npu.passes.job import Job
from tl2npu.passes.names.assignments import bound, take_out
from tl2npu.passes.names.definitions import Definition, definitions, uses_outside
from tl2npu.passes.writing.fold import map_expression, parenthesised, put_numbers, without_factor_two
from tl2npu.passes.writing.render import Unrenderable, render
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in, nodes_of


@dataclass(frozen=True, eq=False)
class Site:
    """An expression of the kernel and the value that it must have afterwards."""

    node: cst.BaseExpression
    env: Env
    old: Sym
    want: Sym
    stmt: Stmt | None


class Sites:
    """Every expression of a kernel whose value is an integer that the text must keep or change."""

    def __init__(self, job: Job, rows: Rows) -> None:
        self.kernel, self.rows, self.evaluator = job.kernel, rows, job.file.evaluator
        self.vid = rows.vid
        self.found: list[Site] = []
        self.arguments: list[cst.BaseExpression] = []
        for stmt in self.kernel.walk():
            self._visit(stmt)

    def add(self, node: cst.BaseExpression | None, stmt: Stmt | None, want: Sym, env: Env | None = None) -> None:
        """Register an expression with the value that it must have."""
        scope = env or (stmt.env if stmt else None)
        if node is not None and scope is not None:
            self.found.append(Site(node, scope, self.evaluator.sym(node, scope), want, stmt))

    def keep(self, node: cst.BaseExpression | None, stmt: Stmt) -> None:
        """Register an expression whose value stays (with vid = 0)."""
        if node is not None:
            self.add(node, stmt, at(self.evaluator.sym(node, stmt.env), self.vid, 0))

    def _visit(self, stmt: Stmt) -> None:
        if isinstance(stmt, Alloc):
            self._alloc(stmt)
        elif isinstance(stmt, Loop):
            for item in stmt.ranges:
                axis = self.rows.axis(item)
                self.keep(item.start_node, stmt)
                if axis is not None and axis.half is not None:
                    self.add(item.stop_node, stmt, item.start + 2 * item.extent)
                else:
                    self.keep(item.stop_node, stmt)
        elif isinstance(stmt, Copy):
            for operand in (stmt.src, stmt.dst):
                self._operand(stmt, operand)
            for option in stmt.options.values():
                self.keep(option.node, stmt)
        elif isinstance(stmt, Op):
            for name, arg in stmt.args.items():
                if isinstance(arg, Operand):
                    self._operand(stmt, arg)
                else:
                    self._argument(stmt, name, arg)
        elif isinstance(stmt, Store):
            self._operand(stmt, stmt.target)
            self._value(stmt, stmt.value)
        elif isinstance(stmt, Branch):
            self._value(stmt, stmt.cond)
        elif isinstance(stmt, Inlined):
            # what a macro is given shows in the expressions of its body, which are sites of their own
            call = stmt.node.value if isinstance(stmt.node, (cst.Expr, cst.Return)) else None
            self.arguments += [arg.value for arg in call.args] if isinstance(call, cst.Call) else []

    def _alloc(self, stmt: Alloc) -> None:
        buffer = stmt.buffer
        for i, (node, size) in enumerate(zip(buffer.shape_nodes, buffer.shape, strict=False)):
            split = i == 0 and self.rows.is_split(buffer)
            self.add(node, stmt, 2 * size if split else size)

    def _argument(self, stmt: Op, name: str, arg: Scalar) -> None:
        param = stmt.op.param(name)
        role = param.role if param else Role.SCALAR
        operands = [operand for _, operand in stmt.operands if operand.buffer.memory is not Memory.GM]
        if role is Role.COUNT and operands and any(self.rows.is_split(o.buffer) for o in operands):
            total = product(operands[0].buffer.shape)
            if operands[0].dims is None and self.rows.parity.equal(arg.sym, total):
                self.add(arg.node, stmt, 2 * arg.sym)
                return
            if operands[0].dims is None:
                raise Blocked("TL224", stmt.node, f"the count `{code(arg.node)}` is not the size of the half tile")
        self._value(stmt, arg)

    def _value(self, stmt: Stmt, arg: Scalar) -> None:
        for load in arg.loads:
            self._operand(stmt, load)
        if not arg.loads:
            self.keep(arg.node, stmt)

    def _operand(self, stmt: Stmt, operand: Operand) -> None:
        for position, dim in enumerate(operand.dims or ()):
            if dim.loads:
                for load in dim.loads:
                    self._operand(stmt, load)
                if dim.is_point:
                    continue
            if isinstance(dim.node, cst.Slice):
                self._slice(stmt, operand, position, dim, dim.node)
            else:
                self.keep(dim.node, stmt)

    def _slice(self, stmt: Stmt, operand: Operand, position: int, dim: Dim, node: cst.Slice) -> None:
        lo = at(dim.lo, self.vid, 0)
        extent = dim.extent if dim.extent is not None else const(1)
        moved = dim.lo.depends_on(self.vid)
        own = operand.buffer.memory is Memory.UB and position == 0 and self.rows.is_split(operand.buffer)
        new = 2 * at(extent, self.vid, 0) if moved or own else extent
        self.keep(node.lower, stmt)
        if node.upper is not None:
            self.add(node.upper, stmt, lo + new)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> cst.BaseExpression | None:
    """An expression from its text, also one that goes on over several lines; None if it is none."""
    for candidate in (text, f"({text})"):
        try:
            return cst.parse_expression(candidate)
        except cst.ParserSyntaxError:
            continue
    return None


class Rewriter:
    """Finds the text for all sites, given which names are redefined (``redefined``) or dropped to 0 (``dropped``)."""

    def __init__(self, job: Job, rows: Rows, sites: list[Site], halves: list[Sym]) -> None:
        self.rows, self.sites, self.halves = rows, sites, halves
        self.evaluator: Evaluator = job.file.evaluator
        self.index = job.file.index
        self.prim_func = job.located.node
        self.elsewhere = job.elsewhere
        self.shapes = {
            id(arg.value)
            for buffer in job.kernel.buffers.values()
            if isinstance(buffer.node, cst.Call)
            for arg in buffer.node.args
        }
        self.vid_name = next(name for name in job.kernel.launch.names[1:2]) if job.kernel.launch else "vid"
        self.definitions: list[Definition] = definitions(job)
        self.zero: dict[str, int] = {self.vid_name: 0}
        self.changes: dict[str, tuple[Sym, Sym]] = {}
        self.settled: dict[int, str] = {}
        self.edits: dict[int, tuple[cst.BaseExpression, cst.BaseExpression]] = {}

    def solve(self, redefine: bool) -> None:
        """Fill ``edits``; raises :class:`Blocked` if some site cannot be proved."""
        for definition in self.definitions:
            self._define(definition, redefine)
        for site in self.sites:
            self._site(site)

    def _define(self, definition: Definition, redefine: bool) -> None:
        old = self.evaluator.sym(definition.value, definition.env)
        env = Changed(definition.env, self.changes)
        if definition.in_kernel and old.depends_on(self.rows.vid):
            start = at(old, self.rows.vid, 0)
            if start.is_zero:
                self.zero[definition.name] = 0
                self.changes[definition.name] = (old, const(0))
                return
            bare = put_numbers(definition.value, self.zero)
            self._settle(definition, old, start, [bare, without_factor_two(bare)], env)
            return
        if any(old == half for half in self.halves) and redefine and not isinstance(definition.value, cst.Integer):
            self._settle(definition, old, 2 * old, list(self._whole(definition.value, definition.env)), env)
            return
        value = self.evaluator.sym(definition.value, env)
        if not is_arithmetic(old) and any(name.value in self.changes for name in names_in(definition.value)):
            raise Blocked("TL224", definition.value, f"doubling the tile would change the value of `{definition.name}`")
        if value != old and is_arithmetic(old):
            self.changes[definition.name] = (old, value)

    def _settle(
        self, definition: Definition, old: Sym, want: Sym, candidates: list[cst.BaseExpression], env: Env
    ) -> None:
        for candidate in candidates:
            if self._proved(candidate, env, want):
                self.changes[definition.name] = (old, want)
                self.edits[id(definition.value)] = (definition.value, candidate)
                return
        raise Blocked("TL224", definition.value, f"cannot prove a whole-tile definition of `{definition.name}`")

    def _site(self, site: Site) -> None:
        env = Changed(site.env, self.changes)
        for candidate in self._candidates(site):
            if not self._proved(candidate, env, site.want):
                continue
            text = code(candidate)
            if self.settled.setdefault(id(site.node), text) != text:
                break  # a shape or a macro that other statements share and that must read otherwise there
            if candidate is not site.node:
                self._check_owner(site.node)
                self.edits[id(site.node)] = (site.node, candidate)
            return
        raise Blocked("TL224", site.node, f"cannot prove a whole-tile form of `{code(site.node)}`")

    def _check_owner(self, node: cst.BaseExpression) -> None:
        """A shape that stands behind a name may only change if the name is nothing but a shape of this kernel."""
        if self.prim_func in self.index.ancestors(node):
            return
        holder = next((a for a in self.index.ancestors(node) if isinstance(a, (cst.Assign, cst.AnnAssign))), None)
        for name in assigned_names(holder) if holder is not None else ():
            for use in names_in(self.index.module):
                if use.value != name or isinstance(self.index.parent(use), cst.AssignTarget):
                    continue
                if id(use) not in self.shapes:
                    raise Blocked("TL224", use, f"`{name}` is used for more than the shapes of this kernel")
            if name in self.elsewhere:
                raise Blocked("TL224", node, f"other kernels use `{name}` too")

    def _proved(self, node: cst.BaseExpression, env: Env, want: Sym) -> bool:
        """True if the *text* of the proposal has the wanted value (parsed again, so parentheses count)."""
        parsed = node if node in self.index else _parsed(code(node).strip())
        if parsed is None or any(name.value in self.zero for name in nodes_of(parsed, cst.Name)):
            return False
        return self.rows.parity.equal(self.evaluator.sym(parsed, env), want)

    def _candidates(self, site: Site) -> Iterator[cst.BaseExpression]:
        yield site.node
        bare = put_numbers(site.node, self.zero)
        yield bare
        yield from self._whole(bare, site.env)
        try:
            yield cst.parse_expression(render(site.want))
        except Unrenderable:
            return

    def _whole(self, node: cst.BaseExpression, env: Env) -> Iterator[cst.BaseExpression]:
        """Proposals for twice the value: every half in it becomes its whole."""

        def change(inner: cst.BaseExpression) -> cst.BaseExpression | None:
            if isinstance(inner, cst.Call) and not inner.args:
                return None
            sym = self.evaluator.sym(inner, env)
            if not any(sym == half for half in self.halves):
                return None
            return self._double(inner, env)

        yield map_expression(node, change)
        yield self._double(node, env)

    def _double(self, node: cst.BaseExpression, env: Env) -> cst.BaseExpression:
        if isinstance(node, cst.Integer):
            return cst.Integer(str(2 * int(node.value.replace("_", ""), 0)))
        if isinstance(node, cst.BinaryOperation):
            two = self.evaluator.sym(node.right, env).constant
            if isinstance(node.operator, cst.FloorDivide) and two == 2:
                return node.left
            if isinstance(node.operator, cst.RightShift) and two == 1:
                return node.left
            if isinstance(node.operator, cst.Multiply) and self.evaluator.sym(node.left, env).constant == 1:
                return self._double(without_parentheses(node.right), env)
        if (
            isinstance(node, cst.Call)
            and len(node.args) == 2
            and self.evaluator.sym(node.args[1].value, env).constant == 2
        ):
            return node.args[0].value
        if isinstance(node, cst.Call) and len(node.args) == 1:
            inner = node.args[0].value
            if isinstance(inner, cst.BinaryOperation) and isinstance(inner.operator, cst.Divide):
                return inner.left
        if isinstance(node, cst.Name):
            for definition in self.definitions:
                if definition.name == node.value and isinstance(definition.value, (cst.BinaryOperation, cst.Call)):
                    inner_double = self._double(definition.value, definition.env)
                    if not isinstance(inner_double, cst.BinaryOperation):
                        return inner_double
        operand = parenthesised(node) if isinstance(node, (cst.BinaryOperation, cst.IfExp)) else node
        return cst.BinaryOperation(cst.Integer("2"), cst.Multiply(), operand)


def whole_tiles(job: Job, rows: Rows) -> None:
    """Rewrite the kernel to whole tiles; raises :class:`Blocked` and changes nothing if a proof fails."""
    sites = Sites(job, rows)
    if (blocked := _axis_by_shape(job, rows)) is not None:
        raise blocked
    overlapping = set(rows.parity.overlapping)  # of the old text: the proofs below compare other things
    split = {buffer.name for buffer in job.kernel.buffers.values() if rows.is_split(buffer)}
    axes = {id(a): a for a in (rows.axis(m) for m in _members(job)) if a is not None and a.half is not None}
    halves = list(dict.fromkeys(axis.half for axis in axes.values() if axis.half is not None))
    failure: Blocked | None = None
    for redefine in (True, False):
        rewriter = Rewriter(job, rows, sites.found, halves)
        try:
            rewriter.solve(redefine)
            changed = {*rewriter.changes, *rewriter.zero} - {rewriter.vid_name}
            covered = [*(site.node for site in sites.found), *sites.arguments]
            stray = uses_outside(job, changed, covered, rewriter.definitions)
            if stray is not None:
                raise Blocked("TL224", stray, f"`{code(stray)}` is also used where its value must stay the same")
        except Blocked as blocked:
            failure = failure or blocked
            continue
        _write(job, rewriter)
        _verify(job, rewriter)
        job.split |= {b.name for b in job.kernel.buffers.values() if b.name in split}
        job.must_be_even |= rows.parity.rounded_up
        job.overlapping |= overlapping
        job.known_even |= rows.parity.even - rows.parity.rounded_up - overlapping
        asserted = multiples(job.file, job.located)
        for name in sorted(name for name in rows.parity.even if asserted.get(name, 1) % 2):
            job.note("TL905", job.kernel.node, f"assumed that `{name}` is even, as the old kernel does", "info")
        return
    assert failure is not None
    raise failure


def _axis_by_shape(job: Job, rows: Rows) -> Blocked | None:
    """``broadcast(tile, vector)`` without ``axis``: the front end compares sizes, and sizes change here."""
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Op) or stmt.op.name != "tile.broadcast" or isinstance(stmt.args.get("axis"), Scalar):
            continue
        source = stmt.args.get("src")
        if isinstance(source, Operand) and len(source.buffer.shape) == 1 and rows.is_split(source.buffer):
            return Blocked(
                "TL224", stmt.node, "the sizes determine the axis of this broadcast; write `axis=` explicitly"
            )
    return None


def _members(job: Job) -> Iterator[Buffer | Range]:
    yield from job.kernel.buffers.values()
    for stmt in job.kernel.walk():
        if isinstance(stmt, Loop):
            yield from stmt.ranges


def _write(job: Job, rewriter: Rewriter) -> None:
    edits = Edits(job.file.index)
    dropped = {name for name in rewriter.zero if name != rewriter.vid_name}
    for old, new in rewriter.edits.values():
        edits.replace(old, new.with_changes(lpar=old.lpar, rpar=old.rpar) if _keeps_parens(old, new) else new)
        moved = rewriter.vid_name in code(old) or any(name in code(old) for name in dropped)
        rule, what = ("TL203", "removed the vid offset") if moved else ("TL202", "wrote the whole tile for half a tile")
        job.change(rule, old, f"{what}: `{code(old)}` -> `{code(new)}`")
    job.apply(edits)
    edits = Edits(job.file.index)
    for node in dict.fromkeys(s.node for s in job.kernel.walk() if isinstance(s, Let) and s.name in dropped):
        assert isinstance(node, cst.BaseSmallStatement)
        take_out(edits, node, dropped)
        names = [name for name, _ in bound(node) if name in dropped]
        job.change("TL204", node, f"`{'`, `'.join(names)}` only served vid")
    job.apply(edits)


class _Nothing(Rows):
    """No split rows: what a kernel has after the rewrite."""

    def __init__(self, parity: Parity) -> None:
        self.parity, self.vid = parity, ""

    def axis(self, member: Buffer | Range) -> Axis | None:
        """No axis is split any more."""
        return None

    def is_split(self, buffer: Buffer) -> bool:
        """No buffer is split any more."""
        return False


def _verify(job: Job, rewriter: Rewriter) -> None:
    """Read the written kernel again: every expression must have the value that was wanted for it."""
    parity = rewriter.rows.parity
    written = Sites(job, _Nothing(parity)).found
    wanted = rewriter.sites
    for new, old in zip(written, wanted, strict=False):
        if not parity.equal(new.old, old.want):
            raise Blocked("TL224", new.node, f"cannot prove that `{code(new.node)}` is the size of the whole tile")
    if len(written) != len(wanted):
        raise Blocked("TL224", job.located.node, "internal error: cannot analyse the rewritten kernel")


def _keeps_parens(old: cst.BaseExpression, new: cst.BaseExpression) -> bool:
    return bool(old.lpar) and not new.lpar and isinstance(new, cst.BinaryOperation)
