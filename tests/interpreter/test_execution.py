"""Scripts with plain Triton kernels, against torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.interpreter.support import Run

Runs = Callable[[str], Run]

ADD = """
    @triton.jit
    def add(x, y, out, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        mask = i < n
        tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)
"""


def test_a_launch_and_its_record(run: Runs) -> None:
    found = run(
        ADD
        + """
    torch.manual_seed(0)
    x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    out = torch.zeros_like(x)
    add[lambda meta: [triton.cdiv(1000, meta["B"])]](x, y, out, 1000, B=256, num_warps=8)
    torch.testing.assert_close(out, x + y)
    """
    )
    (launch,) = found.launches
    assert (launch.kernel, launch.grid, launch.params) == ("add", (4, 1, 1), ("x", "y", "out", "n", "B"))
    assert (launch.constexprs, launch.scalars, launch.options) == ({"B": 256}, {"n": 1000}, {"num_warps": 8})
    assert launch.written == ("out",)
    assert np.array_equal(launch.inputs["x"], found.x.numpy())
    assert not launch.inputs["out"].any()
    assert np.array_equal(launch.outputs["out"], found.out.numpy())
    lines = Path(found.__file__).read_text().splitlines()
    assert lines[launch.line - 1].strip().startswith("def add")
    assert lines[launch.site - 1].startswith("add[")
    assert not found.faults


def test_bfloat16_is_computed_and_rounded_as_torch_does(run: Runs) -> None:
    run(
        ADD
        + """
    torch.manual_seed(0)
    x, y = torch.randn(512, dtype=torch.bfloat16), torch.randn(512, dtype=torch.bfloat16)
    out, wide = torch.empty_like(x), torch.empty(512)
    add[(2,)](x, y, out, 512, B=256)
    assert torch.equal(out, x + y)

    @triton.jit
    def narrow(x, out):
        i = tl.arange(0, 512)
        tl.store(out + i, (tl.load(x + i).to(tl.float32) * 1.2345).to(tl.bfloat16))

    narrow[(1,)](x, out)
    assert torch.equal(out, (x.float() * 1.2345).bfloat16())
    """
    )


def test_numbers_of_a_launch_are_scalars_of_triton(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(x, out, scale, n):
        i = tl.arange(0, 16)
        s = scale.to(tl.float32)
        for turn in range(2):
            s += turn.to(tl.float32)
        tl.store(out + i, tl.load(x + i) * s + (i - 8) // n + (i - 8) % n)

    x = torch.arange(16, dtype=torch.float16)
    out = torch.empty(16)
    k[1,](x, out, 0.5, 3)
    i = torch.arange(16) - 8
    toward_zero = torch.div(i, 3, rounding_mode="trunc")
    assert torch.equal(out, x.float() * 1.5 + toward_zero + (i - 3 * toward_zero))
    """
    )


def test_functions_of_libdevice_by_every_spelling(run: Runs) -> None:
    run(
        """
    from triton.language.extra import libdevice
    from triton.language.extra.cuda.libdevice import erf

    @triton.jit
    def k(x, out):
        i = tl.arange(0, 64)
        v = tl.load(x + i)
        tl.store(out + i, libdevice.tanh(v))
        tl.store(out + 64 + i, erf(v))
        tl.store(out + 128 + i, tl.extra.cuda.libdevice.pow(v, 3.0))
        tl.store(out + 192 + i, tl.math.log1p(v * v))
        tl.store(out + 256 + i, libdevice.llrint(v * 10).to(tl.float32))
        tl.store(out + 320 + i, libdevice.isnan(v).to(tl.float32))

    torch.manual_seed(0)
    x = torch.randn(64)
    x[3] = float("nan")
    out = torch.empty(6, 64)
    k[(1,)](x, out)
    expected = torch.stack([x.tanh(), x.erf(), x**3, (x * x).log1p(), (x * 10).round(), x.isnan().float()])
    keep = ~x.isnan()
    torch.testing.assert_close(out[:, keep], expected[:, keep])
    assert out[5, 3] == 1
    """
    )


def test_tuning_takes_the_first_configuration_and_heuristics_hold(run: Runs) -> None:
    found = run(
        """
    first = triton.Config({"B": 64}, num_warps=2)
    other = triton.Config({"B": 32}, num_warps=4)

    @triton.autotune(configs=[first, other], key=["n"])
    @triton.heuristics({"EVEN": lambda args: args["n"] % args["B"] == 0})
    @triton.jit
    def double(x, n, B: tl.constexpr, EVEN: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        if EVEN:
            tl.store(x + i, tl.load(x + i) * 2)
        else:
            tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

    x = torch.ones(100)
    double[lambda meta: (triton.cdiv(100, meta["B"]),)](x, 100)
    assert torch.equal(x, torch.full((100,), 2.0))
    """
    )
    (launch,) = found.launches
    assert launch.constexprs == {"B": 64, "EVEN": False}
    assert launch.config["B"] == 64
    assert launch.grid == (2, 1, 1)


def test_what_triton_ascend_takes_and_triton_does_not(run: Runs) -> None:
    """Tiles of any size, ``tl.tanh``, options of its compiler in configurations."""
    found = run(
        """
    @triton.autotune(configs=[triton.Config({"B": 48}, multibuffer=True, num_stages=1)], key=[])
    @triton.jit
    def k(x, y, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(y + i, tl.tanh(tl.load(x + i)) + tl.zeros((B,), tl.float32))

    x, y = torch.linspace(-3, 3, 50), torch.zeros(50)
    k[(1,)](x, y)
    torch.testing.assert_close(y[:48], x[:48].tanh())
    assert not y[48:].any()
    """
    )
    assert found.launches[0].constexprs == {"B": 48}


