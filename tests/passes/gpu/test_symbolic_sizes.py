"""Sizes that are only known at run time."""

from __future__ import annotations

import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import IMPORTS, gpu_file
from tl2npu.kernel.blocked import Blocked
from tl2npu.passes.plain.symbolic_sizes import rename

BODY = "a = T.alloc_shared((32, 64), 'float32')\nT.copy(A[bx * 32, 0], a)\nT.copy(a, A[bx * 32, 0])"
PARAMS = "A: T.Tensor((M, N), 'float32')"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('M = T.dynamic("m")\nN = 64', 'M = T.symbolic("m")\nN = 64'),
        ("M, N = T.dynamic('m, n')", "M = T.symbolic('m')\nN = T.symbolic('n')"),
        ("M, N = T.dynamic('m n', 'int64')", "M = T.symbolic('m', 'int64')\nN = T.symbolic('n', 'int64')"),
        ("M, N = T.symbolic('m,n')", "M = T.symbolic('m')\nN = T.symbolic('n')"),
        ("M, N = T.dynamic('m'), T.dynamic('n')", "M, N = T.symbolic('m'), T.symbolic('n')"),
        ("s = T.dynamic('m, n')\nM, N = s", "s = (T.symbolic('m'), T.symbolic('n'))\nM, N = s"),
        ("M = T.symbolic('m')\nN = 64", "M = T.symbolic('m')\nN = 64"),
    ],
)
def test_declarations_of_the_factory(old: str, new: str) -> None:
    assert after(rename, gpu_file(PARAMS, BODY, factory=old)) == gpu_file(PARAMS, BODY, factory=new)


def test_declarations_of_the_module_and_in_place() -> None:
    head = IMPORTS.rstrip("\n") + "\n\nM, N = T.dynamic('m, n')  # rows, columns\n\n\n"
    expected = IMPORTS.rstrip("\n") + "\n\nM = T.symbolic('m')  # rows, columns\nN = T.symbolic('n')\n\n\n"
    params = "A: T.Tensor((M, N), 'float32'), B: T.Tensor((T.dynamic('k'), N), 'float32')"
    assert after(rename, gpu_file(params, BODY, head=head)) == gpu_file(
        params.replace("T.dynamic", "T.symbolic"), BODY, head=expected
    )


def test_name_that_was_imported() -> None:
    text = gpu_file(PARAMS, BODY, factory="M = dyn('m')\nN = 64", head=IMPORTS + "dyn = T.dynamic\n\n\n")
    expected = text.replace("dyn = T.dynamic\n\n\n", "").replace("dyn(", "T.symbolic(")
    assert after(rename, text) == expected


@pytest.mark.parametrize(
    "body",
    [
        "a = T.alloc_shared((32, M), 'float32')\nT.copy(A, a)",
        "a = T.alloc_fragment((T.ceildiv(M, 2), 64), 'float32')\nT.copy(A, a)",
        "rows = M // 2\na = T.alloc_fragment((rows, 64), 'float32')\nT.copy(A, a)",
        "for i, j in T.Parallel(M, 64):\n    A[i, j] = 0",
    ],
)
def test_tiles_have_fixed_sizes(body: str) -> None:
    with pytest.raises(Blocked) as caught:
        after(rename, gpu_file(PARAMS, body, factory="M = T.dynamic('m')\nN = 64"))
    assert caught.value.code == "TL195"


def test_loops_and_grids_may_have_any_size() -> None:
    body = "for k in T.serial(T.ceildiv(M, 32)):\n    T.copy(A[k * 32, 0], A[k * 32, 0])"
    text = gpu_file(PARAMS, body, factory="M = T.dynamic('m')\nN = 64", launch="T.Kernel(T.ceildiv(M, 32)) as bx")
    assert after(rename, text) == text.replace("dynamic", "symbolic")


@pytest.mark.parametrize(("more", "name", "less"), [("M + 1", "M_plus_1", "- 1"), ("M - 2", "M_minus_2", "+ 2")])
def test_an_extent_gets_a_name_where_the_size_is_none_by_itself(more: str, name: str, less: str) -> None:
    """The compiler takes the values of sizes from whole extents."""
    params = "A: T.Tensor((64, 64), 'float32'), S: T.Tensor(({}, M * 2), 'int32')"
    old = gpu_file(params.format(more), BODY, launch="T.Kernel(M) as bx", factory="M = T.dynamic('M')")
    params = params.format(name).replace("M * 2", f"({name} {less}) * 2")
    new = gpu_file(params, BODY, launch=f"T.Kernel({name} {less}) as bx", factory=f'{name} = T.symbolic("{name}")')
    assert after(rename, old) == new


def test_a_size_that_is_an_extent_stays() -> None:
    params = "A: T.Tensor((M, 64), 'float32'), S: T.Tensor((M + 1,), 'int32')"
    text = gpu_file(params, BODY, launch="T.Kernel(M) as bx", factory="M = T.symbolic('M')")
    assert after(rename, text) == text
