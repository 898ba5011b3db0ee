"""Which buffers the vid axis splits by rows, and every reason why it may not."""

from __future__ import annotations

import pytest

from tests.kernel.support import of_type, read
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.model import Loop
from tl2npu.kernel.rows import Rows
from tl2npu.kernel.symbolic import const

HALF = 'a = T.alloc_ub((16, 64), "float32")\nT.copy(A[cid * 32 + vid * 16, 0], a)\n'
B = 'b = T.alloc_ub((16, 64), "float32")\n'
STORE = "T.copy(a, O[cid * 32 + vid * 16, 0])\n"


def rows(body: str, **around: str) -> Rows:
    kernel = read(body, **around)
    assert kernel.vid is not None
    return Rows(kernel, kernel.vid)


def split(body: str, **around: str) -> list[str]:
    """The names of the buffers that hold half a tile."""
    found = rows(body, **around)
    return sorted(name for name, buffer in found.kernel.buffers.items() if found.is_split(buffer))


def blocked(body: str, **around: str) -> str:
    """The rule that stops the analysis."""
    with pytest.raises(Blocked) as stopped:
        rows(body, **around)
    return stopped.value.code


# what is split ------------------------------------------------------------------------------------------------------

SPELLINGS = [
    ("16", "cid * 32 + vid * 16", ""),
    ("h", "cid * 2 * h + vid * h", "h = 16"),
    ("bm // 2", "cid * bm + vid * bm // 2", ""),
    ("bm // 2", "cid * bm + vid * (bm // 2)", ""),
    ("bm // 2", "cid * bm + ((vid * bm) >> 1)", ""),
    ("bm >> 1", "(cid * 2 + vid) * (bm >> 1)", ""),
    ("T.ceildiv(bm, 2)", "cid * bm + vid * T.ceildiv(bm, 2)", ""),
    ("bm // P", "cid * bm + vid * bm // P", "P = 2"),
    ("int(bm / 2)", "cid * bm + int(vid * bm / 2)", ""),
    ("v", "v * (vid + 2 * cid)", "v = bm // 2"),
]


@pytest.mark.parametrize(("size", "start", "factory"), SPELLINGS)
def test_spellings_of_the_offset(size: str, start: str, factory: str) -> None:
    body = f'a = T.alloc_ub(({size}, 64), "float32")\nT.copy(A[{start}, 0], a)\nT.copy(a, O[{start}, 0])'
    assert split(body, factory=factory) == ["a"]


@pytest.mark.parametrize(("size", "start", "factory"), SPELLINGS)
def test_the_same_as_slices_and_behind_names(size: str, start: str, factory: str) -> None:
    body = (
        f'a = T.alloc_ub(({size}, 64), "float32")\nr = {start}\n'
        f"T.copy(A[r : r + ({size}), :], a)\nT.copy(a, O[r : {start} + ({size}), 0:64])"
    )
    assert split(body, factory=factory) == ["a"]


def test_the_end_of_a_slice_may_say_vid_too() -> None:
    body = 'a = T.alloc_ub((bm // 2, 64), "float32")\nT.copy(A[vid * bm // 2 : (vid + 1) * bm // 2, :], a)\n'
    assert split(body) == ["a"]


def test_element_wise_partners_are_split_too() -> None:
    body = HALF + B + 'm = T.alloc_ub((16,), "float32")\nT.tile.exp(b, a)\nT.reduce_max(b, m, dim=-1)\n'
    assert split(body) == ["a", "b", "m"]


def test_a_row_loop_ties_its_buffers_and_is_split() -> None:
    found = rows(HALF + B + "for i in range(16):\n    T.tile.exp(b[i, :], a[i, :])\n" + STORE)
    (loop,) = of_type(found.kernel, Loop)
    axis = found.axis(loop.ranges[0])
    assert axis is not None
    assert axis.half == const(16)
    assert found.is_split(found.kernel.buffers["b"])


def test_a_copy_between_tiles_ties_them() -> None:
    assert split(HALF + B + "T.copy(a, b)\n" + STORE) == ["a", "b"]


def test_a_buffer_of_columns_is_not_split() -> None:
    body = HALF + (
        'w = T.alloc_ub((64,), "float32")\nT.copy(O[0, 0:64], w)\n'
        "for i, j in T.Parallel(16, 64):\n    a[i, j] = a[i, j] * w[j]\n"
    )
    assert split(body) == ["a"]


def test_an_unused_buffer_goes_with_the_others() -> None:
    assert split(HALF + B + STORE) == ["a", "b"]


