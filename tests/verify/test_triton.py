"""Triton kernels, and the TileLang kernels that stand in their place."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tl2npu.verified import VerifyResult
from tl2npu.verify.backends import verify
from tl2npu.verify.loading import Source
from tl2npu.verify.naming import places
from tl2npu.verify.process import here
from tl2npu.verify.settings import Settings

if find_spec("triton") is not None:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports it

OLD = """import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out


torch.manual_seed(0)
x, y = torch.randn(4, 200, device="cuda"), torch.randn(4, 200, device="cuda")
torch.testing.assert_close(add(x, y), x + y)
"""
KERNEL = """import torch
import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[2], pass_configs=pass_configs)
def add_kernel(n, BLOCK):
    @T.prim_func
    def main(
        x_ptr: T.Tensor((n,), "float32"), y_ptr: T.Tensor((n,), "float32"), out_ptr: T.Tensor((n,), "float32")
    ):
        with T.Kernel(T.ceildiv(n, BLOCK), threads=1, is_npu=True) as (pid):
            x = T.alloc_shared((BLOCK,), "float32")
            y = T.alloc_shared((BLOCK,), "float32")
            T.copy(x_ptr[pid * BLOCK], x)
            T.copy(y_ptr[pid * BLOCK], y)
            for i in T.Parallel(BLOCK):
                x[i] = x[i] + y[i]
            T.copy(x, out_ptr[pid * BLOCK])

    return main
"""
HOST = """

def add(x, y):
    return add_kernel(x.numel(), 256)(x.view(-1), y.view(-1)).view(x.shape)


torch.manual_seed(0)
x, y = torch.randn(4, 200, device="npu"), torch.randn(4, 200, device="npu")
add(x, y)
"""


def verified(tmp_path: Path, old: str, new: str) -> VerifyResult:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    sources = []
    for name, text in (("old.py", old), ("new.py", new)):
        path = tmp_path / name
        path.write_text(text)
        sources.append(Source(text, str(path), name))
    return verify(*sources, Settings(), here)


@pytest.mark.parametrize("host", [HOST, ""], ids=["script", "kernels only"])
def test_a_right_kernel_is_verified(tmp_path: Path, host: str) -> None:
    result = verified(tmp_path, OLD, KERNEL + host)
    assert result.ok, result
    (kernel,) = result.kernels
    assert (kernel.name, kernel.line, kernel.status) == ("add_kernel", 7, "verified")
    (comparison,) = result.comparisons
    assert comparison.outputs == ("out_ptr",)
    assert comparison.call == "add_kernel(BLOCK=256, n=800)"


@pytest.mark.parametrize("host", [HOST, ""], ids=["script", "kernels only"])
def test_a_wrong_one_is_not(tmp_path: Path, host: str) -> None:
    result = verified(tmp_path, OLD, (KERNEL + host).replace("x[i] + y[i]", "x[i] - y[i]"))
    assert not result.ok
    (found,) = [d for d in result.diagnostics if d.severity == "error"]
    assert found.code == "TL907"
    assert found.message.startswith("out_ptr[0] is ")


def test_an_output_that_is_written_in_part_only(tmp_path: Path) -> None:
    new = (KERNEL + HOST).replace("T.Kernel(T.ceildiv(n, BLOCK),", "T.Kernel(T.ceildiv(n, BLOCK) - 1,")
    result = verified(tmp_path, OLD, new)
    assert "TL907" in {d.code for d in result.diagnostics}


def test_an_output_that_the_new_kernel_does_not_have(tmp_path: Path) -> None:
    new = KERNEL.replace("out_idx=[2], ", "").replace(', out_ptr: T.Tensor((n,), "float32")', "")
    result = verified(tmp_path, OLD, new.replace("            T.copy(x, out_ptr[pid * BLOCK])\n", ""))
    assert {d.code for d in result.diagnostics if "out_ptr" in d.message and "missing" in d.message} == {"TL907"}


def test_an_output_that_was_there_before_the_launch(tmp_path: Path) -> None:
    old = OLD.replace("out = torch.empty_like(x)", "out = x + y")
    new = (KERNEL + HOST).replace("T.Kernel(T.ceildiv(n, BLOCK),", "T.Kernel(T.ceildiv(n, BLOCK) - 1,")
    assert "TL907" in {d.code for d in verified(tmp_path, old, new).diagnostics}


def test_a_kernel_that_has_no_counterpart_is_not_verified(tmp_path: Path) -> None:
    result = verified(tmp_path, OLD, KERNEL.replace("def add_kernel", "def other_kernel"))
    assert not result.ok
    assert [(k.name, k.status) for k in result.kernels] == [("add_kernel", "not verified")]


def test_a_shape_that_the_memory_does_not_have(tmp_path: Path) -> None:
    new = KERNEL.replace("x_ptr: T.Tensor((n,)", "x_ptr: T.Tensor((n + 1000,)")
    result = verified(tmp_path, OLD, new)
    (found,) = result.diagnostics
    assert found.code == "TL906"
    assert "x_ptr has shape [4, 200]: fewer elements than [1800]" in found.message


def test_what_depends_on_memory_outside_of_every_tensor(tmp_path: Path) -> None:
    """The old kernel adds elements of ``y`` that there are not; so many results say nothing."""
    short = 'y = torch.randn(4, 200, device="{0}"), torch.randn(700, device="{0}")'
    old = OLD.split("x, y = torch")[0] + f"x, {short.format('cuda')}\nadd(x, y)\n"
    new = (KERNEL + HOST.split("x, y = torch")[0]).replace("y_ptr: T.Tensor((n,)", "y_ptr: T.Tensor((n - 100,)")
    new += f"x, {short.format('npu')}\nadd(x, y)\n"
    right, wrong = verified(tmp_path, old, new), verified(tmp_path, old, new.replace("x[i] + y[i]", "x[i] - y[i]"))
    assert right.ok, right
    assert any("100 of 800 elements of out_ptr depend on memory outside" in note for note in right.notes)
    assert "TL907" in {d.code for d in wrong.diagnostics}
    nothing = verified(tmp_path, old.replace("tl.load(y_ptr + i", "tl.load(y_ptr + i + 9000000"), new)
    assert [kernel.status for kernel in nothing.kernels] == ["not verified"]


def test_a_tensor_that_is_not_contiguous(tmp_path: Path) -> None:
    """As the gradient of a sum: it has one element in memory, and the old kernel reads 800."""
    one = 'y = torch.randn(4, 200, device="{0}"), torch.randn(1, device="{0}").expand(4, 200)'
    old = OLD.split("x, y = torch")[0] + f"x, {one.format('cuda')}\nadd(x, y)\n"
    new = KERNEL + HOST.split("x, y = torch")[0].replace("y.view(-1)", "y.contiguous().view(-1)")
    new += f"x, {one.format('npu')}\nadd(x, y)\n"
    right, wrong = verified(tmp_path, old, new), verified(tmp_path, old, new.replace("x[i] + y[i]", "x[i] - y[i]"))
    assert right.ok
    assert any("y_ptr is not contiguous in launch 1" in note for note in right.notes)
    assert "TL907" in {d.code for d in wrong.diagnostics}


MODEL = """

