"""The GPU catalogue: rows typed by hand from the sources, and the simulator's answer to every name."""

from __future__ import annotations

import inspect

from tests.each import each
from tl2npu.dialects.catalogue import Core, Kind, Role
from tl2npu.dialects.gpu import FILES, OLDER, OPERATORS
from tl2npu.dialects.gpu.build import GPU_MODE
from tl2npu.dialects.tables import signature, table
from tl2npu.simulator import operators as _operators  # noqa: F401  (registers the meanings)
from tl2npu.simulator.frontend import language
from tl2npu.simulator.operators import registry

# Read off tile-ai/tilelang a35008a4 as a person reads a signature and its body: < read, > written, + updated.
SAMPLES = """
copy copy <src >dst * coalesced_width disable_tma eviction_policy prefer_instruction annotations loop_layout
gemm            gemm    <A <B +C transpose_A transpose_B policy clear_accum k_pack mbar annotations
reduce_max      reduce  <buffer >out dim clear batch nan_propagate annotations
reduce_abssum   reduce  <buffer >out dim batch annotations
cumsum          reduce  <src >dst dim reverse annotations
atomic_add      atomic  +dst <value memory_order return_prev use_tma annotations
atomic_addx4    atomic  +dst <value return_prev
fill            fill    >buffer value annotations
alloc_shared    alloc   shape dtype scope
alloc_var       alloc   dtype *args scope init
Pipelined       loop    start stop num_stages order stage sync group annotations
Parallel        loop    *extents coalesced_width loop_layout prefer_async annotations
if_then_else    scalar  cond t f span
use_swizzle     annotation panel_size order enable
"""


@each(SAMPLES.strip().splitlines(), lambda line: line.split()[0])
def test_rows_as_a_person_reads_them(line: str) -> None:
    name, kind, *expected = line.split()
    row = OPERATORS[name]
    marks = {Role.READ: "<", Role.WRITE: ">", Role.ACCUMULATE: "+", Role.READ_WRITE: "~"}
    found = [("*" if p.kind == "variadic" else marks.get(p.role, "")) + p.name for p in row.params]
    assert row.kind is Kind(kind)
    assert found == [word for word in expected if word != "*"]
    if "*" in expected:
        behind = {word.lstrip("<>+~") for word in expected[expected.index("*") + 1 :]}
        assert {p.name for p in row.params if p.kind == "keyword"} == behind


def test_every_name_is_listed_once() -> None:
    names = [row.name for file in FILES for row in file.OPERATORS]
    assert len(names) == len(set(names))
    assert len(OPERATORS) == 703


def test_every_name_has_a_meaning_or_a_reason() -> None:
    known = set(language.NAMES) | registry.names(True)
    refused = {name for name in OPERATORS if registry.refusal(name, gpu=True)}
    assert set(OPERATORS) - known - refused == {"AnyDType"}
    assert refused & registry.names(True) == set()


def test_the_simulator_knows_no_other_gpu_names() -> None:
    meanings = {name.removesuffix("@lanes") for name in registry.names(True)}
    assert meanings - set(OPERATORS) == set(OLDER)


@each(sorted(registry.names(True) & set(OPERATORS)), str)
def test_meanings_take_parameters_of_the_catalogue(name: str) -> None:
    """By which arguments are bound. ``op`` of a reducer is that of its allocation; reductions share what few have."""
    found = registry.meaning(name, gpu=True)
    assert found is not None
    _, *taken = inspect.signature(found.function).parameters.values()
    own = {p.name for p in taken if p.kind is p.POSITIONAL_OR_KEYWORD} - {"op", "clear", "nan_propagate"}
    assert OPERATORS[name].is_variadic or own <= {p.name for p in OPERATORS[name].params}


def test_tables_are_read_with_their_continuation_lines() -> None:
    found = table("""
[copy] file.py
one two: <src >dst
    * flag=True
three:
[tile vector expert each axis=dim memory=ub] other.py # for all
tile.four five@npu_five: +dst[w] ?src mode/flag=1 *args/flag[one,two] = dst + src ~ wrong # own
""", GPU_MODE)  # fmt: skip
    assert [row.name for row in found] == ["one", "two", "three", "tile.four", "five"]
    assert found[0].params == signature("<src >dst * flag=True").params
    assert (found[0].params[2].kind, found[0].modes, found[0].defined) == ("keyword", GPU_MODE, "file.py:one")
    assert found[2].params == ()
    four, five = found[3:]
    assert (four.defined, five.defined) == ("other.py:four", "other.py:npu_five")
    assert (four.kind, four.core, four.modes) == (Kind.TILE, Core.VECTOR, frozenset({"expert"}))
    assert (four.elementwise, four.row_independent, four.axis, four.memory) == (True, True, "dim", "ub")
    assert (four.meaning, four.deviation, four.note) == ("dst + src", "wrong", "own; for all")
    assert four.extras == ("one", "two")
    dst, src, mode, args = four.params
    assert (dst.role, dst.mask, src.role, src.scalar) == (Role.ACCUMULATE, "w", Role.READ, True)
    assert (mode.role, mode.default, args.role, args.kind) == (Role.FLAG, "1", Role.FLAG, "variadic")
