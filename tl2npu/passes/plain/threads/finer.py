"""TL109: threads of which each has a vector of elements become as many threads with one element each.

``for k in T.vectorized(8): a[k] = A[tk * 8 + k]`` of 32 threads are 256 threads with ``a[0] = A[tk]``. A thread adds
its products to one element, and the threads' sums are added in any order: so the sums of more threads may be.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.expressions import code, terms_of
from tl2npu.passes.job import Job
from tl2npu.passes.plain.threads.lanes import Lanes, Own
from tl2npu.passes.plain.threads.statements import element_stored
from tl2npu.passes.writing.statements import factor
from tl2npu.source.edits import Edits
from tl2npu.source.tree import calls_in, mentioned, names_in, nodes_of

_ZEROS = ("0", "0.0")
_LOOPS = frozenset({"serial", "unroll", "vectorized", "Serial", "Unroll", "Vectorized"})


class _Unclear(Exception):
    """Something that more threads would do otherwise."""


@dataclass(eq=False)
class _Finer:
    """``thread``: the index that gets more values; ``size``: how many elements a thread has, as it is written."""

    job: Job
    lanes: Lanes
    body: cst.BaseSuite
    thread: str
    size: str
    edits: Edits = field(init=False)
    seen: set[int] = field(default_factory=set)
    """Names that are accounted for."""

    def __post_init__(self) -> None:
        self.edits = Edits(self.job.file.index)

    @property
    def vectors(self) -> set[str]:
        return {name for name, own in self.lanes.own.items() if own.shape == (self.size,)}

    def run(self) -> Edits:
        """The edits; raises :class:`_Unclear`."""
        sums: set[str] = set()
        for loop in nodes_of(self.body, cst.For):
            if self._is_over_elements(loop):
                sums |= self._loop(loop)
        for vector in self.vectors:
            self._allocation(self.lanes.own[vector])
        for name in names_in(self.body):
            if id(name) not in self.seen:
                self._other(name, sums)
        for call in calls_in(self.body):
            if "atomic" in code(call.func) and not (len(call.args) > 1 and _base(call.args[1].value) in sums):
                raise _Unclear
        if not sums:
            raise _Unclear
        self._extents()
        return self.edits

    def _is_over_elements(self, loop: cst.For) -> bool:
        call = loop.iter
        if not isinstance(call, cst.Call) or not isinstance(loop.target, cst.Name) or loop.orelse is not None:
            return False
        given = [code(arg.value) for arg in call.args if arg.keyword is None]
        known = self.job.file.names.operator(call.func) in _LOOPS or code(call.func) == "range"
        return known and given in ([self.size], ["0", self.size]) and len(given) == len(call.args)

    def _loop(self, loop: cst.For) -> set[str]:
        """One run of a loop over the elements of a thread; the elements that collect a sum."""
        assert isinstance(loop.target, cst.Name)
        tests = [above.test for above in self.job.file.index.ancestors(loop) if isinstance(above, cst.If)]
        if any(name.value == self.thread for test in tests for name in names_in(test)):
            raise _Unclear  # only the first thread runs it
        sums: set[str] = set()
        for line in loop.body.body:
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            target = element_stored(small) if small is not None else None
            if target is None or not isinstance(small, (cst.Assign, cst.AugAssign)):
                raise _Unclear
            name = _base(target)
            if name not in self.vectors:
                own = self.lanes.own.get(name)
                adds = isinstance(small, cst.AugAssign) and isinstance(small.operator, cst.AddAssign)
                if own is None or own.shape or own.scalar or self.thread not in own.axes or not adds:
                    raise _Unclear
                sums.add(name)
                self.seen |= {id(part) for part in names_in(target)}
            if mentioned(small.value) & (self.lanes.own.keys() - self.vectors):
                raise _Unclear
        for subscript in nodes_of(loop.body, cst.Subscript):
            for item in subscript.slice:
                if isinstance(item.slice, cst.Index):
                    self._index(subscript, item.slice.value, loop.target.value)
        left = [name for name in names_in(loop.body) if name.value == loop.target.value and id(name) not in self.seen]
        if left:
            raise _Unclear
        self.edits.unwrap(loop)
        self.seen |= {id(name) for name in (loop.target, *names_in(loop.iter))}
        return sums

    def _index(self, subscript: cst.Subscript, index: cst.BaseExpression, variable: str) -> None:
        """``own[k]`` is ``own[0]``, ``b + t * size + k`` is ``b + t``."""
        if _base(subscript) in self.vectors:
            if code(index) != variable or len(subscript.slice) != 1:
                raise _Unclear
            self.edits.replace(index, cst.Integer("0"))
            self.seen |= {id(name) for name in names_in(subscript)}
            return
        terms = list(terms_of(index))
        mine = [term for term, _ in terms if mentioned(term) & {variable, self.thread}]
        if not mine:
            return
        wanted = (f"{self.thread} * {factor(self.size)}", f"{factor(self.size)} * {self.thread}")
        added = all(sign > 0 for term, sign in terms if term in mine)
        if not added or len(mine) != 2 or [code(term) == variable for term in mine].count(True) != 1:
            raise _Unclear
        (own,) = (term for term in mine if code(term) != variable)
        if code(own).strip("()") not in wanted and code(own) not in wanted:
            raise _Unclear
        self.seen |= {id(name) for term in mine for name in names_in(term)}
        kept = [(term, sign) for term, sign in terms if term is own or term not in mine]
        texts = (f"{'+-'[sign < 0]} {self.thread if term is own else code(term)}" for term, sign in kept)
        self.edits.replace(index, cst.parse_expression(" ".join(texts).removeprefix("+ ")))

    def _allocation(self, own: Own) -> None:
        assert own.alloc is not None
        assert isinstance(own.alloc.value, cst.Call)
        self.edits.replace(own.alloc.value.args[0].value, cst.parse_expression("(1,)"))
        self.seen |= {id(name) for name in names_in(own.alloc)}

    def _other(self, name: cst.Name, sums: set[str]) -> None:
        """What stands outside of the loops: a thread that is the first, an element that begins at 0 and is added."""
        if name.value == self.thread:
            parent = self.job.file.index.parent(name)
            first = isinstance(parent, cst.Comparison) and code(parent) == f"{self.thread} == 0"
            if not first and all(name not in names_in(binding) for binding in self.lanes.bindings):
                raise _Unclear
        elif name.value in self.vectors:
            raise _Unclear
        elif name.value in sums:
            self._sum(name)

    def _sum(self, name: cst.Name) -> None:
        index = self.job.file.index
        if any(item.alloc and item.alloc.targets[0].target is name for item in self.lanes.own.values()):
            return
        above, over, around, *_ = index.ancestors(name)
        cleared = isinstance(above, cst.Arg) and self._called(over) == "clear"
        zero = isinstance(over, cst.AssignTarget) and isinstance(around, cst.Assign) and code(around.value) in _ZEROS
        added = isinstance(over, cst.Arg) and self._called(around) == "atomic_add"
        if not cleared and not (isinstance(above, cst.Subscript) and (zero or added)):
            raise _Unclear

    def _called(self, node: cst.CSTNode) -> str:
        return self.job.file.names.operator(node.func) if isinstance(node, cst.Call) else ""

    def _extents(self) -> None:
        """More threads, where the launch and the index say how many there are."""
        launch = self.job.kernel.launched
        extent = self.lanes.extents[self.thread]
        new = cst.parse_expression(f"{factor(extent)} * {factor(self.size)}")
        for arg in launch.call.args:
            if arg.keyword is not None and arg.keyword.value == "threads":
                listed = arg.value
                items = [item.value for item in listed.elements] if isinstance(listed, cst.Tuple) else [listed]
                self.edits.replace(items[self.lanes.dims[self.thread]], new)
        for binding in self.lanes.bindings:
            if code(binding.targets[0].target) == self.thread and isinstance(binding.value, cst.Call):
                for arg in binding.value.args:
                    if arg.keyword is None and code(arg.value) == extent:
                        self.edits.replace(arg.value, new.deep_clone())


def edits(job: Job, lanes: Lanes) -> Edits:
    """More threads with one element each; no edits where that is not the same."""
    launch = job.kernel.launch
    sizes = {own.shape[0] for own in lanes.own.values() if len(own.shape) == 1}
    if launch is None or len(sizes) != 1 or any(len(own.shape) > 1 for own in lanes.own.values()):
        return Edits(job.file.index)
    for thread in lanes.extents:
        try:
            return _Finer(job, lanes, launch.node.body, thread, next(iter(sizes))).run()
        except _Unclear:
            continue
    return Edits(job.file.index)


def _base(node: cst.BaseExpression) -> str:
    return code(node.value) if isinstance(node, cst.Subscript) else ""
