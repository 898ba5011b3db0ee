"""How the time of a file grows with what is in it: with its kernels, with the statements of one, with its host code.

``python benchmarks/growth.py [--most 64]``. For each kind the CPU time of ``migrate_text`` for 1, 2, 4, ... parts, in
units of one ``libcst.parse_module`` of the same text, and the exponent: the slope of the logarithms of the times from
the middle to the end. 1 is linear.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import libcst as cst

from tl2npu.migration import migrate_text
from tl2npu.options import Options

HEAD = "import tilelang\nimport tilelang.language as T\n\n"
KERNEL = """
@tilelang.jit(out_idx=[1])
def make{number}(N, block=64):
    @T.prim_func
    def main(A: T.Tensor((N, block), "float32"), B: T.Tensor((N, block), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as i:
            x = T.alloc_fragment((block, block), "float32")
            y = T.alloc_fragment((block, block), "float32")
            T.copy(A[i * block, 0], x)
{body}
            T.copy(y, B[i * block, 0])

    return main

"""
LOOP = """            for r, c in T.Parallel(block, block):
                y[r, c] = {function}(x[r, c]) * 2.0 + {number}.0
                x[r, c] = T.max(x[r, c], y[r, c])
"""
HOST = """
def check{number}(n):
    kernel = make0(n)
    x = torch.randn(n, {number} + 1)
    return kernel(x) - torch.relu(x)

"""


def kernels(count: int) -> str:
    """A file with so many kernels of one loop."""
    body = LOOP.format(function="T.exp", number=1).rstrip()
    return HEAD + "".join(KERNEL.format(number=n, body=body) for n in range(count))


def loops(count: int) -> str:
    """One kernel with so many loops over its tiles."""
    body = "".join(LOOP.format(function=("T.exp", "T.sigmoid", "T.abs")[n % 3], number=n) for n in range(count))
    return HEAD + KERNEL.format(number=0, body=body.rstrip())


def host(count: int) -> str:
    """One kernel and so many functions that call it."""
    return kernels(1) + "import torch\n" + "".join(HOST.format(number=n) for n in range(count))


def seconds(work: Callable[[], object], least: float = 0.2) -> float:
    """CPU seconds of one run: the fastest of three, and of more while they are short."""
    times: list[float] = []
    while len(times) < 3 or sum(times) < least:
        gc.collect()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
        if times[-1] > 5:
            break
    return min(times)


def exponent(counts: list[int], times: list[float]) -> float:
    """The slope of the logarithms over the second half."""
    middle = len(counts) // 2
    return math.log(times[-1] / times[middle]) / math.log(counts[-1] / counts[middle])


def main() -> None:
    """Print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=64)
    most = parser.parse_args().most
    counts = [1 << shift for shift in range(most.bit_length()) if 1 << shift <= most]
    migrate_text(kernels(1), "warm.py", Options())
    for make in (kernels, loops, host):
        times, ratios = list[float](), list[float]()
        for count in counts:
            text = make(count)
            result = migrate_text(text, "kernel.py", Options())
            assert result.changed, f"{make.__name__} {count}: nothing was migrated"
            times.append(seconds(lambda text=text: migrate_text(text, "kernel.py", Options())))  # type: ignore[misc]
            ratios.append(times[-1] / seconds(lambda text=text: cst.parse_module(text)))  # type: ignore[misc]
        shown = ", ".join(f"{count}: {ratio:.1f}" for count, ratio in zip(counts, ratios, strict=True))
        print(f"{make.__name__}: {shown} times the parse; exponent {exponent(counts, times):.2f}; goal: 1.05")


if __name__ == "__main__":
    main()
