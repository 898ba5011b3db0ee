"""Rows, columns and row lengths of copies inside of UB."""

from __future__ import annotations

import pytest

from tests.checks.support import ONE, findings, kernel, source
from tl2npu.codes import CODES

ALLOCS = """
x = T.alloc_ub((32, 64), "float32")
y = T.alloc_ub((32, 64), "float32")
narrow = T.alloc_ub((32, 16), "float32")
thin = T.alloc_ub((32, 1), "float32")
row = T.alloc_ub((1, 64), "float32")
s = T.alloc_ub((32,), "float32")
w = T.alloc_ub((64,), "float32")
"""
USES = "\n".join(f"T.tile.exp({name}, {name})" for name in ("x", "y", "narrow", "thin", "row", "s", "w"))


def found(copy: str) -> list[str]:
    text = source(kernel(ALLOCS, USES, f"for k in T.serial(8):\n    {copy}"), launch=ONE)
    return [f.code for f in findings(text) if (f.severity or CODES[f.code].severity) == "error"]


@pytest.mark.parametrize(
    "copy",
    [
        "T.copy(x, y)",
        "T.copy(x[:, 0:16], narrow)",
        "T.copy(narrow, x[:, 16:32])",
        "T.copy(x[:, 0:32], y[:, 32:64])",
        "T.copy(x[k, :], w)",
        "T.copy(w, x[k, :])",
        "T.copy(w, row[0, :])",
        "T.copy(w, x[k, 0])",
        "T.copy(s, thin[:, 0])",
        "T.copy(thin[:, 0], s)",
        "T.copy(x[k, 0:16], narrow[k, :])",
    ],
)
def test_rows(copy: str) -> None:
    assert found(copy) == []


@pytest.mark.parametrize(
    "copy", ["T.copy(s, x[:, k])", "T.copy(x[:, k], s)", "T.copy(s, x[:, k : k + 1])", "T.copy(w, x[0:8, 0:8])"]
)
def test_columns_and_vectors(copy: str) -> None:
    assert set(found(copy)) - {"TL700"} == {"TL886"}, "blocks of 32 bytes are another finding of the same copies"
