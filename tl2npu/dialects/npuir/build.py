"""What this dialect has beside its tables: operators of several sources, and names that both branches take from TVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.tables import BOTH_MODES, NO_MODE, table


@dataclass(frozen=True)
class Trailing(Operator):
    """An operator of ``*srcs, dst``: the last positional arguments have names, all before them are sources."""

    def bind(self, args: Sequence[tuple[str | None, object]]) -> dict[str, object]:
        """Like :meth:`Operator.bind`; what stands behind the variadic parameter takes the last arguments."""
        tail = [param for param in self.params if param.kind == "positional"]
        given = [value for keyword, value in args if keyword is None]
        if len(given) <= len(tail):
            names = ", ".join(param.name for param in tail)
            raise TypeError(f"{self.name}() takes at least one source and then {names} by position")
        named = [(keyword, value) for keyword, value in args if keyword is not None]
        keywords = [param for param in self.params if param.kind == "keyword"]
        plain = Operator(self.name, self.kind, (*tail, *keywords), self.core, self.modes, self.defined)
        bound = plain.bind([*((None, value) for value in given[-len(tail) :]), *named])
        sources = next(param.name for param in self.params if param.kind == "variadic")
        return {sources: tuple(given[: -len(tail)]), **bound}


def trailing(text: str) -> Iterator[Trailing]:
    """The operators of a table whose sources, all before the first parameter, are variadic."""
    for row in table(text):
        values = {field.name: getattr(row, field.name) for field in fields(row)}
        sources, *others = row.params
        yield Trailing(**{**values, "params": (replace(sources, kind="variadic"), *others)})


def both_modes(inherited: Iterable[Operator]) -> Iterator[Operator]:
    """Rows of the Ascend catalogue for names that both branches take from the same TVM."""
    for row in inherited:
        yield replace(row, vid_aware=frozenset(), modes=BOTH_MODES if row.modes else NO_MODE)