def test_a_gathered_row_loop() -> None:
    body = (
        'ix = T.alloc_ub((32,), "int32")\nrow = T.alloc_ub((64,), "float32")\nT.copy(A[0, 0:32], ix)\n'
        "for i in range(16):\n    T.copy(A[ix[i + vid * 16], 0:64], row)\n"
        "    T.copy(row, O[cid * 32 + i + vid * 16, 0:64])\n"
    )
    found = rows(body)
    (loop,) = of_type(found.kernel, Loop)
    axis = found.axis(loop.ranges[0])
    assert axis is not None
    assert axis.half == const(16)


def test_a_kernel_without_offsets_splits_nothing() -> None:
    assert split(HALF.replace(" + vid * 16", "") + STORE.replace(" + vid * 16", "")) == []


# TL220: vid is no row offset ----------------------------------------------------------------------------------------

TASKS = {
    "work item": 'a = T.alloc_ub((32, 64), "float32")\nT.copy(P[cid * 2 + vid, 0:32, :], a)',
    "columns of a start index": 'a = T.alloc_ub((16, 32), "float32")\nT.copy(A[cid * 32, vid * 32], a)',
    "columns of a slice": 'a = T.alloc_ub((16, 32), "float32")\nT.copy(A[0:16, vid * 32 : vid * 32 + 32], a)',
    "interleaved rows": (
        'a = T.alloc_ub((16, 64), "float32")\nfor i in range(16):\n    T.copy(A[2 * i + vid, 0:64], a[i, :])'
    ),
    "operand": HALF + "T.tile.mul(a, a, vid)",
    "operand behind a name": HALF + "s = vid * 2 + 1\nT.tile.mul(a, a, s)",
    "stored": HALF + "for i, j in T.Parallel(16, 64):\n    a[i, j] = vid",
    "condition": HALF + "if vid == 0:\n    T.tile.exp(a, a)",
    "condition with more": HALF + "if cid * 2 + vid < 40:\n    T.tile.exp(a, a)",
    "loop bound": HALF + "for k in range(vid + 1):\n    T.tile.exp(a, a)",
    "loop start": HALF + "for k in range(vid, 4):\n    T.tile.exp(a, a)",
}
NO_TASKS = {
    "rows of a 3-D tensor": 'a = T.alloc_ub((16, 64), "float32")\nT.copy(P[cid, vid * 16 : vid * 16 + 16, :], a)',
    "rows of a slice": 'a = T.alloc_ub((16, 64), "float32")\nT.copy(A[vid * 16 : vid * 16 + 16, 0:64], a)',
    "row loop": 'a = T.alloc_ub((16, 64), "float32")\nfor i in range(16):\n    T.copy(A[i + vid * 16, 0:64], a[i, :])',
    "operand without vid": HALF + "s = cid * 2 + 1\nT.tile.mul(a, a, s)",
    "condition without vid": HALF + "if cid < 40:\n    T.tile.exp(a, a)",
}
TENSOR3 = 'A: T.Tensor((1024, 64), "float32"), O: T.Tensor((1024, 64), "float32"), P: T.Tensor((8, 32, 64), "float32")'


@pytest.mark.parametrize("case", TASKS)
def test_vid_as_task(case: str) -> None:
    assert blocked(TASKS[case], params=TENSOR3) == "TL220"


@pytest.mark.parametrize("start", ["A[cid * 32 + vid * 16, 0]", "A[cid * 32 + vid * 16 : cid * 32 + vid * 16 + 16, :]"])
def test_the_axis_of_slots_is_named(start: str) -> None:
    """vid is a row offset here; what stops the split is the place of the rows."""
    body = f'a = T.alloc_ub((2, 16, 64), "float32")\nfor k in range(2):\n    T.copy({start}, a[k, :, :])'
    with pytest.raises(Blocked, match="`threads=2` splits axis 0 of `a`, and the rows are behind it"):
        rows(body, params=TENSOR3)


@pytest.mark.parametrize("case", NO_TASKS)
def test_vid_as_row_offset(case: str) -> None:
    assert "a" in split(NO_TASKS[case], params=TENSOR3)


# TL221: an offset that is not half of the tile ----------------------------------------------------------------------

FORMS = {
    "too little": ("16", "cid * 32 + vid * 8"),
    "too much": ("16", "cid * 64 + vid * 32"),
    "the other way round": ("16", "cid * 32 + (1 - vid) * 16"),
    "twice": ("16", "cid * 32 + vid * 8 + vid * 8 + vid"),
    "another size": ("bm // 2", "cid * bm + vid * bn // 2"),
    "a quarter": ("bm // 2", "cid * bm + vid * bm // 4"),
    "square": ("16", "cid * 32 + 16 - vid * vid * 16"),
}


@pytest.mark.parametrize("case", FORMS)
def test_offsets_that_are_not_half(case: str) -> None:
    size, start = FORMS[case]
    body = f'a = T.alloc_ub(({size}, 64), "float32")\nT.copy(A[{start}, 0], a)'
    assert blocked(body, args="M, N, bm, bn") == "TL221"


