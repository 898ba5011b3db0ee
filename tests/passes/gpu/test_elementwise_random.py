"""Random element-wise statements: before and after compute the same, and the pass has nothing to add to its result."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.passes.gpu.support import agree
from tests.passes.gpu.test_elementwise import HALF, M, N, kernel, values
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.options import Options
from tl2npu.passes.gpu import elementwise
from tl2npu.passes.job import Job
from tl2npu.source.index import Index

pytestmark = pytest.mark.thorough

TILES = "x[i, j]|z[i, j]|o[i, j]|s[i]|r[i]|w[j]|v[j]|h[i, j]|g[i]|2.0|soft|(-1.5)|3".split("|")
VECTORS = "s[i]|r[i]|g[i]|r[0]|2.0|soft|(-1.5)|3".split("|")
CONDITIONS = {
    True: [
        "i >= j",
        "j < 20",
        "i + j > 30 and i > 3",
        "x[i, j] > 0.1",
        "s[i] > 1",
        "w[j] < 1.0 or i == j",
        "not (x[i, j] < z[i, j])",
        "i // 3 == j // 5",
        "(i > 3) & (r[i] < 0.2)",
    ],
    False: ["i > 5", "s[i] > r[i]", "i < 20 and r[i] > 0", "r[i] == s[i]"],
}


class Writer:
    """Writes expressions whose values stay of moderate size."""

    def __init__(self, seed: int, two: bool) -> None:
        self.draw = random.Random(seed)
        self.two = two

    def value(self, depth: int) -> str:
        if depth <= 0 or self.draw.random() < 0.15:
            return self.draw.choice(TILES if self.two else VECTORS)
        kinds = (self.sum, self.sum, self.sum, self.quotient, self.sign, self.grows, self.root, self.limit, self.choice)
        return self.draw.choice(kinds)(depth - 1)

    def sum(self, depth: int) -> str:
        return f"({self.value(depth)} {self.draw.choice('+-*')} {self.value(depth)})"

    def quotient(self, depth: int) -> str:
        return f"({self.value(depth)} / (1.5 + T.abs({self.value(depth)})))"

    def sign(self, depth: int) -> str:
        return f"(-{self.value(depth)})"

    def grows(self, depth: int) -> str:
        return f"T.{self.draw.choice(['exp', 'exp2', 'sigmoid', 'tanh'])}({self.value(depth)} * 0.1)"

    def root(self, depth: int) -> str:
        return f"T.{self.draw.choice(['sqrt', 'rsqrt', 'log', 'log2'])}(1.5 + T.abs({self.value(depth)}))"

    def limit(self, depth: int) -> str:
        return f"T.{self.draw.choice(['max', 'min'])}({self.value(depth)}, {self.value(depth)})"

    def choice(self, depth: int) -> str:
        condition = self.draw.choice(CONDITIONS[self.two])
        return f"T.if_then_else({condition}, {self.value(depth)}, {self.value(depth)})"

    def body(self) -> str:
        header = f"for i, j in T.Parallel({M}, {N}):" if self.two else f"for i in T.Parallel({M}):"
        targets = ["o[i, j]", "x[i, j]", "h[i, j]"] if self.two else ["s[i]", "r[i]"]
        lines = [header]
        for _ in range(self.draw.choice([1, 2, 3])):
            sign = self.draw.choice(["=", "=", "+=", "*="])
            lines.append(f"    {self.draw.choice(targets)} {sign} {self.value(self.draw.choice([1, 2, 3]))}")
        return "\n".join(lines)


def text_of(seed: int, two: bool) -> str:
    return kernel(Writer(seed, two).body(), HALF)


@pytest.mark.parametrize("two", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_random_statements_agree(seed: int, two: bool) -> None:
    with np.errstate(all="ignore"):
        agree(text_of(seed, two), values(), threads="1", rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("seed", range(100, 112))
def test_the_result_is_legal_for_the_pass_itself(seed: int) -> None:
    once = rewritten(text_of(seed, seed % 3 > 0))
    assert rewritten(once) == once


def rewritten(text: str) -> str:
    index = Index.parse(text)
    file = FileKernels(index)
    job = Job(index, file, file.located[0].key, Options())
    elementwise.rewrite(job)
    return job.module.code
