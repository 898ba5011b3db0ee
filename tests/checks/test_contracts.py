"""TL741, TL790 to TL793, TL847, TL894: what the front end asserts; each verdict is the compiler's at 95acbd7f."""

from __future__ import annotations

import pytest

from tests.compiler_messages.rows import program
from tl2npu.migration import check_text
from tl2npu.options import Options

PIPELINED = "for k in T.Pipelined(4, num_stages=2):\n    T.copy(A[k * 16, 0], p)\n    "


def codes(statements: str, kernel: str = "vector") -> list[str]:
    """The errors; that the kernel stores what a statement reads (TL780) is not what they are about."""
    found = check_text(program(kernel, statements), "k.py", Options()).diagnostics
    return sorted({one.code for one in found if one.severity == "error"} - {"TL780"})


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        ("T.reduce_max(x, r, dim=1)", []),
        ("T.reduce_max(x, v, dim=0)", []),
        ("T.reduce_max(x, v, -2, True)", []),
        ("T.reduce_max(x, r, -1, clear=False, real_shape=[16, 32])", []),
        ("p = T.alloc_ub((16, 1), 'float32')\nT.reduce_max(x, p)", []),
        ("p = T.alloc_ub((1,), 'float32')\nT.reduce_sum(v, p)", []),
        ("p = T.alloc_ub((8,), 'float32')\nT.reduce_sum(v, p)", ["TL741"]),
        ("p = T.alloc_ub((8, 16), 'float32')\nT.reduce_max(x, p[1, :])", []),
        ("p = T.alloc_ub((16, 8), 'float32')\nT.reduce_max(x, p)", ["TL741"]),
        ("T.reduce_max(x, r, dim=0)", ["TL741"]),
        ("T.reduce_max(buffer=x, out=v, dim=-1)", ["TL741"]),
        ("for k in T.serial(2):\n    T.reduce_max(x, r, k)", ["TL790"]),
        ("T.reduce_max(x, r, -1, 1)", ["TL790"]),
        ("T.reduce_max(x, r, -1, real_shape=(16, 32, 1))", ["TL790"]),
    ],
)
def test_reductions(statements: str, found: list[str]) -> None:
    assert codes(statements) == found


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        ("T.tile.broadcast(x, v)", []),
        ("T.tile.broadcast(x, r)", []),
        ("T.tile.broadcast(x, r, axis=1)", []),
        ("T.tile.broadcast(x, r, axis=0)", ["TL741"]),
        ("p = T.alloc_ub((16, 1), 'float32')\nT.copy(A[0:16, 0:1], p)\nT.tile.broadcast(x, p, axis=0)", ["TL741"]),
        ("T.tile.broadcast(x, y)", []),
        ("p = T.alloc_ub((1, 64), 'float32')\nT.copy(A[0:1, :], p)\nT.tile.broadcast(x, p)", []),
        ("T.tile.broadcast(v, w, axis=-1)", ["TL790"]),
        ("T.tile.row_expand_mul_experiment(x, y, r, z)", []),
        ("T.tile.row_expand_sub_experiment(x, y, v, z)", ["TL741"]),
    ],
)
def test_broadcasts_and_rows(statements: str, found: list[str]) -> None:
    assert [code for code in codes(statements) if code != "TL700"] == found


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("T.tile.select(x, m, x, y, 'VSEL_CMPMASK_SPR')", []),
        ("T.tile.select(x, m, x, 0.0, 'VSEL_TENSOR_SCALAR_MODE')", []),
        ("T.tile.select(x, m, x, 2 * 1.5, 'VSEL_TENSOR_SCALAR_MODE')", []),
        ("mode = 'VSEL_TENSOR_SCALAR_MODE'\nT.tile.select(x, m, x, 0.0, mode)", []),
        ("T.tile.select(dst=x, selMask=m, src0=x, src1=0.0, selMode='VSEL_CMPMASK_SPR')", ["TL790"]),
        ("T.tile.compare(m, x, y, 'gt')", ["TL790"]),
        ("T.tile.compare(m, x, y, mode='LE')", []),
        ("T.tile.gather_mask(v, w, 'P0101')", []),
        ("T.tile.gather_mask(v, w, 'P0110')", ["TL790"]),
        ("T.set_flag('mte2', 'V', 0)\nT.wait_flag('mte2', 'V', 0)", []),
        ("T.set_flag('mte2', 'vec', 0)", ["TL790"]),
        ("T.set_flag(src='mte4', dst='v', eventId=0)", ["TL790"]),
        ("T.pipe_barrier('ALL')", []),
        ("T.pipe_barrier('PIPE_V')", ["TL790"]),
        ("T.set_cross_flag('foo', 0)", ["TL790"]),
        ("T.tile.fill(x, v)", []),  # the first element
        ("T.tile.fill(C, 0.0)", ["TL894"]),
        ("T.tile.mul(x, x, F[3])", []),
        ("T.tile.exp(y, D)", ["TL894"]),
        ("T.tile.atomic_add(C[0:16, :], x)", []),
        ("T.tile.atomic_add(dst=x, src=y)", ["TL894"]),
        ("T.copy(F[0], v)", []),
        ("T.copy(F[64:128], v)", []),
        ("T.copy(F[0:64], x)", []),  # one row of it
        ("T.copy(F[0:1024], x)", ["TL741"]),
        ("T.copy(x, F[n])", ["TL741"]),
        ("T.tile.add(x, x, h[0, 0])", ["TL710"]),
        ("T.tile.sub(x, x, h[0, 0])", []),
    ],
)
def test_values_and_memories(statement: str, found: list[str]) -> None:
    assert codes(statement) == found


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (PIPELINED + "T.tile.add(z, z, p)", []),
        (PIPELINED + "T.tile.exp(y, p)\n    T.tile.add(z, z, y)\n    T.tile.mul(y, y, z)", []),
        ("for k in T.Pipelined(4, num_stages=2):\n    T.tile.fill(p, 0.0)\n    T.copy(A[k * 16, 0], p)", []),
        (PIPELINED.replace("num_stages=2", "num_stages=0") + "T.tile.exp(p, p)\n    T.tile.add(z, z, p)", []),
        (PIPELINED + "T.tile.exp(p, p)\n    T.tile.add(z, z, p)", ["TL792"]),
        (PIPELINED + "p[0, 0] = 1.0\n    T.tile.add(z, z, p)", ["TL792"]),
        (PIPELINED + "if k > 1:\n        T.tile.exp(p, p)\n    T.tile.add(z, z, p)", ["TL792"]),
        (PIPELINED + "for i in T.Parallel(16):\n        p[i, 0] = p[i, 0] * 2.0\n    T.tile.add(z, z, p)", ["TL792"]),
        (PIPELINED + "T.tile.add(z, z, p)\n    T.copy(z, p)", ["TL792"]),
        (PIPELINED.replace("num_stages=2", "order=[0, 1], stage=[0, 1]") + "T.tile.add(z, z, p)", []),
    ],
)
def test_pipelined_loads(statements: str, found: list[str]) -> None:
    tile = 'p = T.alloc_shared((16, 64), "float32")\n'  # that nothing outside of the loop uses
    assert codes(tile + statements, "developer") == found


