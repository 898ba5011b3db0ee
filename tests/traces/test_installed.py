"""The recorder under an installed TileLang: all ways to launch a kernel, without a GPU, by its target ``c``.

The interpreter is that of ``TL2NPU_TILELANG_PYTHON``, or this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from tl2npu.traces import reading
from tl2npu.traces.reading import open_trace

PYTHON = os.environ.get("TL2NPU_TILELANG_PYTHON", sys.executable if find_spec("tilelang") else "")
SCHEMA = json.loads(Path(reading.__file__).with_name("schema.json").read_text())
RECORD = Path(reading.__file__).with_name("child") / "record.py"

pytestmark = pytest.mark.skipif(not PYTHON, reason="no TileLang: set TL2NPU_TILELANG_PYTHON to an interpreter with it")

SCRIPT = """import tilelang
import tilelang.language as T
import torch
from tilelang.language import prim_func


@tilelang.jit(out_idx=[-1], target="c")
def lazy(M, N, K, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(M) as bx:
            for j in T.serial(N):
                C[bx, j] = 0.0
                for k in T.serial(K):
                    C[bx, j] += A[bx, k] * B[k, j]

    return main


def host(M, N, scale=2.0, dtype="float32"):
    @prim_func
    def scaled(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(M) as bx:
            for j in T.serial(N):
                B[bx, j] = A[bx, j] * scale

    return scaled


@tilelang.jit(target="c")
def eager(A, B, scale: float = 3.0):
    M, N = T.const("M N")
    A: T.Tensor((M, N), "float32")
    B: T.Tensor((M, N), "float32")
    with T.Kernel(M) as bx:
        for j in T.serial(N):
            B[bx, j] = A[bx, j] * scale


@tilelang.jit(target="c")
def eager_out(A, scale: float = 3.0):
    M, N = T.const("M N")
    A: T.Tensor((M, N), "float32")
    B = T.empty((M, N), "float32")
    with T.Kernel(M) as bx:
        for j in T.serial(N):
            B[bx, j] = A[bx, j] * scale
    return B


@tilelang.jit(out_idx=[1], target="c")
def dynamic(N, dtype="float32"):
    M = T.dynamic("M")

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), s: T.float32, n: T.int32):
        with T.Kernel(M) as bx:
            for j in T.serial(N):
                B[bx, j] = A[bx, j] * s

    return main


x, y = torch.randn(4, 6), torch.zeros(4, 6)
for _ in range(3):
    lazy(4, 5, 6)(x, torch.randn(6, 5))
tilelang.compile(host(4, 6), target="c")(x, y)
tilelang.compile(host(4, 6), target="c")(y, y)
eager(x, y, scale=4.0)
eager_out(x)
dynamic(6)(torch.randn(9, 6), 2.5, 7)
lazy.compile(4, 6, 6)(x, torch.randn(6, 6))
"""

TOLD = [
    ("lazy.main", "lazy", {"M": 4, "N": 5, "K": 6, "dtype": "float32"}, ("A", "B"), ("C",)),
    ("lazy.main", "lazy", {"M": 4, "N": 5, "K": 6, "dtype": "float32"}, ("A", "B"), ("C",)),
    ("host.scaled", "host", {"M": 4, "N": 6, "scale": 2.0, "dtype": "float32"}, ("A", "B"), ()),
    ("host.scaled", "host", {"M": 4, "N": 6, "scale": 2.0, "dtype": "float32"}, ("A", "B"), ()),
    ("eager", "eager", {"scale": 4.0, "M": 4, "N": 6}, ("A", "B"), ()),
    ("eager_out", "eager_out", {"scale": 3.0, "M": 4, "N": 6}, ("A",), ("B",)),
    ("dynamic.main", "dynamic", {"N": 6, "dtype": "float32"}, ("A", "s", "n"), ("B",)),
    ("lazy.main", "lazy", {"M": 4, "N": 6, "K": 6, "dtype": "float32"}, ("A", "B"), ("C",)),
]


def test_every_way_to_launch(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(SCRIPT)
    command = [PYTHON, str(RECORD), "--out", "trace", "--launches", "2", "s.py"]
    environment = {**os.environ, "TILELANG_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    jsonschema.validate(json.loads((tmp_path / "trace" / "manifest.json").read_text()), SCHEMA)
    trace = open_trace(tmp_path / "trace")
    assert [(r.kernel, r.factory, r.arguments, r.given, r.returned) for r in trace.launches] == TOLD
    assert trace.left_out == (("lazy.main", "more than 2 launches with the same arguments and shapes", 1),)
    values = [trace.load(launch) for launch in trace.launches]
    np.testing.assert_allclose(
        values[0].after["C"], values[0].before["A"] @ values[0].before["B"], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_array_equal(values[2].after["B"], values[2].before["A"] * 2)
    assert [(t.name, t.role, t.shares) for t in trace.launches[3].tensors] == [
        ("A", "inout", None),
        ("B", "inout", "A"),
    ]
    np.testing.assert_array_equal(values[5].after["B"], values[5].before["A"] * 3)
    assert trace.launches[6].scalars == {"s": 2.5, "n": 7}
    assert values[6].after["B"].shape == (9, 6)
