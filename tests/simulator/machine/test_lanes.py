"""``T.Parallel`` as array expressions against the slow reading, for random bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.simulator.machine.lockstep import Slow, emitted, run
from tl2npu.simulator.arithmetic.precise import Precise
from tl2npu.simulator.errors import SimulatorError, TraceError, UnsupportedOperator
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Load, Var, binary, call, negate
from tl2npu.simulator.ir.stmt import Break, For, If, Let, Parallel, Stmt, Store
from tl2npu.simulator.machine.emit import Emitter


class Writer:
    """Draws bodies over two inputs (floats and integers), an index table and two outputs."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        sizes = st.integers(4, 6)  # all lanes of a loop fit
        self.x = Buffer("X", (draw(sizes), draw(sizes)), "float32", "ub")
        self.n = Buffer("N", (draw(sizes),), "int32", "ub")
        self.y = Buffer("Y", (draw(sizes), draw(sizes)), "float32", "ub")
        self.z = Buffer("Z", (draw(sizes), draw(sizes), draw(sizes)), "int32", "ub")
        self.buffers = [self.x, self.n, self.y, self.z]
        self.count = 0

    def var(self, name: str) -> Var:
        self.count += 1
        return Var(f"{name}{self.count}")

    def integer(self, names: list[Var], depth: int = 0) -> Any:
        """An index: mostly affine, sometimes divided, chosen or read from the table."""
        kind = self.draw(st.integers(0, 11))
        if kind < 5 and names:
            return binary("+", self.draw(st.sampled_from(names)), self.draw(st.sampled_from([0, 0, 0, 1, -1])))
        if kind < 6 or depth > 1:
            return self.draw(st.integers(0, 3))
        left = self.integer(names, depth + 1)
        if kind < 8:
            return binary("+", binary("*", left, self.draw(st.integers(1, 2))), self.integer(names, depth + 1))
        if kind == 8:
            return binary(self.draw(st.sampled_from(["//", "%"])), left, self.draw(st.integers(1, 4)))
        if kind == 9:
            return call(self.draw(st.sampled_from(["max", "min"])), left, self.integer(names, depth + 1))
        if kind == 10:
            return self.choice(names, left, self.integer(names, depth + 1), depth + 1)
        return Load(self.n, (self.inside(names, self.n.shape[0], depth),))

    def inside(self, names: list[Var], size: Any, depth: int) -> Any:
        """An index that mostly stays in bounds, so that not every example ends with a fault."""
        kind = self.draw(st.integers(0, 15))
        if kind < 9 and names:
            return self.draw(st.sampled_from(names))
        index = self.integer(names, depth + 1)
        return index if kind == 15 else binary("%", index, size)

    def choice(self, names: list[Var], yes: Any, no: Any, depth: int) -> Any:
        return call("if_then_else", self.condition(names, depth), yes, no)

    def condition(self, names: list[Var], depth: int = 0) -> Any:
        kind = self.draw(st.integers(0, 5))
        if kind < 3 or depth > 1:
            op = self.draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
            return binary(op, self.integer(names, depth + 1), self.integer(names, depth + 1))
        if kind < 5:
            op = self.draw(st.sampled_from(["and", "or"]))
            return binary(op, self.condition(names, depth + 1), self.condition(names, depth + 1))
        return negate(self.condition(names, depth + 1))

    def element(self, names: list[Var]) -> Any:
        buffer = self.draw(st.sampled_from([self.x, self.x, self.y]))
        return Load(buffer, tuple(self.inside(names, n, 0) for n in buffer.shape))

    def guarded(self, names: list[Var]) -> Any:
        """An element that may be outside, read only where it is not."""
        index = tuple(self.integer(names) for _ in self.x.shape)
        test: Any = True
        for i, n in zip(index, self.x.shape, strict=True):
            test = binary("and", test, binary("and", binary(">=", i, 0), binary("<", i, n)))
        return call("if_then_else", test, Load(self.x, index), 0.5)

    def value(self, names: list[Var], floats: list[Var], depth: int = 0) -> Any:
        kind = self.draw(st.integers(0, 6))
        if kind == 0 and floats:
            return self.draw(st.sampled_from(floats))
        if kind < 3 or depth > 1:
            return self.element(names)
        if kind == 3:
            return self.guarded(names)
        if kind == 4:
            return self.choice(names, self.value(names, floats, depth + 1), self.element(names), depth)
        op = self.draw(st.sampled_from(["+", "*", "-"]))
        return binary(op, self.value(names, floats, depth + 1), self.element(names))

    def place(self, names: list[Var], buffer: Buffer) -> tuple[Any, ...]:
        """Where to write: a permutation of the lanes, mostly."""
        order = self.draw(st.permutations(names))
        kind = self.draw(st.integers(0, 9))
        if kind == 0 and len(names) >= buffer.ndim:
            return tuple(binary("%", v, n) for v, n in zip(order, buffer.shape, strict=False))
        if kind < 9:
            spare = [0] * (buffer.ndim - min(len(names), buffer.ndim))
            return tuple(self.draw(st.permutations([*order[: buffer.ndim], *spare])))
        return tuple(self.inside(names, n, 0) for n in buffer.shape)

    def body(self, names: list[Var], floats: list[Var], depth: int) -> list[Stmt]:
        result: list[Stmt] = []
        floats = list(floats)
        for _ in range(self.draw(st.integers(1, 3))):
            kind = self.draw(st.integers(0, 9))
            if kind < 5 or depth > 2:
                result.append(self.store(names, floats))
            elif kind == 5:
                var = Var(f"t{self.count}", "float32")
                self.count += 1
                result.append(Let(var, self.value(names, floats)))
                floats.append(var)
            elif kind == 6:
                other = self.body(names, floats, depth + 1) if self.draw(st.booleans()) else []
                result.append(If(self.condition(names), self.body(names, floats, depth + 1), other))
            elif kind == 7:
                result.append(self.loop(names, floats, depth))
            elif kind == 8:
                result.append(self.nest(names, floats, depth + 1))
            else:
                result.append(self.update(names, floats))
        return result

    def store(self, names: list[Var], floats: list[Var]) -> Stmt:
        if len(names) < 3 or self.draw(st.booleans()):
            return Store(self.y, self.place(names, self.y), self.value(names, floats))
        return Store(self.z, self.place(names, self.z), self.integer(names))

    def update(self, names: list[Var], floats: list[Var]) -> Stmt:
        """Something is added to an element in place."""
        at = self.place(names, self.y)
        return Store(self.y, at, binary("+", Load(self.y, at), self.value(names, floats)))

    def loop(self, names: list[Var], floats: list[Var], depth: int) -> Stmt:
        var = self.var("k")
        start = self.draw(st.sampled_from([0, 1, self.integer(names)]))
        extent = self.draw(st.sampled_from([1, 2, 3, call("min", self.integer(names), 4)]))
        step = self.draw(st.sampled_from([1, 1, 2, -1]))
        return For(var, start, extent, self.body([*names, var], floats, depth + 1), "serial", step)

    def nest(self, names: list[Var], floats: list[Var], depth: int) -> Stmt:
        count = self.draw(st.integers(1, 2)) if depth else 2
        variables = tuple(self.var("i") for _ in range(count))
        extents = tuple(self.draw(st.integers(2, 4)) for _ in variables)
        return Parallel(variables, extents, self.body([*names, *variables], floats, depth))


