"""Reading a prim_func: names, statements, macros, helpers."""

from __future__ import annotations

import pytest

from tests.kernel.support import kernel_of, of_type, read, source
from tl2npu.kernel.model import Alloc, Branch, Copy, Kernel, Let, Loop, Op, Opaque, ScopeBlock, Side, Store, Sync
from tl2npu.kernel.symbolic import Sym, const

TILE = 'a = T.alloc_ub((16, 64), "float32")\n'
LOAD = TILE + "T.copy(A[{}, 0], a)"


def row_of(body: str, **around: str) -> Sym:
    """The start row of the last copy from A."""
    copy = [c for c in of_type(read(body, **around), Copy) if c.src.buffer.name == "A"][-1]
    assert copy.src.dims is not None
    return copy.src.dims[0].lo


def opaque_of(kernel: Kernel) -> list[str]:
    return sorted(buffer.name for stmt in of_type(kernel, Opaque) for buffer in stmt.buffers)


# names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "imports",
    [
        "import tilelang\nimport tilelang.language as T\n",
        "import tilelang as tl\nfrom tilelang import language as T\n",
        "import tilelang\nT = tilelang.language\n",
        "import tilelang.language\nfrom tilelang import language\nT = language\n",
    ],
)
def test_aliases_of_the_language(imports: str) -> None:
    kernel = read(LOAD.format("cid * 32"), imports=imports)
    assert [type(stmt) for stmt in kernel.body] == [Alloc, Copy]


def test_operators_imported_one_by_one() -> None:
    text = source(
        TILE + "load(A[0, 0], a)", imports="import tilelang.language as T\nfrom tilelang.language import copy as load\n"
    )
    assert len(of_type(kernel_of(text), Copy)) == 1


def test_constants_of_module_and_factory() -> None:
    assert row_of(LOAD.format("R"), module="BLOCK = 32", factory="R = BLOCK * 2") == const(64)


def test_a_factory_parameter_hides_a_module_constant() -> None:
    row = row_of(LOAD.format("bm"), module="bm = 32")
    assert row.constant is None
    assert row == row_of(LOAD.format("bm"))


def test_tuples_are_unpacked() -> None:
    assert row_of(LOAD.format("r + c"), factory="r, (c, d) = 3, (4, 5)") == const(7)


@pytest.mark.parametrize("swap", ["r, c = c, r", "[r, c] = (c, r)", "r, (c, d) = c, (r, r)"])
def test_names_bound_together_take_their_values_before(swap: str) -> None:
    assert row_of("r = 5\nc = 7\n" + swap + "\n" + LOAD.format("10 * r + c")) == const(75)
    assert row_of(LOAD.format("10 * r + c"), factory=f"r = 5\nc = 7\n{swap}") == const(75)


@pytest.mark.parametrize("factory", ["r, *c = 5, 7", "r, c = *[5], 7"])
def test_starred_values_are_unknown(factory: str) -> None:
    assert row_of(LOAD.format("c"), factory=factory).constant is None


def test_a_kernel_name_hides_a_factory_name() -> None:
    assert row_of("r = 5\n" + LOAD.format("r"), factory="r = 3") == const(5)


def test_the_last_assignment_counts() -> None:
    assert row_of("r = 5\nr = r + 2\n" + LOAD.format("r")) == const(7)


def test_a_use_before_an_assignment_sees_the_old_value() -> None:
    kernel = read("r = 5\n" + TILE + "T.copy(A[r, 0], a)\nr = 6\nT.copy(A[r, 0], a)")
    assert [(c.src.dims or ())[0].lo.constant for c in of_type(kernel, Copy)] == [5, 6]


@pytest.mark.parametrize("change", ["r += 1", "r = r * 2", "r = next_row(r)"])
def test_what_a_loop_carries_is_unknown_in_it_and_after_it(change: str) -> None:
    kernel = read(f"r = 5\n{TILE}for i in range(4):\n    T.copy(A[r, 0], a)\n    {change}\nT.copy(A[r, 0], a)")
    rows = [(c.src.dims or ())[0].lo for c in of_type(kernel, Copy)]
    assert all(row.constant is None for row in rows)
    assert rows[0] != rows[1]


def test_what_a_while_loop_carries_is_unknown() -> None:
    kernel = read(f"r = 0\n{TILE}while r < 4:\n    T.copy(A[r, 0], a)\n    r = r + 1\nT.copy(A[r, 0], a)")
    assert all((c.src.dims or ())[0].lo.constant is None for c in of_type(kernel, Copy))


def test_a_branch_makes_a_name_unknown_unless_both_sides_agree() -> None:
    body = "r = 1\ns = 1\nif cid > 3:\n    r = 2\n    s = 4\nelse:\n    s = 4\n"
    assert row_of(body + LOAD.format("r")).constant is None
    assert row_of(body + LOAD.format("s")) == const(4)


def test_a_name_from_a_branch_of_the_factory_is_unknown() -> None:
    row = row_of(LOAD.format("r"), factory="r = 1\nif M > 3:\n    r = 2")
    assert row.constant is None


# Sound equality: a name that gets a value which the reader cannot see must not equal what it was before.
@pytest.mark.parametrize(
    "change",
    ["bm *= 2", "bm = round_up(bm)", "if bm > 64:\n    bm = 64", "for _ in range(2):\n    bm = bm + 1"],
)
def test_a_parameter_that_changes_is_not_what_it_was(change: str) -> None:
    kernel = read(LOAD.format("h") + "\nT.copy(A[bm // 2, 0], a)", factory=f"h = bm // 2\n{change}")
    before, after = ((c.src.dims or ())[0].lo for c in of_type(kernel, Copy))
    assert before != after