def test_names_of_the_functions_around_a_kernel(run: Runs) -> None:
    found = run(
        """
    def make(width):
        WIDTH = tl.constexpr(width)

        @triton.jit
        def inner(x):
            i = tl.arange(0, WIDTH)
            tl.store(x + i, i * WIDTH)

        return inner

    x = torch.zeros(8, dtype=torch.int32)
    make(8)[(1,)](x)
    assert x.tolist() == [8 * i for i in range(8)]
    """
    )
    assert found.launches[0].kernel == "make.inner"


def test_a_product_of_block_pointers(run: Runs) -> None:
    found = run(
        """
    @triton.jit
    def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        m, n = tl.program_id(0), tl.program_id(1)
        left = tl.make_block_ptr(a, (M, K), (K, 1), (m * BM, 0), (BM, BK), (1, 0))
        right = tl.make_block_ptr(b, (K, N), (N, 1), (0, n * BN), (BK, BN), (1, 0))
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc += tl.dot(tl.load(left, boundary_check=(0, 1)), tl.load(right, boundary_check=(0, 1)))
            left = tl.advance(left, (0, BK))
            right = tl.advance(right, (BK, 0))
        out = tl.make_block_ptr(c, (M, N), (N, 1), (m * BM, n * BN), (BM, BN), (1, 0))
        tl.store(out, acc.to(out.type.element_ty), boundary_check=(0, 1))

    torch.manual_seed(0)
    a, b = torch.randn(50, 70).half(), torch.randn(70, 40).half()
    c = torch.empty(50, 40, dtype=torch.float16)
    matmul[(2, 2)](a, b, c, 50, 40, 70, 32, 32, 32)
    torch.testing.assert_close(c, (a.float() @ b.float()).half(), rtol=1e-3, atol=1e-3)
    """
    )
    assert found.launches[0].rounded == ()


def test_a_type_that_is_multiplied_after_rounding_is_told(run: Runs) -> None:
    found = run(
        """
    @triton.jit
    def square(x, out):
        i = tl.arange(0, 16)
        at = i[:, None] * 16 + i[None, :]
        v = tl.load(x + at) * 0.5
        tl.store(out + at, tl.dot(v.to(tl.float16), v.to(tl.float16)))

    x, out = torch.eye(16), torch.empty(16, 16)
    square[(1,)](x, out)
    assert torch.equal(out, torch.eye(16) * 0.25)
    """
    )
    assert found.launches[0].rounded == ("float16",)


def test_a_read_outside_of_every_tensor_is_told_and_gives_nan(run: Runs) -> None:
    found = run(
        """
    @triton.jit
    def k(x, out):
        i = tl.arange(0, 32)
        tl.store(out + i, tl.load(x + i + 1000000))

    x, out = torch.ones(32), torch.zeros(32)
    k[(1,)](x, out)
    assert out.isnan().all()
    """
    )
    assert found.faults == ["Read of 32 elements outside of every tensor at script.py:12"]


def test_an_access_past_the_end_of_a_tensor_does_not_reach_the_next_one(run: Runs) -> None:
    found = run(
        """
    @triton.jit
    def k(x, out):
        i = tl.arange(0, 32)
        tl.store(out + i, tl.load(x + i))

    import numpy

    around = numpy.ones(64, numpy.float32)
    x, out = torch.from_numpy(around[:24]), torch.from_numpy(around[24:56])  # out begins where x ends
    k[(1,)](x, out)
    assert x.tolist() == [1.0] * 24 and out[:24].tolist() == [1.0] * 24 and out[24:].isnan().all()
    """
    )
    assert found.faults == ["Read of 8 elements outside of every tensor at script.py:12"]
    assert found.launches[0].undefined("out", (32,)).tolist() == [False] * 24 + [True] * 8


def test_tensors_of_one_memory_stay_so(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(x, y, out):
        i = tl.arange(0, 16)
        tl.store(x + i, i.to(tl.float32))
        tl.store(out + i, tl.load(y + i))

    import numpy

    around = numpy.ones(64, numpy.float32)
    x, y, out = torch.from_numpy(around[:32]), torch.from_numpy(around[8:40]), torch.zeros(16)
    k[(1,)](x, y, out)
    assert out.tolist() == [8.0, 9, 10, 11, 12, 13, 14, 15] + [1.0] * 8
    """
    )


def test_a_write_outside_of_every_tensor_is_left_out(run: Runs) -> None:
    found = run(
        """
    @triton.jit
    def k(x):
        i = tl.arange(0, 32)
        tl.store(x + i, i.to(tl.float32) + 1)

    import numpy

    around = numpy.zeros(64, numpy.float32)
    x = torch.from_numpy(around[:20])
    k[(1,)](x)
    assert x.tolist() == [i + 1.0 for i in range(20)]
    assert not around[20:].any()
    """
    )
    assert found.faults == ["Write of 12 elements outside of every tensor at script.py:12"]


def test_the_place_of_a_maximum_where_there_is_nothing_but_nan(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(x, out):
        i = tl.arange(0, 4)
        tl.store(out + i, tl.argmax(tl.load(x + i[:, None] * 4 + i[None, :]), 1))

    x, out = torch.tensor([[1.0, 5, 2, 3]] * 4), torch.full((4,), -1, dtype=torch.int32)
    x[1] = float("nan")
    x[2, 0] = float("nan")
    k[(1,)](x, out)
    assert out[[0, 2, 3]].tolist() == [1, 1, 1]
    assert 0 <= out[1] < 4
    """
    )


def test_an_error_of_a_kernel_passes_through(run: Runs) -> None:
    with pytest.raises(AssertionError, match="not today"):
        run(
            """
        @triton.jit
        def k(x):
            tl.static_assert(False, "not today")

        k[(1,)](torch.zeros(1))
        """
        )
