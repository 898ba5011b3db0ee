"""Unwritten memory, bounds, sizes, and who wrote an element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tl2npu.devices import DEVICES
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.hazards import HazardFound
from tl2npu.simulator.hazards.capacity import ALIGNMENT, operand_bytes
from tl2npu.simulator.ir.buffer import Buffer, whole
from tl2npu.simulator.ir.stmt import Op
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

X = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
UNINITIALISED = {"uninitialised-read"}


@pytest.fixture(scope="module")
def kernels(watch: Any) -> Any:
    return watch("memory")


WRONG = {"stored", "nothing", "accumulate", "columns", "scalar", "parallel stored", "each row stored"}
RIGHT = {"copied", "part", "rows", "each row", "inside", "parallel", "printed", "twice"}


@pytest.mark.parametrize("form", sorted(WRONG | RIGHT))
def test_unwritten_part_of_a_tile(kernels: Any, form: str) -> None:
    """It counts where it decides something: in an output, a scalar, or every element of a reduction."""
    kernels.run("tile", X, form=form)
    assert kernels.kinds() == (UNINITIALISED if form in WRONG else set()), list(kernels.report.lines())


def test_what_is_said_of_an_unwritten_tile(kernels: Any) -> None:
    kernels.run("tile", X, form="nothing")
    (hazard,) = kernels.report.hazards
    line = kernels.line("# tile: nothing")
    assert hazard.message == (
        f"Uninitialised read at UB: PIPE_V Read at {kernels.path}:{line} in block 0 (aiv0) reads a, which nothing wrote"
    )


def test_what_is_said_of_undefined_output(kernels: Any) -> None:
    kernels.run("tile", X, form="stored")
    (hazard,) = kernels.report.hazards
    assert hazard.buffer == "B"
    assert "undefined data in 128 element(s) of B" in hazard.message
    assert hazard.first.site.line == kernels.line("# tile: exp")


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize(("rows", "reads", "told"), [(16, False, False), (14, False, True), (14, True, False)])
def test_rows_that_no_store_reaches(kernels: Any, made: bool, rows: int, reads: bool, told: bool) -> None:
    """A warning where the call makes the tensor, else a note, unless the kernel updates what it read."""
    if made and reads:
        return
    given = (X,) if made else (X, X.copy())
    kernels.run("first_rows_made" if made else "first_rows_given", *given, rows=rows, reads=reads)
    found = [h for h in kernels.report.hazards if h.kind == "unwritten-output"]
    assert [h.severity for h in found] == (["warning" if made else "note"] if told else [])
    if told:
        assert found[0].message.startswith("Never written: 32 of 256 elements of B, the first B[14, 0] (others at ")
        assert found[0].site.line == kernels.line("# first_rows: store")


def test_a_read_behind_the_end_of_a_tensor(kernels: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The NPU takes an address; the declared shape is all that it knows of the tensor's end."""
    kernels.run("first_rows_made", X, rows=16)
    assert not kernels.kinds()
    kernels.run("first_rows_made", X[:15].copy(), rows=15)
    (hazard,) = kernels.report.errors
    assert (hazard.kind, hazard.memory, hazard.buffer) == ("out-of-bounds", "GM", "A")
    assert hazard.site.line == kernels.line("# first_rows: load")
    assert "behind the end of the tensor given for A" in hazard.message
    assert "A of main is declared with shape [16, 16], the tensor has shape [15, 16]" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["apart", "stored", "place", "condition", "one line"])
def test_an_element_that_is_computed_of_an_unwritten_one(kernels: Any, form: str) -> None:
    kernels.run("element", X, form=form)
    assert kernels.kinds() == (set() if form == "apart" else UNINITIALISED), list(kernels.report.lines())


@pytest.mark.parametrize(
    ("form", "rows", "right"),
    [
        *(("second", rows, rows >= 8) for rows in (0, 7, 8, 16)),
        *((form, rows, rows <= 8) for form in ("first", "number") for rows in (0, 8, 9, 16)),
        *(("both", rows, True) for rows in (0, 8, 16)),
        *(("with itself", rows, False) for rows in (0, 8, 16)),
    ],
)
def test_only_the_elements_that_a_mask_chooses_are_read(kernels: Any, form: str, rows: int, right: bool) -> None:
    kernels.run("chosen", X, form=form, rows=rows)
    assert kernels.kinds() == (set() if right else UNINITIALISED), list(kernels.report.lines())


@pytest.mark.parametrize("first", [8, 16])
def test_unwritten_workspace(kernels: Any, first: int) -> None:
    kernels.run("through_memory", X, first=first)
    assert kernels.kinds() == (UNINITIALISED if first < 16 else set())
    if first < 16:
        assert kernels.report.hazards[0].first.site.line == kernels.line("# through_memory: load")