OTHER_FORMS = {
    "different rows per core": 'a = T.alloc_ub((16, 64), "float32")\nT.copy(A[vid * 16 : vid * 24 + 16, :], a)',
    "two indices": 'a = T.alloc_ub((16, 64), "float32")\nT.copy(P[vid, vid * 16 : vid * 16 + 16, :], a)',
    "a part of the tile": 'a = T.alloc_ub((32, 64), "float32")\nT.copy(A[vid * 16, 0], a[vid * 16 : vid * 16 + 16, :])',
    "cube copy": 'a = T.alloc_L1((16, 64), "float32")\nT.copy(A[vid * 16, 0], a)',
    "loop over other rows": (
        'a = T.alloc_ub((16, 64), "float32")\nfor i in range(8):\n    T.copy(A[i + vid * 16, 0:64], a[i, :])'
    ),
    "a part of a whole tile": 'b = T.alloc_ub((32, 64), "float32")\nT.copy(A[0, 0], b)\n'
    + HALF
    + "T.copy(b[vid * 16 : vid * 16 + 16, :], a)\n",
}


@pytest.mark.parametrize("case", OTHER_FORMS)
def test_other_offsets_that_are_not_half(case: str) -> None:
    assert blocked(OTHER_FORMS[case], params=TENSOR3) in ("TL220", "TL221")


# TL223: split here, whole there -------------------------------------------------------------------------------------

MIXED = {
    "whole copy": HALF + B + "T.copy(A[0, 0], b)\nT.tile.add(a, a, b)",
    "whole copy of a slice": HALF + B + "T.copy(A[0:16, :], b)\nT.tile.add(a, a, b)",
    "whole copy into a slice": HALF + B + "T.copy(A[0, 0], b[0:16, :])\nT.tile.add(a, a, b)",
    "whole copy by rows": HALF + B + "for i in range(16):\n    T.copy(A[i, 0:64], b[i, :])\nT.tile.add(a, a, b)",
    "whole elements": HALF + "for i, j in T.Parallel(16, 64):\n    a[i, j] = a[i, j] + A[i, j]",
    "two sizes": HALF
    + (
        'b = T.alloc_ub((32, 64), "float32")\nT.copy(A[cid * 64 + vid * 32, 0], b)\n'
        "for i in range(16):\n    T.tile.add(a[i, :], a[i, :], b[i, :])"
    ),
    "some of the rows": HALF + "for i in range(8):\n    T.tile.exp(a[i, :], a[i, :])",
    "rows from the second on": HALF + "for i in range(1, 16):\n    T.tile.exp(a[i, :], a[i, :])",
    "every third row": HALF + "for i in range(0, 16, 3):\n    T.tile.exp(a[i, :], a[i, :])",
    "stored whole": HALF + "T.copy(a, O[0, 0])",
}


@pytest.mark.parametrize("case", MIXED)
def test_mixed_roles(case: str) -> None:
    assert blocked(MIXED[case]) in ("TL221", "TL223", "TL828")


def test_the_same_rows_everywhere() -> None:
    for case in ("whole copy", "whole copy of a slice"):
        fixed = (
            MIXED[case]
            .replace("A[0, 0], b", "A[vid * 16, 0], b")
            .replace("A[0:16, :], b", "A[vid * 16 : vid * 16 + 16, :], b")
        )
        assert split(fixed) == ["a", "b"]


# TL833: a reduction over the split rows -----------------------------------------------------------------------------


@pytest.mark.parametrize("dim", ["dim=0", "dim=-2", "0"])
def test_a_reduction_over_rows(dim: str) -> None:
    body = HALF + f'm = T.alloc_ub((1, 64), "float32")\nT.reduce_sum(a, m, {dim})\n' + STORE
    assert blocked(body) == "TL833"


@pytest.mark.parametrize("dim", ["dim=1", "dim=-1", "-1"])
def test_a_reduction_over_columns(dim: str) -> None:
    body = HALF + f'm = T.alloc_ub((16, 1), "float32")\nT.reduce_sum(a, m, {dim})\n' + STORE
    assert split(body) == ["a", "m"]


def test_a_reduction_of_rows_that_nobody_splits() -> None:
    body = HALF + (
        'w = T.alloc_ub((8, 64), "float32")\nm = T.alloc_ub((1, 64), "float32")\n'
        "T.copy(O[0, 0], w)\nT.reduce_sum(w, m, dim=0)\n"
    )
    assert split(body) == ["a"]


def test_a_reduction_of_a_vector() -> None:
    body = (
        'a = T.alloc_ub((16,), "float32")\nT.copy(V[vid * 16], a)\n'
        'm = T.alloc_ub((1,), "float32")\nT.reduce_sum(a, m, dim=-1)'
    )
    assert blocked(body, params='V: T.Tensor((32,), "float32")') == "TL833"
