"""The simulator against a real GPU: ``fixtures/gpu_reference`` holds kernels and what an NVIDIA H200 made of them.

The outputs were computed with the ``tilelang`` package 0.1.15 from PyPI, CUDA 13.0 and torch 2.11 (2026-11-21).
A kernel file has ``CASES`` (name -> arguments), ``inputs(**arguments)`` (NumPy only, from a seed), ``kernel`` (the
factory), ``TOLERANCE``, and, where it needs them, ``IN_PLACE`` (which inputs are outputs too) and ``EAGER``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session

ROOT = Path(__file__).resolve().parents[3] / "fixtures" / "gpu_reference"
REFERENCE = np.load(ROOT / "reference.npz")
INPUTS: dict[str, str] = json.loads((ROOT / "inputs.json").read_text(encoding="utf-8"))
NAMES = sorted(path.parent.name for path in ROOT.glob("*/kernel.py"))
SIZE_LIMIT = 1_000_000


@pytest.fixture(autouse=True)
def tilelang() -> Iterator[None]:
    with installed(Session()):
        yield


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"gpu_reference_{name}", ROOT / name / "kernel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(module: Any, arguments: dict[str, Any]) -> tuple[tuple[Any, ...], list[np.ndarray]]:
    """The inputs before the call, and the outputs."""
    given = module.inputs(**arguments)
    tensors = [np.array(x) for x in given]
    if getattr(module, "EAGER", False):
        result = module.kernel(*tensors)
    else:
        result = module.kernel(**({} if hasattr(module, "FACTORY_ARGUMENTS") else arguments))(*tensors)
    places = getattr(module, "IN_PLACE", None)
    if places is not None:
        result = [tensors[n] for n in ((places,) if isinstance(places, int) else places)]
    return given, list(result) if isinstance(result, (list, tuple)) else [result]


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_the_gpu(name: str) -> None:
    module = load(name)
    for case, arguments in module.CASES.items():
        given, results = run(module, arguments)
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in given)).hexdigest()
        assert digest.startswith(INPUTS[f"{name}/{case}"]), "the inputs are not those that the GPU was given"
        tolerance = module.TOLERANCE.get(case, module.TOLERANCE)
        assert results
        for n, result in enumerate(results):
            expected = REFERENCE[f"{name}/{case}/{n}"]
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(
                result.astype(np.float64), expected.astype(np.float64), **tolerance, err_msg=f"{name} {case} {n}"
            )


def test_every_case_has_a_reference() -> None:
    held = {key.rpartition("/")[0] for key in REFERENCE.files}
    assert held == set(INPUTS) == {f"{name}/{case}" for name in NAMES for case in load(name).CASES}
    assert len(NAMES) >= 12
    assert (ROOT / "reference.npz").stat().st_size < SIZE_LIMIT
