"""Elements that lie anywhere in a tensor are read one by one, where they are inside of it."""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, refused, result_of
from tests.passes.simulated import run
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

RNG = np.random.default_rng(51)
X = RNG.standard_normal((3, 7, 9)).astype(np.float32)
PARAMS = 'X: T.Tensor((N, H, W), "float32"), Y: T.Tensor((N, 16, 32), "float32")'
TILE = 'y = T.alloc_fragment((16, 32), "float32")\n'
STORE = "\nT.copy(y, Y[bx, 0, 0])"
HEAD = "for i, j in T.Parallel(16, 32):\n"
FORMS = {
    "a step": "    y[i, j] = X[bx, i % H, j * 2 % W]",
    "a pixel": "    y[i, j] = X[bx, j // W % H, (j + i) % W]",
    "names": "    r = j // W\n    c = j - r * W\n    y[i, j] = X[bx, r, c] * 2.0",
    "a choice": "    r = j // W + i - 1\n    ok = (r >= 0) & (r < H) & (i < 9)\n"
    "    y[i, j] = T.if_then_else(ok, X[bx, r, j % W], T.cast(0.0, 'float32'))",
    "a choice that does not ask for the bounds": "    y[i, j] = T.if_then_else(i + j > 3, X[bx, j - i, j % W], 0)",
    "backwards": "    y[i, j] = X[bx, i % H, W - 1 - j]",
    "one axis": "    y[i, j] = X[bx, 0, j * 3 % W] + i",
    "outside": "    y[i, j] = X[bx, i * 2 - 3, j * j - 2]",
    "added": "    y[i, j] = 0\n" + HEAD + "    y[i, j] += X[bx, i * 2 % H, j // 4]",
    "two of one tensor": "    y[i, j] = X[bx, i // 3, j // 4] - X[bx, i // 4, j // 5]",
}


def text_of(body: str, params: str = PARAMS) -> str:
    return gpu_file(params, TILE + HEAD + body + STORE, args="N, H, W", launch="T.Kernel(N, threads=128) as bx")


@pytest.mark.sampled
@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS.keys())
def test_elements_are_read_one_by_one(body: str) -> None:
    new = agree(text_of(body), {"X": X}, args=X.shape)
    assert "TL603" in {d.code for d in result_of(text_of(body)).diagnostics}
    assert "= X[bx, " in new


def test_an_operand_of_a_product() -> None:
    body = """a = T.alloc_shared((16, 16), "float32")
b = T.alloc_shared((16, 32), "float32")
for i, k in T.Parallel(16, 16):
    a[i, k] = T.if_then_else((i + k - 1 >= 0) & (i + k - 1 < W), X[bx, i // 4, i + k - 1], 0)
for k, j in T.Parallel(16, 32):
    b[k, j] = X[bx, k % H, j // 4]
acc = T.alloc_fragment((16, 32), "float32")
T.gemm(a, b, acc, clear_accum=True)
T.copy(acc, Y[bx, 0, 0])"""
    text = gpu_file(PARAMS, body, args="N, H, W", launch="T.Kernel(N, threads=128) as bx")
    agree(text, {"X": X}, args=X.shape, rtol=1e-4, atol=1e-4)


TABLE = np.array([3, 39, 0, 3] * 8, np.int32)
ROWS = RNG.standard_normal((40, 32)).astype(np.float32)
PICKED = {
    "stored at once": ("O[bx * 16 + i, j] = R[I[bx * 16 + i], j]", ROWS[TABLE]),
    "by a name": ("r = I[bx * 16 + i]\n    O[bx * 16 + i, j] = R[r, j]", ROWS[TABLE]),
    "in arithmetic": ("O[bx * 16 + i, j] = R[I[bx * 16 + i], j] * 2.0 + 1.0", ROWS[TABLE] * 2 + 1),
    "two rows": (
        "O[bx * 16 + i, j] = R[I[bx * 16 + i], j] + R[I[31 - bx * 16 - i], j]",
        ROWS[TABLE] + ROWS[TABLE[::-1]],
    ),
    "a choice": (
        "O[bx * 16 + i, j] = T.if_then_else(I[bx * 16 + i] < 9, R[I[bx * 16 + i], j], 0.0) + 1.0",
        np.where(TABLE[:, None] < 9, ROWS[TABLE], 0) + 1,
    ),
}
OF_ROWS = 'R: T.Tensor((40, 32), "float32"), I: T.Tensor((32,), "int32"), O: T.Tensor((32, 32), "float32")'