@pytest.mark.parametrize(
    ("init", "loaded", "stored"), [(i, n, m) for i in ("first", "never") for n in (8, 16) for m in (8, 16)]
)
def test_product(kernels: Any, init: str, loaded: int, stored: int) -> None:
    kernels.run("matrix", X.astype(np.float16), init=init, loaded=loaded, stored=stored)
    assert kernels.kinds() == (UNINITIALISED if init == "never" or stored > loaded else set())


@pytest.mark.parametrize("where", ["tile", "element", "inside"])
def test_bounds(kernels: Any, where: str) -> None:
    if where == "inside":
        kernels.run("outside", X, where=where)
        assert not kernels.report.hazards
        return
    with pytest.raises(SimulatorError, match="out-of-bounds"):
        kernels.run("outside", X, where=where)
    (hazard,) = kernels.report.hazards
    assert (hazard.kind, hazard.memory, hazard.buffer) == ("out-of-bounds", "UB", "a")
    assert hazard.second.site.line == kernels.line(f"# outside: {where}")


UB, HARDWARE = DEVICES["A2"].capacity.ub, DEVICES["A2"].hardware.ub


@pytest.mark.parametrize(("name", "alive"), [("planned", 2), ("summed", 3)])
def test_ub_capacity(kernels: Any, name: str, alive: int) -> None:
    """At the limit, and one step above it."""
    fits = UB // (alive * 32 * 4) // 8 * 8  # whole blocks of 32 bytes
    assert alive * 32 * fits * 4 <= UB
    rows = 32 * 4
    assert rows % ALIGNMENT == 0
    for columns in (fits, fits + 8, fits + 16):
        x = np.zeros((32, columns), np.float32)
        kernels.run(name, x, columns=columns)
        # without planning the hardware's limit holds, which is above that of the planner
        limit = UB if name == "planned" else HARDWARE
        too_large = alive * rows * columns > limit
        assert {h.kind for h in kernels.report.hazards} == ({"over-capacity"} if too_large else set())


@pytest.mark.parametrize("reading", [IDEAL, ACTUAL])
def test_only_the_half_of_a_core_has_to_fit(kernels: Any, reading: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.session, "reading", reading)
    columns = UB // (32 * 4) // 8 * 8 + 32
    kernels.run("halves", np.zeros((32, columns), np.float32), columns=columns)
    assert not kernels.report.hazards


def test_lifetimes_that_overlap(kernels: Any) -> None:
    columns = UB // (2 * 32 * 4) // 8 * 8
    kernels.run("planned", np.zeros((32, columns), np.float32), columns=columns, together=True)
    (hazard,) = kernels.report.hazards
    need = 3 * 32 * columns * 4
    assert hazard.message.startswith(f"UB holds {UB} bytes on A2, the kernel needs {need}")


@pytest.mark.parametrize(
    ("M", "N", "K", "memories"),
    [
        (128, 128, 256, set()),  # two slots of 128 x 128 in each of L0A and L0B: exactly 64 KB
        (256, 128, 128, set()),
        (144, 128, 256, {"L0A"}),
        (128, 144, 256, {"L0B"}),
        (272, 64, 128, {"L0A"}),
        (128, 256, 64, set()),  # L0C exactly 128 KB
        (128, 272, 64, {"L0C"}),
        (16, 16, 8192, {"L1"}),
        (16, 16, 8176, set()),
    ],
)
def test_cube_capacity(kernels: Any, M: int, N: int, K: int, memories: set[str]) -> None:
    a, b = np.zeros((M, K), np.float16), np.zeros((K, N), np.float16)
    kernels.run("product", a, b, M=M, N=N, K=K)
    assert {h.memory for h in kernels.report.hazards} == memories
    assert kernels.kinds() <= {"over-capacity"}


@pytest.mark.parametrize(
    ("second", "kinds"), [(0, set()), (HARDWARE - 98304, set()), (HARDWARE - 98304 + 32, {"over-capacity"})]
)
def test_addresses_given_by_hand(kernels: Any, second: int, kinds: set[str]) -> None:
    kernels.run("placed", np.zeros((32, 768), np.float32), second=second)
    assert kernels.kinds() == kinds


@pytest.mark.parametrize("clear", [False, True])
def test_gpu(kernels: Any, clear: bool) -> None:
    """No capacities are checked there; the fragment has to be cleared."""
    x = np.zeros((64, 64), np.float32)
    kernels.run("on_gpu", x, clear=clear)
    assert kernels.kinds() == (set() if clear else UNINITIALISED)


