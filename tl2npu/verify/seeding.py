"""Random numbers that a script draws without a seed of its own: the same ones for the old and for the new file.

Else both have other inputs, and what they print differs although every launch agrees.
"""

from __future__ import annotations

import importlib.abc
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import ModuleType
from typing import Any

import numpy as np


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside of the context Python, NumPy and torch draw from the seed where a script gives none.

    ``default_rng()`` gives generators that differ from each other. What a script seeds itself is left as it is.
    """
    numpy_state, python_state = np.random.get_state(), random.getstate()
    default_rng = np.random.default_rng
    turns = count()

    def generator(given: Any = None) -> np.random.Generator:
        return default_rng([seed, next(turns)] if given is None else given)

    random.seed(seed)
    np.random.seed(seed % 2**32)
    np.random.default_rng = generator  # type: ignore[assignment]
    finder = _Torch(seed)
    sys.meta_path.insert(0, finder)
    if "torch" in sys.modules:
        _seed(sys.modules["torch"], seed)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        np.random.default_rng = default_rng
        np.random.set_state(numpy_state)
        random.setstate(python_state)


def _seed(torch: ModuleType, seed: int) -> None:
    if callable(manual := getattr(torch, "manual_seed", None)):
        manual(seed)


class _Torch(importlib.abc.MetaPathFinder):
    """Seeds torch once it is imported."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "torch":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((s for finder in others if (s := finder.find_spec(name, path, target)) is not None), None)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        loader, seed = spec.loader, self.seed
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _seed(module, seed)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
