"""TL109: every statement of a single thread becomes a loop over all threads, ``for tx in T.Parallel(threads)``.

All threads execute a statement before any executes the next one. That is one of the orders in which the threads of a
GPU may run, and a kernel without races gives the same results in all of them. So barriers are no longer needed, serial
loops stay outside, and a thread's own storage gets an axis for the threads (only for those whose values differ).
What depends on more than the index of a thread (shuffles, votes, the order of atomics), and what two threads may write
differently, is not rewritten.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Memory
from tl2npu.passes.job import Job
from tl2npu.passes.plain.threads import plainer
from tl2npu.passes.plain.threads.lanes import NONE, Axes, Lanes, Own, Unclear, lanes_of
from tl2npu.passes.plain.threads.statements import (
    bound_by,
    branches,
    element_stored,
    loads,
    names_bound,
    stores,
    target_of,
)
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.substitute import Unclear as NotReplaceable
from tl2npu.passes.writing.substitute import substituted
from tl2npu.source.edits import Edits
from tl2npu.source.names import LANGUAGE
from tl2npu.source.tree import mentioned, names_in, nodes_of, with_children

CODE = "TL184"
"""What is refused unless it can be written as loops."""
_SERIAL = frozenset({"serial", "unroll", "vectorized", "Serial", "Unroll", "Vectorized", "Pipelined"})
_BARRIERS = frozenset({"sync_threads", "sync_warp", "syncthreads"})
_ATOMIC = ("atomic_",)


@dataclass
class Plan:
    """``new``: statement -> the text that takes its place."""

    new: list[tuple[cst.CSTNode, str]] = field(default_factory=list)


def plan(job: Job) -> Plan | None:
    """How the kernel loses its threads; None if it has none, or if it needs more of them than their index."""
    try:
        lanes = lanes_of(job)
        if lanes is None or job.kernel.launch is None:
            return None
        writer = _Writer(job, lanes, names=Names(job), last=not lanes.strides(job.kernel.launch.node.body))
        writer.block(job.kernel.launch.node.body, {})
    except (Unclear, NotReplaceable):
        return None
    return writer.plan


def readable(job: Job) -> Job | None:
    """A copy of the job in words of which :func:`plan` makes loops; None if there are none."""
    return next((copy for copy in (plainer.put_in_copy(job), job) if plan(copy) is not None), None)


def to_loops(job: Job) -> None:
    """Write the loops, where that can be done."""
    found = plan(copy := plainer.put_in_copy(job))
    if found is not None:
        job.take(copy)
    elif (found := plan(job)) is None:
        return
    edits = Edits(job.file.index)
    for node, text in found.new:
        edits.replace_many(node, parse(job, text, node))
        job.change("TL109", node, "wrote a loop over the threads of a block" if text else "no thread has an index")
    job.apply(edits)


@dataclass
class _Writer:
    job: Job
    lanes: Lanes
    plan: Plan = field(default_factory=Plan)
    names: Names = field(kw_only=True)
    last: bool = field(kw_only=True)
    """Whether threads are the last axis of their storage: neighbours then access neighbours, as in tensors."""
    pure: dict[str, cst.Assign] = field(default_factory=dict)
    """Names that stand for arithmetic with thread indices: each loop gets those that it needs."""
    dead: set[str] = field(default_factory=set)
    """Names of threads' values that are bound, but not for what stands here: a block or a loop around them ended."""

    def block(self, body: cst.BaseSuite, fixed: Mapping[str, cst.BaseExpression]) -> None:
        """The statements of a block; ``fixed``: thread indices that have one value there."""
        outside = dict(self.pure)
        lines = list(body.body)
        place = 0
        while place < len(lines):
            line = lines[place]
            small = line.body if isinstance(line, cst.SimpleStatementLine) else None
            if small is not None and len(small) != 1:
                raise Unclear
            statement = small[0] if small is not None else line
            place += 1
            if isinstance(statement, cst.Assign) and self._is_loaded(statement):
                run = self._run(lines[place - 1 :])
                place += len(run) - 1
                self._loop(lines[place - len(run) : place], run, fixed)
            else:
                self._statement(line, statement, fixed)
        self.dead |= {name for name, assign in self.pure.items() if outside.get(name) is not assign}
        self.pure = {name: assign for name, assign in outside.items() if name not in self.dead}

    def _statement(self, line: cst.CSTNode, statement: cst.CSTNode, fixed: Mapping[str, cst.BaseExpression]) -> None:
        axes = self.lanes.of(statement)
        for name in bound_by(statement):
            self._bind(name)
        if isinstance(statement, (cst.For, cst.If)):
            self._refuse_dead(statement.iter if isinstance(statement, cst.For) else statement.test)
        if isinstance(statement, cst.Assign) and statement in self.lanes.bindings:
            self._new(statement, "")
        elif isinstance(statement, cst.For):
            self._for(statement, fixed)
        elif isinstance(statement, cst.If) and not self.lanes.of(statement.test):
            self.block(statement.body, fixed)
            if isinstance(statement.orelse, cst.If):
                self._statement(statement.orelse, statement.orelse, fixed)
            elif statement.orelse is not None:
                self.block(statement.orelse.body, fixed)
        elif isinstance(statement, cst.If) and (one := self._one_thread(statement)) is not None:
            self._new(statement, "\n".join(self._texts(statement.body, {**fixed, **one})))
        elif isinstance(statement, cst.Assign) and (own := self._allocated(statement)) is not None:
            self._new(statement, self._allocation(statement, own))
        elif isinstance(statement, cst.Expr) and self._is_whole(statement):
            return
        elif isinstance(statement, cst.Expr) and (text := self._summed(statement)):
            self._new(statement, text)
        elif not axes:
            self._refuse_repeated(statement, fixed)
        elif isinstance(statement, cst.Assign) and self._is_pure(statement):
            name = code(statement.targets[0].target)
            self._refuse_dead(statement.value)
            self._bind(name)
            self.dead.discard(name)
            self.pure[name] = statement
            self._new(statement, "")
        else:
            self._loop([line], [statement], fixed)

    def _bind(self, name: str) -> None:
        """A name gets another value: what was computed with the old one is not to be computed again."""
        users = [user for user, assign in self.pure.items() if name in mentioned(assign.value)]
        for user in (name, *users):
            if self.pure.pop(user, None) is not None:
                self.dead.add(user)
                if user != name:
                    self._bind(user)

    def _refuse_dead(self, node: cst.CSTNode) -> None:
        if any(name.value in self.dead for name in names_in(node)):
            raise Unclear

    def _for(self, statement: cst.For, fixed: Mapping[str, cst.BaseExpression]) -> None:
        for name in names_bound(statement):
            self._bind(name)  # also by the run before
            if self.lanes.axes.get(name) and name not in self.lanes.own:
                self.dead.add(name)
        call = statement.iter
        if self.lanes.of(call) or not isinstance(call, cst.Call):
            raise Unclear
        if self.job.file.names.operator(call.func) in _SERIAL or code(call.func) == "range":
            if not fixed and (text := self._at_once(statement, call)):
                self._new(statement, text)
            else:
                self.block(statement.body, fixed)
        elif self.lanes.of(statement.body):
            raise Unclear  # threads share a parallel loop already

    def _at_once(self, loop: cst.For, call: cst.Call) -> str:
        """All runs of a serial loop in one loop over them and the threads, if each element is stored in one run, or if
        one element of each thread collects a sum. Empty for all other loops."""
        lines = loop.body.body
        small = [line.body[0] for line in lines if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1]
        if not isinstance(loop.target, cst.Name) or len(call.args) != 1 or len(small) < len(lines) or self.pure:
            return ""
        variable, extent = loop.target.value, code(call.args[0].value)
        stored = {target_of(node) for node in small if isinstance(node, (cst.Assign, cst.AugAssign))}
        texts: list[str] = []
        for statement in small:
            target = element_stored(statement)
            if target is None or stored & {code(sub.value) for sub in loads(statement)}:
                return ""
            if any(self.lanes.of(item) for item in _indices(statement) if variable in map(code, names_in(item))):
                return ""  # no rectangle of elements
            self._refuse_dead(statement)
            self._refuse_unless_simple(statement, {})
            own = self._own(target.value)
            where = [code(cst.ensure_type(item.slice, cst.Index).value) for item in target.slice]
            threads = self.lanes.ordered(self.lanes.of(statement))
            if isinstance(statement, cst.Assign) and where.count(variable) == 1:
                plain = [variable, *threads] if own is not None and self.last else [*threads, variable]
                first = plain if not set(where) & set(threads) else _in_order(where, threads, variable)
                texts.append(self._over(first, variable, extent, self._text(statement, {})))
            elif (
                isinstance(statement, cst.AugAssign)
                and isinstance(statement.operator, cst.AddAssign)
                and own is not None
            ):
                if own.shape or set(threads) != own.axes:
                    return ""
                texts.append(self._collected(statement, own, threads, variable, extent))
            else:
                return ""
        return "\n".join(texts)

    def _over(self, order: Sequence[str], variable: str, extent: str, body: str) -> str:
        extents = [extent if name == variable else self.lanes.extents[name] for name in order]
        return f"for {', '.join(order)} in T.Parallel({', '.join(extents)}):\n" + textwrap.indent(body, "    ")

    def _collected(self, statement: cst.AugAssign, own: Own, threads: list[str], variable: str, extent: str) -> str:
        """``own[0] += a * b`` in a loop: all terms in a tile, their sums, and one addition."""
        name = code(cst.ensure_type(statement.target, cst.Subscript).value)
        terms, part = self.names.fresh(f"{name}_terms"), self.names.fresh(f"{name}_part")
        extents = ", ".join(self.lanes.extents[axis] for axis in threads)
        at = ", ".join(threads)
        term = self._text(cst.Assign([cst.AssignTarget(cst.Name(terms))], statement.value), {})
        term = term.replace(f"{terms} =", f"{terms}[{at}, {variable}] =", 1)
        return "\n".join(
            (
                f"{terms} = T.alloc_fragment([{extents}, {extent}], {own.dtype})",
                f"{part} = T.alloc_fragment([{extents}], {own.dtype})",
                self._over([*threads, variable], variable, extent, term),
                f"T.reduce_sum({terms}, {part}, dim={len(threads)})",
                f"for {at} in T.Parallel({extents}):\n    {name}[{at}] += {part}[{at}]",
            )
        )

    def _new(self, node: cst.CSTNode, text: str) -> None:
        self.plan.new.append((node, text))

    def _texts(self, body: cst.BaseSuite, fixed: Mapping[str, cst.BaseExpression]) -> list[str]:
        """What a block becomes in which a thread index has one value."""
        inner = _Writer(
            self.job, self.lanes, names=self.names, last=self.last, pure=dict(self.pure), dead=set(self.dead)
        )
        inner.block(body, fixed)
        self.dead |= inner.dead
        known = {id(node): text for node, text in inner.plan.new}
        found: list[str] = []
        for line in body.body:
            own = line.body[0] if isinstance(line, cst.SimpleStatementLine) else line
            text = known.pop(id(own), known.pop(id(line), None))
            found.append(code(substituted(own, fixed)) if text is None else text)
        if known:
            raise Unclear  # in a block inside
        return [text for text in found if text]

    def _loop(
        self, lines: Sequence[cst.CSTNode], run: Sequence[cst.CSTNode], fixed: Mapping[str, cst.BaseExpression]
    ) -> None:
        """One loop over threads for a run of statements."""
        loaded = [code(s.targets[0].target) for s in run if isinstance(s, cst.Assign) and self._is_loaded(s)]
        self.dead -= set(loaded)
        for statement in run:
            for name in names_bound(statement):
                if name not in loaded:
                    self._bind(name)
            self._refuse_dead(statement)
        needed = [assign for name, assign in self.pure.items() if self._needs(name, run)]
        for statement in run:
            self._refuse_unless_simple(statement, fixed)
        texts = [self._text(statement, fixed) for statement in (*needed, *run)]
        axes = NONE.union(*(self.lanes.of(statement) for statement in run)) - fixed.keys()
        ranged = self.lanes.ordered(axes)
        body = "\n".join(texts)
        if ranged:
            extents = ", ".join(self.lanes.extents[name] for name in ranged)
            body = f"for {', '.join(ranged)} in T.Parallel({extents}):\n" + textwrap.indent(body, "    ")
        self._new(run[0] if len(run) == 1 else lines[0], body)
        for line in lines[1:]:
            self._new(line, "")
        for statement in run:
            self.dead |= {name for name in names_bound(statement) if name not in self.lanes.own}

    def _needs(self, name: str, run: Sequence[cst.CSTNode]) -> bool:
        """Whether statements use a name of ``pure``, directly or through another one."""
        used = {found.value for statement in run for found in names_in(statement)}
        grown = True
        while grown:
            before = len(used)
            for other, assign in self.pure.items():
                if other in used:
                    used |= mentioned(assign.value)
            grown = len(used) > before
        return name in used

    def _text(self, statement: cst.CSTNode, fixed: Mapping[str, cst.BaseExpression]) -> str:
        scalars = {
            name: cst.parse_expression(f"{name}[{', '.join(self.lanes.ordered(own.axes))}]")
            for name, own in self.lanes.own.items()
            if own.scalar
        }
        written = substituted(self._indexed(statement), scalars)
        return code(substituted(written, fixed)).strip("\n")

    def _indexed(self, node: cst.CSTNode) -> cst.CSTNode:
        """The node with the indices of threads in every access of their own storage."""
        node = with_children(node, self._indexed)
        own = self._own(node.value) if isinstance(node, cst.Subscript) else None
        if own is None or own.scalar:
            return node
        assert isinstance(node, cst.Subscript)
        threads = [cst.SubscriptElement(cst.Index(cst.Name(name))) for name in self.lanes.ordered(own.axes)]
        if not own.shape and [code(item).strip(" ,") for item in node.slice] != ["0"]:
            raise Unclear
        where = node.slice if own.shape else ()
        return node.with_changes(slice=_listed([*where, *threads] if self.last else [*threads, *where]))

    def _own(self, node: cst.CSTNode) -> Own | None:
        return self.lanes.own.get(node.value) if isinstance(node, cst.Name) else None

    def _allocated(self, statement: cst.Assign) -> Own | None:
        own = self._own(statement.targets[0].target)
        return own if own is not None and own.alloc is statement else None

    def _allocation(self, statement: cst.Assign, own: Own) -> str:
        extents = [self.lanes.extents[name] for name in self.lanes.ordered(own.axes)]
        shape = ", ".join((*own.shape, *extents) if self.last else (*extents, *own.shape))
        return f"{code(statement.targets[0].target)} = T.alloc_fragment([{shape}], {own.dtype})"

    def _one_thread(self, statement: cst.If) -> dict[str, cst.BaseExpression] | None:
        """``if tx == 0:`` for a thread index and a number."""
        test = statement.test
        if statement.orelse is not None or not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return None
        right = test.comparisons[0]
        if not isinstance(right.operator, cst.Equal) or not isinstance(right.comparator, cst.Integer):
            return None
        name = test.left.value if isinstance(test.left, cst.Name) else ""
        return {name: right.comparator} if name in self.lanes.extents else None

    def _is_pure(self, statement: cst.Assign) -> bool:
        """A name for arithmetic, which loads nothing and is not storage."""
        target = statement.targets[0].target
        if not isinstance(target, cst.Name) or target.value in self.lanes.own:
            return False
        stored = set(self.lanes.own)
        loads = nodes_of(statement.value, cst.Subscript) or any(n.value in stored for n in names_in(statement.value))
        return not loads

    def _is_loaded(self, statement: cst.Assign) -> bool:
        """A name for a value of one thread that is loaded: it and its uses go into one loop."""
        target = statement.targets[0].target
        if not isinstance(target, cst.Name) or target.value in self.lanes.own or statement in self.lanes.bindings:
            return False
        return bool(self.lanes.of(statement)) and not self._is_pure(statement)

    def _run(self, lines: Sequence[cst.CSTNode]) -> list[cst.CSTNode]:
        """The statements from a loaded name to its last use."""
        small = [line.body[0] if isinstance(line, cst.SimpleStatementLine) else line for line in lines]
        names: set[str] = set()
        last = 0
        for place, statement in enumerate(small):
            if any(name.value in names for name in names_in(statement)):
                last = place
            if isinstance(statement, cst.Assign) and place <= last and self._is_loaded(statement):
                names.add(code(statement.targets[0].target))
        run = small[: last + 1]
        read = {n.value for statement in run for sub in loads(statement) for n in names_in(sub.value)}
        written = {target_of(node) for statement in run for node in stores(statement)}
        if read & written or any(isinstance(part, cst.Expr) or nodes_of(part, cst.For) for part in run):
            raise Unclear
        return run

    def _is_whole(self, statement: cst.Expr) -> bool:
        """A barrier, or an operator on whole tiles that all threads execute together."""
        call = statement.value
        if not isinstance(call, cst.Call):
            return not self.lanes.of(statement)
        name = self.job.file.names.operator(call.func)
        if name in _BARRIERS:
            return True
        return name in ("clear", "fill") and all(
            isinstance(arg.value, cst.Name) and not self._own_scalar(arg.value)
            for arg in call.args
            if self.lanes.of(arg.value)
        )

    def _own_scalar(self, node: cst.Name) -> bool:
        own = self._own(node)
        return own is None or own.scalar

    def _refuse_repeated(self, statement: cst.CSTNode, fixed: Mapping[str, cst.BaseExpression]) -> None:
        """What every thread does to the same element must not add up."""
        if self._everyone(NONE, fixed):
            return
        if isinstance(statement, cst.AugAssign) and isinstance(statement.target, cst.Subscript):
            raise Unclear
        if any(self._is_atomic(call) for call in nodes_of(statement, cst.Call)):
            raise Unclear

    def _is_atomic(self, call: cst.Call) -> bool:
        return self.job.file.names.operator(call.func).startswith(_ATOMIC)

    def _refuse_unless_simple(self, statement: cst.CSTNode, fixed: Mapping[str, cst.BaseExpression]) -> None:
        """Stores of elements, under conditions, of which no two threads write one with different values."""
        if isinstance(statement, cst.If):
            for inner in branches(statement):
                self._refuse_unless_simple(inner, fixed)
            read = {n.value for sub in loads(statement) for n in names_in(sub.value)}
            written = [target_of(node) for node in stores(statement)]
            if len(written) > 1 and read & {*written}:
                raise Unclear
        elif isinstance(statement, (cst.Assign, cst.AugAssign)):
            target = statement.target if isinstance(statement, cst.AugAssign) else statement.targets[0].target
            if isinstance(target, cst.Subscript) and self._own(target.value) is None:
                self._refuse_races(statement, target, fixed)
        elif isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
            self._refuse_call(statement.value, fixed)
        else:
            raise Unclear

    def _refuse_races(
        self, statement: cst.CSTNode, target: cst.Subscript, fixed: Mapping[str, cst.BaseExpression]
    ) -> None:
        where = NONE.union(*(self.lanes.of(item) for item in target.slice))
        if self.lanes.of(statement) - where - fixed.keys():
            raise Unclear
        if isinstance(statement, cst.AugAssign) and not (self._everyone(where, fixed)):
            raise Unclear

    def _refuse_call(self, call: cst.Call, fixed: Mapping[str, cst.BaseExpression]) -> None:
        """An atomic addition counts once for each thread: all of them have to be in its loop."""
        if not self._is_atomic(call) or not self._everyone(self.lanes.of(call), fixed):
            raise Unclear

    def _summed(self, statement: cst.Expr) -> str:
        """``T.atomic_add(s[tn], own[0])`` on chip: the sum over the threads that add to one element, added once."""
        call = statement.value
        if not isinstance(call, cst.Call) or len(call.args) < 2:
            return ""
        target, value = call.args[0].value, call.args[1].value
        if not isinstance(value, cst.Subscript) or not isinstance(target, cst.Subscript):
            return ""
        own = self._own(value.value)
        name = self.job.file.names.resolve(call.func) or ""
        if name != LANGUAGE + "atomic_add" or own is None or own.shape:
            return ""
        buffer = self.job.kernel.buffers.get(code(target.value))
        if buffer is None or buffer.memory is Memory.GM or not self._everyone(own.axes, {}):
            return ""
        self._refuse_dead(statement)
        kept = self.lanes.of(target)
        order = self.lanes.ordered(own.axes)
        last = order[-1]
        if kept != own.axes - {last}:
            return ""
        extents = [self.lanes.extents[axis] for axis in order[:-1]] or ["1"]
        part = self.names.fresh(f"{buffer.name}_part")
        into = f"{code(target)} += {part}[{', '.join(order[:-1]) or '0'}]"
        if order[:-1]:
            into = f"for {', '.join(order[:-1])} in T.Parallel({', '.join(extents)}):\n    {into}"
        reduce = f"T.reduce_sum({code(value.value)}, {part}, dim={len(order) - 1})"
        return f"{part} = T.alloc_fragment([{', '.join(extents)}], {own.dtype})\n{reduce}\n{into}"

    def _everyone(self, axes: Axes, fixed: Mapping[str, cst.BaseExpression]) -> bool:
        return self.lanes.all_named and set(self.lanes.extents) <= {*axes, *fixed}


def _listed(items: Sequence[cst.SubscriptElement]) -> list[cst.SubscriptElement]:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return [
        item.with_changes(comma=comma if place < len(items) - 1 else cst.MaybeSentinel.DEFAULT)
        for place, item in enumerate(items)
    ]


def _indices(node: cst.CSTNode) -> list[cst.SubscriptElement]:
    return [item for subscript in nodes_of(node, cst.Subscript) for item in subscript.slice]


def _in_order(where: Sequence[str], threads: Sequence[str], variable: str) -> list[str]:
    """Threads and the variable of a loop in the order in which an element names them."""
    named = [name for name in where if name in threads or name == variable]
    return [*(name for name in threads if name not in named), *named]
