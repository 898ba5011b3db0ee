"""What is known only when a kernel is launched, and which conditions Python decides while it builds the kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kernel.support import file_of, source
from tl2npu.kernel.model import Branch
from tl2npu.kernel.runtime import Late, runtime_names


def decided(body: str, ask: Callable[[Late, Branch], bool] = Late.python_decides, **parts: str) -> list[bool]:
    """For every ``if`` of the kernel, whether Python takes one arm of it, or what else is asked."""
    file = file_of(source(body, **parts))
    (located,) = file.located
    kernel = located.read()
    late = Late.of(file, located, kernel)
    return [ask(late, stmt) for stmt in kernel.walk() if isinstance(stmt, Branch)]


SIZES = 'n = T.dynamic("n")'
SCALAR = 'A: T.Tensor((1024, 64), "float32"), count: T.int32'


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("M > 1024", True),
        ("M > 1024 and len(str(N)) > 2", True),
        ("UNKNOWN", True),
        ("n > 1024", False),
        ("M > 4 and n > 4", False),
        ("blocks > 4", False),
        ("is_long", False),
        ("is_long_one()", False),
        ("later > 4", False),
        ("sizes[0] > 4", False),
        ('T.dynamic("q") > 4', False),
        ("count > 4", False),
        ("cid > 4", False),
        ("A[0, 0] > 4", False),
    ],
)
def test_conditions(condition: str, expected: bool) -> None:
    factory = f"""
    {SIZES}
    blocks = T.ceildiv(n, 64)
    is_long = n > 4 and M > 4
    def is_long_one():
        return n > 4
    if N > 3:
        later = 3
    else:
        later = n
    sizes = [n, M]
    """
    assert decided(f"if {condition}:\n    x = 1", factory=factory, params=SCALAR) == [expected]


def test_an_elif_is_judged_for_itself() -> None:
    body = "if M > 4:\n    x = 1\nelif N > 4:\n    x = 2\nelif n > 4:\n    x = 3"
    assert decided(body, factory=SIZES) == [True, True, False]


def test_names_that_the_kernel_binds_are_none_of_pythons() -> None:
    """The NPU's front end makes a variable of every name that a kernel binds, also of a plain number."""
    assert decided("few = M\nif few > 4:\n    x = 1") == [False]
    assert decided("for k in range(4):\n    if k == 0:\n        x = 1") == [False]


MACRO = """
@T.macro
def step(flag):
    for k in range(4):
        if k == 0:
            x = 1
    if flag:
        x = 2
"""


@pytest.mark.parametrize(
    ("argument", "expected"), [("M > 4", True), ("True", True), ("cid == 0", False), ("n > 4", False)]
)
def test_parameters_of_macros_stand_for_what_they_are_given(argument: str, expected: bool) -> None:
    assert decided(f"step({argument})", factory=f"{SIZES}\n{MACRO}") == [False, expected]


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ('factory(T.dynamic("m"), 1, 2)', {"M"}),
        ('def build():\n    rows = T.symbolic("m")\n    return factory(1, N=rows * 2, bm=2)', {"N"}),
        ('def build(rows, n):\n    return factory(rows, n, 2)\nbuild(4, T.dynamic("n"))', {"N"}),
        ('def build():\n    M = T.symbolic("m")\n    return M\nfactory(1, 2, 3)', set()),
        ('M = T.symbolic("m")\nfactory(1, 2, 3)', set()),
        ('sizes = [T.symbolic("m"), 2, 3]\nfactory(*sizes)', {"M", "N", "bm"}),
        ('factory(4, 8, 64 if isinstance(T.symbolic("m"), int) else 32)', set()),
    ],
)
def test_what_callers_give(module: str, names: set[str]) -> None:
    file = file_of(source("x = 1", module=module))
    assert {"M", "N", "bm"} & runtime_names(file, file.located[0]) == names
