"""How much slower the simulator is than plain NumPy that computes the same.

``python benchmarks/simulator.py [--repeat N] [--small] [NAME ...]``. Every kernel is timed in the same repetition as
its NumPy formula, in CPU time of the process; only the ratios are meant to be compared. Results are compared too.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tl2npu.simulator.standin.package import installed  # noqa: E402
from tl2npu.simulator.standin.session import Session  # noqa: E402

STYLES = ("gpu", "ascend")


@dataclass(frozen=True)
class Case:
    """``make``: inputs for a seed; ``formula``: what NumPy computes of them; ``goal``: the ratio to stay under."""

    name: str
    goal: float
    arguments: tuple[int, ...]
    small: tuple[int, ...]
    make: Callable[..., tuple[np.ndarray, ...]]
    formula: Callable[..., np.ndarray]
    tolerance: float


def gemm(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """fp16 operands, fp32 sum, fp16 result."""
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Whole score matrices in fp32, fp16 probabilities."""
    scores = q.astype(np.float32) @ k.astype(np.float32).swapaxes(1, 2) * np.float32(q.shape[-1] ** -0.5)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    total = weights.sum(axis=-1, keepdims=True)
    return (weights.astype(np.float16).astype(np.float32) @ v.astype(np.float32) / total).astype(np.float16)


def softmax(x: np.ndarray) -> np.ndarray:
    """Rows, in fp32."""
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    result: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return result


def _normal(*shapes: tuple[int, ...], dtype: type = np.float16) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(0)
    return tuple(random.standard_normal(shape).astype(dtype) for shape in shapes)


CASES = (
    Case("gemm", 3, (1024, 1024, 1024), (256, 256, 128), lambda m, n, k: _normal((m, k), (k, n)), gemm, 1e-2),
    Case(
        "attention",
        10,
        (8, 1024, 128),
        (2, 256, 128),
        lambda h, s, d: _normal((h, s, d), (h, s, d), (h, s, d)),
        attention,
        5e-3,
    ),
    Case("softmax", 5, (4096, 4096), (64, 256), lambda m, n: _normal((m, n), dtype=np.float32), softmax, 1e-5),
)


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of CPU time of one call, and what it returns."""
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def measure(case: Case, style: str, repeat: int, small: bool) -> tuple[float, float, float]:
    """Median seconds of NumPy and of the simulator, and the largest difference of their results."""
    with installed(Session()):
        factory = runpy.run_path(str(HERE / "kernels" / f"{style}.py"))[case.name]
        kernel = factory(*(case.small if small else case.arguments))
        inputs = case.make(*(case.small if small else case.arguments))
        expected, result = case.formula(*inputs), kernel(*inputs)  # not timed: loads libraries, compiles the kernel
        plain, simulated = [], []
        for _ in range(repeat):
            plain.append(timed(lambda: case.formula(*inputs))[0])
            simulated.append(timed(lambda: kernel(*inputs))[0])
    difference = np.abs(result.astype(np.float64) - expected.astype(np.float64)).max()
    return median(plain), median(simulated), float(difference / max(1.0, np.abs(expected).max()))


def main() -> int:
    """Print the table; 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="gemm, attention, softmax (default all)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="repetitions (default 3)")
    parser.add_argument("--small", action="store_true", help="small shapes, to see that it runs")
    options = parser.parse_args()
    wrong = 0
    print(f"  {'kernel':12} {'style':8} {'NumPy ms':>9} {'ms':>9} {'ratio':>7} {'goal':>6} {'error':>9}")
    for case in CASES:
        if options.names and case.name not in options.names:
            continue
        for style in STYLES:
            plain, simulated, error = measure(case, style, options.repeat, options.small)
            row = f"{1000 * plain:9.1f} {1000 * simulated:9.1f} {simulated / plain:7.2f} {case.goal:6.1f} {error:9.1e}"
            print(f"  {case.name:12} {style:8} {row}", flush=True)
            if not error <= case.tolerance:
                wrong = 1
                print(f"  {case.name} {style}: the results differ")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
