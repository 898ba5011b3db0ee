"""Double buffers by hand: flags that order the slots of a tile one by one."""

from __future__ import annotations

from tl2npu.kernel.model import Copy, Kernel, Loop, Sync, walk


def loop_of_slots(kernel: Kernel) -> Loop | None:
    """The outermost loop in which several flags, or one per iteration, order the same two pipes of a core."""
    for loop in kernel.walk():
        if not isinstance(loop, Loop) or not any(isinstance(stmt, Copy) for stmt in walk(loop.body)):
            continue
        events: dict[tuple[str, str], set[str]] = {}
        for stmt in walk(loop.body):
            if isinstance(stmt, Sync) and stmt.op.name == "set_flag" and (event := stmt.args.get("eventId")):
                numbers = events.setdefault((stmt.text("src"), stmt.text("dst")), set())
                numbers.add(stmt.text("eventId"))
                if len(numbers) > 1 or event.sym.variables():
                    return loop
    return None
