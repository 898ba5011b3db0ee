"""Kernels with ``al`` and ``bl``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interpreter.support import Run
from tl2npu.interpreter.session import KernelFault

Runs = Callable[[str], Run]
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "a5"


def script(name: str) -> str:
    return (FIXTURES / name / "before.py").read_text()


@pytest.mark.parametrize("name", ["serial_attention", "product_relu"])
def test_complete_scripts_are_right_under_both_schedules(run: Runs, name: str) -> None:
    assert run(script(name)).faults == []


def test_without_the_event_that_frees_a_place_the_result_depends_on_the_schedule(run: Runs) -> None:
    lines = [line for line in script("product_relu").splitlines() if '"vector", "cube", 1' not in line]
    text = "\n".join(lines).split("torch.testing")[0]
    (fault,) = run(text).faults
    assert fault.startswith("product_relu: the result depends on which core is faster: C[0, 0] is ")
    assert "when the cube core is ahead" in fault


def test_a_wrong_event_is_a_deadlock_that_names_each_core(run: Runs) -> None:
    with pytest.raises(KernelFault) as caught:
        run(script("product_relu").replace('wait("cube", "vector", 0', 'wait("cube", "vector", 3'))
    text = str(caught.value)
    assert "product_relu: deadlock: the cube core waits for event 1 from vector core 0 and vector core 1 at" in text
    assert "vector core 0 waits for event 3 from the cube core at script.py:" in text
    assert "vector core 1 waits for event 3 from the cube core at script.py:" in text


def test_an_event_too_many_is_told(run: Runs) -> None:
    last = '        al.sync_block_wait("vector", "cube", 1, al.PIPE.PIPE_V, al.PIPE.PIPE_FIX)\n    with al.scope'
    faults = run(script("product_relu").replace(last, "    with al.scope")).faults
    assert len(faults) == 2
    assert faults[0].startswith("product_relu: event 1 from vector core 0 to the cube core, set at script.py:")


def test_memory_on_the_chip_begins_as_nan(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(out):
        ub = bl.alloc(tl.float32, (16,), al.ascend_address_space.UB)
        tl.store(out + tl.arange(0, 16), bl.to_tensor(ub))

    out = torch.zeros(16)
    k[(1,)](out)
    assert out.isnan().all()
    """
    )


def test_what_a_tensor_of_a_buffer_becomes_does_not_change_the_buffer(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(x, out):
        i = tl.arange(0, 16)
        ub = bl.to_buffer(tl.load(x + i), al.ascend_address_space.UB)
        t = bl.to_tensor(ub)
        t *= 2
        tl.store(out + i, t)
        tl.store(out + 16 + i, bl.to_tensor(ub))
        same = bl.to_buffer(bl.to_tensor(ub), al.ascend_address_space.UB)
        bl.to_buffer(t + 1, al.ascend_address_space.UB, same)
        tl.store(out + 32 + i, bl.to_tensor(ub))

    x, out = torch.arange(16.0), torch.zeros(3, 16)
    k[(1,)](x, out)
    assert torch.equal(out, torch.stack([x * 2, x, x * 2 + 1]))
    """
    )


@pytest.mark.parametrize(
    ("mode", "dual", "shape", "expected"),
    [
        ("NZ2ND", "NO_DUAL", "(32, 32)", "(x @ x, x @ x)"),
        ("NZ2ND", "ROW_SPLIT", "(16, 32)", "((x @ x)[:16], (x @ x)[16:])"),
        ("NZ2ND", "COLUMN_SPLIT", "(32, 16)", "((x @ x)[:, :16], (x @ x)[:, 16:])"),
        ("NZ2DN", "NO_DUAL", "(32, 32)", "((x @ x).T, (x @ x).T)"),
    ],
)
def test_where_fixpipe_puts_a_product(run: Runs, mode: str, dual: str, shape: str, expected: str) -> None:
    run(
        f"""
    @triton.jit
    def k(x, out):
        ub = bl.alloc(tl.float32, {shape}, al.ascend_address_space.UB)
        with al.scope(core_mode="cube"):
            i = tl.arange(0, 32)
            v = tl.load(x + i[:, None] * 32 + i[None, :])
            al.fixpipe(tl.dot(v, v), ub, al.FixpipeDMAMode.{mode}, al.FixpipeDualDstMode.{dual})
            al.sync_block_set("cube", "vector", 0)
        with al.scope(core_mode="vector"):
            al.sync_block_wait("cube", "vector", 0)
            m, n = tl.arange(0, {shape}[0]), tl.arange(0, {shape}[1])
            base = out + al.sub_vec_id() * {shape}[0] * {shape}[1]
            tl.store(base + m[:, None] * {shape}[1] + n[None, :], bl.to_tensor(ub))

    torch.manual_seed(0)
    x = torch.randn(32, 32)
    out = torch.empty(2, *{shape})
    k[(1,)](x, out)
    torch.testing.assert_close(out, torch.stack({expected}), rtol=1e-4, atol=1e-4)
    """
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ('al.sync_block_set("cube", "cube", 0)', "an event goes from 'cube' to 'vector' or back"),
        ('al.sync_block_set("cube", "vector", 16)', "there is no event 16"),
        ('al.sync_block_set("cube", "vector", 0, al.PIPE.PIPE_FIX)', "the pipes of both sides are given, or none"),
        ('al.sync_block_set("vector", "cube", 0)', "the vector side sets event 0, and this is a cube scope"),
        ("al.fixpipe(v, ub)", "a part of shape [16, 16] does not fit a buffer of shape [32, 16]"),
        ("al.fixpipe(v.to(tl.float16), ub)", "a product of fp16 goes to a buffer of fp32; there is no conversion"),
        ("bl.to_tensor(ub)", "a buffer in UB is used in the scope of the cube core, which has no UB"),
        ("al.custom('name')", "al.custom cannot be executed here: it is code for the device"),
        ("al.no_such_name(v)", "al.no_such_name cannot be executed here"),
    ],
)
def test_what_the_front_end_refuses(run: Runs, wrong: str, said: str) -> None:
    with pytest.raises(KernelFault) as caught:
        run(
            f"""
        @triton.jit
        def k(x):
            ub = bl.alloc(tl.float32, (32, 16), al.ascend_address_space.UB)
            with al.scope(core_mode="cube"):
                v = tl.zeros((16, 16), tl.float32)
                {wrong}

        k[(1,)](torch.zeros(1))
        """
        )
    assert said.replace("al.no_such_name", "no_such_name") in str(caught.value)
    assert "script.py" in str(caught.value)


def test_slices_and_casts(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(x, out):
        i = tl.arange(0, 8)
        v = tl.load(x + i[:, None] * 8 + i[None, :])
        part = al.extract_slice(v, (2, 0), (4, 4), (1, 2))
        w = al.insert_slice(v, part * 10, (4, 4), (4, 4), (1, 1))
        w += al.get_element(v, (1, 2)) + al.get_element(v, (4, 4)) - 36  # which is not that of w
        tl.store(out + i[:, None] * 8 + i[None, :], al.sort(w, -1, True))
        tl.store(out + 64 + i, al.cast(tl.load(x + i) * 100, tl.int8, overflow_mode="saturate").to(tl.float32))

    x = torch.arange(64.0).reshape(8, 8)
    out = torch.empty(72)
    k[(1,)](x, out)
    w = x.clone()
    w[4:, 4:] = x[2:6, 0:8:2] * 10
    w += x[1, 2]
    assert torch.equal(out[:64].reshape(8, 8), w.sort(-1, descending=True).values)
    assert out[64:].tolist() == [0, 100, 127, 127, 127, 127, 127, 127]
    """
    )


