"""Files with kernels in odd places; nothing may raise, and a second run changes nothing."""

from __future__ import annotations

import ast

import pytest

from tests.passes.support import (
    CONFIGS,
    CV_PARAMS,
    GEMM_SCALE,
    IMPORTS,
    LOAD,
    STORE,
    gemm_file,
    kernel,
    migrated,
    same_results,
    vector_file,
)
from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options

VECTOR = LOAD + "T.tile.exp(a, a)\n" + STORE
KERNEL = kernel(VECTOR).strip("\n")


def indented(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.split("\n"))


PLACES = {
    "class": IMPORTS + CONFIGS + "\n\nclass Ops:\n    @staticmethod\n" + indented(KERNEL),
    "nested class": IMPORTS + CONFIGS + "\n\nclass A:\n    class B:\n" + indented(indented(KERNEL)),
    "main": IMPORTS + CONFIGS + '\n\nif __name__ == "__main__":\n' + indented(KERNEL) + "    print(factory())\n",
    "try": IMPORTS + CONFIGS + "\n\ntry:\n" + indented(KERNEL) + "except ImportError:\n    factory = None\n",
    "function": IMPORTS + CONFIGS + "\n\ndef make():\n" + indented(KERNEL) + "    return factory\n",
    "conditional": IMPORTS
    + CONFIGS
    + "\n\nFAST = True\nif FAST:\n"
    + indented(KERNEL)
    + "else:\n"
    + indented(KERNEL.replace("exp", "abs")),
    "async": IMPORTS + CONFIGS + "\n\nasync def make():\n" + indented(KERNEL) + "    return factory\n",
    "local imports": "import torch\n\ndef make():\n    import tilelang\n    import tilelang.language as T\n"
    + indented(CONFIGS)
    + indented(KERNEL)
    + "    return factory\n",
    "star import": "import tilelang\nfrom tilelang.language import *\n" + CONFIGS + "\n\n" + KERNEL.replace("T.", ""),
    "other alias": IMPORTS.replace("as T", "as TL") + CONFIGS + "\n\n" + KERNEL.replace("T.", "TL."),
    "no alias": "import tilelang\nimport tilelang.language\n"
    + CONFIGS
    + "\n\n"
    + KERNEL.replace("T.", "tilelang.language."),
    "parts imported": "import tilelang\nimport tilelang.language as T\nfrom tilelang.language import copy, alloc_ub\n"
    + CONFIGS
    + "\n\n"
    + KERNEL.replace("T.copy", "copy").replace("T.alloc_ub", "alloc_ub"),
    "tabs": (IMPORTS + CONFIGS + "\n\n" + KERNEL).replace("    ", "\t"),
    "crlf": (IMPORTS + CONFIGS + "\n\n" + KERNEL + "\n").replace("\n", "\r\n"),
    "no final newline": IMPORTS + CONFIGS + "\n\n" + KERNEL,
    "bare name": vector_file(VECTOR).replace("as (cid, vid):", "as  ( cid , vid ) :  # axes"),
    "decorated twice": vector_file(VECTOR).replace("@tilelang.jit", "@cached\n@tilelang.jit"),
    "prim_func call": vector_file(VECTOR).replace("@T.prim_func\n", "@T.prim_func()\n"),
    "no jit": vector_file(VECTOR).replace("@tilelang.jit(out_idx=[2], pass_configs=pass_configs)\n", ""),
    "kernel not in a factory": IMPORTS
    + "\n@T.prim_func\n"
    + KERNEL.split("    @T.prim_func\n")[1]
    .replace("\n    return main", "")
    .replace("\n    ", "\n")
    .replace("    def main", "def main", 1),
    "two prim_funcs": vector_file(VECTOR).replace(
        "\n    return main\n", "\n" + kernel(VECTOR).split("def factory():\n")[1].replace("main", "other")
    ),
    "annotated result": vector_file(VECTOR)
    .replace("def main(", "def main(", 1)
    .replace("    ):\n", "    ) -> None:\n", 1),
    "docstrings": vector_file('"""Doc."""\n' + VECTOR).replace(
        "def factory():\n", 'def factory():\n    """Vector."""\n'
    ),
    "globals": vector_file(VECTOR, factory="global COUNT\nCOUNT = 1"),
    "unicode": vector_file("# größe ×2 → ok\n" + VECTOR),
    "form feed": IMPORTS + "\f\n" + CONFIGS + "\n\n" + KERNEL,
    "match": vector_file(VECTOR, tail="\n\nmatch 3:\n    case 3:\n        pass\n"),
}


