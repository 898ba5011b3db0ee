"""What is not part of the language is refused, at the line of the user's source."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

Fault = Callable[[str], str]

FRAME = """
@tilelang.jit(out_idx=[1])
def make(n=8):
    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((n,), "int32")
{body}
    return main

make()(np.arange(8, dtype="int32"))
"""

BODIES = {
    "pipe that no core has": (
        """
        T.set_flag("mte2", "vec", 0)  # here
        """,
        "unknown pipe `vec`; did you mean `v`?",
    ),
    "loop variable behind its loop": (
        """
        for i in range(n):
            B[i] = A[i]
        B[0] = i  # here
        """,
        "i is used outside of the loop",
    ),
    "value of a loop behind it": (
        """
        for i in range(n):
            x = A[i]
        B[0] = x + 1  # here
        """,
        "x is used outside of the loop",
    ),
    "value of a branch behind it": (
        """
        if A[0] > 3:
            x = A[1]
        else:
            x = A[2]
        B[0] = x  # here
        """,
        "x is used outside of the branch",
    ),
    "value of one arm in the other": (
        """
        if A[0] > 3:
            x = A[1]
        else:
            B[0] = x * 2  # here
        """,
        "x is used outside of the branch",
    ),
    "too many indices": ("B[0, 1] = A[0]  # here", "1 axes, but 2 indices"),
    "too many indices on the right": ("B[0] = A[0, bx]  # here", "1 axes, but 2 indices"),
    "an index that is a float": ("B[1.5] = A[0]  # here", "is not an integer"),
    "an index that is a float expression": ("B[T.cast(bx, 'float32')] = A[0]  # here", "float32, not an integer"),
    "an index that is a buffer": ("B[s] = A[0]  # here", "is not an integer"),
    "a slice with a step": ("T.copy(A[0:8:2], s)  # here", "a slice with a step"),
    "a whole buffer as a value": ("B[0] = s  # here", "the whole buffer s where a scalar"),
    "a region as a value": ("B[0] = s[0:4]  # here", "a region of s where a scalar"),
    "a whole buffer in arithmetic": ("B[0] = s + 1  # here", "unsupported operand"),
    "a whole buffer as a condition": (
        """
        if s:  # here
            B[0] = 1
        """,
        "the whole buffer s is not a condition",
    ),
    "an expression as a Python integer": ("x = [1, 2, 3][bx]  # here", "used as a Python integer"),
    "an expression in a Python condition": ("x = [1 for _ in [0] if A[0]]  # here", "the truth of an expression"),
    "a name that is not there": ("B[0] = no_such_name  # here", "NameError"),
    "an operator that does not exist": ("T.no_such_operator(A, B)  # here", "no operator 'no_such_operator'"),
    "missing arguments": ("T.copy(A)  # here", "copy"),
    "a division by a constant 0": ("x = A[0] / (8.0 - n)  # here", "ZeroDivisionError"),
    "an error of Python": ("x = 1 // (n - 8)  # here", "ZeroDivisionError"),
    "an error in a function that is called": ("helper(0)", "ZeroDivisionError"),
    "raise": ("raise KeyError('why')  # here", "KeyError: 'why'"),
    "assert": ("assert n == 7, 'seven'  # here", "AssertionError: seven"),
    "assert about a run-time value": ("assert A[0] == 7  # here", "an assert about a value"),
    "try": (
        """
        try:  # here
            B[0] = 1
        except ValueError:
            pass
        """,
        "try is not part of the language",
    ),
    "else behind a loop": (
        """
        for i in range(n):  # here
            B[i] = 1
        else:
            B[0] = 2
        """,
        "else behind a loop is not part",
    ),
    "an endless while": (
        """
        x = 0
        while x < 3:  # here
            x += 1
        """,
        "it would never end",
    ),
    "break of an unrolled loop on a run-time value": (
        """
        for k in [0, 1, 2]:
            if A[k] > 0:
                break  # here
        """,
        "in a loop that is unrolled",
    ),
    "return in a branch": ("gives(A)", "a return inside a loop or branch"),
    "a loop over a buffer": (
        """
        for x in A:  # here
            B[0] = x
        """,
        "a loop over the whole buffer A",
    ),
    "a loop over a value": (
        """
        for x in A[0]:  # here
            B[0] = x
        """,
        "a loop over Load",
    ),
    "two names for one loop variable": (
        """
        for i, j in range(n):  # here
            B[i] = 1
        """,
        "one loop variable is needed",
    ),
    "three names for two parallel variables": (
        """
        for i, j, k in T.Parallel(2, 4):  # here
            B[i] = 1
        """,
        "2 loop variables are needed, 3",
    ),
    "a step of 0": (
        """
        for i in range(0, n, 0):  # here
            B[i] = 1
        """,
        "step of a loop",
    ),
    "unpacking a value": ("x, y = A[0]  # here", "cannot be taken apart"),
    "unpacking too few": ("x, y = A[0], A[1], A[2]  # here", "3 value(s) for 2 names"),
    "the result of an operator as a value": ("B[0] = T.copy(A, s)  # here", "the result of T.copy where a scalar"),
    "an operator in a plain function": ("moves(A, s)", "the compiler drops such a call"),
    "a store in a plain function": ("stores(B)", "the compiler does not see such an assignment"),
    "a kernel in a kernel": (
        """
        with T.Kernel(2):  # here
            B[0] = 1
        """,
        "a T.Kernel inside another",
    ),
    "a macro with a wrong argument": ("one(A)  # here", "missing 1 required positional argument"),
}

HELPERS = {
    "an error in a function that is called": "def helper(x):\n    return 1 // x  # here\n",
    "return in a branch": "@T.macro\ndef gives(A):\n    if A[0] > 3:\n        return 1  # here\n    return 2\n",
    "an operator in a plain function": "def moves(A, s):\n    T.copy(A, s)  # here\n",
    "a store in a plain function": "def stores(B):\n    B[0] = 1  # here\n",
    "a macro with a wrong argument": "@T.macro\ndef one(A, B):\n    B[0] = A[0]\n",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_fault_of_the_body(fault: Fault, name: str) -> None:
    """The message says what is wrong, and the line is the one that is marked."""
    body, said = BODIES[name]
    text = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 12)
    assert said in fault(HELPERS.get(name, "") + FRAME.format(body=text))


HEADS = {
    "one name for a grid of two": ("with T.Kernel(2, 3, threads=32) as (a,):  # here", "gives 2 name(s)"),
    "three names for a grid of two": ("with T.Kernel(2, 3, threads=32) as (a, b, c):  # here", "gives 2 name(s)"),
    "an NPU grid of two dimensions": ("with T.Kernel(2, 3, is_npu=True) as (a, b):  # here", "exactly one block"),
    "NPU threads of 4": ("with T.Kernel(2, threads=4, is_npu=True) as a:  # here", "threads must be 1 or 2"),
    "NPU cid and vid with threads": ("with T.Kernel(2, threads=2, is_npu=True) as (a, b):  # here", "gives 1 name(s)"),
    "a grid of four dimensions": ("with T.Kernel(2, 2, 2, 2, threads=32):  # here", "a grid of 4 dimensions"),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_fault_of_the_launch(fault: Fault, name: str) -> None:
    """Grids and the names behind ``as``."""
    head, said = HEADS[name]
    assert said in fault(f"""
