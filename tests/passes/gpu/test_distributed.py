"""Parallel loops with loops, conditions and variables in them, as serial loops of parallel loops."""

from __future__ import annotations

import numpy as np

from tests.passes.gpu.test_loops import kernel, same
from tests.passes.simulated import run


def test_a_variable_of_each_iteration_becomes_a_tile() -> None:
    old = """
    for i in T.Parallel(32):
        v = T.alloc_var('float32')
        v = 1
        for k in T.serial(16):
            v += a[i, k]
        a[i, 0] = v
    """
    new = """
    v = T.alloc_fragment((32,), 'float32')
    for i in T.Parallel(32):
        v[i] = 1
    for k in T.serial(16):
        for i in T.Parallel(32):
            v[i] += a[i, k]
    for i in T.Parallel(32):
        a[i, 0] = v[i]
    """
    same(old, new)
    inputs = {"A": np.random.default_rng(2).standard_normal((32, 16)).astype(np.float32)}
    expected = inputs["A"].copy()
    expected[:, 0] = 1 + inputs["A"].sum(axis=1, dtype=np.float64)
    np.testing.assert_allclose(run(kernel(new), inputs)["B"], expected, rtol=1e-5, atol=1e-5)


def test_its_first_value_is_given_where_it_is_declared() -> None:
    old = """
    for i in T.Parallel(32):
        for n in T.serial(2):
            v = T.alloc_var('float32', 3)
            for k in T.serial(16):
                v = T.max(v, a[i, k])
            a[i, n] = v
    """
    new = """
    v = T.alloc_fragment((32,), 'float32')
    for n in T.serial(2):
        for i in T.Parallel(32):
            v[i] = 3
        for k in T.serial(16):
            for i in T.Parallel(32):
                v[i] = T.max(v[i], a[i, k])
        for i in T.Parallel(32):
            a[i, n] = v[i]
    """
    same(old, new)


def test_a_condition_goes_to_the_statements_but_for_variables_inside_of_it() -> None:
    old = """
    for i in T.Parallel(32):
        n = i * 2
        if n < 40:
            v = T.alloc_var('float32')
            v = 0
            for k in T.serial(16):
                if n + k > 8:
                    v += a[i, k]
            a[i, 0] = v
        else:
            for k in T.serial(3):
                a[i, k] = n
    """
    new = """
    v = T.alloc_fragment((32,), 'float32')
    for i in T.Parallel(32):
        v[i] = 0
    for k in T.serial(16):
        for i in T.Parallel(32):
            n = i * 2
            if n + k > 8:
                v[i] += a[i, k]
    for i in T.Parallel(32):
        n = i * 2
        if n < 40:
            a[i, 0] = v[i]
    for k in T.serial(3):
        for i in T.Parallel(32):
            n = i * 2
            if not (n < 40):
                a[i, k] = n
    """
    same(old, new)


def test_a_condition_that_is_the_same_for_all_stays_outside() -> None:
    old = """
    for i in T.Parallel(32):
        first = bx * 4
        if first < 1:
            for k in T.serial(16):
                a[i, k] = a[i, k] + first + 1
        elif first < 2:
            a[i, 0] = 0
        else:
            for k in T.serial(3):
                a[i, k] = 5
    """
    new = """
    first = bx * 4
    if first < 1:
        for k in T.serial(16):
            for i in T.Parallel(32):
                a[i, k] = a[i, k] + first + 1
    else:
        if first < 2:
            for i in T.Parallel(32):
                a[i, 0] = 0
        else:
            for k in T.serial(3):
                for i in T.Parallel(32):
                    a[i, k] = 5
    """
    same(old, new)


def test_a_parallel_loop_under_a_condition() -> None:
    old = """
    for i in T.Parallel(32):
        if i % 3 == 1:
            for j in T.Parallel(16):
                a[i, j] = i - j
    """
    new = """
    for i, j in T.Parallel(32, 16):
        if i % 3 == 1:
            a[i, j] = i - j
    """
    same(old, new)
