"""TL178: turns of a loop that would load products of nothing behind the end of a tensor."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, result_of

RNG = np.random.default_rng(11)
PARAMS = 'A: T.Tensor((n, 32), "float16"), B: T.Tensor((n, 16), "float16"), C: T.Tensor((32, 16), "float32")'
BODY = """a = T.alloc_shared((32, 32), "float16")
b = T.alloc_shared((32, 16), "float16")
c = T.alloc_fragment((32, 16), "float32")
T.clear(c)
for i in T.serial(T.ceildiv(n, 64)):
    for j in T.serial(2):
        T.copy(A[i * 64 + j * 32, 0], a)
        T.copy(B[i * 64 + j * 32, 0], b)
        T.gemm(a, b, c, transpose_A=True)
T.copy(c, C)
"""


def text(body: str = BODY, params: str = PARAMS, args: str = "n") -> str:
    return gpu_file(params, body, launch="T.Kernel(1, threads=128) as bx", args=args, jit="@tilelang.jit")


def inputs(n: int) -> dict[str, np.ndarray]:
    return {
        "A": RNG.integers(-3, 4, (n, 32)).astype(np.float16),
        "B": RNG.integers(-3, 4, (n, 16)).astype(np.float16),
    }


SPELLINGS = {
    "starts": BODY,
    "slices": BODY.replace("A[i * 64 + j * 32, 0]", "A[i * 64 + j * 32 : i * 64 + j * 32 + 32, :]"),
    "a name": BODY.replace("        T.copy(A[i", "        at = i * 64 + j * 32\n        T.copy(A[i"),
    "one loop": BODY.replace("T.ceildiv(n, 64)", "T.ceildiv(n, 64) * 2")
    .replace("    for j in T.serial(2):\n", "")
    .replace("        ", "    ")
    .replace("i * 64 + j * 32", "i * 32"),
    "unrolled": BODY.replace("T.serial(2)", "T.unroll(2)"),
}


@pytest.mark.parametrize("n", [70, 64, 97, 128, 1])
@pytest.mark.parametrize("name", SPELLINGS)
def test_turns_behind_the_end(name: str, n: int) -> None:
    """70 rows: the part that begins in row 96 has none."""
    body = SPELLINGS[name]
    given = inputs(n)
    new = agree(text(body), given, args=(n,))
    assert " < n:" in new
    assert "TL885" not in {d.code for d in result_of(text(body)).diagnostics}


def test_both_operands_in_their_other_orders() -> None:
    params = 'A: T.Tensor((32, n), "float16"), B: T.Tensor((16, n), "float16"), C: T.Tensor((32, 16), "float32")'
    body = BODY.replace("[i * 64 + j * 32, 0]", "[0, i * 64 + j * 32]").replace("transpose_A", "transpose_B")
    body = body.replace("(32, 16), \"float16\"", '(16, 32), "float16"')
    given = {"A": inputs(70)["A"].T.copy(), "B": inputs(70)["B"].T.copy()}
    assert " < n:" in agree(text(body, params), given, args=(70,))


@pytest.mark.parametrize(
    "old_new",
    [
        ("T.copy(B[i * 64 + j * 32, 0], b)", "T.copy(B[0, 0], b)"),  # zeros times what is not zero: NaN of infinity
        ("T.copy(B[i * 64 + j * 32, 0], b)", "T.copy(B[i * 64, 0], b)"),
        ("T.copy(A[i * 64 + j * 32, 0], a)", "T.copy(A[i * 64 + j * 32 + bx, 0], a)"),
    ],
)
def test_other_loops_stay(old_new: tuple[str, str]) -> None:
    result = result_of(text(BODY.replace(*old_new)))
    assert "TL885" in {d.code for d in result.diagnostics}
    assert result.new_text is not None
    assert " < n:" not in result.new_text


def test_a_loop_that_ends_with_the_tensor_needs_nothing() -> None:
    body = SPELLINGS["one loop"].replace("T.ceildiv(n, 64) * 2", "T.ceildiv(n, 32)")
    assert " < n:" not in agree(text(body), inputs(70), args=(70,))


def test_what_the_file_itself_does_is_an_error() -> None:
    """The sizes of its tensors are known, and the loop cannot be guarded."""
    body = BODY.replace("T.copy(B[i * 64 + j * 32, 0], b)", "T.copy(B[0, 0], b)")
    run = "import torch\n\n\ndef run(x, y):\n    return factory(x.shape[0])(x, y)\n\n\nrun(torch.ones({}, 32), y)\n"
    for rows, disposition in ((70, "refused"), (128, "migrated")):
        result = result_of(text(body) + run.format(rows))
        assert [kernel.disposition for kernel in result.kernels] == [disposition], rows


def test_a_sum_that_may_start_behind_the_end_stays() -> None:
    """A block that leaves out its first turn would never start its sum."""
    body = SPELLINGS["one loop"].replace("i * 32", "bx * 128 + 64 + i * 32").replace("T.ceildiv(n, 64) * 2", "2")
    body = body.replace("T.copy(c, C)", "T.copy(c, C[bx * 32, 0])")
    params = PARAMS.replace('(32, 16), "float32"', '(n, 16), "float32"')
    result = result_of(text(body, params).replace("T.Kernel(1,", "T.Kernel(T.ceildiv(n, 128),"))
    assert "TL885" in {d.code for d in result.diagnostics}
    assert " < n:" not in (result.new_text or "")
