"""``if`` statements whose branches store to what their condition reads: it is decided once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file

PARAMS = 'A: T.Tensor((32, 64), "float32"), N: T.Tensor((32, 64), "int32"), B: T.Tensor((32, 64), "float32")'
BODY = """a = T.alloc_fragment((16, 64), "float32")
n = T.alloc_fragment((16, 64), "int32")
f = T.alloc_fragment((16, 64), "float32")
T.copy(A[bx * 16, 0], a)
T.copy(N[bx * 16, 0], n)
T.fill(f, 1.0)
for i, j in T.Parallel(16, 64):
{0}
for i, j in T.Parallel(16, 64):
    f[i, j] = f[i, j] * 10.0 + T.cast(n[i, j], "float32") + a[i, j] * 100.0
T.copy(f, B[bx * 16, 0])
"""
BRANCHES = {
    "both are read": """if a[i, j] < 0.5 and n[i, j] == 2:
    n[i, j] = 5
    f[i, j] = 0.0""",
    "an else": """if a[i, j] < 0.5:
    a[i, j] = 3.0
    f[i, j] = 2.0
else:
    a[i, j] = 0.25
    n[i, j] = 1""",
    "two in turn": """if a[i, j] > 0:
    a[i, j] = a[i, j] - 1.0
    f[i, j] = a[i, j]
if a[i, j] > 0:
    a[i, j] = 0.5
    f[i, j] = 4.0""",
    "inside of another": """if n[i, j] > 1:
    if a[i, j] < 0.5:
        a[i, j] = 1.0
        f[i, j] = 0.0
    n[i, j] = 0""",
    "a name that is taken": """holds = a[i, j] + 1.0
if a[i, j] < 0.5:
    a[i, j] = holds
    f[i, j] = holds""",
}


@pytest.mark.parametrize("branches", BRANCHES.values(), ids=BRANCHES.keys())
def test_the_condition_is_decided_before_the_stores(branches: str) -> None:
    random = np.random.default_rng(9)
    given = {
        "A": random.standard_normal((32, 64)).astype(np.float32),
        "N": random.integers(0, 4, (32, 64)).astype(np.int32),
    }
    text = gpu_file(PARAMS, BODY.format("\n".join(f"    {line}" for line in branches.splitlines())))
    agree(text, given)


def test_against_numpy() -> None:
    """The judge is not only the old kernel in the simulator."""
    from tests.passes.gpu.support import migrated
    from tests.passes.simulated import run

    random = np.random.default_rng(9)
    a, n = random.standard_normal((32, 64)).astype(np.float32), random.integers(0, 4, (32, 64)).astype(np.int32)
    lines = "\n".join(f"    {line}" for line in BRANCHES["both are read"].splitlines())
    found = run(migrated(gpu_file(PARAMS, BODY.format(lines))), {"A": a, "N": n})["B"]
    holds = (a < 0.5) & (n == 2)
    wanted = np.where(holds, 0, 1) * 10.0 + np.where(holds, 5, n) + a * 100.0
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-4)
