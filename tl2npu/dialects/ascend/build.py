"""Constructors that keep the data files of this package short and uniform."""

from __future__ import annotations

from tl2npu.dialects.catalogue import DEVELOPER, EXPERT, Core, Kind, Mask, Operator, Param, ParamKind, Role
from tl2npu.dialects.compiler import COMPILERS

BOTH_MODES = frozenset({EXPERT, DEVELOPER})
EXPERT_ONLY = frozenset({EXPERT})
NO_MODE: frozenset[str] = frozenset()


def read(name: str, default: str | None = None, *, scalar: bool = False, seen: Mask = "") -> Param:
    """A buffer or region that is read; with ``scalar`` also a number or a buffer element."""
    return Param(name, Role.READ, default, scalar=scalar, seen=seen)


def write(name: str, default: str | None = None, *, seen: Mask = "") -> Param:
    """A buffer or region that is overwritten."""
    return Param(name, Role.WRITE, default, seen=seen)


def scratch(name: str, default: str | None = None) -> Param:
    """A temporary buffer, both written and read."""
    return Param(name, Role.READ_WRITE, default)


def accumulate(name: str, *, seen: Mask = "") -> Param:
    """A destination whose old value goes into the new one."""
    return Param(name, Role.ACCUMULATE, seen=seen)


def scalar(name: str, default: str | None = None) -> Param:
    """A number or an expression."""
    return Param(name, Role.SCALAR, default)


def count(name: str, default: str | None = None) -> Param:
    """A number of elements that scales with the tile."""
    return Param(name, Role.COUNT, default)


def mode(name: str, default: str | None = None) -> Param:
    """A constant string or dtype."""
    return Param(name, Role.MODE, default)


def shape(name: str, default: str | None = None) -> Param:
    """A sequence of extents, or another constant sequence or mapping."""
    return Param(name, Role.SHAPE, default)


def flag(name: str, default: str | None = None) -> Param:
    """A bool or a small constant."""
    return Param(name, Role.FLAG, default)


def variadic(name: str, role: Role) -> Param:
    """``*name``."""
    return Param(name, role, None, "variadic")


def keyword(param: Param) -> Param:
    """The same parameter, accepted by keyword only (it stands behind ``*`` in the signature)."""
    kind: ParamKind = "keyword"
    return Param(param.name, param.role, param.default, kind, param.scalar, param.seen)


def plain(signature: str) -> tuple[Param, ...]:
    """Parameters of a plain signature such as ``"cond t f span=None"``, all of them SCALAR.

    For names whose arguments are expressions only, or that no Ascend kernel uses. ``*name`` is variadic; what stands
    behind it, or behind a lone ``*``, takes keywords only.
    """
    params: list[Param] = []
    kind: ParamKind = "positional"
    for word in signature.split():
        if word.startswith("*"):
            if word != "*":
                params.append(Param(word[1:], Role.SCALAR, None, "variadic"))
            kind = "keyword"
            continue
        name, _, default = word.partition("=")
        params.append(Param(name, Role.SCALAR, default or None, kind))
    return tuple(params)


def operator(
    name: str,
    kind: Kind,
    *params: Param,
    core: Core,
    defined: str,
    modes: frozenset[str] = BOTH_MODES,
    memory: str | None = None,
    elementwise: bool = False,
    row_independent: bool | None = None,
    axis: str | None = None,
    extras: tuple[str, ...] = (),
    note: str = "",
    meaning: str = "",
) -> Operator:
    """One operator; the compiler versions that know it under ``threads=2`` are looked up in the compiler table."""
    return Operator(
        name,
        kind,
        params,
        core,
        modes,
        defined,
        memory=memory,
        elementwise=elementwise,
        row_independent=elementwise if row_independent is None else row_independent,
        vid_aware=frozenset(version for version, row in COMPILERS.items() if row.adapts_to_vid(name)),
        note=note,
        axis=axis,
        extras=extras,
        meaning=meaning,
    )
