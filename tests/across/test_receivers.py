"""Eager kernels that are handed to functions: a function of their name serves whoever only calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.passes.simulated import load
from tl2npu.migration import migrate_text
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
            "TL104 cannot rewrite the calls of the eager kernel `double`: `run` uses its attribute `compile`, "
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
    ("use", "expected"),
    [
        ("build()(a, 16)", "migrated"),
        ("build().compile(M=64, N=32, block=16)(a)", "migrated"),
        ("build().compile(**options)(a)", "migrated"),
        ("build().get_tir(M=64, N=32, block=16)", "refused"),
        ("build().out_idx", "refused"),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_what_is_asked_of_a_kernel_that_a_function_returns(
    tmp_path: Path, use: str, expected: str, named: bool
) -> None:
    host = "\ndef build():\n    return double\n\n\ndef use(a, options):\n"
    host += f"    made = build()\n    return {use.replace('build()', 'made')}\n" if named else f"    return {use}\n"
    assert outcome(tmp_path, "", host)[0] == expected


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("from .kernels import double\n\n\ndef use(a):\n    return double(a, 16)\n", "migrated"),
        ("from .kernels import double\n\nmade = double.compile(M=64, N=32, block=16)\n", "migrated"),
        ("from .kernels import double as d\n\nmade = d.compile(a, block=16)\n", "refused"),
        ("from .kernels import double as d\n\nmade = d.compile\n", "refused"),
        ("from . import kernels\n\nmade = kernels.double.par_compile([{'M': 64, 'N': 32, 'block': 16}])\n", "refused"),
        (
            "from . import kernels\nfrom .helper import run\n\n\ndef use(a):\n    return run(kernels.double, a)\n",
            "refused",
        ),
    ],
)
def test_what_other_files_ask(tmp_path: Path, user: str, expected: str) -> None:
    assert outcome(tmp_path, "", "", user=user, helper=COMPILES)[0] == expected


GIVEN = """
import numpy as np


def run(kernel, a, options):
    print(kernel.func.__name__)
    return kernel.compile(**options)(a)


def test():
    a = np.arange(32 * 16, dtype="float32").reshape(32, 16)
    np.testing.assert_array_equal(run(double, a, {"M": 32, "N": 16, "block": 8}), 2 * a)
    np.testing.assert_array_equal(double.compile(M=32, N=16, block=8)(a), 2 * a)
    np.testing.assert_array_equal(double(a, 8), 2 * a)


test()
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("**options", ["compile", "func"]),
        ("block=8, **options", ["compile", "func"]),
        ("M=32, N=16, block=8", ["compile", "func"]),
        ("block=8", []),
        ("M=32, block=8", []),
        ("A=a, **options", []),
        ("a, **options", []),
        ("*a, **options", []),
    ],
)
def test_a_function_gets_what_is_asked_of_it(tmp_path: Path, options: str, expected: list[str]) -> None:
    (tmp_path / ".git").mkdir()
    text = KERNEL.format(imports="", host=GIVEN.replace("**options", options, 1))
    result = migrate_text(text, str(tmp_path / "kernels.py"), Options())
    new = result.new_text or text
    given = [line for line in new.splitlines() if line.startswith("double.")]
    assert (new != text) == bool(expected)
    assert given == {True: ["double.func = double", "double.compile = double_kernel"]}.get(bool(expected), [])


def test_the_function_serves_its_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both files, executed: a host that compiles, names and calls the kernel that it is handed."""
    (tmp_path / ".git").mkdir()
    text = KERNEL.format(imports="", host=GIVEN)
    new = migrate_text(text, str(tmp_path / "kernels.py"), Options()).new_text
    assert new is not None
    for kernels in (text, new):
        load(kernels)
        assert capsys.readouterr().out == "double\n"
