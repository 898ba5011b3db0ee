"""Files of 20,000 lines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.robustness.support import KERNEL, call

pytestmark = pytest.mark.thorough

LINES = 20_000


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(lines: int) -> str:
    return "".join(f"value_{number} = [{number}, {number} + 1]  # tilelang\n" for number in range(lines))


def test_without_kernels_it_costs_next_to_nothing() -> None:
    Path("big.py").write_text(table(LINES))
    begun = time.process_time()
    assert call("migrate", "big.py", "--no-cache").exit_code == 0
    assert time.process_time() - begun < 2


def test_with_one_kernel() -> None:
    """Most of it prose: statements around a kernel cost some milliseconds each."""
    half = "# tilelang\n" * (LINES // 2 - 200) + table(200)
    Path("big.py").write_text(half + KERNEL + half)
    done = call("migrate", "big.py", "--no-cache")
    assert done.exit_code == 0, done.output
    new = Path("big.py").read_text()
    assert new.startswith(half)
    assert new.endswith(half)
    assert new != Path("big.py.orig").read_text()


def test_more_than_the_limit() -> None:
    Path("d").mkdir()
    Path("d/big.py").write_text(KERNEL + table(100))
    Path("pyproject.toml").write_text("[tool.tl2npu]\nmax-file-size = 1000\n")
    done = call("migrate", "d/big.py")
    assert done.exit_code == 2
    assert "d/big.py: error: file is too big" in done.output
    done = call("migrate", "d")
    assert done.exit_code == 0
    assert "d/big.py: skipped (file is too big" in done.output