class Model(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, y):
        return add(x, y) * self.factor


def get_inputs():
    rows, columns = 4, 200
    return [torch.randn(rows, columns, dtype=torch.float32), torch.randn(rows, columns)]


def get_init_inputs():
    return [2.0]
"""


def test_a_benchmark_that_defines_a_model_and_its_inputs(tmp_path: Path) -> None:
    """Its model is run, where the file runs nothing itself."""
    old, new = (text.split("torch.manual_seed")[0] + MODEL for text in (OLD, KERNEL + HOST))
    assert len(verified(tmp_path, old, new).comparisons) == 1
    wrong = verified(tmp_path, old, new.replace("x[i] + y[i]", "x[i] - y[i]"))
    assert "TL907" in {d.code for d in wrong.diagnostics}
    assert len(verified(tmp_path, f"{old}\nadd(*get_inputs())\n", f"{new}\nadd(*get_inputs())\n").comparisons) == 1


def test_a_second_factory_stands_in_the_place_of_the_kernel_too(tmp_path: Path) -> None:
    old = OLD.replace("torch.testing", "add(y, x)\ntorch.testing")
    second = KERNEL.split("pass_configs = {")[1].split("}\n", 1)[1].replace("def add_kernel", "def add_kernel_2")
    host = HOST.replace("return add_kernel(x", "return which(x").replace("x, y)", "x, y, which)")
    host = f"{host}add(y, x, add_kernel_2)\n".replace("def add(x, y, which)", "def add(x, y, which=add_kernel)")
    host = host.replace("\nadd(x, y, which)", "\nadd(x, y)")
    assert len(verified(tmp_path, old, KERNEL + second + host).comparisons) == 2
    wrong = verified(tmp_path, old, KERNEL + second.replace("x[i] + y[i]", "x[i] - y[i]") + host)
    assert "TL907" in {d.code for d in wrong.diagnostics}


def test_two_triton_kernels(tmp_path: Path) -> None:
    right = verified(tmp_path, OLD, OLD.replace("256", "128"))
    assert [(comparison.by, comparison.problems) for comparison in right.comparisons] == [(("add_kernel",), ())]
    assert not right.diagnostics
    wrong = OLD.replace("mask=mask) + tl", "mask=mask) - tl").split("torch.testing")[0] + "add(x, y)\n"
    assert "TL907" in {d.code for d in verified(tmp_path, OLD, wrong).diagnostics}


def test_which_functions_of_a_file_are_kernels() -> None:
    text = (
        "import triton as t\n"
        "from triton import jit as compiled\n"
        "import other\n"
        "@t.jit\n"
        "def asks(x):\n"
        "    i = tl.program_id(0)\n"
        "@compiled(debug=True)\n"
        "def launched(x): ...\n"
        "@t.jit\n"
        "def part(x): ...\n"
        "@other.jit\n"
        "def foreign(x):\n"
        "    i = tl.program_id(0)\n"
        "def host():\n"
        "    launched[(1,)](0)\n"
    )
    assert [(place.name, place.line) for place in places(text)] == [("asks", 5), ("launched", 8)]


def test_a_kernel_that_the_script_does_not_launch_is_not_verified(tmp_path: Path) -> None:
    more = "\n\n@triton.jit\ndef never(x_ptr):\n    tl.store(x_ptr + tl.program_id(0), 0.0)\n\n\ndef add(x, y):"
    result = verified(tmp_path, OLD.replace("\n\ndef add(x, y):", more), KERNEL + HOST)
    assert not result.ok
    assert [(k.name, k.status) for k in result.kernels] == [("add_kernel", "verified"), ("never", "not verified")]


def test_a_kernel_that_is_still_a_triton_kernel_in_the_new_file_is_told(tmp_path: Path) -> None:
    result = verified(tmp_path, OLD, OLD.partition("torch.manual_seed")[0])
    assert not result.ok
    assert [(k.name, k.status) for k in result.kernels] == [("add_kernel", "not verified")]
    text = "new.py still has the Triton kernel 'add_kernel', and as a script it does not launch it"
    assert text in [found.message for found in result.diagnostics]


RENAMED = {
    "other names": [("x_ptr", "A"), ("y_ptr", "B"), ("out_ptr", "C")],
    "the output": [("out_ptr", "C")],
    "the inputs": [("x_ptr", "A"), ("y_ptr", "B")],
    "without _ptr": [("x_ptr", "X"), ("y_ptr", "Y"), ("out_ptr", "Out")],
    "a name of an old one": [("x_ptr", "first"), ("y_ptr", "out"), ("out_ptr", "result")],
}


@pytest.mark.parametrize("host", [HOST, ""], ids=["script", "kernels only"])
@pytest.mark.parametrize("names", RENAMED.values(), ids=RENAMED)
def test_parameters_with_other_names_at_the_same_places(
    tmp_path: Path, names: list[tuple[str, str]], host: str
) -> None:
    new = KERNEL
    for before, after in names:
        new = new.replace(before, after)
    result = verified(tmp_path, OLD, new + host)
    assert result.ok, result.diagnostics
    assert result.comparisons[0].outputs == ("out_ptr",)
    wrong = verified(tmp_path, OLD, (new + host).replace("x[i] + y[i]", "x[i] - y[i]"))
    assert {d.code for d in wrong.diagnostics} == {"TL907"}


@pytest.mark.parametrize("decorator", ["@triton.jit\n", ""])
def test_a_triton_kernel_that_stays_is_not_proved(tmp_path: Path, decorator: str) -> None:
    """By decorator, or by a call that ``migrate`` does not see."""
    old = OLD.replace("@triton.jit\n", decorator)
    if not decorator:
        old = old.replace("def add(x", "add_kernel = triton.jit(add_kernel)\n\n\ndef add(x")
    result = verified(tmp_path, old, old)
    assert not result.ok
    assert [(k.name, k.status) for k in result.kernels] == [("add_kernel", "not migrated")]


def test_a_triton_kernel_that_stays_beside_a_migrated_one(tmp_path: Path) -> None:
    second = OLD.split("\n\n\n")[1].replace("add_kernel", "other_kernel")
    launch = 'other_kernel[(4,)](x, y, torch.empty(1024, device="{}"), 800, BLOCK=256)\n'
    old = OLD.replace("\n\n\ndef add(", f"\n\n\n{second}\n\n\ndef add(") + launch.format("cuda")
    new = KERNEL.replace("import tilelang\n", "import tilelang\nimport triton\nimport triton.language as tl\n", 1)
    new += f"\n\n{second}\n" + HOST + launch.format("npu")
    result = verified(tmp_path, old, new)
    assert result.ok, result
    assert {k.name: k.status for k in result.kernels} == {"add_kernel": "verified", "other_kernel": "not migrated"}
