"""Expressions of the source as symbolic integers and operands."""

from __future__ import annotations

import pytest

from tests.kernel.support import evaluated, of_type, read
from tl2npu.kernel.model import Copy, Let, Loop, Memory, Op
from tl2npu.kernel.symbolic import const, opaque, var


def same(left: str, right: str) -> bool:
    return evaluated(left) == evaluated(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("vid * bm // 2", "(bm * vid) // 2"),
        ("vid * (2 * h)", "(vid * h) * 2"),
        ("(vid * bm) >> 1", "vid * bm // 2"),
        ("x << 3", "8 * x"),
        ("T.ceildiv(n, 4)", "(n + 3) // 4"),
        ("T.floordiv(n, 4)", "n // 4"),
        ("T.floormod(n, 4)", "n % 4"),
        ("int(n / 2)", "n // 2"),
        ("int(n)", "n"),
        ("0x10 + 1_000 + 0b1", "1017"),
        ("-(-n)", "+n"),
        ("min(3, 7, 5)", "3"),
        ("max(n, n)", "n"),
        ("T.min(a, b)", "T.min(b, a)"),
        ("(a + b) * c", "a * c + b * c"),
        ("cfg.rows * 2", "cfg.rows + cfg.rows"),
        ("True + 1", "2"),
    ],
)
def test_spellings_of_the_same_number(left: str, right: str) -> None:
    assert same(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("vid * bm // 2", "vid * (bm // 2)"),  # differ for odd bm
        ("(a - b) // 2", "a // 2 - b // 2"),
        ("a / 2", "a // 2"),
        ("f(a)", "f(b)"),
        ("f(a)", "g(a)"),
        ("min(a, b)", "max(a, b)"),
        ("a == b", "a != b"),
        ("a if c else b", "b if c else a"),
        ("~a", "-a"),
        ("a ** 2", "a * 2"),
        ("cfg.rows", "cfg.cols"),
        ("int(a * 0.5)", "a // 2"),
    ],
)
def test_different_numbers_stay_different(left: str, right: str) -> None:
    assert not same(left, right)


@pytest.mark.parametrize(
    "text", ["f(vid)", "x if vid == 0 else y", "vid < 1", "~vid", "table[vid]", "f(g(1, vid))", "f((), vid)"]
)
def test_what_is_not_understood_still_depends_on_its_names(text: str) -> None:
    assert evaluated(text).depends_on("vid")


def test_a_zero_denominator_does_not_stop_the_reader() -> None:
    assert evaluated("a // 0").constant is None
    assert evaluated("a % (b - b)").constant is None


def test_a_builtin_that_the_kernel_redefines_is_no_builtin() -> None:
    kernel = read("n = min(3, 7)\nk = n", factory="def min(a, b):\n    return a + b")
    assert of_type(kernel, Let)[0].value.sym.constant is None


# operands ------------------------------------------------------------------------------------------------------------


def copy_of(body: str) -> Copy:
    return of_type(read(body), Copy)[-1]


TILE = 'a = T.alloc_ub((16, 64), "float32")\n'


def test_a_name_is_the_whole_buffer() -> None:
    copy = copy_of(TILE + "T.copy(a, O[cid * 32, 0])")
    assert copy.src.dims is None
    assert copy.src.is_whole


def test_a_start_index_has_no_extent_and_a_slice_has() -> None:
    copy = copy_of(TILE + "T.copy(A[cid * 32, 0:64], a)")
    first, second = copy.src.dims or ()
    assert first.is_point
    assert first.extent is None
    assert not second.is_point
    assert second.extent == const(64)


def test_open_slices_reach_to_the_ends() -> None:
    copy = copy_of(TILE + "T.copy(A[8:, :], a[:, :])")
    rows, columns = copy.src.dims or ()
    assert rows.lo == const(8)
    assert rows.extent == const(1024 - 8)
    assert columns.extent == const(64)
    assert copy.dst.is_whole


@pytest.mark.parametrize("index", ["0:15, :", "1:16, :", "0, :", ":, 0:32", "0:16"])
def test_a_part_is_not_the_whole(index: str) -> None:
    assert not copy_of(TILE + f"T.copy(A[0, 0], a[{index}])").dst.is_whole


def test_the_extent_of_a_slice_with_names() -> None:
    copy = copy_of(TILE + "r = cid * 32\nT.copy(A[r + vid * 16 : r + vid * 16 + 16, :], a)")
    assert (copy.src.dims or ())[0].extent == const(16)


def test_a_strided_slice_has_an_extent_of_its_own() -> None:
    copy = copy_of(TILE + "T.copy(A[0:32:2, :], a)")
    assert (copy.src.dims or ())[0].extent not in (const(32), const(16), None)


def test_an_index_that_is_a_tuple_is_several_indices() -> None:
    copy = copy_of(TILE + "T.copy(A[(cid * 32, 0)], a)")
    assert [dim.lo.constant for dim in copy.src.dims or ()][1] == 0


def test_loads_inside_indices_are_found() -> None:
    body = 'ix = T.alloc_ub((16,), "int32")\n' + TILE + "T.copy(A[ix[3] + 1, 0], a)"
    copy = copy_of(body)
    (load,) = copy.src.loads
    assert load.buffer.name == "ix"
    assert load.buffer.memory is Memory.UB
    assert (copy.src.dims or ())[0].lo == opaque("load ix", const(3)) + 1


def test_nested_loads_are_all_found() -> None:
    body = 'ix = T.alloc_ub((16,), "int32")\n' + TILE + "T.tile.add(a, a, a[ix[ix[0]], 0])"
    op = of_type(read(body), Op)[-1]
    assert [load.buffer.name for _, operand in op.operands for load in operand.loads] == ["ix", "ix"]


def test_loop_variables_of_the_same_spelling_are_different() -> None:
    kernel = read(TILE + "for i in range(4):\n    T.tile.exp(a, a)\nfor i in range(4):\n    T.tile.exp(a, a)")
    one, other = (loop.ranges[0].var for loop in of_type(kernel, Loop))
    assert one != other


def test_attributes_of_one_name_are_one_variable() -> None:
    assert evaluated("cfg . rows") == var("cfg.rows")


def test_lists_in_a_row_are_one_shape() -> None:
    kernel = read(
        "T.copy(X[0, 0, 0], Y)",
        factory="outer = [M, N]\ntile = (2,) + (N,)",
        params='X: T.Tensor(outer + [bm], "float32"), Y: T.Tensor(tile, "float32")',
    )
    assert [[str(size) for size in kernel.buffers[name].shape] for name in "XY"] == [["M", "N", "bm"], ["2", "N"]]
