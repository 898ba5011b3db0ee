"""Triton kernels on NumPy arrays, and what becomes of them held against that."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

from tl2npu import Options, migrate
from tl2npu.evaluate.values import NotChecked, Tile
from tl2npu.kernel.model import Memory
from tl2npu.results import KernelResult
from tl2npu.triton.evaluate.machine import Machine
from tl2npu.triton.evaluate.memory import Pointers
from tl2npu.triton.read import build
from tl2npu.triton.read.spec import Source

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
X = np.arange(24.0).reshape(4, 6) - 7


def run(body: str, programs: int = 1, **values: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors, whose arguments are arrays, behind a kernel of this body; other functions stand above it."""
    above, _, own = body.rpartition("\n\n")
    lines = "\n".join(f"    {line}" for line in own.strip("\n").split("\n"))
    tree = ast.parse(f"{above}\ndef kernel({', '.join(values)}):\n{lines}\n")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    source = Source(functions, {}, {"tl": "triton.language"})
    reached: dict[str, int] = {}
    tensors, given = {}, {}
    for name, value in values.items():
        given[name] = value
        if isinstance(value, np.ndarray):
            dtype = "float32" if value.dtype == np.float64 else str(value.dtype)
            tensors[name] = Tile(name, dtype, Memory.GM, value.copy())
            given[name] = Pointers(tensors[name], np.int64(0), reached)
    with np.errstate(all="ignore"):
        Machine(source, (programs,), 1_000_000).run(functions["kernel"], given, range(programs))
    assert not reached
    return {name: tensor.data for name, tensor in tensors.items()}


def test_masks_programs_and_what_is_not_stored() -> None:
    body = """
    row = tl.program_id(0)
    cols = tl.arange(0, 8)
    mask = (cols < 6) & (cols != 2)
    v = tl.load(x + row * 6 + cols, mask=mask, other=-1.0)
    tl.store(y + row * 6 + cols, v * 2 + tl.num_programs(0), mask=cols < 6)
    """
    found = run(body.replace("\n    ", "\n"), 3, x=X, y=np.zeros((4, 6)))["y"]
    expected = np.where(np.arange(6) == 2, -1.0, X) * 2 + 3
    assert np.array_equal(found[:3], expected[:3])
    assert not found[3].any()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("tl.sum(v, axis=1)", X.sum(1)),
        ("tl.max(v, 1) - tl.min(v, 1)", X.max(1) - X.min(1)),
        ("tl.sum(tl.trans(v), axis=0)", X.sum(1)),
        ("tl.sum(tl.where(v > 0, v, 0.5), axis=1)", np.where(X > 0, X, 0.5).sum(1)),
        ("tl.sum(tl.dot(v, v.T), 1)", (X @ X.T).sum(1)),
        ("tl.sum(tl.exp(v - tl.max(v, 1)[:, None]), 1)", np.exp(X - X.max(1, keepdims=True)).sum(1)),
        ("tl.sum(v.to(tl.int32) // 4, 1)", np.trunc(X / 4).sum(1)),
        ("tl.sum(v.to(tl.int32) % 4, 1)", np.fmod(X, 4).sum(1)),
        ("tl.reduce(v, 1, larger)", X.max(1)),
        ("tl.sum(tl.sigmoid(v), 1)", (1 / (1 + np.exp(-X))).sum(1)),
        ("tl.load(x + rows * 6 + 5 - rows)", X[np.arange(4), 5 - np.arange(4)]),
        ("scaled(tl.sum(v, 1))", X.sum(1) * 3),
        ("scaled(tl.sum(v, 1), by=-7 // 2)", X.sum(1) * -4),
        ("tl.full((4,), 70000.0, tl.float16).to(tl.float32)", np.full(4, np.inf)),
        ("tl.full((4,), 70000.0, tl.float32)", np.full(4, 70000.0)),
    ],
)
def test_expressions(value: str, expected: np.ndarray[Any, Any]) -> None:
    """By NumPy; integers are divided as C does it, constants as Python does."""
    body = f"""
def larger(a, b):
    return tl.maximum(a, b)
def scaled(a, by=3):
    if by == 3:
        return a * by
    return by * a

rows = tl.arange(0, 4)
cols = tl.arange(0, 6)
v = tl.load(x + rows[:, None] * 6 + cols[None, :])
tl.store(y + rows, {value})
"""
    assert np.allclose(run(body, x=X, y=np.zeros(4))["y"], expected, rtol=1e-12)


def test_loops_block_pointers_and_atomics() -> None:
    body = """
block = tl.make_block_ptr(x, shape=(4, 6), strides=(6, 1), offsets=(0, 0), block_shape=(4, 4), order=(1, 0))
total = tl.zeros((4,), dtype=tl.float32)
k = 0
while k < 6:
    total += tl.sum(tl.load(block, boundary_check=(0, 1), padding_option="zero"), axis=1)
    block = tl.advance(block, (0, 4))
    k += 4
for n in range(2):
    tl.atomic_add(y + tl.arange(0, 4) // 2, total)
"""
    found = run(body, x=X, y=np.ones(2))["y"]
    assert np.array_equal(found, 1 + 2 * X.sum(1).reshape(2, 2).sum(1))


