"""TL721: a tile is overwritten while it is needed, because memory planning gave its address to another one."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.checks.memory_plan.capacity import Needs, Shared
from tl2npu.checks.subject import Finding, Subject


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each tile that loses its value, for the sizes of every caller."""
    needs = Needs.of_subject(subject)
    said: set[str] = set()
    for caller in needs.that_differ():
        for found in needs.shared(caller.values, caller.words):
            if found.kept.of is None or found.kept.name in said:
                continue
            said.add(found.kept.name)
            yield Finding("TL721", found.kept.of.node, _text(found), None if found.is_certain else "warning")


def _text(found: Shared) -> str:
    over = f"`{found.over.name}`" if found.over.of is not None else "a tile that the compiler adds"
    gives = "gives" if found.is_certain else "may give"
    return (
        f"memory planning {gives} {over} the address of `{found.kept.name}` while `{found.kept.name}` is still needed"
    )