def test_vector_cores_share_the_turns_of_a_loop(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(out):
        with al.scope(core_mode="vector"):
            for turn in al.parallel(0, 6, 1, bind_sub_block=True):
                tl.store(out + turn, al.sub_vec_id().to(tl.int32) + 1)

    out = torch.zeros(6, dtype=torch.int32)
    k[(1,)](out)
    assert out.tolist() == [1, 2, 1, 2, 1, 2]
    """
    )


def test_halves_without_scopes(run: Runs) -> None:
    found = run(
        """
    @triton.jit
    def k(x, out):
        i = al.sub_vec_id() * 8 + tl.arange(0, 8)
        tl.store(out + i, tl.load(x + i) * 2)

    x, out = torch.arange(16.0), torch.zeros(16)
    k[(1,)](x, out)
    assert torch.equal(out, x * 2)
    """
    )
    assert not found.faults


def test_a_barrier_of_all_blocks(run: Runs) -> None:
    found = run(
        """
    @triton.jit
    def k(x, out):
        pid = tl.program_id(0)
        tl.store(x + pid, pid * pid)
        al.sync_block_all("all", 0)
        tl.store(out + pid, tl.load(x + 3 - pid))

    x, out = torch.zeros(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    k[(4,)](x, out)
    assert out.tolist() == [9, 4, 1, 0]
    """
    )
    assert not found.faults


def test_older_names(run: Runs) -> None:
    run(
        """
    import triton.extension.ascend.language as old

    @triton.jit
    def k(out):
        ub = bl.allocate_local_buffer(tl.float32, (16,), old.address_space.UB)
        with old.Scope(core_mode="vector"):
            bl.to_buffer(tl.full((16,), 3.0, tl.float32), old.address_space.UB, ub)
            tl.store(out + tl.arange(0, 16), ub.to_tensor())

    out = torch.zeros(16)
    k[(1,)](out)
    assert out.tolist() == [3.0] * 16
    """
    )


def test_the_maximum_with_and_without_nan(run: Runs) -> None:
    run(
        """
    @triton.jit
    def k(x, out):
        v = tl.load(x + tl.arange(0, 4))
        tl.store(out, tl.max(v, 0))
        tl.store(out + 1, tl.max(v, 0, propagate_nan=True))

    x, out = torch.tensor([1.0, float("nan"), 3.0, 2.0]), torch.zeros(2)
    k[(1,)](x, out)
    assert out[0] == 3
    assert out[1].isnan()
    """
    )