@st.composite
def programs(draw: Any) -> tuple[Writer, list[Stmt]]:
    writer = Writer(draw)
    return writer, [writer.nest([], [], 0)]


def memory(writer: Writer) -> dict[int, np.ndarray]:
    """Small whole numbers, all different in the float input: sums are exact, and a wrong element shows."""
    random = np.random.default_rng(1)
    arrays = {}
    for buffer in writer.buffers:
        shape = tuple(int(n) for n in buffer.shape)  # type: ignore[arg-type]
        count = int(np.prod(shape))
        values = random.permutation(count) if buffer.dtype == "float32" else random.integers(0, 4, count)
        arrays[buffer.number] = values.reshape(shape).astype(buffer.dtype)
    return arrays


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(programs(), st.booleans(), st.booleans())
def test_lanes_compute_what_single_elements_do(program: tuple[Writer, list[Stmt]], direct: bool, watched: bool) -> None:
    writer, body = program
    expected = memory(writer)
    fault = False
    try:
        Slow(expected).block(body, [{}])
    except SimulatorError:
        fault = True
    event("fault" if fault else "runs")
    found = memory(writer)
    if fault:
        with pytest.raises(SimulatorError):
            run(body, writer.buffers, found, direct, watched)
        return
    run(body, writer.buffers, found, direct, watched)
    for buffer in writer.buffers:
        text = emitted(body, writer.buffers, direct)
        np.testing.assert_array_equal(found[buffer.number], expected[buffer.number], f"{buffer.name}\n{text}")


def swap(i: Var, a: Buffer, b: Buffer) -> list[Stmt]:
    """Two elements change places through a named value."""
    kept = Var("kept", a.dtype)
    return [Let(kept, Load(a, (i,))), Store(a, (i,), Load(b, (i,))), Store(b, (i,), kept)]