@pytest.mark.parametrize(("body", "expected"), PICKED.values(), ids=PICKED.keys())
def test_rows_that_a_table_picks(body: str, expected: np.ndarray) -> None:
    inputs = {"R": ROWS, "I": TABLE}
    new = agree(gpu_file(OF_ROWS, HEAD + "    " + body), inputs)
    assert "T.copy(R[" in new
    for reading in (IDEAL, ACTUAL):
        np.testing.assert_allclose(run(new, inputs, reading=reading)["O"], expected, 1e-6, err_msg=reading)


@pytest.mark.parametrize("used", ["v[i] = R[t[i], 3]", "O[bx * 16 + i, 0] = R[t[i], 3] * 2.0"])
def test_a_table_that_changes_in_the_loop(used: str) -> None:
    """Before the loop it picks other rows."""
    head = 't = T.alloc_fragment((16,), "int32")\nv = T.alloc_fragment((16,), "float32")\nT.copy(I[bx * 16], t)\n'
    body = f"{head}for i in T.Parallel(16):\n    t[i] = t[i] // 2\n    {used}\nT.copy(v, O[0, 0])"
    assert "TL170" in [code for code, *_ in refused(gpu_file(OF_ROWS, body))]


REFUSED = {
    "a tensor that the kernel writes": ("    y[i, j] = Y[bx, i // 2, j // 2]", PARAMS),
    "bytes": ("    y[i, j] = X[bx, i % H, j * 2]", PARAMS.replace('"float32"', '"int8"', 1)),
    "an index that is read": ("    y[i, j] = X[bx, i, T.cast(X[bx, i // 2, j], 'int32')]", PARAMS),
}


@pytest.mark.parametrize(("body", "params"), REFUSED.values(), ids=REFUSED.keys())
def test_what_stays_refused(body: str, params: str) -> None:
    assert {code for code, _ in refused(text_of(body, params))} == {"TL170"}


def test_elements_at_indices_from_a_tensor_are_refused_with_what_works() -> None:
    """A loss takes the logit of the label of each row: one by one it is accepted, and right."""
    params = ", ".join(
        f'{name}: T.Tensor({shape}, "{dtype}")'
        for name, shape, dtype in (("X", "(64, 40)", "float32"), ("I", "(64,)", "int32"), ("Y", "(64,)", "float32"))
    )
    body = "for i in T.Parallel(32):\n    Y[bx * 32 + i] = 1.0 - X[bx * 32 + i, I[bx * 32 + i]]"
    text = gpu_file(params, body)
    assert refused(text) == [("TL170", 11)]
    (said,) = [item.message for item in result_of(text).diagnostics if item.severity == "error"]
    assert "at indices from `I`: write the loop with `T.serial`" in said
    rng = np.random.default_rng(0)
    inputs = {"X": rng.random((64, 40), np.float32), "I": rng.integers(0, 40, 64).astype(np.int32)}
    agree(text.replace("T.Parallel", "T.serial"), inputs)


def test_the_help_for_scales_of_groups_is_a_faster_kernel() -> None:
    """The loop over the groups that the help of TL146 shows computes the same, without single elements."""
    params = 'W: T.Tensor((64, 128), "float32"), S: T.Tensor((64, 8), "float32"), O: T.Tensor((64, 128), "float32")'
    head = """
    w = T.alloc_fragment((32, 128), "float32")
    s = T.alloc_shared((32, 8), "float32")
    T.copy(W[bx * 32, 0], w)
    T.copy(S[bx * 32, 0], s)
    """
    slow = "for i, j in T.Parallel(32, 128):\n    w[i, j] = w[i, j] * s[i, j // 16]"
    end = "\nT.copy(w, O[bx * 32, 0])"
    text = gpu_file(params, textwrap.dedent(head) + slow + end)
    (said,) = [item.help for item in result_of(text).diagnostics if item.code == "TL146"]
    outer, inner = re.findall(r"`(for .*?:)`", said)
    fast = f"{outer}\n    {inner}\n        w[i, g * 16 + j] = w[i, g * 16 + j] * s[i, g]"
    rng = np.random.default_rng(0)
    inputs = {"W": rng.random((64, 128), np.float32), "S": rng.random((64, 8), np.float32)}
    quick = gpu_file(params, textwrap.dedent(head) + fast + end)
    for new in (agree(text, inputs), agree(quick, inputs)):
        assert new
    assert "TL146" not in [item.code for item in result_of(quick).diagnostics]
