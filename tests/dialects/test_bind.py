"""``Operator.bind``: call arguments to parameters."""

from __future__ import annotations

import ast

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tl2npu.dialects.ascend import OPERATORS
from tl2npu.dialects.catalogue import Operator

Pair = tuple[str | None, object]


def op(name: str) -> Operator:
    return OPERATORS[name]


def call(source: str) -> list[Pair]:
    """The argument pairs of a call, the values as source text, sequences and strings as such."""
    node = ast.parse(source, mode="eval").body
    assert isinstance(node, ast.Call)
    pairs: list[Pair] = [(None, ast.unparse(arg)) for arg in node.args]
    return pairs + [(keyword.arg, ast.unparse(keyword.value)) for keyword in node.keywords]


@pytest.mark.parametrize(
    ("name", "source", "bound"),
    [
        ("tile.add", "f(a, b, c)", {"dst": "a", "src0": "b", "src1": "c"}),
        ("tile.add", "f(a, src1=c, src0=b)", {"dst": "a", "src0": "b", "src1": "c"}),
        ("copy", "f(x, y, pad_value=-1)", {"src": "x", "dst": "y", "pad_value": "-1"}),
        ("copy", "f(x, y, True)", {"src": "x", "dst": "y", "enable_relu": "True"}),
        ("gemm_v0", "f(a, b, c, init=k == 0)", {"A": "a", "B": "b", "C": "c", "init": "k == 0"}),
        ("Kernel", "f(n, is_npu=True)", {"blocks": ("n",), "is_npu": "True"}),
        ("Kernel", "f(n, m, threads=2)", {"blocks": ("n", "m"), "threads": "2"}),
        ("Kernel", "f(threads=2)", {"threads": "2"}),
        ("Pipelined", "f(n, num_stages=2)", {"start": "n", "num_stages": "2"}),
        ("Pipelined", "f(0, n, 3)", {"start": "0", "stop": "n", "num_stages": "3"}),
        ("wait_cross_flag", "f(0)", {"flag": "0"}),
        ("printf", "f('x', a, b)", {"format_str": "'x'", "args": ("a", "b")}),
        ("barrier_all", "f()", {}),
        ("tile.merge_sort", "f(d, a, b, c)", {"dst": "d", "src0": "a", "src1": "b", "src2": "c"}),
    ],
)
def test_binds(name: str, source: str, bound: dict[str, object]) -> None:
    assert op(name).bind(call(source)) == bound


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("tile.add", "f(a, b)", "tile.add() misses 1 required argument(s): 'src1'"),
        ("tile.add", "f()", "tile.add() misses 3 required argument(s): 'dst', 'src0', 'src1'"),
        ("tile.add", "f(a, b, c, d)", "tile.add() takes 3 positional arguments but 4 were given"),
        ("tile.add", "f(a, b, c, dst=d)", "tile.add() got multiple values for argument 'dst'"),
        ("tile.add", "f(a, b, src=c)", "tile.add() got an unexpected keyword argument 'src'; did you mean 'src1'?"),
        ("alloc_ub", "f(s, d, zzz=1)", "alloc_ub() got an unexpected keyword argument 'zzz'"),
        ("Kernel", "f(n, blocks=3)", "Kernel() got an unexpected keyword argument 'blocks'"),
        ("sync_all", "f(1)", "sync_all() takes 0 positional arguments but 1 were given"),
        ("reduce_max", "f(a, b, 0, True, [1, 2], 3)", "reduce_max() takes 5 positional arguments but 6 were given"),
    ],
)
def test_rejects(name: str, source: str, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        op(name).bind(call(source))
    assert str(caught.value).startswith(message)
    assert str(caught.value) == message or "did you mean" in str(caught.value)


def extras(name: str, *values: object, **keywords: object) -> dict[str, object]:
    pairs: list[Pair] = [(None, value) for value in values]
    return op(name).bind([*pairs, *keywords.items()])


def test_reduce_tells_clear_and_real_shape_apart() -> None:
    base = {"buffer": "b", "out": "o", "dim": -1}
    assert extras("reduce_sum", "b", "o", -1, False) == {**base, "clear": False}
    assert extras("reduce_sum", "b", "o", -1, [4, 8]) == {**base, "real_shape": [4, 8]}
    assert extras("reduce_sum", "b", "o", -1, (4, 8), True) == {**base, "real_shape": (4, 8), "clear": True}
    assert extras("reduce_sum", "b", "o", -1, [4], clear=False) == {**base, "real_shape": [4], "clear": False}


def test_reduce_gives_an_unreadable_extra_to_the_free_name() -> None:
    name = cst.Name("s")
    assert extras("reduce_sum", "b", "o", 0, name, clear=False)["real_shape"] is name
    assert extras("reduce_sum", "b", "o", 0, name)["clear"] is name
    with pytest.raises(TypeError, match="multiple values for argument 'clear'"):
        extras("reduce_sum", "b", "o", 0, True, name, clear=False, real_shape=[1])


@pytest.mark.parametrize("parse", [cst.parse_expression, lambda text: ast.parse(text, mode="eval").body])
def test_extras_are_recognised_in_both_tree_libraries(parse: object) -> None:
    assert callable(parse)
    shape, scope, one = parse("[1, 2]"), parse("'local.var'"), parse("1")
    assert extras("reduce_max", "b", "o", 0, shape)["real_shape"] is shape
    assert extras("alloc_var", "int32", scope) == {"dtype": "int32", "scope": scope}
    assert extras("alloc_var", "int32", one) == {"dtype": "int32", "init": one}
    assert extras("alloc_var", "int32", one, scope) == {"dtype": "int32", "init": one, "scope": scope}
    assert extras("alloc_var", "int32", scope, init=one) == {"dtype": "int32", "scope": scope, "init": one}


def _matches_python(operator: Operator, pairs: list[Pair]) -> bool:
    """Whether Python accepts the same call of a function with the operator's signature."""
    words, starred = [], False
    for param in operator.params:
        if param.kind == "keyword" and not starred:
            words.append("*")
        starred = starred or param.kind != "positional"
        default = "" if param.required or param.kind == "variadic" else "=None"
        words.append(("*" if param.kind == "variadic" else "") + param.name + default)
    scope: dict[str, object] = {}
    exec(f"def f({', '.join(words)}): pass", scope)
    function = scope["f"]
    assert callable(function)
    keywords: dict[str, object] = {key: value for key, value in pairs if key is not None}
    try:
        function(*[value for key, value in pairs if key is None], **keywords)
    except TypeError:
        return False
    return True


_PLAIN = sorted(name for name, row in OPERATORS.items() if not row.extras)


@given(st.sampled_from(_PLAIN), st.integers(0, 12), st.data())
def test_accepts_what_python_accepts(name: str, positional: int, data: st.DataObject) -> None:
    operator = op(name)
    names = st.sampled_from([param.name for param in operator.params] + ["no_such_name"])
    keywords = data.draw(st.lists(names, unique=True, max_size=4))
    pairs: list[Pair] = [(None, f"v{i}") for i in range(positional)] + [(key, f"k_{key}") for key in keywords]
    try:
        bound = operator.bind(pairs)
    except TypeError:
        assert not _matches_python(operator, pairs)
        return
    assert _matches_python(operator, pairs)
    flat = [v for value in bound.values() for v in (value if isinstance(value, tuple) else (value,))]
    assert sorted(map(str, flat)) == sorted(str(value) for _, value in pairs)


@given(st.sampled_from(_PLAIN), st.integers(0, 20), st.integers(1, 3))
def test_round_trip(name: str, split: int, spread: int) -> None:
    """Binding gives back every argument under its own name, wherever the call turns to keywords."""
    operator = op(name)
    expected: dict[str, object] = {}
    pairs: list[Pair] = []
    by_position = True
    for i, param in enumerate(operator.params):
        if param.kind == "variadic":
            if by_position:
                values = tuple(f"{param.name}{n}" for n in range(spread))
                expected[param.name] = values
                pairs += [(None, value) for value in values]
            continue
        by_position = by_position and i < split and param.kind == "positional"
        expected[param.name] = param.name.upper()
        pairs.append((None if by_position else param.name, param.name.upper()))
    assert operator.bind(pairs) == expected


def test_param_finds_flattened_variadic_names() -> None:
    blocks = op("Kernel").param("blocks")
    assert blocks is not None
    assert op("Kernel").param("blocks1") is blocks
    assert op("tile.gather").param("src_offset") is not op("tile.gather").param("src")
    assert op("tile.gather").param("src1") is None
    assert op("Kernel").param("blocks_of") is None
