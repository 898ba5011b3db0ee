"""The table from operator names to their meaning.

A meaning is a function ``(A, dst, src, ...)``: ``A`` is the arithmetic, the others are the operator's parameters by
name. Buffer operands arrive as NumPy views of the region that the call names (destinations are written in place);
one-element operands and scalars arrive as numbers, constants as they are, missing parameters as the default of the
function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tl2npu.dialects.ascend import OPERATORS as ASCEND
from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.gpu import OLDER, OPERATORS
from tl2npu.dialects.gpu.missing import MISSING
from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.ir.stmt import Site

Semantics = Callable[..., Any]


@dataclass(frozen=True)
class Meaning:
    """What an operator does.

    ``reads``/``writes``: parameters that are buffers; one in both is updated. A parameter in ``reads`` may also be a
    number or one element. ``raw``: buffer operands arrive as ``machine.operand.Operand``, for operators that choose
    themselves how much of a region they touch. ``rebinds``: the parameter whose buffer is from then on the array that
    the function returns. ``registers``: the function is given the core's registers, by name.
    """

    name: str
    function: Semantics
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    gpu: bool
    raw: bool = False
    rebinds: str = ""
    registers: bool = False


_ASCEND: dict[str, Meaning] = {}
_GPU: dict[str, Meaning] = {}
_NPUIR: dict[str, Meaning] = {}
NPUIR = "npuir."
"""What the names of the npuir language's operators begin with in a program."""
_OF_BOTH = frozenset({"atomic_add", "sync_threads", "sync_global"})
"""Names that mean in an Ascend kernel what they mean on a GPU."""
_REMEDIES = {
    "reduce_absmax": "the Ascend compiler rejects it: use T.reduce_max of T.tile.abs",
    "reduce_abssum": "the Ascend compiler rejects it: use T.reduce_sum of T.tile.abs",
    "tile.brcb": "the compiler has no code for it: use T.tile.brcb_experiment",
}


def semantics(
    *names: str,
    reads: str = "",
    writes: str = "",
    gpu: bool = False,
    raw: bool = False,
    rebinds: str = "",
    registers: bool = False,
) -> Callable[[Semantics], Semantics]:
    """Registers a function as the meaning of one or more operators.

    ``reads`` and ``writes`` are space-separated parameter names. ``gpu``: the operator of GPU TileLang.
    """

    def register(function: Semantics) -> Semantics:
        for full in names:
            name = full.removeprefix(NPUIR)
            meaning = Meaning(name, function, tuple(reads.split()), tuple(writes.split()), gpu, raw, rebinds, registers)
            table = _NPUIR if full.startswith(NPUIR) else _GPU if gpu else _ASCEND
            if name in table:
                raise ValueError(f"two meanings for {name}")
            table[name] = meaning
        return function

    return register


def refusal(name: str, gpu: bool) -> str | None:
    """Why an operator of a dialect has no meaning here; None for one that has, and for what is no operator of it."""
    known, own = (MISSING, _GPU) if gpu else (ASCEND, _ASCEND)
    if name not in known or name in own or (not gpu and (name in _OF_BOTH or ASCEND[name].kind is Kind.SYNC)):
        return None
    if name in _REMEDIES or name not in MISSING:
        return _REMEDIES.get(name) or ASCEND[name].note or "no known kernel uses it"
    return f"the simulator does not model {MISSING[name][1]}"


def meaning(name: str, gpu: bool) -> Meaning | None:
    """The meaning of an operator in one dialect; the other one's where only that has the name and it is not refused."""
    if name.startswith(NPUIR):
        return _NPUIR.get(name.removeprefix(NPUIR))
    if not gpu and refusal(name, gpu=False):
        return None
    first, second = (_GPU, _ASCEND) if gpu else (_ASCEND, _GPU)
    return first.get(name) or second.get(name)


def names(gpu: bool) -> set[str]:
    """The operators of a dialect that have a meaning."""
    return set(_GPU if gpu else _ASCEND)


def npuir_names() -> set[str]:
    """The operators of the npuir language that have a meaning."""
    return set(_NPUIR)


_ROWS = {**OPERATORS, **{old: OPERATORS[new] for old, new in OLDER.items()}}
"""The catalogue, with the names that older versions had."""


def gpu_signature(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site) -> dict[str, Any] | None:
    """Arguments of a GPU operator by the names of its parameters: those that mean something here.

    None for a name that is none. Raises TraceError for arguments that the operator does not take.
    """
    found = _GPU.get(name)
    if found is None:
        return None
    signature = inspect.signature(found.function)
    _, *taken = signature.parameters.values()
    row = _ROWS.get(name)
    try:
        if row is None or row.is_variadic or not all(row.param(word) for word in kwargs):
            return dict(signature.replace(parameters=taken).bind(*args, **kwargs).arguments)
        bound = row.bind([*((None, arg) for arg in args), *kwargs.items()])
    except TypeError as error:
        raise TraceError(f"T.{name}(): {error}", site) from None
    names = {parameter.name for parameter in taken}
    return {word: value for word, value in bound.items() if word in names}