@T.prim_func
def main(A: T.Tensor((8,), "int32")):
    {head}
        A[0] = 1
""")


DEFINITIONS = {
    "a parameter without annotation": ("def main(A):  # here\n    pass", "parameter A has no annotation"),
    "an annotation that is no type": ("def main(A: 3):  # here\n    pass", "not with a tensor or a type"),
    "many parameters": ("def main(*A: T.int32):  # here\n    pass", "no parameters like *A"),
    "a store outside of the launch": (
        "def main(A: T.Tensor((8,), 'int32')):\n    A[0] = 1  # here",
        "outside of `with T.Kernel(...)`",
    ),
    "a read outside of the launch": (
        "def main(A: T.Tensor((8,), 'int32')):\n    x = A[0] + 1  # here",
        "read before T.Kernel",
    ),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_fault_of_the_definition(fault: Fault, name: str) -> None:
    """Parameters, and statements outside of the launch."""
    text, said = DEFINITIONS[name]
    assert said in fault(f"@T.prim_func\n{text}\n")


def test_a_lambda_is_no_prim_func(fault: Fault) -> None:
    """A lambda has no statements."""
    assert "is not a plain function" in fault("main = T.prim_func(lambda A: None)  # here\n")


def test_a_loop_in_a_comprehension_with_a_run_time_extent(fault: Fault) -> None:
    """A comprehension is Python: it cannot go over a loop of the program."""
    assert "outside" in fault("""
@T.prim_func
def main(A: T.Tensor((8,), "int32")):
    with T.Kernel(4, threads=32) as bx:
        x = [0 for i in range(bx)]  # here
""")
