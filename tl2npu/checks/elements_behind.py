"""Single elements of tensors that a kernel may load or store behind the end.

A GPU loads zeros there and stores nothing (``LegalizeSafeMemoryAccess``). That pass of tilelang-ascend asks before
stores of innermost loops only, AscendNPU IR never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache

from tl2npu.checks.npuir.edges import found_for, sizes_of
from tl2npu.checks.operators.samples import Sampler
from tl2npu.checks.subject import Placed, Subject
from tl2npu.kernel.access import accesses
from tl2npu.kernel.factories.assertions import multiples
from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.model import Memory, Operand, Range, Stmt, Store, in_parallel
from tl2npu.kernel.npuir_loops import scalar_reason
from tl2npu.kernel.style import NPUIR
from tl2npu.kernel.symbolic import Opaque, Sym

_SOME = 13
"""A size that a launch gives, and no tile divides."""
Behind = tuple[Stmt, Mapping[Operand, tuple[int, ...]]]
"""A statement, and the axes along which its elements may leave their tensors."""


def elements_behind(subject: Subject, some: Callable[[], Sequence[Mapping[str, int]]]) -> Iterator[Behind]:
    """Elements that are not proved to lie in front of the end of their tensor: where the calls of the file give the
    sizes, those decide. Else ``some`` that the kernel can be launched with do, and a little longer ones, outside of
    ``T.Parallel``. A row that a table picks is trusted, and what AscendNPU IR makes a vector operation on rows, or
    Ascend C any vector operation, is left to it."""
    kernel, places = subject.kernel, list(_in_tensors(subject))
    if not places:
        return
    sampler, some = Sampler(subject), cache(some)
    values = [c.values for c in callers_of(subject.file, subject.located, given=subject.options.calls)]
    even = multiples(subject.file, subject.located)
    blocks = set(kernel.launch.names) if kernel.launch is not None else set[str]()
    for placed, elements in places:
        parallel = in_parallel(placed.parents)
        place, calls = sampler.place(placed), sampler.calls(placed, values)
        moving = blocks.union(*(item.var.names for item in placed.ranges))
        in_rows = parallel and _in_rows(placed, subject)
        found: dict[Operand, tuple[int, ...]] = {}
        for operand in elements:
            if in_rows and _along_rows(operand, placed.ranges[-1]):
                continue
            for axis, (dim, size) in enumerate(zip(operand.dims or (), operand.buffer.shape, strict=False)):
                goal = place.bounds.expanded(size - 1 - dim.lo)
                if not _goes_along(dim.lo, moving) or place.bounds.is_not_negative(goal):
                    continue
                names, from_table = sizes_of(place, goal), any(isinstance(atom, Opaque) for atom in goal.atoms())
                known = not from_table and any(names <= call.keys() for call in calls)
                if parallel:
                    leaves = not known or bool(found_for(sampler, placed, goal, calls))
                else:
                    own = size.names & place.decisive(dim.lo) - even.keys()
                    late = dict.fromkeys(names & kernel.scalars.keys(), _SOME)
                    tried = calls if known else [{**late, **one} for one in _ragged((*calls, *some()), own)]
                    leaves = bool(found_for(sampler, placed, goal, tried))
                if leaves:
                    found[operand] = (*found.get(operand, ()), axis)
        if found:
            yield placed.stmt, found


def _in_tensors(subject: Subject) -> Iterator[tuple[Placed, list[Operand]]]:
    """The statements that take single elements of tensors, and these."""
    for placed in subject.statements:
        stmt = placed.stmt
        elements = [one.operand for one in accesses(stmt) if one.element and one.operand.buffer.memory is Memory.GM]
        in_loop = subject.kernel.dialect == NPUIR and isinstance(stmt, Store)
        if elements and not stmt.via and (in_loop or not in_parallel(placed.parents)):
            yield placed, elements


def _ragged(sizes: Iterable[Mapping[str, int]], names: Set[str]) -> Iterator[Mapping[str, int]]:
    """Sizes, and the same one by one a little longer."""
    for one in sizes:
        yield one
        yield from ({**one, name: one[name] + 1} for name in sorted(names & one.keys()))


def _in_rows(placed: Placed, subject: Subject) -> bool:
    outermost = next(loop for loop in placed.loops if loop.kind == "parallel")
    return not scalar_reason(outermost, subject.late, subject.file.names)


def _goes_along(index: Sym, moving: Set[str]) -> bool:
    """Whether a loop counts in an index itself, not only in that of a table."""
    counted = (atom for monomial, _ in index.terms for atom in monomial if not isinstance(atom, Opaque))
    return any(_plain(atom.names) & moving for atom in counted)


def _plain(names: Set[str]) -> set[str]:
    return {name.partition("@")[0] for name in names} | set(names)


def _along_rows(operand: Operand, innermost: Range) -> bool:
    return operand.dims is not None and operand.dims[-1].lo.depends_on(str(innermost.var))