@pytest.mark.parametrize("case", PLACES)
def test_kernels_in_odd_places(case: str) -> None:
    text = PLACES[case]
    result = migrated(text)
    assert result.new_text is not None
    ast.parse(result.new_text)
    assert all(k.target == "developer" for k in result.kernels) or case in (
        "no jit",
        "kernel not in a factory",
        "two prim_funcs",
        "local imports",
    ), [(k.name, k.target, k.reason) for k in result.kernels]
    assert len(result.kernels) == (2 if case in ("conditional", "two prim_funcs") else 1)


@pytest.mark.parametrize("case", PLACES)
def test_a_second_run_changes_nothing(case: str) -> None:
    once = migrated(PLACES[case]).new_text or ""
    again = migrated(once)
    assert again.new_text == once
    assert not again.changes


@pytest.mark.parametrize("case", ["tabs", "crlf", "no final newline", "form feed"])
def test_the_style_of_the_file_stays(case: str) -> None:
    old, new = PLACES[case], migrated(PLACES[case]).new_text or ""
    assert ("\r\n" in old) == ("\r\n" in new)
    assert new.count("\r\n") in (0, new.count("\n"))
    assert ("\t" in old) == ("\t" in new)
    assert old.endswith("\n") == new.endswith("\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "x = 1\n",
        "def f(:\n",
        "import tilelang\n",
        "\x00",
        "class A:\n    pass\n",
        "if True:\n  x = 1\n\ty = 2\n",
        "# only a comment",
    ],
)
def test_other_files_come_back_unchanged(text: str) -> None:
    for outcome in (migrate_text(text, "k.py", Options()), check_text(text, "k.py", Options())):
        assert outcome.new_text == text
        assert not outcome.kernels


def test_lines_in_messages_are_those_of_the_input() -> None:
    text = gemm_file(GEMM_SCALE.replace("vid * 16, 0], u)", "vid * 8, 0], u)"))
    (line,) = {d.line for d in migrated(text).diagnostics if d.code == "TL221"}
    assert "vid * 8" in text.split("\n")[line - 1]


def test_the_second_kernel_is_migrated_after_the_first() -> None:
    text = vector_file(
        VECTOR,
        tail=kernel(VECTOR.replace("exp", "abs"), name="second")
        + kernel(
            GEMM_SCALE, params=CV_PARAMS, name="third", jit="out_idx=[2], workspace_idx=[3], pass_configs=pass_configs"
        ),
    )
    result = migrated(text)
    assert [k.target for k in result.kernels] == ["developer"] * 3
    for name in ("factory", "second", "third"):
        same_results(text, result.new_text or "", factory=name)


WHOLE = (
    'a = T.alloc_ub({shape}, "float32")\nfor t in range(2):\n    T.copy(A[cid * 32 + t * 16, 0], a)\n'
    "    T.tile.exp(a, a)\n    T.copy(a, O[cid * 32 + t * 16, 0])\n"
)
HALF = (
    'a = T.alloc_ub({shape}, "float32")\nT.copy(A[cid * 32 + vid * 16, 0], a)\nT.tile.exp(a, a)\n'
    "T.copy(a, O[cid * 32 + vid * 16, 0])\n"
)


@pytest.mark.parametrize(
    ("constant", "shape"),
    [
        ("SHAPE = (16, 64)", "SHAPE"),
        ("ROWS = 16", "(ROWS, 64)"),
        ("ROWS, COLS = 16, 64", "(ROWS, COLS)"),
    ],
)
def test_a_constant_of_two_kernels_keeps_its_value_for_the_other_one(constant: str, shape: str) -> None:
    """The first kernel's tiles become whole, the second one has no vid and must stay as it is."""
    text = vector_file(
        HALF.format(shape=shape), head=f"{CONFIGS}{constant}\n", tail=kernel(WHOLE.format(shape=shape), name="second")
    )
    new = migrated(text).new_text or ""
    for name in ("factory", "second"):
        same_results(text, new, factory=name)


def test_a_shape_that_counts_the_blocks_too() -> None:
    text = vector_file(HALF.format(shape="SHAPE"), factory="SHAPE = (16, 64)\nblocks = 32 // SHAPE[0]")
    text = text.replace("T.Kernel(2,", "T.Kernel(blocks,")
    same_results(text, migrated(text).new_text or "")


def test_an_exported_name_stays() -> None:
    body = HALF.format(shape="(32 // PARTS, 64)")
    new = migrated(vector_file(body, head=f'{CONFIGS}__all__ = ["factory", "PARTS"]\nPARTS = 2\n')).new_text or ""
    assert "PARTS = 2\n" in new