def test_a_pipeline_over_both_cores_may_write_in_place() -> None:
    turn = "T.copy(H, a)\n    T.gemm_v0(a, b, c, init=True)\n    T.copy(H, a)\n    T.copy(c, p)\n    T.tile.exp(p, p)\n"
    loop = f"for k in T.Pipelined(4, num_stages=2):\n    {turn}    T.copy(p, R)"
    assert "TL792" not in codes(f"p = T.alloc_shared((64, 64), 'float32')\n{loop}", "developer-cube")


TILE = 'p = T.alloc_shared((16, 64), "float32")\n{0}T.copy(A[0, 0], p)\n{0}T.copy(p, C[0, 0])\n'


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (TILE.format("") + TILE.format(""), ["TL847"]),
        ("if n > 0:\n    " + TILE.format("    ") + "else:\n    " + TILE.format("    "), ["TL847"]),
        ('p = T.alloc_shared((16, 64), "float32")\n' + TILE.format(""), []),  # the first one is not used
        ("for k in T.serial(2):\n    " + TILE.format("    "), []),
        (2 * 'p = T.alloc_var("int32", init=0)\nT.copy(A[p, 0], x)\n', []),
    ],
)
def test_tiles_of_one_name(statements: str, found: list[str]) -> None:
    assert codes(statements, "developer") == found


def test_tiles_of_one_name_in_arms_that_python_chooses() -> None:
    arms = "if n > 0:\n    " + TILE.format("    ") + "else:\n    " + TILE.format("    ")
    text = program("developer", arms).replace(", n: T.int32", "").replace("def factory()", "def factory(n=1)")
    assert "TL847" not in {one.code for one in check_text(text, "k.py", Options()).diagnostics}


@pytest.mark.parametrize(
    ("addresses", "found"),
    [
        ("x: 0, y: 4096, z: 8192", []),
        ("x: 0, y: 0", ["TL793"]),
        ("x: 0, y: 4064", ["TL793"]),
        ("x: 0, y: 16 * 64 * tilelang.DataType('float32').bits // 8", []),
        ("x: 0, y: 16 * 64 * tilelang.DataType('float16').bits // 8", ["TL793"]),
        ("x: 0, y: 16 * 64 * T.dtype('int8').bits // 8", ["TL793"]),
        ("x: 16", ["TL793"]),
        ("x: 192 * 1024", ["TL793"]),
        ("x: 192 * 1024 - 4096", []),
        ("x: 0, z: 0", []),  # no statement reads both
    ],
)
def test_addresses(addresses: str, found: list[str]) -> None:
    assert [c for c in codes(f"T.annotate_address({{{addresses}}})\nT.tile.add(z, x, y)") if c == "TL793"] == found


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("T.tile.ad(x, x, y)", ["TL791"]),
        ("T.Copy(A[0, 0], x)", ["TL791"]),
        ("T.tile.add(x, x, y)", []),
        ("T.tile_exp(x, x)", ["TL791"]),
    ],
)
def test_names(statement: str, found: list[str]) -> None:
    assert codes(statement) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("T.cast(x[i, j], 'float32')", []),
        ("T.Cast('float32', x[i, j])", []),
        ("T.cast('float32', x[i, j])", ["TL790"]),
        ("T.Cast(x[i, j], 'float32')", ["TL790"]),
        ("T.cast(x[i, j], 'float32') + T.cast('float32', x[i, j])", ["TL790"]),
    ],
)
def test_a_cast_with_its_arguments_swapped(value: str, found: list[str]) -> None:
    assert codes(f"for i, j in T.Parallel(16, 64):\n    x[i, j] = {value}") == found


def test_a_text_is_not_a_number() -> None:
    assert codes("T.tile.fill(x, 2.0)") == []
    assert codes("T.tile.fill(x, 'float32')") == ["TL786"]
