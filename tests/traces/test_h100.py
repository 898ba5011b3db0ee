"""Traces of TileLang 0.1.15 on an NVIDIA H100 or H200: what the migrated fixtures compute is what the GPU computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tl2npu.traces.reading import open_trace
from tl2npu.verify import reference
from tl2npu.verify.loading import Source
from tl2npu.verify.process import here
from tl2npu.verify.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
TRACES = sorted(path for path in (Path(__file__).parent / "h100").iterdir() if path.is_dir())


def source(path: Path, text: str | None = None) -> Source:
    return Source(path.read_text() if text is None else text, str(path), path.name)


def settings(trace: Path, **further: object) -> Settings:
    return Settings(reference=str(trace), check=None, **further)  # type: ignore[arg-type]


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name)
def test_the_migrated_kernel_computes_what_the_gpu_did(trace: Path) -> None:
    folder = ROOT / "fixtures" / "gpu" / trace.name
    found = open_trace(trace)
    assert found.device in ("NVIDIA H100 80GB HBM3", "NVIDIA H200")
    assert found.versions["tilelang"] == "0.1.15"
    result = reference.verify(
        source(folder / "before.py"), source(folder / "after.py"), settings(trace), here, [found.launches[0].kernel]
    )
    assert result.ok, result.diagnostics
    assert sum(bool(launch.outputs) for launch in result.comparisons) == len(found.launches)


WRONG = [
    ("gemv_rows", "T.tile.fill(acc, 0.0)", "T.tile.fill(acc, 1.0)"),
    ("softmax_exp", "= T.exp(x[i, j])", "= T.exp(x[i, j] * 1.01)"),
    ("layer_norm", "+ eps", "+ eps + 0.01"),
]


@pytest.mark.parametrize(("name", "right", "wrong"), WRONG)
def test_a_wrong_kernel_does_not(name: str, right: str, wrong: str) -> None:
    folder = ROOT / "fixtures" / "gpu" / name
    text = (folder / "after.py").read_text()
    assert right in text
    new = source(folder / "after.py", text.replace(right, wrong, 1))
    result = reference.verify(source(folder / "before.py"), new, settings(Path(__file__).parent / "h100" / name), here)
    assert not result.ok
    assert {kernel.status for kernel in result.kernels} == {"failed"}


def test_the_recorded_file_is_known() -> None:
    trace = open_trace(Path(__file__).parent / "h100" / "flash_decode")
    folder = ROOT / "fixtures" / "gpu" / "flash_decode"
    assert reference.is_recorded(trace, source(folder / "before.py"))
    assert not reference.is_recorded(trace, source(folder / "after.py"))
