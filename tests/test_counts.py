"""The coverage that README.md and docs/coverage.md show is counted by ``benchmarks/counts.py``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from tl2npu.cli import cli

ROOT = Path(__file__).resolve().parents[1]


TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)


def double(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    n = x.numel()
    twice[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
"""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "counts", raising=False)
    import counts

    return counts


def test_the_pages_show_what_was_counted(counts: ModuleType) -> None:
    figures = json.loads(counts.FIGURES.read_text(encoding="utf-8"))
    for page in counts.PAGES:
        text = page.read_text(encoding="utf-8")
        assert counts.written(text, figures) == text, f"run `python benchmarks/counts.py` for {page.name}"
        assert text.count("<!-- coverage: ") == 1
    assert counts.headline(figures) in counts.PAGES[0].read_text(encoding="utf-8")
    for name, found in figures.items():
        for language in ("tilelang", "triton") if name != "date" else ():
            own = found[language]
            assert own["kernels"] == own["migrated"] + own["partial"] + own["unchanged"] + own["refused"]
            assert own["migrated"] == sum(own["threads"].values())


def test_every_kernel_counts_once(counts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fits, one that does not as it is called, one that is refused, one of Triton, one of Expert mode."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()
    kernel = (ROOT / "fixtures" / "gpu" / "masked_fill" / "before.py").read_text()
    huge = kernel.replace("BM=16", "BM=4096")
    names = {"fine": kernel, "huge": huge, "triton": TRITON}
    for name in ("expert/macro_signals", sorted((ROOT / "fixtures" / "refused").iterdir())[0]):
        names[Path(name).name] = (ROOT / "fixtures" / name / "before.py").read_text()
    for name, text in names.items():
        (tmp_path / "examples" / f"{name}.py").write_text(text)
    report = json.loads(CliRunner().invoke(cli, counts.COMMAND).stdout)
    found, triton = counts.count(report, False), counts.count(report, True)
    kernels = [kernel for file in report["files"] for kernel in file["kernels"]]
    assert found["kernels"] + triton["kernels"] == len(kernels)
    assert (found["kernels"], triton["kernels"] > 0) == (4, True)
    assert (found["migrated"], found["refused"]) == (3, 1)
    assert found["with_errors"] == {"TL801": 1}
    assert sum(found["threads"].values()) == 3
