"""TL731: what the parser of the NPU's compiler evaluates in another order than Python."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, result_of

PARAMS = 'X: T.Tensor((128, 64), "float32"), Y: T.Tensor((128, 64), "float32")'
BODY = """
x = T.alloc_shared((64, 64), "float32")
T.copy(X[bx * 64, 0], x)
{}
T.copy(x, Y[bx * 64, 0])
"""
DOUBLE = """
    for i, j in T.Parallel(64, 64):
        x[i, j] = x[i, j] * 2.0
"""


def text_of(body: str, args: str = "w=None") -> str:
    return gpu_file(PARAMS, BODY.format(body), args=args)


@pytest.mark.parametrize(
    ("body", "written"),
    [
        (
            "n = T.max(0, bx - w) if w is not None else 2\nfor _ in T.serial(n):" + DOUBLE,
            "bx - w_or_1) if w is not None",
        ),
        ("n = 2 if w is None else bx + w\nfor _ in T.serial(n):" + DOUBLE, "2 if w is None else bx + w_or_1"),
        ("n = T.max(0, bx - w) if w else 2\nfor _ in T.serial(n):" + DOUBLE, "bx - w_or_1) if w else 2"),
        ("if w is None or bx < w:" + DOUBLE, "if w is None or bx < w_or_1:"),
        ("if w is not None and bx + w > 1:" + DOUBLE, "if w is not None and bx + w_or_1 > 1:"),
        ("if w:" + DOUBLE, "if bool(w):"),
        ("if 0 <= bx < 1:" + DOUBLE, "if 0 <= bx and bx < 1:"),
        ("if not (0 < bx <= 1):" + DOUBLE, "if not (0 < bx and bx <= 1):"),
        ("if w is None and 0 <= bx < 1:" + DOUBLE, "if w is None and (0 <= bx and bx < 1):"),
        ("if bx % 2:" + DOUBLE + "else:\n    T.copy(X[0, 0], x)", "if bx % 2 != 0:"),
        ("if bx > 5 or not bx:" + DOUBLE, "bx > 5 or not bx != 0"),
        ("if bx > 0 and bx % 2:" + DOUBLE, "bx > 0 and bx % 2 != 0"),
        ("if T.And(bx > 0, T.Not(2 > 1)):" + DOUBLE, "if bx > 0 and not 2 > 1:"),
        ("n: int = 2\nfor _ in T.serial(n + bx):" + DOUBLE, "n = 2"),
        ("for _ in T.serial(bx ** 2 + 1):" + DOUBLE, "(bx * bx) + 1"),
        ("assert 2 > 1\nif bx > 0:" + DOUBLE, 'assert 2 > 1, "2 > 1"'),
    ],
)
def test_written_and_the_same(body: str, written: str) -> None:
    text = text_of(body)
    assert written in migrated(text)
    data = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)
    agree(text, {"X": data})


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("pad = M - 8\nfor i, j in T.Parallel(64, 64):\n    x[i, j] = x[i, j] * float(pad)", "x[i, j] * float(M - 8)"),
        ("n = M // 2\ny = T.alloc_shared((2 * n, 64), 'float32')\nT.copy(x, y)\nT.copy(y, x)", "(2 * (M // 2), 64)"),
        ("n, m = 64, M\ny = T.alloc_shared((m, n), 'float32')\nT.copy(x, y)\nT.copy(y, x)", "(M, 64)"),
        ("n = T.ceildiv(M, 2)\ny = T.alloc_shared((64, n), 'float32')\nT.copy(x[:, 0:32], y)", "(64, T.ceildiv(M, 2))"),
    ],
)
def test_a_name_of_the_kernel_is_no_number_of_python(body: str, written: str) -> None:
    """Nothing in the file calls the factory: what ``M`` is does not matter."""
    text = text_of(body, args="M")
    assert written in migrated(text)
    data = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)
    agree(text, {"X": data}, args=(64,))


def test_a_name_that_changes_is_not_written_out() -> None:
    result = result_of(text_of("n = M - 8\nn = n - M\nfor _ in T.serial(int(n)):" + DOUBLE, args="M"))
    assert [(found.code, found.message) for found in result.diagnostics if found.severity == "error"] == [
        ("TL732", "`int(n)` calls a Python function on a run-time value")
    ]


def test_arms_that_any_value_is_good_for_stay() -> None:
    new = migrated(text_of("n = w if w is not None else 2\nfor _ in T.serial(n):" + DOUBLE))
    assert "n = w if w is not None else 2" in new
    assert "w_or_1" not in new


def test_a_taken_name() -> None:
    new = migrated(
        text_of("n = bx + w if w is not None else w_or_1\nfor _ in T.serial(n):" + DOUBLE, "w=None, w_or_1=2")
    )
    assert "w_or_1_2 = 1 if w is None else w" in new


def test_a_choice_for_a_variable_becomes_a_branch() -> None:
    """Where vector code does not depend on it: the compiler stores variables on the cube core only (TL860)."""
    choice = "n = T.alloc_var('int32')\nn = 1\nn = T.if_then_else(bx > 0, 3, n)\n"
    assert "if bx > 0:\n                n = 3\n" in migrated(text_of(choice + "for _ in T.serial(2):" + DOUBLE))
    result = result_of(text_of(choice + "for _ in T.serial(n):" + DOUBLE))
    assert "TL860" in {d.code for d in result.diagnostics}


@pytest.mark.parametrize(
    ("loop", "written"),
    [
        ("for i in T.Parallel(n):\n    s[i] = T.exp(s[i] * 0.5)\n", "T.tile.exp(s, s)"),
        (
            "g = S[bx]\nfor i in T.Parallel(n):\n    s[i] = s[i] * 0.5 + g\n    s[i] = T.sqrt(T.abs(s[i]))\n",
            "T.tile.sqrt",
        ),
        ("for i in T.Parallel(n):\n    s[i] = s[i] + T.log(s[i])\n", "T.tile.ln("),
    ],
)
def test_a_loop_of_one_turn(loop: str, written: str) -> None:
    params = 'X: T.Tensor((2, n), "float32"), S: T.Tensor((2,), "float16"), Y: T.Tensor((2, n), "float32")'
    body = f's = T.alloc_fragment((n,), "float32")\nT.copy(X[bx, 0:n], s)\n{loop}T.copy(s, Y[bx, 0:n])\n'
    text = gpu_file(params, body, args="n=1")
    assert written in migrated(text)


def test_a_half_from_global_memory_gets_the_type_of_the_tile() -> None:
    params = 'X: T.Tensor((2, 64), "float32"), S: T.Tensor((2,), "float16"), Y: T.Tensor((2, 64), "float32")'
    loop = "g = S[bx]\nfor i in T.Parallel(64):\n    s[i] = T.exp(s[i] * 0.5 + g)\n"
    body = f's = T.alloc_fragment((64,), "float32")\nT.copy(X[bx, 0:64], s)\n{loop}T.copy(s, Y[bx, 0:64])\n'
    text = gpu_file(params, body)
    assert "T.float32(g)" in migrated(text)
    rng = np.random.default_rng(1)
    data = {"X": rng.standard_normal((2, 64)).astype(np.float32), "S": rng.standard_normal(2).astype(np.float16)}
    agree(text, data)


def test_a_launch_without_a_name() -> None:
    """One block, whose index nothing reads."""
    text = gpu_file(PARAMS, BODY.format("").replace("bx * 64", "0"), launch="T.Kernel(1, threads=128)")
    assert "with T.Kernel(1, threads=2, is_npu=True) as (cid):" in migrated(text)
    agree(text, {"X": np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)})


def test_types_that_only_parameters_name() -> None:
    """The parser dies of the second such keyword."""
    params = "I: T.Tensor((64,), dtype=kind), J: T.Tensor((64,), dtype=kind), " + PARAMS
    text = gpu_file(params, BODY.format(""), args="kind='int32'")
    assert "I: T.Tensor((64,), kind), J: T.Tensor((64,), kind), X" in " ".join(migrated(text).split())
    one = text.replace("J: T.Tensor((64,), dtype=kind), ", "")
    assert "I: T.Tensor((64,), dtype=kind), X" in " ".join(migrated(one).split())
    used = text.replace('"float32")\n            T.copy(X', "kind)\n            T.copy(X")
    assert "I: T.Tensor((64,), dtype=kind), J" in (result_of(used).new_text or "")
