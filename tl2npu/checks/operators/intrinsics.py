"""TL733, TL752, TL753: a ``T.Parallel`` that the compiler runs element by element, for which it has no scalar exp.

One statement decides for the whole nest. Evidence: facts 10 (``Unresolved call Op(tir.exp)``), and a kernel for each
of the causes that are named here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

import libcst as cst

from tl2npu.checks.operators.vector_form import (
    NO_INSTRUCTION,
    ParallelStore,
    one_name,
    parallel_stores,
    types_of,
    wider_number,
)
from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Loop
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.results import Severity
from tl2npu.source.tree import names_in, nodes_of

_SLOW = "the loop runs element by element"
_MANY = 64
"""Elements of a nest whose time counts."""
_FUNCTIONS = frozenset({"exp", "log", "sqrt", "rsqrt", "abs", "fabs"})


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each nest with such a function, on the function; one for each statement with a wide number."""
    types = _scalars(subject)
    for stores, store, name in _nests(subject):
        if store is None:
            slow = ((each, _wide(subject, each)) for each in stores)
            yield from (Finding("TL752", each.store.node, f"{why}, so {_SLOW}") for each, why in slow if why)
            continue
        why = _one_turn(subject, store) or next(filter(None, (_scalar(subject, each, types) for each in stores)), "")
        if why:
            yield Finding("TL733", store.store.node, f"{why}, so {_SLOW} and T.{name} does not compile")


def check_slow(subject: Subject) -> Iterator[Finding]:
    """TL753: the other nests that have no vector form, one finding each; a note where an NPU has no instruction."""
    for stores, function, _ in _nests(subject):
        slow = next((each for each in stores if each.why and not _wide(subject, each)), None)
        sizes = [subject.numbers(item.extent) for loop in stores[0].nest for item in loop.ranges]
        count = math.prod(max(number or _MANY for number in size) for size in sizes)
        if function is None and slow is not None and count >= _MANY:
            severity: Severity | None = "info" if slow.why.startswith(NO_INSTRUCTION) else None
            yield Finding("TL753", slow.store.node, f"{slow.why}, so {_SLOW}", severity=severity)


def _nests(subject: Subject) -> Iterator[tuple[list[ParallelStore], ParallelStore | None, str]]:
    """The stores of each nest, the first of them with a function, and its name."""
    for _, group in groupby(parallel_stores(subject), key=lambda store: id(store.nest[0])):
        stores = list(group)
        calls = [(store, name) for store in stores if (name := _function(store))]
        yield stores, *(calls[0] if calls else (None, ""))


def _function(store: ParallelStore) -> str:
    found = (part.name for part in store.value.walk() if part.kind == "call" and part.name in _FUNCTIONS)
    return next(found, "")


def _one_turn(subject: Subject, store: ParallelStore) -> str:
    if 1 not in subject.numbers(store.inner.extent):
        return ""
    extent = code(store.inner.stop_node) if store.inner.stop_node is not None else "1"
    return "it has one iteration" if extent == "1" else f"`{extent}` is 1 here"


def _scalar(subject: Subject, store: ParallelStore, types: dict[str, str]) -> str:
    """Why a statement has no vector form; empty if it has one."""
    buffer = store.store.target.buffer
    own = types_of(store.value, store.store.target)
    if why := _wide(subject, store) or (store.why if len(own) == 1 else ""):
        return why
    names = {name.value for part in store.value.walk() if part.kind == "number" for name in names_in(part.node)}
    named = {name: types[name] for name in names if name in types}
    for words in (caller.words for caller in subject.callers):
        target = one_name(words.get(buffer.dtype, buffer.dtype))
        if target not in ITEM_SIZE or store.value.kind == "load":
            continue
        for name, dtype in named.items():
            given = one_name(words.get(dtype, dtype))
            if given in ITEM_SIZE.keys() - {target}:
                return f"`{name}` is {given} and `{buffer.name}` is {target}"
        if {one_name(words.get(dtype, dtype)) for dtype in own} & ITEM_SIZE.keys() - {target}:
            return f"`{code(store.store.node)}` has several element types"
    return ""


def _wide(subject: Subject, store: ParallelStore) -> str:
    """Which number is wider than the elements beside it; those of 8 bits have no vector form anyway."""
    calls = ({}, *(caller.words for caller in subject.callers))
    return next((why for words in calls if (why := wider_number(store, words)) and not why.endswith("int8")), "")


def _scalars(subject: Subject) -> dict[str, str]:
    """The types of names of the kernel that stand for one value: block numbers, loop variables, elements of tensors."""
    launch = subject.kernel.launch
    found = dict.fromkeys(launch.names if launch is not None else (), "int32")
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Loop) and stmt.kind != "parallel":
            found.update((item.name, "int32") for item in stmt.ranges)
        elif isinstance(stmt, Let) and not nodes_of(stmt.value.node, cst.Call):
            kinds = {load.buffer.dtype for load in stmt.value.loads}
            kinds |= {found[name.value] for name in names_in(stmt.value.node) if name.value in found}
            floats = {kind for kind in kinds if not kind.startswith(("int", "uint"))}
            if len(floats or kinds) == 1:
                found[stmt.name] = next(iter(floats or kinds))
        elif isinstance(stmt, Let):
            found.pop(stmt.name, None)
    return {name: dtype for name, dtype in found.items() if name not in subject.kernel.buffers}
