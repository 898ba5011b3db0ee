"""TL206: ``if vid == 0`` in a kernel that uses vid for nothing else: one vector core did all the work.

The guard goes, and the compiler splits the rows or launches one vector core only. Where each core has guards of its
own, their work must not meet in a tile: the cores had one each. An ``else`` is refused: two texts are not one.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.comparisons import OPERATORS
from tl2npu.kernel.memory.liveness import Liveness
from tl2npu.kernel.model import Branch, Kernel, Stmt, walk
from tl2npu.kernel.symbolic import Opaque, Sym, const
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in


def tested_core(stmt: Stmt, vid: str) -> int | None:
    """The vector core that an ``if`` lets through, 0 or 1: ``vid == 0``, ``1 > vid``, ``not vid``; else None."""
    if not isinstance(stmt, Branch) or not isinstance(stmt.node, cst.If):
        return None
    first, second = (_holds(stmt.cond.sym, vid, core) for core in (0, 1))
    return None if first is None or second is None or first == second else int(second)


def _holds(condition: Sym, vid: str, core: int) -> bool | None:
    """Whether a condition that asks for nothing but vid is true on a vector core."""
    atom = condition.atom
    if isinstance(atom, Opaque) and atom.head == "Not" and len(atom.args) == 1:
        inner = _holds(atom.args[0], vid, core)
        return None if inner is None else not inner
    if isinstance(atom, Opaque) and atom.head in OPERATORS and len(atom.args) == 2:
        left, right = (arg.substitute({vid: const(core)}).constant for arg in atom.args)
        return None if left is None or right is None else OPERATORS[atom.head](left, right)
    value = condition.substitute({vid: const(core)}).constant
    return None if value is None else bool(value)


def normalise(job: Job) -> None:
    """Rewrite the guards of a kernel; raises :class:`Blocked` for one that means something else."""
    kernel = job.kernel
    guards = _guards(kernel)
    if not guards:
        return
    two_sided = next((stmt for stmt, _ in guards if stmt.orelse), None)
    if two_sided is not None:
        raise Blocked("TL220", two_sided.node, "the two vector cores run different statements")
    if not _only_guards(kernel, guards):
        raise Blocked("TL220", guards[0][0].node, "only one vector core works here, but vid is used elsewhere too")
    _refuse_meetings(kernel, guards)
    edits = Edits(job.file.index)
    for stmt, _ in guards:
        assert isinstance(stmt.node, cst.If)
        edits.unwrap(stmt.node)
        job.change("TL206", stmt.node, "removed the vid guard: with one vector core it is not needed")
    job.apply(edits)


def runs_both_cores(job: Job) -> bool:
    """True unless ``threads=1`` certainly launches one vector core: target pto launches two even so."""
    return not all(isinstance(target, str) and "pto" not in target for target in job.located.targets)


def refuse_second_core(job: Job) -> None:
    """Raise :class:`Blocked` where ``threads=1`` would let the second core do what a guard kept it from."""
    guards = _guards(job.kernel)
    if guards and runs_both_cores(job):
        raise Blocked("TL220", guards[0][0].node, "target pto runs both vector cores even with `threads=1`")


def works_alone(kernel: Kernel) -> bool:
    """True where one and the same vector core does whatever uses vid at all: the other one has no work of its own."""
    guards = _guards(kernel)
    two_sided = any(stmt.orelse for stmt, _ in guards)
    return len({core for _, core in guards}) == 1 and not two_sided and _only_guards(kernel, guards)


def _refuse_meetings(kernel: Kernel, guards: list[tuple[Branch, int]]) -> None:
    """Raise :class:`Blocked` where a tile of one core's guards is wanted, as it is then, by anything else.

    Each vector core had a tile of its own under that name; with one text for both there is one.
    """
    cores = {core for _, core in guards}
    steps = Liveness(kernel).steps if len(cores) > 1 else []
    for core in cores:
        own = {id(inner) for guard, tested in guards if tested == core for inner in walk(guard.then)}
        tiles = [(access, id(stmt) in own) for stmt in kernel.walk() for access in accesses(stmt)]
        written = {access.operand.buffer for access, here in tiles if here and access.writes}
        shared = written & {access.operand.buffer for access, here in tiles if not here}
        for step in steps:
            leaves = [after for after in step.after if id(step.stmt) in own and id(after.stmt) not in own]
            met = next((tile for after in leaves for tile in after.wanted if tile in shared), None)
            if met is not None:
                text = f"each vector core fills its own `{met.name}` here, and both are read later"
                raise Blocked("TL220", step.stmt.node, text)


def _guards(kernel: Kernel) -> list[tuple[Branch, int]]:
    """The guards of a kernel, each with the vector core that it lets through."""
    vid = kernel.vid
    if vid is None:
        return []
    found = [(stmt, tested_core(stmt, vid)) for stmt in kernel.walk() if isinstance(stmt, Branch)]
    return [(stmt, core) for stmt, core in found if core is not None]


def _only_guards(kernel: Kernel, guards: list[tuple[Branch, int]]) -> bool:
    """vid occurs in the conditions of these guards and nowhere else."""
    name = kernel.launched.names[1]
    uses = sum(1 for node in names_in(kernel.launched.node.body) if node.value == name)
    return uses == len(guards)
