"""What kind of kernel it is, which decides the forms that are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tl2npu.dialects.ascend import DROPPED
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import side_of
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.configs import ALL, read_configs
from tl2npu.kernel.factories.positions import compilations
from tl2npu.kernel.flags.slots import loop_of_slots
from tl2npu.kernel.handover import traffic
from tl2npu.kernel.model import Alloc, Copy, Kernel, Let, Op, Opaque, ScopeBlock, Side, Sync, children
from tl2npu.passes.ascend import guards, hand_overs, sync
from tl2npu.passes.ascend.mma import products as mma_products
from tl2npu.passes.job import Job
from tl2npu.source.tree import mentioned

Style = Literal["gpu", "npuir", "expert", "mixed", "workspace", "vid", "developer", "unknown"]


@dataclass(frozen=True)
class Traits:
    """What kind of kernel it is."""

    style: Style
    cube: bool
    vector: bool
    uses_vid: bool
    exchanges: bool
    alone: bool = False
    """Only one of the two vector cores has anything to do."""

    @property
    def is_rewritten(self) -> bool:
        """Its statements are written anew: what it does is kept, and not how it says it."""
        return self.style in ("gpu", "npuir")


def traits(job: Job) -> Traits:
    """Classify a kernel."""
    kernel = job.kernel
    sides = {side_of(stmt) for stmt in kernel.walk() if not children(stmt)}
    cube = Side.CUBE in sides or Side.BOTH in {side_of(s) for s in kernel.walk() if isinstance(s, Op)}
    vector = Side.VECTOR in sides
    uses_vid = vid_name(kernel) is not None and uses(kernel, vid_name(kernel) or "")
    exchanges = any(
        entry.exchanged and len({hand_overs.side(p, entry.tensor) for p in (*entry.writers, *entry.readers)}) > 1
        for entry in traffic(kernel).values()
    )
    style = _style(job, uses_vid, exchanges, cube and not vector)
    alone = vector and guards.works_alone(kernel) and not guards.runs_both_cores(job)
    return Traits(style, cube, vector, uses_vid, exchanges, alone)


def vid_name(kernel: Kernel) -> str | None:
    """How the kernel spells its second axis, None if it does not name one."""
    names = kernel.launch.names if kernel.launch else ()
    return names[1] if len(names) > 1 and names[1] != "_" else None


def uses(kernel: Kernel, name: str) -> bool:
    """Whether a name of the launch occurs in its body."""
    return name in mentioned(kernel.launched.node.body)


def _style(job: Job, uses_vid: bool, exchanges: bool, cube_only: bool) -> Style:
    kernel = job.kernel
    if kernel.launch is None:
        return "unknown"
    if kernel.dialect != "ascend":
        return kernel.dialect
    own = kernel.launch.threads is not None  # of Developer mode, where a barrier may be needed (TL763)
    manual = any(
        isinstance(stmt, ScopeBlock)
        or sync.is_address(stmt)
        or (isinstance(stmt, Sync) and not (own and stmt.op.name == "barrier_all"))
        for stmt in kernel.walk()
    )
    automatic = any(read_configs(job.file, found).values.get(key) for found in compilations(job.located) for key in ALL)
    if manual:
        return "mixed" if automatic else "expert"
    if exchanges:
        return "workspace"
    if uses_vid:
        return "vid"
    explicit = any(b.alloc in ("alloc_ub", "alloc_L1", "alloc_L0C") for b in kernel.buffers.values())
    return "expert" if explicit and (cube_only or not automatic) else "developer"


def refuse_unreadable(job: Job) -> None:
    """Raise :class:`Blocked` for what no form can be built from."""
    kernel = job.kernel
    for node, code, message in kernel.problems:
        raise Blocked(code, node, message)
    for stmt in kernel.walk():
        if isinstance(stmt, Op):
            if stmt.op.kind is Kind.SYSTEM or stmt.op.name.endswith("_experiment"):
                if stmt.op.name in DROPPED:
                    raise Blocked("TL897", stmt.node, f"the Ascend compiler ignores or rejects T.{stmt.op.name}")
                raise Blocked("TL311", stmt.node, f"the automatic passes do not support T.{stmt.op.name}")
        elif isinstance(stmt, Opaque) and stmt.buffers:
            raise Blocked("TL902", stmt.node, f"{stmt.why}")


def left_alone(job: Job) -> str | None:
    """Why a kernel that could be read stays as it is, None if it need not."""
    if job.options.keep_expert and (mma_products.is_manual(job.kernel) or loop_of_slots(job.kernel) is not None):
        return "a hand-written pipeline is kept (--keep-expert)"
    does = (stmt for stmt in job.kernel.walk() if not children(stmt) and not isinstance(stmt, (Alloc, Let, Sync)))
    if all(isinstance(stmt, Opaque) and not stmt.buffers for stmt in does):
        return "it has no statement for a core"
    return None


def is_mixed(kernel: Kernel) -> bool:
    """Both the cube core and the vector cores have work."""
    sides = {side_of(stmt) for stmt in kernel.walk() if not children(stmt)}
    return Side.BOTH in {side_of(s) for s in kernel.walk() if isinstance(s, Copy)} or {Side.CUBE, Side.VECTOR} <= sides
