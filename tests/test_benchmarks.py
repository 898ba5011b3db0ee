from __future__ import annotations

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
