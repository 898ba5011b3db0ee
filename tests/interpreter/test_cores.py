"""Cores, events and schedules, without Triton."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tl2npu.interpreter.cores import CUBE, CUBE_FIRST, VECTOR, VECTOR_FIRST, Core, Cores, Deadlock, Schedule

BOTH = pytest.mark.parametrize("schedule", [CUBE_FIRST, VECTOR_FIRST], ids=["cube first", "vector first"])


def block(cube: Callable[[Cores], None], vector: Callable[[Cores, int], None], schedule: Schedule) -> Cores:
    """Run one block: the cube core and two vector cores."""
    bodies: list[Core] = [
        Core(CUBE, 0, 0, lambda: cube(cores)),
        Core(VECTOR, 0, 0, lambda: vector(cores, 0)),
        Core(VECTOR, 1, 0, lambda: vector(cores, 1)),
    ]
    cores = Cores(bodies, schedule)
    cores.run()
    return cores


def squares(schedule: Schedule, free: bool, number: int = 1) -> tuple[list[int], Cores]:
    """The cube core hands 0, 1, 4, 9 over in one place; vector core 0 adds 1 to each. ``free``: the cube core waits
    until the place is free again."""
    place, got = [-1], []

    def cube(cores: Cores) -> None:
        for turn in range(4):
            if free and turn:
                cores.wait(VECTOR, 2, "k.py:1")
            place[0] = turn * turn
            cores.set(VECTOR, 1, "k.py:2")

    def vector(cores: Cores, core: int) -> None:
        for turn in range(4):
            cores.wait(CUBE, number, "k.py:3")
            if core == 0:
                got.append(place[0] + 1)
            if free and turn < 3:
                cores.set(CUBE, 2, "k.py:4")

    return got, block(cube, vector, schedule)


@BOTH
def test_events_order_two_sides(schedule: Schedule) -> None:
    got, cores = squares(schedule, free=True)
    assert got == [1, 2, 5, 10]
    assert cores.left == []


def test_without_the_event_that_frees_a_place_the_schedules_differ() -> None:
    assert squares(CUBE_FIRST, free=False)[0] == [10, 10, 10, 10]
    assert squares(VECTOR_FIRST, free=False)[0] == [1, 2, 5, 10]


@BOTH
def test_a_wrong_number_is_a_deadlock_that_names_who_waits(schedule: Schedule) -> None:
    with pytest.raises(Deadlock) as caught:
        squares(schedule, free=True, number=3)
    text = str(caught.value)
    assert "the cube core waits for event 2 from vector core 0 and vector core 1 at k.py:1" in text
    assert "vector core 0 waits for event 3 from the cube core at k.py:3" in text
    assert "vector core 1 waits for event 3 from the cube core at k.py:3" in text
    assert "event 1 from the cube core to vector core 0, set at k.py:2 is not waited for" in text


@BOTH
def test_the_cube_core_waits_for_both_vector_cores(schedule: Schedule) -> None:
    seen: list[str] = []

    def cube(cores: Cores) -> None:
        cores.wait(VECTOR, 0, "k.py:1")
        seen.append("cube")

    def vector(cores: Cores, core: int) -> None:
        seen.append(f"vector {core}")
        cores.set(CUBE, 0, "k.py:2")

    block(cube, vector, schedule)
    assert seen[-1] == "cube"
    assert sorted(seen[:2]) == ["vector 0", "vector 1"]


def test_one_vector_core_alone_does_not_wake_the_cube_core() -> None:
    def cube(cores: Cores) -> None:
        cores.wait(VECTOR, 0, "k.py:1")

    def vector(cores: Cores, core: int) -> None:
        if core == 0:
            cores.set(CUBE, 0, "k.py:2")

    with pytest.raises(Deadlock, match="the cube core waits for event 0 from vector core 1 at"):
        block(cube, vector, CUBE_FIRST)


def test_events_that_are_left_are_told() -> None:
    cores = block(lambda cores: cores.set(VECTOR, 5, "k.py:9"), lambda *_: None, CUBE_FIRST)
    assert cores.left == [
        "event 5 from the cube core to vector core 0, set at k.py:9",
        "event 5 from the cube core to vector core 1, set at k.py:9",
    ]


@BOTH
def test_a_barrier_of_all_cores_of_all_blocks(schedule: Schedule) -> None:
    order: list[str] = []

    def body(number: int, core: int) -> None:
        order.append(f"before {number}.{core}")
        cores.meet("all_vector", 0, "k.py:1")
        order.append(f"after {number}.{core}")

    def one(number: int, core: int) -> Core:
        return Core(VECTOR, core, number, lambda: body(number, core))

    cores = Cores([one(number, core) for number in range(3) for core in range(2)], schedule)
    cores.run()
    assert len(order) == 12
    assert all(text.startswith("before") for text in order[:6])


def test_a_barrier_that_one_core_misses() -> None:
    def vector(cores: Cores, core: int) -> None:
        if core == 0:
            cores.meet("all_sub_vector", 7, "k.py:5")

    with pytest.raises(Deadlock, match=r"vector core 0 waits for sync_block_all\('all_sub_vector', 7\) at k.py:5"):
        block(lambda _: None, vector, CUBE_FIRST)


def test_an_error_of_one_core_ends_the_others() -> None:
    def vector(cores: Cores, core: int) -> None:
        cores.wait(CUBE, 0, "k.py:1")

    def cube(cores: Cores) -> None:
        raise ValueError("from the cube core")

    with pytest.raises(ValueError, match="from the cube core"):
        block(cube, vector, VECTOR_FIRST)
