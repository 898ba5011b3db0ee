"""Reads the dense tables of this package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tl2npu.dialects.ascend.build import BOTH_MODES, NO_MODE
from tl2npu.dialects.catalogue import Core, Kind, Operator, Param, Role
from tl2npu.dialects.gpu.build import params

CUSTOMIZE = "tilelang/language/customize_npuir.py"

_ROLES = {
    Role.SHAPE: frozenset({"shape", "size", "strides", "permutation", "low", "high", "layout_map", "padding_map"}),
    Role.MODE: frozenset({"dtype", "scope", "round_mode", "cmp_mod", "reduce_mode", "index_mode", "pipe", "msg"}),
    Role.FLAG: frozenset({"dim", "dims", "axis", "clear", "reverse", "a_transpose", "b_transpose", "round", "hex"}),
}
"""What a parameter that is no buffer holds, by its name; a number or an expression where nothing is said."""


def _with_role(param: Param) -> Param:
    if param.role is not Role.SCALAR:
        return param
    return next((replace(param, role=role) for role, names in _ROLES.items() if param.name in names), param)


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


def trailing(sources: str, tail: str, keywords: str) -> tuple[Param, ...]:
    """The parameters of a :class:`Trailing` operator."""
    many = Param(sources, Role.READ, None, "variadic")
    return many, *map(_with_role, params(tail)), *(replace(_with_role(p), kind="keyword") for p in params(keywords))


def rows(
    kind: Kind,
    table: str,
    *,
    file: str = CUSTOMIZE,
    core: Core = Core.VECTOR,
    modes: frozenset[str] = BOTH_MODES,
    elementwise: bool = False,
    memory: str | None = None,
    note: str = "",
) -> Iterator[Operator]:
    """One operator for each name of a table of lines ``name name: signature = meaning ~ deviation # note``.

    The signature is that of ``gpu.build.params``; meaning and deviation may be missing.
    """
    for line in table.strip().splitlines():
        head, _, own = line.partition("#")
        names, _, rest = head.partition(":")
        signature, _, formula = rest.partition(" = ")
        meaning, _, deviation = formula.partition(" ~ ")
        bound = tuple(map(_with_role, params(signature)))
        for name in names.split():
            text = "; ".join(part for part in (own.strip(), note) if part)
            source = f"{file}:{_function(name, names.split())}"
            yield Operator(
                name,
                kind,
                bound,
                core,
                modes,
                source,
                memory=memory,
                elementwise=elementwise,
                row_independent=elementwise,
                note=text,
                meaning=meaning.strip(),
                deviation=deviation.strip(),
            )


def _function(name: str, names: Sequence[str]) -> str:
    """The name under which the source defines an operator: the long one, if it has two."""
    return next((long for long in names if long.startswith("npuir_")), name)


def both_modes(inherited: Iterable[Operator]) -> Iterator[Operator]:
    """Rows of the Ascend catalogue for names that both branches take from the same TVM."""
    for row in inherited:
        yield replace(row, vid_aware=frozenset(), modes=BOTH_MODES if row.modes else NO_MODE)