@pytest.mark.parametrize("direct", [False, True])
def test_a_named_value_keeps_what_memory_held(direct: bool) -> None:
    a, b, i = Buffer("a", (4,), "float32", "ub"), Buffer("b", (4,), "float32", "ub"), Var("i")
    arrays = {a.number: np.arange(4, dtype=np.float32), b.number: np.arange(4, 8, dtype=np.float32)}
    run([Parallel((i,), (4,), swap(i, a, b))], [a, b], arrays, direct, False)
    assert arrays[a.number].tolist() == [4, 5, 6, 7]
    assert arrays[b.number].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("direct", [False, True])
def test_a_condition_is_read_once(direct: bool) -> None:
    flag, out, i = Buffer("flag", (4,), "bool", "ub"), Buffer("out", (4,), "int32", "ub"), Var("i")
    arrays = {flag.number: np.array([True, False, True, False]), out.number: np.zeros(4, np.int32)}
    body: list[Stmt] = [
        If(Load(flag, (i,)), [Store(flag, (i,), False), Store(out, (i,), 1)], [Store(out, (i,), 2)]),
    ]
    run([Parallel((i,), (4,), body)], [flag, out], arrays, direct, False)
    assert arrays[out.number].tolist() == [1, 2, 1, 2]


def test_lanes_that_are_off_touch_nothing_outside() -> None:
    a, out, i, k = Buffer("a", (4,), "float32", "ub"), Buffer("out", (4,), "float32", "ub"), Var("i"), Var("k")
    arrays = {a.number: np.arange(4, dtype=np.float32), out.number: np.zeros(4, np.float32)}
    # the element does not depend on the lane, and no lane is on
    body: list[Stmt] = [If(binary(">", i, 7), [Store(out, (i,), Load(a, (binary("+", k, 100),)))], [])]
    run([For(k, 0, 2, [Parallel((i,), (4,), body)])], [a, out], arrays, True, True)
    assert arrays[out.number].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("place", [0, "half"])
def test_lanes_that_write_one_element_must_agree(place: object) -> None:
    out, i = Buffer("out", (4,), "int32", "ub"), Var("i")
    at = 0 if place == 0 else binary("//", i, 2)
    for value, agree in ((7, True), (i, False)):
        body: list[Stmt] = [Parallel((i,), (4,), [Store(out, (at,), value)])]
        arrays = {out.number: np.zeros(4, np.int32)}
        if agree:
            run(body, [out], arrays, True, False)
            assert arrays[out.number][0] == 7
        else:
            with pytest.raises(SimulatorError, match="Potential WAW hazard"):
                run(body, [out], arrays, True, False)


def test_whole_tiles_are_plain_array_expressions() -> None:
    """The point of the design: no call per access where everything is known."""
    a, b, i, j = Buffer("a", (4, 8), "float32", "ub"), Buffer("b", (4,), "float32", "ub"), Var("i"), Var("j")
    store = Store(a, (i, j), binary("*", Load(a, (i, j)), Load(b, (i,))))
    text = emitted([Parallel((i, j), (4, 8), [store])], [a, b], True)
    assert f"b{a.number}[...] = A.mul(b{a.number}, b{b.number}[:, None])" in text


def test_leaving_a_loop_for_some_lanes_only_is_refused() -> None:
    i, k = Var("i"), Var("k")
    for condition, refused in ((binary("<", i, 2), True), (binary("<", k, 1), False)):
        out = Buffer("out", (4, 3), "int32", "ub")
        loop = For(k, 0, 3, [If(condition, [Break()], []), Store(out, (i, k), 1)])
        body: list[Stmt] = [Parallel((i,), (4,), [loop])]
        arrays = {out.number: np.zeros((4, 3), np.int32)}
        if refused:
            with pytest.raises(UnsupportedOperator, match="break"):
                run(body, [out], arrays, True, False)
        else:
            run(body, [out], arrays, True, False)
            assert not arrays[out.number].any()


def test_a_break_directly_in_a_parallel_is_refused() -> None:
    """It would leave the loop around."""
    i, k = Var("i"), Var("k")
    with pytest.raises(UnsupportedOperator, match=r"directly in a T\.Parallel"):
        emitted([For(k, 0, 3, [Parallel((i,), (4,), [Break()])])], [], True)


def test_a_name_ends_with_its_branch() -> None:
    out, n, x = Buffer("out", (1,), "int32", "ub"), Var("n"), Var("x")
    body: list[Stmt] = [If(binary(">", n, 0), [Let(x, binary("+", n, 1))], []), Store(out, (0,), x)]
    with pytest.raises(TraceError, match="outside of the loop or branch"):
        Emitter(True, Precise(), []).program([n, out], body)