def test_places_in_front_of_a_tensor_and_unknown_functions() -> None:
    with pytest.raises(NotChecked, match="in front of `x`"):
        run("tl.store(y, tl.load(x - 1))", x=X, y=np.zeros(1))
    with pytest.raises(NotChecked, match=r"`tl\.rand` has no meaning here"):
        run("tl.store(y, tl.rand(1, 2))", x=X, y=np.zeros(1))


SOFTMAX = f"""{HEAD}@triton.jit
def softmax_kernel(y, x, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n_cols + cols, e / tl.sum(e, axis=0), mask=cols < n_cols)


def softmax(x):
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(n_rows,)](y, x, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return y


softmax(torch.randn(32, 100))
"""


def kernel_of(text: str, **options: Any) -> tuple[KernelResult, list[str]]:
    """The result of the one kernel of a file, and what TL970 says."""
    result = migrate(text, filename="k.py", options=Options(**options))
    (kernel,) = (kernel for kernel in result.kernels if kernel.source == "triton")
    return kernel, [item.message for item in result.diagnostics if item.code == "TL970"]


def test_a_right_kernel_is_checked_where_rows_end_within_a_tile() -> None:
    kernel, _ = kernel_of(SOFTMAX)
    assert kernel.checked is not None
    assert kernel.checked.equal, kernel.checked.why
    sizes = dict(part.split("=") for part in kernel.checked.sizes.split(", "))
    assert int(sizes["n_cols"]) < int(sizes["BLOCK"])


@pytest.mark.parametrize("checks", [True, False])
def test_a_reader_that_is_wrong(monkeypatch: pytest.MonkeyPatch, checks: bool) -> None:
    """It loses the condition of a selection: what lies behind the row is summed as well."""
    right = build.operation

    def wrong(op: str, operands: list[Any], line: int) -> Any:
        return right(op, [*operands[:2], operands[1]] if op == "select" else operands, line)

    monkeypatch.setattr(build, "operation", wrong)
    text = SOFTMAX.replace('-float("inf")', "0.0")
    text = text.replace("    e = ", "    v = tl.where(cols < n_cols, v, -1e30)\n    e = ")
    kernel, messages = kernel_of(text, self_check=checks)
    assert kernel.disposition == ("refused" if checks else "migrated")
    assert len(messages) == checks


def test_digits_that_cancel_are_no_difference() -> None:
    """1 - tanh(x)^2 of large x has no digits, and an NPU computes tanh by another formula."""
    text = SOFTMAX.replace("e / tl.sum(e, axis=0)", "1 - t * t").replace(
        "    e = tl.exp(v - tl.max(v, axis=0))\n", "    t = tl.extra.cuda.libdevice.tanh(v * 20)\n"
    )
    kernel, messages = kernel_of(text.replace('-float("inf")', "0.0"))
    assert messages == []
    assert kernel.checked is not None
    assert kernel.checked.equal, kernel.checked.why


def test_tensors_are_as_long_as_the_kernel_reaches() -> None:
    """It reads 64 columns of `x` and 64 rows of `w`, whatever they have: the sizes that are drawn first are too few."""
    text = f"""{HEAD}@triton.jit
def part_kernel(y, x, w, M, N, sx, sw, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for part in range(2):
        k = part * BK + tl.arange(0, BK)
        a = tl.load(x + rows[:, None] * sx + k[None, :])
        b = tl.load(w + k[:, None] * sw + cols[None, :])
        total += tl.dot(a, b)
    tl.store(y + rows[:, None] * N + cols[None, :], total)


def part(x, w):
    M, K = x.shape
    y = torch.empty(M, 32, dtype=torch.float32)
    part_kernel[(M // 32, 1)](y, x, w, M, 32, x.stride(0), w.stride(0), BM=32, BN=32, BK=32)
    return y
"""
    kernel, _ = kernel_of(text)
    assert kernel.checked is not None
    assert kernel.checked.equal, kernel.checked.why


def test_rows_at_loaded_places_by_the_strides_of_another_tensor() -> None:
    """Nothing says that a row of `w` has as many elements as one of `x`: a place behind the end of one is in the next,
    where a copy would end."""
    text = f"""{HEAD}@triton.jit
def rows_kernel(y, x, w, at, sxn, sxh, syn, syh, B: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(0)
    rows = tl.load(at + tl.arange(0, B))
    d = tl.arange(0, D)
    place = rows[:, None] * sxn + head * sxh + d[None, :]
    v = tl.load(x + place) + tl.load(w + place)
    tl.store(y + tl.arange(0, B)[:, None] * syn + head * syh + d[None, :], v)


def rows(x, w, at):
    n, heads, D = x.shape
    m, others, width = w.shape
    y = torch.empty(16, heads, D)
    rows_kernel[(heads,)](y, x, w, at, x.stride(0), x.stride(1), y.stride(0), y.stride(1), B=16, D=D)
    return y
"""
    kernel, messages = kernel_of(text)
    assert messages == []
    assert kernel.checked is not None
    assert kernel.checked.equal, kernel.checked.why
