"""torch on the CPU that behaves as if there were an accelerator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

Script = Callable[..., dict[str, Any]]

MOVES = {
    ".npu()": ("a.npu()", "b.npu()"),
    ".cuda()": ("a.cuda()", "b.cuda(0)"),
    ".to(name)": ("a.to('npu')", "b.to('npu:1')"),
    ".to(device)": ("a.to(torch.device('cuda'))", "b.to(torch.device('cuda', 0))"),
    ".to(device=)": ("a.to(device='cuda:0')", "b.to(device='cuda')"),
    ".to(tensor)": ("a.to(torch.zeros(1, device='npu'))", "b.to(b)"),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_move_to_the_device_is_a_copy_and_a_second_one_is_none(script: Script, name: str) -> None:
    """What a kernel writes into a tensor on the device is not seen in the tensor of the host, and back."""
    first, second = MOVES[name]
    found = script(f"""
        import torch
        a = torch.zeros(3)
        b = {first}
        b[0] = 5
        same = {second}
        same[1] = 6
        c = b.cpu()
        c[2] = 7
        d = b.to("cpu")
        d[2] = 8
    """)
    assert found["a"].tolist() == [0, 0, 0]
    assert found["b"].tolist() == [5, 6, 0]
    assert found["c"].tolist() == [5, 6, 7]
    assert found["d"].tolist() == [5, 6, 8]


NEW = {
    "device=": "torch.zeros(3, device='npu')",
    "torch.device": "torch.zeros(3, device=torch.device('cuda:0'))",
    "a result": "torch.zeros(3).npu() + 1",
    "a view": "torch.zeros(3).npu().view(3)",
    "empty_like": "torch.empty_like(torch.zeros(3).npu())",
    "half": "torch.zeros(3).half().npu().float()",
    "default device": "(torch.set_default_device('npu'), torch.zeros(3))[1]",
    "generator": "torch.randn(3, device='npu', generator=torch.Generator(device='npu'))",
}


@pytest.mark.parametrize("name", NEW)
def test_where_a_new_tensor_is(script: Script, name: str) -> None:
    """A tensor that is made on the device is there: moving it is no copy."""
    found = script(f"import torch\na = {NEW[name]}\nsame = a.npu() is a")
    assert found["same"], name


def test_a_tensor_of_the_host_is_not_on_the_device(script: Script) -> None:
    """So that moving it is a copy."""
    found = script(
        "import torch\na = torch.zeros(3)\nb = torch.zeros(3).npu().cpu()\nsame = a.npu() is a, b.npu() is b"
    )
    assert found["same"] == (False, False)


def test_modules_functions_and_names(script: Script) -> None:
    """What scripts ask for around their tensors."""
    found = script("""
        import torch
        import torch_npu
        import torch.nn.functional as F
        from torch_npu.contrib import transfer_to_npu

        model = torch.nn.Linear(4, 2).npu().to("npu").half().float()
        out = model(torch.ones(3, 4).npu())
        torch.npu.synchronize()
        torch.npu.set_device(0)
        torch.npu.config.allow_internal_format = False
        events = [torch.npu.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        time = events[0].elapsed_time(events[1])
        known = torch.npu.is_available(), torch.cuda.is_available()
        known += torch.npu.device_count(), torch.cuda.current_device()
        cores = torch.npu.get_device_properties("npu").cube_core_num
        is_device = isinstance(torch.device("npu"), torch.device)
        loss = F.cross_entropy(torch.zeros(2, 4).npu(), torch.ones(2, dtype=torch.int32).npu())
        with torch.npu.stream(torch.npu.Stream()), torch.no_grad():
            pass
        torch.testing.assert_close(out, model(torch.ones(3, 4)), rtol=0, atol=0)
    """)
    assert found["known"] == (True, True, 1, 0)
    assert found["cores"] == 24
    assert found["is_device"]
    assert found["time"] == 1.0
    assert abs(float(found["loss"]) - 1.3863) < 1e-3


def test_a_tensor_is_written_onto_itself(script: Script) -> None:
    """As on the device: the CPU's torch refuses it where the strides differ."""
    found = script("import torch\na = torch.arange(6.).view(1, 6).npu()\na[:, 0:3] = a[:, 0:3].contiguous().view(1, 3)")
    assert found["a"].tolist() == [[0, 1, 2, 3, 4, 5]]


def test_the_judge_of_the_script_is_torch_itself(script: Script) -> None:
    """``assert_close`` is untouched: it fails where it should."""
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        script("import torch\ntorch.testing.assert_close(torch.zeros(2).npu(), torch.ones(2).npu())")


def test_operators_of_the_npu_that_are_not_there(script: Script) -> None:
    """Refused by name, and never None."""
    for text in ("import torch_npu\ntorch_npu.npu_fusion_attention(1)", "import torch\ntorch.ops.npu.npu_anything(1)"):
        with pytest.raises(AttributeError, match="an operator of the NPU's own library"):
            script(text)


def test_operators_of_the_npu_that_torch_defines(script: Script) -> None:
    """Against formulas written out."""
    found = script("""
        import torch
        import torch_npu
        torch.manual_seed(0)
        x, g = torch.randn(4, 8), torch.randn(4, 4)
        cos, sin = torch.randn(4, 8), torch.randn(4, 8)
        swiglu = torch.ops.npu.npu_swiglu(x.npu())
        grad = torch.ops.npu.npu_swiglu_backward(g, x)
        rotated = torch_npu.npu_rotary_mul(x, cos, sin)
    """)
    x, g = found["x"], found["g"]
    a, b = x[:, :4], x[:, 4:]
    s = 1 / (1 + torch.exp(-a))
    torch.testing.assert_close(found["swiglu"], a * s * b)
    torch.testing.assert_close(found["grad"], torch.cat([g * b * (s + a * s * (1 - s)), g * a * s], 1))
    torch.testing.assert_close(found["rotated"], x * found["cos"] + torch.cat([-b, a], 1) * found["sin"])


def test_a_file_is_loaded_onto_the_device(script: Script) -> None:
    found = script("""
        import io, torch
        kept = io.BytesIO()
        torch.save({"inputs": {"q": torch.ones(3)}, "outputs": [torch.zeros(2)]}, kept)
        kept.seek(0)
        data = torch.load(kept, map_location=torch.device("npu"))
        q, out = data["inputs"]["q"], data["outputs"][0]
        same = q.npu()
        same[0] = 5
    """)
    assert found["q"].tolist() == [5, 1, 1]
    assert found["out"].tolist() == [0, 0]


def test_torch_comes_back(script: Script) -> None:
    """Behind the run torch is what it was."""
    before = torch.device, torch.cuda, torch.Tensor.cuda, torch.nn.Module.to, hasattr(torch, "npu")
    with pytest.raises(ZeroDivisionError):
        script("import torch\ntorch.set_default_device('npu')\n1 / 0")
    assert (torch.device, torch.cuda, torch.Tensor.cuda, torch.nn.Module.to, hasattr(torch, "npu")) == before
    assert torch.zeros(1).device.type == "cpu"
    assert not torch.zeros(1).is_cuda


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool"])
def test_tensors_come_and_go(script: Script, dtype: str) -> None:
    """A kernel reads and writes torch's own memory, for every element type; outputs are torch tensors."""
    found = script(f"""
        import torch
        import tilelang
        import tilelang.language as T

        @tilelang.jit(out_idx=[2])
        def make(n, dtype):
            @T.prim_func
            def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
                with T.Kernel(1, threads=32) as _:
                    for i in T.Parallel(n):
                        B[i] = A[i]
                    for i in T.Parallel(n):
                        C[n - 1 - i] = A[i]
            return main

        a = (torch.arange(6) % 3 - (0 if "{dtype}" in ("uint8", "bool") else 1)).to(torch.{dtype}).npu()
        b = torch.zeros(6, dtype=torch.{dtype}).npu()
        c = make(6, "{dtype}")(a, b)
    """)
    a, b, c = found["a"], found["b"], found["c"]
    assert c.dtype == a.dtype == getattr(torch, dtype)
    assert torch.equal(a, b)
    assert torch.equal(a.flip(0), c)


def test_the_profiler_checks(script: Script) -> None:
    """``assert_allclose`` compares with a reference on inputs of its own, and fails where they differ."""
    head = """
import torch
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def make(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float16"), B: T.Tensor((n,), "float16")):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(n):
                B[i] = A[i] + A[i]
    return main

profiler = make(16).get_profiler()
"""
    script(head + "profiler.assert_allclose(lambda a: 2 * a, rtol=1e-3, atol=1e-3)")
    with pytest.raises(AssertionError):
        script(head + "profiler.assert_allclose(lambda a: 3 * a, rtol=1e-3, atol=1e-3)")


def test_autocast_of_the_device(script: Script) -> None:
    found = script("""
        import torch

        class Doubled(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="npu")
            def forward(ctx, x):
                return x * 2

            @staticmethod
            @torch.amp.custom_bwd(device_type="npu")
            def backward(ctx, gradient):
                return gradient * 2

        x = torch.ones(3, requires_grad=True)
        Doubled.apply(x).sum().backward()
        with torch.autocast("npu", dtype=torch.bfloat16):
            inside = torch.is_autocast_enabled("npu")
        gradient = x.grad
    """)
    assert found["gradient"].tolist() == [2.0] * 3
    assert found["inside"]


def test_where_a_tensor_is(script: Script) -> None:
    """A script that asks gets its device; torch's own comparison of two tensors has nothing to say of it."""
    found = script("""
        import torch
        device = torch.device("npu")
        x = torch.ones(3, device=device)
        there = [y.device == device for y in (x, torch.empty_like(x), torch.cat([x, x]))]
        here = [y.device == device for y in (x.cpu(), torch.ones(3))]
        torch.testing.assert_close(x, torch.ones(3))
    """)
    assert all(found["there"])
    assert not any(found["here"])


def test_a_norm_of_halves_sums_in_floats(script: Script) -> None:
    """The gradient of the bias is 4097 times 1: sums of float16 stop at 2048, where 1 is half a step."""
    found = script("""
        import torch
        x = torch.randn(4097, 8, dtype=torch.float16, device="npu")
        w, b = (torch.ones(8, dtype=torch.float16, device="npu").requires_grad_() for _ in range(2))
        torch.nn.functional.layer_norm(x, (8,), w, b).sum().backward()
        gradient, kind = b.grad, b.grad.dtype == torch.float16
    """)
    assert found["gradient"].tolist() == [4096.0] * 8  # 4097 in float16
    assert found["kind"]
