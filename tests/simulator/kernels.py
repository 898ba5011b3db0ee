"""Runs kernels that tests have as text: through the stand-in package, as a user's script would."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.loading import anything_importable

_counter = itertools.count()

HEADER = """
import tilelang
import tilelang.language as T

ALL = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}
"""


def load(text: str, session: Session | None = None) -> dict[str, Any]:
    """Execute a script; its globals. Its source is kept where ``inspect`` finds it; torch need not be there."""
    name = f"<kernel {next(_counter)}>"
    source = textwrap.dedent(text)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {"__name__": "kernel", "__file__": name}
    with installed(session or Session()), anything_importable():
        exec(compile(source, name, "exec", dont_inherit=True), space)
    return space


def developer(
    signature: str, body: str, threads: int | None = 2, blocks: int = 1, names: str = "cid", outside: str = ""
) -> str:
    """A Developer-mode kernel ``main`` with the parameters of ``signature``; ``C`` is its output.

    ``outside``: what stands in front of ``T.Kernel``.
    """
    launch = f"threads={threads}, " if threads is not None else ""
    inner = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 12)
    before = textwrap.indent(textwrap.dedent(outside).strip("\n"), " " * 8)
    count = signature.count("T.Tensor")
    return f"""{HEADER}
@tilelang.jit(out_idx=[{count - 1}], pass_configs=ALL)
def factory(M=32, N=64):
    @T.prim_func
    def main({signature}):
{before}
        with T.Kernel({blocks}, {launch}is_npu=True) as ({names}):
{inner}
    return main
"""


def outputs(text: str, inputs: Mapping[str, np.ndarray], reading: str = "actual", **arguments: Any) -> np.ndarray:
    """The result of ``factory(**arguments)`` on the inputs, in the order of their names in the mapping."""
    session = Session(reading=reading)
    kernel = load(text, session)["factory"](**arguments)
    return kernel(*(np.array(a) for a in inputs.values()))  # type: ignore[no-any-return]
