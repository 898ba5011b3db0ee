from __future__ import annotations

import difflib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_generated_tree_has_as_many_files_as_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "tree", raising=False)
    import tree

    kernels = tree.write(tmp_path, 30, 5)
    found = sorted(tmp_path.rglob("*.py"))
    assert len(found) == 35
    assert len(kernels) == 30
    assert len({path.read_bytes() for path in found}) == 35
    assert all(b"tilelang" in path.read_bytes() for path in kernels)
    assert not any(b"tilelang" in path.read_bytes() for path in set(found) - set(kernels))
    assert len(tree.spread(tree.kernel_texts(), 500)) == 500


def test_the_counts_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "texts", raising=False)
    import texts

    old = "a = T.alloc_shared((8,))\nT.copy(A, a)\n" + "".join(f"x{n} = {n}\n" for n in range(20))
    new = old.replace(
        "T.copy(A, a)\n", "a_tmp_2 = T.alloc_ub((8,))\nT.copy(A, a)\nT.copy(a, a_tmp_2)\nT.copy(a_tmp_2, a)\n"
    ).replace("x9 = 9\n", f"x9 = {'9' * 130}\n")
    diff = "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/k.py", "b/k.py"))
    assert texts.patched(old, diff) == new
    found = texts.count(old, new)
    assert (found["old allocations"], found["new allocations"]) == (1, 2)
    assert (found["old copies"], found["new copies"]) == (1, 3)
    assert found["generated tiles"] == found["generated tiles with a number"] == 1
    assert found["generated tiles called tmp"] == 1
    assert found["lines that are too wide"] == 1
    assert found["conversions to and fro"] == 1
    assert found["generated names that are too long"] == found["tiles that nothing reads"] == 0