def test_who_wrote(kernels: Any) -> None:
    kernels.run("tile", X, form="twice")
    writer = kernels.report.writer("B", (3, 4))
    assert (writer.operator, writer.core, writer.block) == ("copy", "aiv1", 0)
    assert kernels.report.writer("A", (0, 0)) is None
    kernels.run("tile", X, form="part")
    assert kernels.report.writer("B", (7, 0)) is not None
    assert kernels.report.writer("B", (8, 0)) is None
    with pytest.raises(KeyError):
        kernels.report.writer("C", (0, 0))


@pytest.mark.parametrize("rows", [8, 16])
def test_views_share_memory(kernels: Any, rows: int) -> None:
    kernels.run("views", X, rows=rows)
    assert kernels.kinds() == (set() if rows == 16 else UNINITIALISED)
    if rows == 8:
        assert "in 256 element(s) of B" in kernels.report.hazards[0].message


@pytest.mark.parametrize("first", [False, True])
def test_a_launch_comes_after_the_one_before_it(kernels: Any, first: bool) -> None:
    kernels.run("two_launches", X, first=first)
    assert kernels.kinds() == (set() if first else UNINITIALISED)
    assert kernels.report.writer("B", (0, 0)).block == 1


@pytest.mark.parametrize("modulus", [8, 16])
def test_lanes_that_write_one_element(kernels: Any, modulus: int) -> None:
    if modulus == 16:
        kernels.run("lanes", X[0], modulus=modulus)
        assert not kernels.report.hazards
        return
    with pytest.raises(SimulatorError, match="several iterations"):
        kernels.run("lanes", X[0], modulus=modulus)
    (hazard,) = kernels.report.hazards
    assert (hazard.kind, hazard.buffer) == ("WAW", "B")
    assert hazard.site.line == kernels.line("# lanes: store")


def test_fatal(watch: Any) -> None:
    strict = watch("memory", fatal=True)
    with pytest.raises(HazardFound, match="nothing wrote") as caught:
        strict.run("tile", X, form="nothing")
    assert caught.value.site.line == strict.line("# tile: nothing")
    strict.run("tile", X, form="twice")


@pytest.mark.parametrize(("other", "fence"), [(64, True), (64, False), (8192, True)])
def test_buffers_at_one_address_share_memory(kernels: Any, other: int, fence: bool) -> None:
    result = kernels.run("handed_on", X, other=other, fence=fence)
    if other != 64:
        assert kernels.kinds() == UNINITIALISED
        return
    np.testing.assert_array_equal(result[:8], X[:8])
    np.testing.assert_array_equal(result[8:].view(np.int32), 7)
    assert kernels.kinds() == (set() if fence else {"RAW"})


@pytest.mark.parametrize("rows", [8, 16])
def test_a_name_that_gets_other_memory(kernels: Any, rows: int) -> None:
    kernels.run("renamed", X.astype(np.int32), rows=rows)
    assert kernels.kinds() == (set() if rows == 16 else UNINITIALISED)


@pytest.mark.parametrize(("step", "needed"), [(None, 2 * 128), (64, 2 * 64), (256, 256)])
def test_how_much_of_k_a_product_stages(step: int | None, needed: int) -> None:
    """A right operand of 256 x 256 halves: two slots of the step, or the whole depth where one step takes it."""
    right = whole(Buffer("b", (256, 256), "float16", "l1"))
    given = {} if step is None else {"kL0Size": step}
    assert operand_bytes(Op("gemm_v0", {"B": right, **given}), "l0b") == 256 * needed * 2


@pytest.mark.parametrize(
    ("name", "given"), [("rows_from", {}), ("rows_of_a_gpu", {}), ("rows_of_a_gpu", {"parallel": 1})]
)
@pytest.mark.parametrize(
    ("index", "told"),
    [
        ({}, None),  # two blocks more than tiles, as where a grid is rounded up
        ({"first": 16}, "nothing reads it"),
        ({"first": 4}, "no load reaches element 0 of axis 0"),
        ({"step": 8}, "no load reaches element 4 of axis 0"),
        ({"step": 2}, None),
    ],
)
def test_loads_outside_of_a_tensor_that_is_not_read(
    kernels: Any, name: str, given: dict[str, int], index: dict[str, int], told: str | None
) -> None:
    kernels.run(name, X, **given, **index)
    found = [h for h in kernels.report.hazards if h.kind == "out-of-bounds"]
    assert [h.severity for h in found] == (["warning"] if told else [])
    assert all(h.message.endswith(f"lies wholly outside of A, and {told}") for h in found)
