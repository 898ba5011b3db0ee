"""``if k == 0: gemm(init=True) else: gemm()`` where an operand arrives on chip."""

from __future__ import annotations

import pytest

from tests.passes.support import CV_ALLOCS, CV_PARAMS, block, developer, gemm_file, migrated, refused, same_results

PARAMS = (*CV_PARAMS[:3], 'workspace_1: T.Tensor((2, 32, 64), "float16")')


def text(branch: str, loop: str = "for k in T.serial(3):") -> str:
    """Every iteration hands a tile to the cube, which sums the products; the cube's sum goes back at the end."""
    body = CV_ALLOCS + 'p = T.alloc_ub((16, 64), "float16")\nT.copy(B, b_l1)\n' + loop + "\n"
    body += block(
        (
            "T.copy(A[cid * 32 + vid * 16, 0], p)\nT.tile.add(p, p, k)\n"
            "T.copy(p, workspace_1[cid, vid * 16, 0])\n"
            "T.copy(workspace_1[cid, 0, 0], a_l1)\n"
        ),
        4,
    )
    return gemm_file(body + "\n" + block(branch, 4) + "\nT.copy(c_l0, O[cid * 32, 0])", params=PARAMS)


SHAPES = {
    "mirrored": "if 0 == k:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)",
    "not": "if not k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)",
    "not unequal": (
        "if not (k != 0):\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)"
    ),
    "first, then": "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)",
    "explicit False": (
        "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=False)"
    ),
    "not first": "if k != 0:\n    T.gemm_v0(a_l1, b_l1, c_l0)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)",
    "parentheses": "if (k == 0):\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)",
    "keywords": (
        "if k == 0:\n    T.gemm_v0(A=a_l1, B=b_l1, C=c_l0, init=True)\nelse:\n    T.gemm_v0(A=a_l1, B=b_l1, C=c_l0)"
    ),
    "transposed": (
        "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, transpose_B=True, init=True)\n"
        "else:\n    T.gemm_v0(a_l1, b_l1, c_l0, transpose_B=True)"
    ),
    "comments": (
        "# multiply\nif k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)  # first\n"
        "else:\n    T.gemm_v0(a_l1, b_l1, c_l0)  # then"
    ),
    "product": "if k * 2 == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)",
}


def one_gemm(branch: str) -> bool:
    """Whether the pass merged; the one-way loop itself blocks the full form, so look at what was tried."""
    result = migrated(text(branch))
    return "TL846" not in {d.code for d in result.diagnostics}


@pytest.mark.parametrize("case", SHAPES)
def test_branches_that_mean_the_same_as_init(case: str) -> None:
    assert one_gemm(SHAPES[case])


DIFFERENT = {
    "other operands": "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(b_l1, a_l1, c_l0)",
    "other condition": "if k == 1:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)",
    "less": "if k < 1:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)",
    "both fresh": (
        "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)"
    ),
    "neither fresh": "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)",
    "the wrong one fresh": (
        "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)"
    ),
    "two in one branch": (
        "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\n"
        "    T.gemm_v0(a_l1, b_l1, c_l0)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)"
    ),
    "another transposition": (
        "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, transpose_B=True, init=True)\n"
        "else:\n    T.gemm_v0(a_l1, b_l1, c_l0)"
    ),
    "no else": "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)",
    "elif": (
        "if k == 0:\n    T.gemm_v0(a_l1, b_l1, c_l0, init=True)\nelif k == 1:\n"
        "    T.gemm_v0(a_l1, b_l1, c_l0)\nelse:\n    T.gemm_v0(a_l1, b_l1, c_l0)"
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_branches_that_mean_something_else(case: str) -> None:
    refused(text(DIFFERENT[case]), "TL846", "TL845")


@pytest.mark.parametrize("case", SHAPES)
def test_one_shot_merges_reach_the_full_form(case: str) -> None:
    """Outside a loop nothing can overtake, so the merged gemm comes out and computes the same."""
    old = text("k = cid * 0\n" + SHAPES[case], loop="for z in T.serial(1):").replace(
        "T.tile.add(p, p, k)", "T.tile.add(p, p, 1.0)"
    )
    new = developer(old)
    same_results(old, new)
    assert "if " not in new.split("with T.Kernel")[1]
    assert new.count("gemm_v0") == 1


def test_a_gemm_without_hand_over_keeps_its_branches() -> None:
    body = (
        CV_ALLOCS
        + "for k in T.serial(2):\n"
        + block("T.copy(A[cid * 32, 0], a_l1)\nT.copy(B, b_l1)\n" + SHAPES["first, then"], 4)
        + (
            "\nT.copy(c_l0, workspace_1[cid, 0, 0])\n"
            "T.copy(workspace_1[cid, vid * 16, 0], u)\nT.tile.mul(v, u, 2.0)\n"
            "T.copy(v, O[cid * 32 + vid * 16, 0])"
        )
    )
    old = gemm_file(body)
    new = developer(old)
    assert "if k == 0:" in new
    same_results(old, new)
