"""Random expression texts with the values that Python gives them."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ("vid", "h", "row", "n")
numbers = st.integers(0, 9).map(str)
names = st.sampled_from(NAMES)


def _binary(parts: tuple[str, str, str, bool]) -> str:
    left, sign, right, tight = parts
    return f"{left}{sign}{right}" if tight else f"{left} {sign} {right}"


def _sums(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operand = inner | inner.map(lambda text: f"({text})")
    return st.one_of(
        st.tuples(operand, st.sampled_from("+ - * // %".split()), operand, st.booleans()).map(_binary),
        inner.map(lambda text: f"({text})"),
        st.tuples(inner, inner).map(lambda pair: f"f({pair[0]}, {pair[1]})"),
        inner.map(lambda text: f"g(key={text})"),
    )


def _wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        _sums(inner),
        inner.map(lambda text: f"-({text})"),
        inner.map(lambda text: f"t[{text}]"),
        st.tuples(inner, inner, inner).map(lambda three: f"({three[0]} if {three[1]} > {three[2]} else {three[0]})"),
    )


#: Arithmetic and calls only.
sums = st.recursive(numbers | names, _sums, max_leaves=9)
#: Sums, products and the like of names and small numbers; calls, signs, subscripts, conditions too.
texts = st.recursive(numbers | names, _wrapped, max_leaves=9)


class _Table:
    def __getitem__(self, index: int) -> int:
        return index * 7 + 3


def value(text: str, **known: int) -> int | None:
    """Python's value; None for a division by zero."""
    space = {"f": lambda a, b: 3 * a + 5 * b, "g": lambda key: key * key + 1, "t": _Table(), **known}
    try:
        return int(eval(text, {"__builtins__": {}}, space))
    except ZeroDivisionError:
        return None