def test_a_parameter_of_an_inner_function_is_not_that_of_the_outer_one() -> None:
    text = source(LOAD.format("h") + "\nT.copy(A[bm // 2, 0], a)", factory="")
    head, rest = text.split("def factory(M, N, bm):\n")
    inner = "def factory(M, N, bm):\n" + rest
    text = head + "def outer(M, N, bm):\n    h = bm // 2\n" + "".join(f"    {line}\n" for line in inner.split("\n"))
    before, after = ((c.src.dims or ())[0].lo for c in of_type(kernel_of(text), Copy))
    assert before != after


def test_a_buffer_has_all_its_names() -> None:
    kernel = read(TILE + "b = a\nT.tile.exp(b, a)")
    (op,) = of_type(kernel, Op)
    assert len({operand.buffer for _, operand in op.operands}) == 1


# statements ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "kind", "start", "extent"),
    [
        ("range(8)", "serial", 0, 8),
        ("range(2, 8)", "serial", 2, 6),
        ("T.serial(8)", "serial", 0, 8),
        ("T.serial(2, 8)", "serial", 2, 6),
        ("T.Parallel(8)", "parallel", 0, 8),
        ("T.Pipelined(8, num_stages=2)", "pipelined", 0, 8),
        ("T.Pipelined(2, 8, num_stages=2)", "pipelined", 2, 6),
        ("T.unroll(8)", "unroll", 0, 8),
    ],
)
def test_loops(header: str, kind: str, start: int, extent: int) -> None:
    (loop,) = of_type(read(TILE + f"for i in {header}:\n    T.tile.exp(a, a)"), Loop)
    (item,) = loop.ranges
    assert (loop.kind, item.start, item.extent, item.name) == (kind, const(start), const(extent), "i")


def test_a_loop_over_two_axes() -> None:
    (loop,) = of_type(read(TILE + "for i, j in T.Parallel(16, 64):\n    a[i, j] = a[i, j] + 1.0"), Loop)
    assert [item.extent for item in loop.ranges] == [const(16), const(64)]


@pytest.mark.parametrize(
    "header", ["rows", "enumerate(rows)", "zip(x, y)", "range(*bounds)", "reversed(range(4))", "[0, 1]"]
)
def test_other_loops_are_opaque(header: str) -> None:
    kernel = read(TILE + f"for i in {header}:\n    T.tile.exp(a, a)")
    assert opaque_of(kernel) == ["a"]


@pytest.mark.parametrize(
    "statement",
    [
        "with lock:\n    T.tile.exp(a, a)",
        "try:\n    T.tile.exp(a, a)\nfinally:\n    pass",
        "a.data = 1",
        "del a",
        "assert_all([a])",
    ],
)
def test_unknown_statements_touch_every_buffer_in_them(statement: str) -> None:
    kernel = read(TILE + statement)
    touched = opaque_of(kernel)
    assert touched == ["a"]


def test_a_harmless_unknown_statement_names_no_buffer() -> None:
    kernel = read(TILE + "print('hello')\nassert cid < 4")
    assert opaque_of(kernel) == []
    assert not kernel.problems


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("helper(a)", ("`helper`", "cannot be analysed")),
        ("T.tile.tanh(a, a)", ("`T.tile.tanh`", "is not a TileLang operator")),
        ("T.tile.expp(a, a)", ("`T.tile.expp`", "is not a TileLang operator; T.tile.exp is")),
        ("T.smooth(a)", ("`T.smooth`", "is not a TileLang operator")),
    ],
)
def test_a_call_from_elsewhere_with_a_buffer_is_a_problem(call: str, why: tuple[str, str]) -> None:
    kernel = read(TILE + call)
    text = "cannot follow the buffers that {} takes: it {}".format(*why)
    assert [(code, text) for _, code, text in kernel.problems] == [("TL903", text)]


def test_a_wrong_signature_is_a_problem() -> None:
    kernel = read(TILE + "T.copy(a)")
    assert [code for _, code, _ in kernel.problems] == ["TL902"]
    assert opaque_of(kernel) == ["a"]


def test_scopes_and_flags() -> None:
    kernel = read('with T.Scope("V"):\n    T.barrier_all()\nwith T.Scope("C"):\n    T.set_cross_flag("FIX", 3)')
    assert [scope.side for scope in of_type(kernel, ScopeBlock)] == [Side.VECTOR, Side.CUBE]
    assert [sync.op.name for sync in of_type(kernel, Sync)] == ["barrier_all", "set_cross_flag"]


def test_stores() -> None:
    kernel = read(TILE + "a[0, 1] = 2.0\na[0, 1] += 2.0")
    assert [store.augmented for store in of_type(kernel, Store)] == [False, True]


def test_several_statements_on_a_line() -> None:
    kernel = read(TILE + "x = 1; T.tile.exp(a, a); y = x + 1")
    assert [type(stmt) for stmt in kernel.body] == [Alloc, Let, Op, Let]


def test_branches_keep_both_sides() -> None:
    kernel = read(TILE + "if cid == 0:\n    T.tile.exp(a, a)\nelif cid == 1:\n    T.tile.abs(a, a)\nelse:\n    pass")
    outer, inner = of_type(kernel, Branch)
    assert outer.orelse == [inner]
    assert len(inner.then) == 1


def test_keyword_arguments_in_any_order() -> None:
    kernel = read(TILE + "T.copy(dst=a, src=A[0, 0])")
    (copy,) = of_type(kernel, Copy)
    assert (copy.src.buffer.name, copy.dst.buffer.name) == ("A", "a")
