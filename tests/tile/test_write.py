"""Random expressions on integers: what is printed means what was built."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

from tl2npu.kernel.symbolic import Sym, var
from tl2npu.tile.expr import Call, Const, Expr, Index, axis
from tl2npu.tile.write.expressions import expression

NAMES = {"@0": "i", "@1": "j"}
Value = Callable[[int, int], int]
BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "bitand": lambda a, b: a & b,
    "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "lt": lambda a, b: int(a < b),
    "eq": lambda a, b: int(a == b),
}


def index(rng: random.Random) -> tuple[Sym, Value]:
    """An integer of the element's place, with its value there."""
    i, j, factor = axis(0), axis(1), rng.randint(2, 5)
    return rng.choice(
        [
            (i % factor, lambda x, y: x % factor),
            (j // factor, lambda x, y: y // factor),
            (i - j, lambda x, y: x - y),
            (j * -1, lambda x, y: -y),
            (i % factor * -1 - 1, lambda x, y: -(x % factor) - 1),
            (j // factor * -1, lambda x, y: -(y // factor)),
            (i % factor * -2 + j * -1, lambda x, y: -(x % factor) * 2 - y),
            (i * factor + j, lambda x, y: x * factor + y),
            (i % factor * j, lambda x, y: x % factor * y),
            ((i + j) // factor % 3, lambda x, y: (x + y) // factor % 3),
            (var("n") * 0 - factor, lambda x, y: -factor),
        ]
    )


def drawn(rng: random.Random, depth: int) -> tuple[Expr, Value]:
    """An expression with its value, which is worked out beside the tree and not from it."""
    if depth == 0 or rng.random() < 0.2:
        if rng.random() < 0.3:
            number = rng.randint(-4, 4)
            return Const(number, "int32"), lambda x, y: number
        sym, value = index(rng)
        return Index(sym), value
    left, of_left = drawn(rng, depth - 1)
    op = rng.choice([*BINARY, "neg", "bitnot"])
    if op in ("neg", "bitnot"):
        return Call(op, (left,), "int32"), lambda x, y: -of_left(x, y) if op == "neg" else ~of_left(x, y)
    if op in ("floordiv", "mod", "shl"):
        number = rng.randint(1, 4)
        return Call(op, (left, Const(number, "int32")), "int32"), lambda x, y: BINARY[op](of_left(x, y), number)
    right, of_right = drawn(rng, depth - 1)
    return Call(op, (left, right), "int32"), lambda x, y: BINARY[op](of_left(x, y), of_right(x, y))


@pytest.mark.parametrize("seed", range(20))
def test_printed_expressions_mean_what_was_built(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        expr, value = drawn(rng, 3)
        text = expression(expr, NAMES)
        for i, j in product((0, 1, 5, 7), (0, 2, 3)):
            assert int(eval(text, {"i": i, "j": j})) == value(i, j), text
