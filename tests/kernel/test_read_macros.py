"""Reading a prim_func: allocations, macros, launches, and where kernels stand."""

from __future__ import annotations

import pytest

from tests.kernel.support import PARAMS, file_of, kernel_of, of_type, read, source
from tl2npu.kernel.model import Copy, Inlined, Kernel, Memory, Op, Opaque
from tl2npu.kernel.symbolic import const, var

TILE = 'a = T.alloc_ub((16, 64), "float32")\n'


def opaque_of(kernel: Kernel) -> list[str]:
    return sorted(buffer.name for stmt in of_type(kernel, Opaque) for buffer in stmt.buffers)


# allocations ---------------------------------------------------------------------------------------------------------


def test_allocation_helpers() -> None:
    kernel = read(
        "a = tile(16)\nb = tile(rows=8, kind='float16')",
        factory='def tile(rows, kind="float32"):\n    cols = 64\n    return T.alloc_ub((rows, cols), kind)',
    )
    assert [(b.name, b.shape, b.dtype) for b in (kernel.buffers["a"], kernel.buffers["b"])] == [
        ("a", (const(16), const(64)), "float32"),
        ("b", (const(8), const(64)), "float16"),
    ]


def test_shapes_from_names_and_several_at_once() -> None:
    kernel = read(
        'a, b = T.alloc_ub(SHAPE, D), T.alloc_L1(shape=[4, bm], dtype="int8")', module='SHAPE = (16, 64)\nD = "float16"'
    )
    a, b = kernel.buffers["a"], kernel.buffers["b"]
    assert (a.shape, a.dtype, a.memory) == ((const(16), const(64)), "float16", Memory.UB)
    assert (b.shape, b.dtype, b.memory) == ((const(4), var("bm")), "int8", Memory.L1)


def test_two_allocations_of_one_name_are_two_buffers() -> None:
    kernel = read(TILE + "T.tile.exp(a, a)\n" + TILE + "T.tile.exp(a, a)")
    first, second = (next(operand.buffer for _, operand in op.operands) for op in of_type(kernel, Op))
    assert first is not second


def test_tensor_parameters_and_scalars() -> None:
    kernel = read(TILE, params=PARAMS + ', n: T.int32, W: T.Tensor(dtype="float16", shape=(8,))')
    assert [p.name for p in kernel.params] == ["A", "O", "W"]
    assert [p.index for p in kernel.params] == [0, 1, 3]
    assert list(kernel.scalars) == ["n"]
    assert (kernel.params[2].shape, kernel.params[2].dtype) == ((const(8),), "float16")


# macros --------------------------------------------------------------------------------------------------------------


def test_a_macro_is_read_in_place_with_the_callers_values() -> None:
    macro = "@T.macro\ndef load(src, dst, row, scale=2):\n    start = row * scale\n    T.copy(src[start, 0], dst)"
    kernel = read(TILE + "start = 7\nload(A, a, cid)\nT.copy(A[start, 0], a)", factory=macro)
    (call,) = of_type(kernel, Inlined)
    assert call.callee == "load"
    rows = [(c.src.dims or ())[0].lo for c in of_type(kernel, Copy)]
    assert rows == [var(kernel.cid or "") * 2, const(7)]
    assert of_type(kernel, Copy)[0].dst.buffer is kernel.buffers["a"]


def test_a_macro_sees_its_own_scope_not_the_callers() -> None:
    macro = "row = 3\n@T.macro\ndef load(src, dst):\n    T.copy(src[row, 0], dst)"
    kernel = read(TILE + "row = 7\nload(A, a)", factory=macro)
    assert (of_type(kernel, Copy)[0].src.dims or ())[0].lo == const(3)


def test_a_macro_in_a_macro() -> None:
    macros = "@T.macro\ndef inner(x):\n    T.tile.exp(x, x)\n@T.macro\ndef outer(y):\n    inner(y)\n    inner(y)"
    kernel = read(TILE + "outer(a)", factory=macros)
    assert len(of_type(kernel, Op)) == 2
    assert all(len(op.via) == 2 for op in of_type(kernel, Op))


