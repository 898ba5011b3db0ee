"""Scripts without seeds: both files draw the same numbers."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.verify.support import HEAD, SCALE, by_script
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.verify.seeding import seeded

DRAWS = {
    "a generator": "np.random.default_rng().standard_normal((64, 64))",
    "the old functions": "np.random.randn(64, 64)",
    "Python": "np.full((64, 64), random.random())",
    "two generators": "np.random.default_rng().random((64, 64)) - np.random.default_rng().random((64, 64))",
    "an import": "default_rng().standard_normal((64, 64))",
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_both_scripts_have_the_same_inputs(draw: str, capfd: pytest.CaptureFixture[str]) -> None:
    head = HEAD + "import random\nfrom numpy.random import default_rng\n" + SCALE
    old = head + f"\n\nprint(float(scale(64)(({draw}).astype(np.float32)).sum()))\n"
    new = migrate_text(old, "kernel.py", Options()).new_text or ""
    assert "threads=2" in new
    result = by_script(old, new)
    assert result.ok, result.diagnostics
    first, second = capfd.readouterr().out.split()
    assert first == second
    assert float(first) != 0.0


def test_seeds_of_the_script_are_left() -> None:
    with seeded(7):
        assert np.random.default_rng(3).random() == np.random.Generator(np.random.PCG64(3)).random()
        one, two = np.random.default_rng().random(), np.random.default_rng().random()
        assert one != two
    with seeded(7):
        assert np.random.default_rng().random() == one
    with seeded(8):
        assert np.random.default_rng().random() != one


def test_nothing_is_left_behind() -> None:
    default_rng, finders = np.random.default_rng, list(sys.meta_path)
    np.random.seed(5)
    random.seed(5)
    expected = np.random.default_rng, np.random.RandomState(5).random_sample(), random.Random(5).random()
    with seeded(7):
        np.random.rand()
        random.random()
    assert (np.random.default_rng, np.random.random_sample(), random.random()) == expected
    assert np.random.default_rng is default_rng
    assert sys.meta_path == finders


def test_torch_is_seeded_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "torch" in sys.modules:
        pytest.skip("torch is imported")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "torch.py").write_text("seed = None\ndef manual_seed(given):\n    global seed\n    seed = given\n")
    with seeded(7):
        import torch

        assert torch.seed == 7  # type: ignore[comparison-overlap]
    with seeded(8):
        assert torch.seed == 8  # type: ignore[comparison-overlap]
    sys.modules.pop("torch")  # by hand: the fixture would put it back
