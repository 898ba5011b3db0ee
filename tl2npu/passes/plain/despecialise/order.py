"""Does the text of a pipeline, run from top to bottom, ever wait for a barrier that is not complete yet?

The barriers are counted while the loops are gone through, for several trip counts. A phase is complete when as many
threads have arrived as the barrier counts; waiting for parity p succeeds unless the phase under way has parity p.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from tl2npu.dialects.gpu.barriers import ARRIVALS, SINGLE_ARRIVALS, WAITS, WARP_GROUP
from tl2npu.kernel.expressions import code
from tl2npu.passes.job import Job
from tl2npu.passes.plain.unsupported.names import operator_name
from tl2npu.source.signs import COMPARISONS, COMPUTED, sign_of
from tl2npu.source.tree import argument, calls_in, mentioned, nodes_of, remembered

_TRIPS = (1, 2, 3, 4, 5, 8)
_STAGES = (1, 2, 3, 4)
_ARRIVALS = ARRIVALS | SINGLE_ARRIVALS
_GROUPS: dict[tuple[str, int], frozenset[int]] = {}
"""Conditions on nothing but the index of a thread, and how many threads there are -> those for which they hold."""
_NOTHING = cst.Name("None")
_OPERATORS = frozenset(("+", "-", "*", "//", "%", "^", "&", "|", ">>"))


class Stuck(Exception):
    """A wait that does not end, or something that cannot be followed."""


def in_order(job: Job) -> bool:
    """True if no wait comes before what it waits for, whatever the trip counts are."""
    if not has_barriers(job, job.located.node.body):
        return True
    launch = job.kernel.launch
    if launch is None:
        return False
    names = _open_names(job)
    for trip, *sizes in itertools.product(_TRIPS, *[_STAGES for _ in names]):
        run = Run.of(job, trip, *sizes)
        try:
            run.block(launch.node.body.body)
        except Stuck:
            return False
    return True


def _barrier_calls(job: Job, node: cst.CSTNode) -> Iterator[cst.Call]:
    return (call for call in calls_in(node) if operator_name(job, call.func) in WAITS | _ARRIVALS)


def has_barriers(job: Job, node: cst.CSTNode) -> bool:
    """Whether code waits for a barrier, or arrives at one."""
    return any(True for _ in _barrier_calls(job, node))


def _open_names(job: Job) -> list[str]:
    """Parameters of the factory in the indices and parities of barriers: tried with several values, at most two."""
    factory = job.located.factory
    params = {p.name.value for p in factory.node.params.params} if factory is not None else set()
    found: dict[str, None] = {}
    made = [call for call in calls_in(job.located.node.body) if operator_name(job, call.func) == "alloc_barrier"]
    for call in (*_barrier_calls(job, job.located.node.body), *made):
        found |= {name.value: None for arg in call.args for name in nodes_of(arg, cst.Name)}
    return [name for name in found if name in params][:2]


def _usual_threads(job: Job) -> int:
    """The default of the parameter that says how many threads a block has, or one more group than the code asks for."""
    factory, launch = job.located.factory, job.kernel.launch
    given = [arg.value for arg in launch.call.args if arg.keyword and arg.keyword.value == "threads"] if launch else []
    found = WARP_GROUP
    for param in factory.node.params.params if factory is not None and given else ():
        if code(given[0]) == param.name.value and isinstance(param.default, cst.Integer):
            found = int(param.default.value)
    names = thread_names(job).keys()
    tests = [node for node in nodes_of(job.located.node.body, cst.Comparison) if names & mentioned(node)]
    asked = max((int(number.value) for test in tests for number in nodes_of(test, cst.Integer)), default=0)
    return found if found > asked else asked + WARP_GROUP


def thread_names(job: Job) -> dict[str, cst.Assign]:
    """The names of the index of a thread, each with the statement that binds it."""
    found: dict[str, cst.Assign] = {}
    for assign in nodes_of(job.located.node.body, cst.Assign):
        call, target = assign.value, assign.targets[0].target
        if not isinstance(call, cst.Call) or len(assign.targets) != 1 or not isinstance(target, cst.Name):
            continue
        first = [code(arg.value) for arg in call.args] in ([], ["0"])
        if first and operator_name(job, call.func) == "get_thread_binding":
            found[target.value] = assign
    return found


def group_of(run: Run, test: cst.BaseExpression) -> frozenset[int] | None:
    """The threads for which a condition holds that asks for nothing but the index of a thread."""
    names = {name.value for name in nodes_of(test, cst.Name)}
    index = names & run.indices
    if len(index) != 1:
        return None
    if names == index and (known := _GROUPS.get((code(test), len(run.everyone)))) is not None:
        return known
    found: set[int] = set()
    for thread in run.everyone:
        value = run.known(test, {next(iter(index)): thread})
        if value is None:
            return None
        if value:
            found.add(thread)
    if names == index:
        _GROUPS[code(test), len(run.everyone)] = frozenset(found)
    return frozenset(found)


def arms(run: Run, node: cst.If) -> list[tuple[frozenset[int], cst.BaseSuite]] | None:
    """The arms of an ``if`` that asks which thread it is, each with its threads, which have no other between them."""
    seen: frozenset[int] = frozenset()
    found: list[tuple[frozenset[int], cst.BaseSuite]] = []
    arm: cst.If | cst.Else | None = node
    while arm is not None:
        threads = group_of(run, arm.test) if isinstance(arm, cst.If) else run.everyone
        if threads is None:
            return None
        threads, seen = threads - seen, seen | threads
        if not threads or max(threads) - min(threads) + 1 != len(threads):
            return None
        found.append((threads, arm.body))
        arm = arm.orelse if isinstance(arm, cst.If) else None
    return found


@remembered
def _parsed(node: cst.BaseExpression) -> ast.expr:
    return ast.parse(code(node).strip(), mode="eval").body


@dataclass(eq=False)
class Barriers:
    """One allocation: how many threads each barrier counts, how many have come, how many phases are complete."""

    counts: list[int]
    arrived: dict[int, int] = field(default_factory=dict)
    phases: dict[int, int] = field(default_factory=dict)

    def arrive(self, index: int, threads: int) -> None:
        """Some threads arrive."""
        if not 0 <= index < len(self.counts):
            raise Stuck
        self.arrived[index] = self.arrived.get(index, 0) + threads
        if self.arrived[index] >= self.counts[index]:
            self.arrived[index] = 0
            self.phases[index] = self.phases.get(index, 0) + 1

    def wait(self, index: int, parity: int) -> None:
        """Raises :class:`Stuck` if the phase is not complete."""
        if not 0 <= index < len(self.counts) or self.phases.get(index, 0) % 2 == parity % 2:
            raise Stuck


@dataclass(eq=False)
class Run:
    """One way through the kernel, with one trip count for every loop whose bounds are not known."""

    job: Job
    trip: int
    values: dict[str, int]
    threads: int
    barriers: dict[str, Barriers] = field(default_factory=dict)
    everyone: frozenset[int] = frozenset()
    indices: frozenset[str] = frozenset()
    """The names of the index of a thread."""

    @staticmethod
    def of(job: Job, trip: int, *sizes: int) -> Run:
        """The start of a run; ``sizes``: of the parameters that barriers need, the last one for all that remain."""
        names, launch = _open_names(job), job.kernel.launch
        given = dict(zip(names, (*sizes, *[sizes[-1]] * len(names)) if sizes else (), strict=False))
        threads = (launch.threads_value if launch is not None else None) or _usual_threads(job)
        return Run(job, trip, given, threads, {}, frozenset(range(threads)), frozenset(thread_names(job)))

    def copied(self) -> Run:
        """A run that goes on from here by itself."""
        return replace(self, values=dict(self.values), barriers=copy.deepcopy(self.barriers))

    def can_run(self, statement: cst.CSTNode, threads: int) -> bool:
        """Run a statement of some threads; False, and nothing done, if it has to wait."""
        trial = self.copied()
        trial.threads = threads
        try:
            trial.block([statement])
        except Stuck:
            return False
        self.values, self.barriers = trial.values, trial.barriers
        return True

    def first_turn(self, loop: cst.For) -> None:
        """Begin with a loop."""
        call = loop.iter
        bounds = [arg.value for arg in call.args if arg.keyword is None] if isinstance(call, cst.Call) else []
        if not isinstance(loop.target, cst.Name) or not 1 <= len(bounds) <= 2:
            raise Stuck
        start = self.value(bounds[0]) if len(bounds) == 2 else 0
        self.values[loop.target.value] = start
        self.values.setdefault(ast.unparse(_parsed(bounds[-1])), start + self.trip)

    def branch(self, branch: cst.If) -> None:
        """An ``if`` that asks for threads: each arm is of other threads. Else the arm that runs, if that is known."""
        before, others = self.threads, self.everyone
        arm: cst.If | cst.Else | None = branch
        while arm is not None:
            group = group_of(self, arm.test) if isinstance(arm, cst.If) else others
            if group is None:
                break
            self.threads, others = len(group & others), others - group
            self.block(arm.body.body)
            arm = arm.orelse if isinstance(arm, cst.If) else None
        self.threads = before
        if isinstance(arm, cst.If):
            value = self.known(arm.test)
            if value is None and has_barriers(self.job, arm):
                raise Stuck
            if value:
                self.block(arm.body.body)
            elif value is not None and isinstance(arm.orelse, cst.If):
                self.branch(arm.orelse)
            elif value is not None and arm.orelse is not None:
                self.block(arm.orelse.body.body)

    def block(self, statements: Sequence[cst.CSTNode]) -> None:
        """Go through some statements."""
        for statement in statements:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self.small(small)
            elif isinstance(statement, cst.For):
                self.loop(statement)
            elif isinstance(statement, cst.With):
                self.group(statement)
            elif isinstance(statement, cst.If):
                self.branch(statement)
            elif has_barriers(self.job, statement):
                raise Stuck

    def group(self, block: cst.With) -> None:
        """``with T.ws(...)``: the threads of some warp groups."""
        before = self.threads
        call = block.items[0].item
        if isinstance(call, cst.Call) and operator_name(self.job, call.func) == "ws":
            self.threads = WARP_GROUP * len(call.args)
        self.block(block.body.body)
        self.threads = before

    def loop(self, loop: cst.For) -> None:
        """Every turn of a loop, ``trip`` turns where the text does not say how many."""
        if not has_barriers(self.job, loop.body):
            return
        call = loop.iter
        bounds = [arg for arg in call.args if arg.keyword is None] if isinstance(call, cst.Call) else []
        if not isinstance(loop.target, cst.Name) or not 1 <= len(bounds) <= 2:
            raise Stuck
        start = self.value(bounds[0].value) if len(bounds) == 2 else 0
        stop = self.known(bounds[-1].value)
        if stop is None:
            stop = self.values[ast.unparse(_parsed(bounds[-1].value))] = start + self.trip
        for turn in range(start, stop):
            self.values[loop.target.value] = turn
            self.block(loop.body.body)

    def small(self, small: cst.CSTNode) -> None:
        """A simple statement: barriers, arrivals, waits, and integers that they may use."""
        if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.targets[0].target, cst.Name):
            name = small.targets[0].target.value
            call = small.value
            if isinstance(call, cst.Call) and operator_name(self.job, call.func) == "alloc_barrier":
                self.barriers[name] = Barriers(self.counts(call))
                return
            if isinstance(call, cst.Call) and operator_name(self.job, call.func) == "alloc_var":
                call = argument(call, "init") or call
            found = self.known(call)
            if found is None:
                self.values.pop(name, None)
            else:
                self.values[name] = found
        elif isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            self.call(small.value)

    def call(self, call: cst.Call) -> None:
        """An arrival, a wait, or a product that arrives at its end."""
        name = operator_name(self.job, call.func)
        given = [arg.value for arg in call.args if arg.keyword is None]
        keywords = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        given += [keywords[key] for key in ("mbarrier", "parity") if key in keywords]
        if name in WAITS:
            if len(given) != 2:
                raise Stuck
            barriers, index = self.place(given[0])
            barriers.wait(index, self.value(given[1]))
        elif name in _ARRIVALS:
            barriers, index = self.place((given or [keywords.get("mbar", call.func)])[0])
            barriers.arrive(index, 1 if name in SINGLE_ARRIVALS else self.threads)
        elif name == "tcgen05_gemm" and code(keywords.get("mbar", _NOTHING)) != "None":
            barriers, index = self.place(keywords["mbar"])
            barriers.arrive(index, 1)

    def place(self, node: cst.BaseExpression) -> tuple[Barriers, int]:
        """``barrier`` or ``barriers[i]``."""
        index = 0
        if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
            index, node = self.value(node.slice[0].slice.value), node.value
        if not isinstance(node, cst.Name) or node.value not in self.barriers:
            raise Stuck
        return self.barriers[node.value], index

    def counts(self, call: cst.Call) -> list[int]:
        """How many threads each barrier of an allocation counts."""
        return list(self._counts(call.args[0].value)) if call.args else []

    def _counts(self, node: cst.BaseExpression) -> Iterator[int]:
        if isinstance(node, (cst.List, cst.Tuple)):
            for element in node.elements:
                yield from self._counts(element.value)
        elif isinstance(node, cst.BinaryOperation) and isinstance(node.left, cst.List):
            if not isinstance(node.operator, cst.Multiply):
                raise Stuck
            yield from list(self._counts(node.left)) * self.value(node.right)
        elif isinstance(node, cst.Name) and (written := self._factory_value(node.value)) is not None:
            yield from self._counts(written)
        else:
            yield self.value(node)

    def value(self, node: cst.BaseExpression) -> int:
        """An integer; raises :class:`Stuck` if it is not known."""
        found = self.known(node)
        if found is None:
            raise Stuck
        return found

    def known(self, node: cst.BaseExpression, more: Mapping[str, int] | None = None) -> int | None:
        """An integer or the truth of a condition, None if it is not known; ``more``: values of further names."""
        before = self.values
        self.values = {**before, **(more or {})}
        try:
            return self._evaluate(_parsed(node))
        except (Stuck, SyntaxError, ZeroDivisionError):
            return None
        finally:
            self.values = before

    def _evaluate(self, node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Call) and (found := self.values.get(ast.unparse(node))) is not None:
            return found  # a bound of a loop that went so far
        if isinstance(node, ast.Name):
            if node.id in self.values:
                return self.values[node.id]
            written = self._factory_value(node.id)
            if written is not None:
                return self._evaluate(ast.parse(code(written).strip(), mode="eval").body)
        if isinstance(node, ast.BinOp) and (sign := sign_of(node.op)) in _OPERATORS:
            return int(COMPUTED[sign](self._evaluate(node.left), self._evaluate(node.right)))
        if isinstance(node, ast.Compare) and all(sign_of(item) in COMPARISONS for item in node.ops):
            sides = [self._evaluate(side) for side in (node.left, *node.comparators)]
            pairs = zip(node.ops, sides, sides[1:], strict=False)
            return int(all(COMPUTED[sign_of(item)](left, right) for item, left, right in pairs))
        if isinstance(node, ast.BoolOp):
            truths = [bool(self._evaluate(value)) for value in node.values]
            return int(all(truths) if isinstance(node.op, ast.And) else any(truths))
        raise Stuck

    def _factory_value(self, name: str) -> cst.BaseExpression | None:
        """What the factory assigns to a name, once."""
        factory = self.job.located.factory
        found = [
            small.value
            for line in (factory.node.body.body if factory is not None else ())
            if isinstance(line, cst.SimpleStatementLine)
            for small in line.body
            if isinstance(small, cst.Assign)
            and any(isinstance(t.target, cst.Name) and t.target.value == name for t in small.targets)
        ]
        return found[0] if len(found) == 1 else None