def test_a_macro_that_calls_itself_ends() -> None:
    kernel = read(TILE + "again(a)", factory="@T.macro\ndef again(x):\n    again(x)")
    assert [code for _, code, _ in kernel.problems] == ["TL903"]


def test_a_macro_whose_result_is_assigned_is_not_overlooked() -> None:
    macro = "@T.macro\ndef relu(x):\n    T.tile.relu(x, x)\n    return 0"
    kernel = read(TILE + "done = relu(a)", factory=macro)
    assert of_type(kernel, Op) or opaque_of(kernel) == ["a"] or kernel.problems


# launches ------------------------------------------------------------------------------------------------------------


def test_the_launch() -> None:
    kernel = read(TILE, launch="T.Kernel(M // 32, threads=1, is_npu=True) as (block, core)")
    launch = kernel.launch
    assert launch is not None
    assert (launch.names, launch.is_npu, launch.threads_value) == (("block", "core"), True, 1)
    assert launch.grid == (var("M") // 32,)


def test_an_unnamed_second_axis_is_no_vid() -> None:
    assert read(TILE, launch="T.Kernel(32, is_npu=True) as (cid, _)").vid is None
    assert read(TILE, launch="T.Kernel(32, is_npu=True) as cid").vid is None
    assert read(TILE, launch="T.Kernel(32, is_npu=True) as (cid, vid)").vid is not None


def test_a_launch_below_other_statements_and_a_second_launch() -> None:
    text = source(TILE).replace("        with T.Kernel", "        n = 4\n        with T.Kernel")
    assert kernel_of(text).launch is not None
    nested = read(TILE + "with T.Kernel(4, is_npu=True) as (x, y):\n    T.tile.exp(a, a)")
    assert opaque_of(nested) == ["a"]


def test_every_kernel_of_a_file_is_found_once() -> None:
    text = source(TILE) + source(TILE).replace("factory", "second").replace("import tilelang.language as T\n", "")
    keys = [located.key for located in file_of(text).located]
    assert keys == [("factory.main", 0), ("second.main", 0)]


@pytest.mark.parametrize("around", ["class Ops:\n", "if __name__ == '__main__':\n", "def wrap():\n", "try:\n"])
def test_kernels_in_other_places(around: str) -> None:
    imports, rest = source(TILE).split("def factory")
    body = "".join(f"    {line}\n" for line in ("def factory" + rest).split("\n"))
    text = imports + around + body + ("finally:\n    pass\n" if around.startswith("try") else "")
    assert [located.node.name.value for located in file_of(text).located] == ["main"]


@pytest.mark.parametrize(("deep", "seen"), [(2, True), (12, True), (45, True), (60, False)])
def test_macros_in_macros_are_read_or_reported(deep: int, seen: bool) -> None:
    """No argument names the tile: a call that is not read would leave no trace of it."""
    calls = [f"m{n + 1}()" for n in range(deep - 1)] + ["T.tile.exp(a, a)"]
    macros = [f"@T.macro\ndef m{n}():\n    {call}\n" for n, call in enumerate(calls)]
    kernel = read(TILE + "".join(reversed(macros)) + "m0()")
    assert len(of_type(kernel, Op)) == seen
    assert [code for _, code, _ in kernel.problems] == ([] if seen else ["TL903"])


def test_macros_that_call_two_each_come_to_an_end() -> None:
    calls = [f"m{n + 1}()\n    m{n + 1}()" for n in range(29)] + ["T.tile.exp(a, a)"]
    macros = [f"@T.macro\ndef m{n}():\n    {call}\n" for n, call in enumerate(calls)]
    assert {code for _, code, _ in read(TILE + "".join(reversed(macros)) + "m0()").problems} == {"TL903"}
