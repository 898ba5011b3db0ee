"""GPU kernels from parts, migrated and compared on the simulator."""

from __future__ import annotations

import textwrap
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tests.passes.simulated import run
from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.simulator.lowering.lower import ACTUAL, IDEAL

IMPORTS = "import tilelang\nimport tilelang.language as T\n\n\n"


def gpu_file(
    params: str,
    body: str,
    *,
    launch: str = "T.Kernel(2, threads=128) as bx",
    args: str = "",
    factory: str = "",
    jit: str = "@tilelang.jit(out_idx=[-1])",
    head: str = IMPORTS,
) -> str:
    """A factory ``factory(args)`` with one GPU prim_func ``main(params)``; ``body`` is what the launch runs."""
    lines = [jit, f"def factory({args}):"]
    lines += [textwrap.indent(textwrap.dedent(factory).strip("\n"), "    ")] if factory else []
    lines += ["    @T.prim_func", f"    def main({params}):", f"        with {launch}:"]
    lines += [textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 12), "", "    return main"]
    return head + "\n".join(lines) + "\n"


def migrated(text: str, threads: str = "auto") -> str:
    """The new text of a file whose only kernel must come out in Developer mode, without an error that its check finds.

    One text in twelve is checked and migrated again, as all fixtures and examples of the rules are.
    """
    result = result_of(text, threads)
    (kernel,) = result.kernels
    assert kernel.disposition == "migrated", [(d.code, d.line, d.message) for d in result.diagnostics]
    assert kernel.errors == (), [(d.code, d.line, d.message) for d in result.diagnostics]
    new = result.new_text
    assert new is not None
    if zlib.crc32(text.encode()) % 12 == 0:
        assert [d for d in check_text(new, "k.py", Options()).diagnostics if d.severity == "error"] == []
        assert result_of(new, threads).new_text == new
    return new


@lru_cache(maxsize=16)
def result_of(text: str, threads: str = "auto") -> FileResult:
    """The result for a file that must be processed; tests ask for it more than once."""
    result = migrate_text(text, "k.py", Options(threads=threads))  # type: ignore[arg-type]
    assert result.error is None
    return result


def agree(
    text: str,
    inputs: Mapping[str, np.ndarray],
    *,
    factory: str = "factory",
    args: tuple[Any, ...] = (),
    threads: str = "auto",
    rtol: float = 1e-3,
    atol: float = 1e-3,
) -> str:
    """Migrate, and compare every tensor with the GPU original in both readings of the simulator; the new text."""
    new = migrated(text, threads)
    old = run(text, inputs, factory, args)
    for reading in (IDEAL, ACTUAL):
        found = run(new, inputs, factory, args, reading)
        assert found.keys() == old.keys()
        for name, expected in old.items():
            np.testing.assert_allclose(
                np.asarray(found[name], np.float64),
                np.asarray(expected, np.float64),
                rtol,
                atol,
                err_msg=f"{name}, {reading}",
            )
    return new


def refused(text: str) -> list[tuple[str, int]]:
    """Code and line of every error of a file whose kernels must all be refused, its text untouched."""
    result = result_of(text)
    assert all(kernel.disposition == "refused" for kernel in result.kernels)
    assert result.new_text == text
    return [(d.code, d.line) for d in result.diagnostics if d.severity == "error"]
