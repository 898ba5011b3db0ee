"""TL330: flags inside a core that do not pair, in a kernel that sets its own; for any size, and for the sizes given."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.flags.balance import Imbalance, imbalances
from tl2npu.kernel.model import Sync
from tl2npu.results import Severity

_CALLERS = 4


def check(subject: Subject, line_of: Callable[[cst.CSTNode], int] | None = None) -> Iterator[Finding]:
    """Findings about the kernel as its author wrote it: without its flags they mean nothing.

    ``line_of``: the line of a node in the file that the author sees, where that is another one.
    """
    if not any(isinstance(stmt, Sync) and stmt.op.name.endswith("_flag") for stmt in subject.kernel.walk()):
        return
    evaluator = subject.located.evaluator
    found = imbalances(subject.kernel, evaluator)
    seen = {id(item.node) for item in found if item.certain}
    exact: list[tuple[cst.CSTNode, Imbalance]] = []
    for caller in subject.callers[:_CALLERS] if subject.located.factory is not None else ():
        for item in imbalances(subject.kernel, evaluator, caller.values):
            if item.certain and id(item.node) not in seen:
                seen.add(id(item.node))
                exact.append((caller.node, item))
    for item in found:
        if item.certain or id(item.node) not in seen:
            yield _finding(item, item.message)
    line_of = line_of or (lambda node: subject.file.index.position(node).line)
    for place, item in exact:
        yield _finding(item, f"{item.message}, for the sizes of line {line_of(place)}")


def _finding(item: Imbalance, message: str) -> Finding:
    """An error where a core certainly waits for ever; a migration takes the flags away, so it goes on all the same."""
    help = ""
    severity: Severity | None = None if item.certain else "info"
    if item.missing.startswith("T.set"):
        help = f"a `{item.missing}` is missing before this wait, or the wait is one too many"
    elif item.missing:
        help = f"a `{item.missing}` is missing behind this; what the prologue sets, the epilogue waits for"
    return Finding("TL330", item.node, message, severity, help=help, as_it_stands="error" if item.stuck else None)
