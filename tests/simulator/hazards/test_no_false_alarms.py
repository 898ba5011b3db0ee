"""Kernels that are right, as far as is known, have no hazards."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.hazards import Report
from tl2npu.simulator.run import run_script
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
GPU = sorted(path.parent.name for path in FIXTURES.glob("gpu_reference/*/kernel.py"))
SCRIPTS = sorted(
    path.relative_to(FIXTURES).as_posix()
    for group in ("cube", "expert", "vid", "workspace")
    for path in FIXTURES.glob(f"{group}/*/*.py")
    if path.name in ("before.py", "after.py")
)
WRONG = {
    # a hand-over through a tensor for which the compiler makes no flags: its name does not contain "workspace", or
    # TL_ASCEND_AUTO_CV_SYNC is not on. Both are why the migration changes them (TL231)
    "workspace/fallback_column_chunks/before.py": {("RAW", "scratch")},
    "workspace/fallback_symbolic_grid/before.py": {("RAW", "workspace_1")},
}


@pytest.mark.parametrize("name", GPU)
def test_gpu_reference_kernels(name: str) -> None:
    report = Report()
    path = FIXTURES / "gpu_reference" / name / "kernel.py"
    with installed(Session(watch=report.observer)):
        spec = importlib.util.spec_from_file_location(f"watched_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for arguments in module.CASES.values():
            given = [np.array(x) for x in module.inputs(**arguments)]
            eager = getattr(module, "EAGER", False)
            fixed = eager or hasattr(module, "FACTORY_ARGUMENTS")
            (module.kernel if eager else module.kernel(**({} if fixed else arguments)))(*given)
    assert not list(report.lines())


@pytest.mark.parametrize("name", SCRIPTS)
def test_fixtures(name: str) -> None:
    """The scripts as they are, with their own inputs; tests/test_fixtures.py runs their kernels without torch."""
    pytest.importorskip("torch")
    report = Report()
    run_script(FIXTURES / name, [], Session(watch=report.observer))
    assert {(h.kind, h.buffer) for h in report.errors} == WRONG.get(name, set()), list(report.lines())
