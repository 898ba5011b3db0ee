"""Reads the dense tables of this package."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.dialects.catalogue import Core, Kind, Operator, Param, ParamKind, Role

GPU_MODE = frozenset({"gpu"})

_ROLES = {"<": Role.READ, ">": Role.WRITE, "+": Role.ACCUMULATE, "~": Role.READ_WRITE, "?": Role.READ}
_MARKS = "".join(_ROLES)


def params(signature: str) -> tuple[Param, ...]:
    """Parameters of a signature such as ``"<src >dst annotations=None"``.

    ``<`` a buffer that is read, ``?`` a buffer or a number that is read, ``>`` written, ``+`` updated, ``~`` both read
    and written; others are scalars. ``*name`` is variadic; what stands behind it or a lone ``*`` takes keywords only.
    ``...`` stands for a default that is no constant.
    """
    found: list[Param] = []
    kind: ParamKind = "positional"
    for word in signature.split():
        if word.startswith("*"):
            if word != "*":
                found.append(Param(word[1:], Role.SCALAR, None, "variadic"))
            kind = "keyword"
            continue
        role = _ROLES.get(word[0], Role.SCALAR)
        name, _, default = word.lstrip(_MARKS).partition("=")
        found.append(Param(name, role, default or None, kind, scalar=word[0] == "?"))
    return tuple(found)


def rows(kind: Kind, file: str, table: str) -> Iterator[Operator]:
    """One operator for each name of a table; a line is ``name name: signature``, longer ones go on indented."""
    lines: list[str] = []
    margin = _margin(table)
    for line in table.strip("\n").splitlines():
        deeper = lines and len(line) - len(line.lstrip()) > margin
        if deeper:
            lines[-1] += f" {line.strip()}"
        elif line.strip():
            lines.append(line.strip())
    for line in lines:
        names, _, signature = line.partition(":")
        for name in names.split():
            yield Operator(name, kind, params(signature), Core.NONE, GPU_MODE, f"{file}:{name}")


def _margin(table: str) -> int:
    return min(len(line) - len(line.lstrip()) for line in table.splitlines() if line.strip())


LANES = (2, 4, 8, 16, 32, 64)

VECTOR_BASES = (
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "bfloat16", "tfloat32"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
    *("float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
)


def vector_types() -> Iterator[Operator]:
    """``float16x2`` and its like."""
    for base in VECTOR_BASES:
        for lanes in LANES:
            yield Operator(
                f"{base}x{lanes}", Kind.TYPE, (), Core.NONE, GPU_MODE, "tilelang/language/dtypes.py", note="vector"
            )
