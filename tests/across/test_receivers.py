"""Eager kernels that are handed to functions: a function of their name serves whoever only calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tl2npu.migrate import migrate_text
from tl2npu.options import Options

KERNEL = """
import tilelang
import tilelang.language as T
{imports}


@tilelang.jit
def double(A, block):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
        a = T.alloc_fragment((block, N), "float32")
        T.copy(A[bx * block, 0], a)
        for i, j in T.Parallel(block, N):
            a[i, j] = a[i, j] * 2.0
        T.copy(a, C[bx * block, 0])
    return C

{host}
"""
ONLY_CALLS = "def run(kernel, a, *, of=None):\n    return (of or kernel)(a, 16)\n"
COMPILES = "def run(kernel, a, *, of=None):\n    made = (of or kernel)\n    return kernel.compile(block=16)(a)\n"
NAMES = "def run(kernel, a, *, of=None):\n    print(kernel.__name__)\n    return kernel(a, 16)\n"
ASKS_BY_NAME = "def run(kernel, a, *, of=None):\n    return of.get_kernel_source()\n"


def outcome(root: Path, imports: str, host: str, **others: str) -> tuple[str, list[str]]:
    """The disposition of the kernel and the messages of errors; ``others`` are the other modules of its package."""
    (root / ".git").mkdir()
    (root / "__init__.py").write_text("")
    for name, text in others.items():
        (root / f"{name}.py").write_text(text)
    text = KERNEL.format(imports=imports, host=host)
    file = root / "kernels.py"
    file.write_text(text)
    result = migrate_text(text, str(file), Options())
    (kernel,) = result.kernels
    assert (result.new_text != text) == (kernel.disposition == "migrated")
    return kernel.disposition, [f"{d.code} {d.message}" for d in result.diagnostics if d.severity == "error"]


@pytest.mark.parametrize(
    ("call", "import_"),
    [("run(double, a)", "from .helper import run"), ("h.run(double, a)", "from . import helper as h")],
)
@pytest.mark.parametrize(("helper", "expected"), [(ONLY_CALLS, "migrated"), (NAMES, "migrated"), (COMPILES, "refused")])
def test_what_a_function_of_another_module_asks(
    tmp_path: Path, call: str, import_: str, helper: str, expected: str
) -> None:
    found, messages = outcome(tmp_path, import_, f"\ndef use(a):\n    return {call}\n", helper=helper)
    assert found == expected
    assert messages == (
        []
        if expected == "migrated"
        else [
            "TL104 calls of the eager kernel `double` cannot be kept right: `run` uses `compile` of it, "
            "which a function does not have"
        ]
    )


@pytest.mark.parametrize(
    ("helper", "call", "expected"),
    [
        (COMPILES, "run(double, a)", "refused"),
        (COMPILES, "run(other, a, of=double)", "migrated"),
        (ASKS_BY_NAME, "run(other, a, of=double)", "refused"),
        ("", "unknown(double, a)", "migrated"),
    ],
)
def test_what_a_function_of_the_file_asks(tmp_path: Path, helper: str, call: str, expected: str) -> None:
    assert outcome(tmp_path, "", f"\n{helper}\n\ndef use(a, other):\n    return {call}\n")[0] == expected


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("from .kernels import double\n\n\ndef use(a):\n    return double(a, 16)\n", "migrated"),
        ("from .kernels import double\n\nmade = double.compile(M=64, N=32, block=16)\n", "refused"),
        (
            "from . import kernels\nfrom .helper import run\n\n\ndef use(a):\n    return run(kernels.double, a)\n",
            "refused",
        ),
    ],
)
def test_what_other_files_ask(tmp_path: Path, user: str, expected: str) -> None:
    assert outcome(tmp_path, "", "", user=user, helper=COMPILES)[0] == expected
