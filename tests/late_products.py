"""A fault for tests: sums of products start in the second turn of their loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tl2npu.kernel.memory.chains import Chain
from tl2npu.passes.gpu.memory.assignment import Assignment


@contextmanager
def late_products() -> Iterator[None]:
    """The pass that assigns memories writes ``init=(k == 1)``."""
    chained = Assignment._chain

    def late(self: Assignment, chain: Chain) -> None:
        chained(self, chain)
        for gemm in chain.gemms:
            name, init = self.product_names[id(gemm)]
            self.product_names[id(gemm)] = name, init.replace("== 0", "== 1")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Assignment, "_chain", late)
        yield
