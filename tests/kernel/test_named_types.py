"""The types that a file gives to names of types: of a function's parameter only what that function is given."""

from __future__ import annotations

import libcst as cst
import pytest

from tl2npu.kernel.named_types import named_types
from tl2npu.source.tree import nodes_of

TEXT = """
accum = "float32"

def one(n, dtype="float16"):
    pass

def other(n, dtype="int32" if HAVE else None):
    pass

one(4, "bfloat16")
one(4, dtype="float8")
other(4, "int16")
x = torch.empty(4, dtype=torch.int64)
y = partial(one, dtype="uint8")
z = functools.partial(one, dtype="int8")
"""


def types(name: str, within: str) -> set[str]:
    module = cst.parse_module(TEXT)
    (function,) = [node for node in nodes_of(module, cst.FunctionDef) if node.name.value == within] or [None]
    return set(named_types(module, function).get(name, ()))


@pytest.mark.parametrize(
    ("within", "found"),
    [
        ("one", {"float16", "bfloat16", "float8", "uint8", "int8"}),
        ("other", {"int32", "int16", "uint8", "int8"}),  # what `partial` hands on may be for any of them
        ("", {"float16", "bfloat16", "float8", "int32", "int16", "uint8", "int8"}),
    ],
)
def test_a_parameter_has_the_types_that_its_function_is_given(within: str, found: set[str]) -> None:
    assert types("dtype", within) == found
    assert types("accum", within) == {"float32"}


HANDED_ON = """
def factory(n, dtype, accum):
    pass

def run(dtype, accum):
    return factory(4, dtype, accum)

def other(accum="int32"):
    pass

run("bfloat16", "float32")
run("float16", accum="float32")
"""


@pytest.mark.parametrize(
    ("name", "more", "found"),
    [
        ("accum", "", {"float32"}),
        ("dtype", "", {"bfloat16", "float16"}),
        ("accum", 'run("float16", "float16")', {"float32", "float16"}),
        ("accum", "def again(accum):\n    factory(4, dtype, accum)\n", {"float32", "accum"}),  # nobody calls it
    ],
)
def test_what_a_function_hands_on_is_what_it_was_given(name: str, more: str, found: set[str]) -> None:
    module = cst.parse_module(f"{HANDED_ON}\n{more}\n")
    factory = next(node for node in nodes_of(module, cst.FunctionDef) if node.name.value == "factory")
    assert set(named_types(module, factory)[name]) == found
