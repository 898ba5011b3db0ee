"""TL817: a launch has at most 65,535 blocks (#666)."""

from __future__ import annotations

import pytest

from tests.checks.support import LOAD, SPLIT, STORE, TILES, errors, findings, kernel, source

BODY = kernel(TILES, LOAD, "T.tile.exp(b, a)", STORE)


@pytest.mark.parametrize(
    ("grid", "given", "tail", "found"),
    [
        ("65535", "", "", []),
        ("65536", "", "", ["TL817"]),
        ("M", "M=65536", "", ["TL817"]),
        ("M", "M", "", []),
        ("M", "M", "factory(100)\nfactory(1 << 20)", ["TL817"]),
        ("M // 16", "M", "factory(16 * 65535)", []),
        ("M // 16", "M", "factory(16 * 65536)", ["TL817"]),
        ("B * H", "B, H=32", "factory(4096)", ["TL817"]),
    ],
)
def test_known_grids(grid: str, given: str, tail: str, found: list[str]) -> None:
    assert errors(BODY, launch=SPLIT.replace("8", grid), args=given, tail=tail) == found


def test_the_message_and_its_place() -> None:
    text = source(BODY, launch=SPLIT.replace("8", "1 << 17"))
    (found,) = (f for f in findings(text) if f.code == "TL817")
    assert found.message == "131,072 blocks: a launch of more than 65,535 fails with error 107000"


def test_a_kernel_in_expert_mode() -> None:
    body = 'a = T.alloc_ub((32, 64), "float32")\nwith T.Scope("V"):\n'
    body += "    T.copy(A[cid * 32, 0], a)\n    T.copy(a, O[cid * 32, 0])\n"
    launch = "T.Kernel(70000, is_npu=True) as (cid, vid)"
    assert "TL817" in errors(body, launch=launch, keys=())
    assert "TL817" not in errors(body, launch=launch.replace("70000", "7000"), keys=())


def test_some_configurations_of_a_tuner() -> None:
    """The tuner finds out; where all ask for too many, or a call does, nothing is left to find."""
    grid = SPLIT.replace("8", "M // rows")
    head = "@autotune(configs=[{'rows': 16}, {'rows': 32}])\n"

    def found(call: str) -> list[str | None]:
        text = source(BODY, launch=grid, args="M, rows=None", tail=call)
        text = text.replace("@tilelang.jit", f"from tilelang.autotuner import autotune\n{head}@tilelang.jit", 1)
        return [finding.severity for finding in findings(text) if finding.code == "TL817"]

    assert found("factory(16 * 65535)") == []
    assert found("factory(16 * 65536)") == ["warning"]
    assert found("factory(32 * 65536)") == [None]
    assert found("factory(16 * 65536, rows=16)") == [None]
