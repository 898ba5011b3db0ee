"""Host code of a file whose kernels all run on the NPU now."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tests.passes.gpu.support import gpu_file, result_of
from tl2npu.passes.host.code import retarget
from tl2npu.results import judged
from tl2npu.source.index import Index

BODY = """
a = T.alloc_shared((64, 64), "float32")
T.copy(A, a)
for i, j in T.Parallel(64, 64):
    a[i, j] = a[i, j] + a[i, j]
T.copy(a, B)
"""
KERNEL = gpu_file("A: T.Tensor((64, 64), 'float32'), B: T.Tensor((64, 64), 'float32')", BODY)
REFUSED = KERNEL.replace("def factory", "def other").replace("T.copy(a, B)", "while bx < 0:\n                pass")


def host(text: str) -> str:
    """Host code alone, with the imports of a kernel file."""
    module = cst.parse_module(textwrap.dedent(text))
    return retarget(Index.of(module), module).module.code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = x.cuda()", "x = x.npu()"),
        ("x = torch.randn(4).cuda(1).half()", "x = torch.randn(4).npu(1).half()"),
        ("x = torch.randn(4, device='cuda', dtype=d)", "x = torch.randn(4, device='npu', dtype=d)"),
        ('x = torch.zeros(4, device="cuda:1")', 'x = torch.zeros(4, device="npu:1")'),
        ('x = torch.zeros(4, device=f"cuda:{rank}")', 'x = torch.zeros(4, device=f"npu:{rank}")'),
        ("x = x.to('cuda')", "x = x.to('npu')"),
        ('d = torch.device("cuda:0")', 'd = torch.device("npu:0")'),
        ('device = "cuda" if n else "cpu"', 'device = "npu" if n else "cpu"'),
        ('def f(n, device="cuda"):\n    pass', 'def f(n, device="npu"):\n    pass'),
        ('assert x.device.type == "cuda"', 'assert x.device.type == "npu"'),
        ("assert x.is_cuda and all([t.is_cuda for t in ts])", "assert x.is_npu and all([t.is_npu for t in ts])"),
        ("is_cuda = n", "is_cuda = n"),
        ("here.is_cuda = n", "here.is_cuda = n"),
        ("assert platform.is_cuda()", "assert platform.is_cuda()"),
        ("torch.cuda.synchronize()", "torch.npu.synchronize()"),
        ("e = torch.cuda.Event(enable_timing=True)", "e = torch.npu.Event(enable_timing=True)"),
        ("major, minor = torch.cuda.get_device_capability(0)", "major, minor = (0, 0)"),
        ("major = torch.cuda.get_device_capability()[0]", "major = (0, 0)[0]"),
        ("g = torch.cuda.CUDAGraph()", "g = torch.npu.NPUGraph()"),
        ('torch.set_default_device("cuda")', 'torch.set_default_device("npu")'),
        ('p.add_argument("--device", default="cuda")', 'p.add_argument("--device", default="npu")'),
        (
            't = kernel.get_profiler().do_bench(warmup=5, backend="cupti")',
            "t = kernel.get_profiler().do_bench(warmup=5)",
        ),
        ("t.set_profile_args(rtol=1, backend=b)", "t.set_profile_args(rtol=1)"),
        ("r = t.run(warmup=5, early_stop=e, early_stop_factor=1.2)", "r = t.run(warmup=5)"),
        ("f(64, T.float16, dtype=T.bfloat16)", 'f(64, "float16", dtype="bfloat16")'),
        ("y = T.float16.as_torch()", "y = torch.float16"),
        ("d = T.dtype(x.dtype)\nf(d)", 'd = str(x.dtype).removeprefix("torch.")\nf(d)'),
        (
            "n = torch.cuda.get_device_properties(0).multi_processor_count",
            "n = torch.npu.get_device_properties(0).cube_core_num",
        ),
        ("backend = 'cuda'", "backend = 'cuda'"),
        ("print('cuda')", "print('cuda')"),
        (
            "torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-2)",
            "torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-2)",
        ),
    ],
)
def test_host_code(old: str, new: str) -> None:
    head = "import torch\nimport tilelang\nimport tilelang.language as T\n\nprint(T)\n"
    assert host(head + old + "\n") == head + new + "\n"


def test_number_of_cores() -> None:
    old = """\
    import torch
    import tilelang
    from tilelang.carver.arch import driver

    cores = driver.get_num_sms()
    """
    new = """\
    import torch
    import tilelang

    cores = int(torch.npu.get_device_properties("npu").cube_core_num)
    """
    assert host(old) == textwrap.dedent(new)


def test_number_of_cores_without_torch() -> None:
    old = "import tilelang\nfrom tilelang.carver.arch.driver import get_num_sms\n\nn = get_num_sms(), get_num_sms()\n"
    call = 'int(torch.npu.get_device_properties("npu").cube_core_num)'
    assert host(old) == f"import torch\nimport tilelang\n\nn = {call}, {call}\n"


def test_decorators_that_ask_for_a_gpu() -> None:
    old = """\
    import tilelang.testing


    @tilelang.testing.requires_cuda
    @tilelang.testing.requires_cuda_compute_version_ge(9, 0)
    def test_kernel():
        tilelang.testing.set_random_seed(0)
    """
    new = """\
    import tilelang.testing


    def test_kernel():
        tilelang.testing.set_random_seed(0)
    """
    assert host(old) == textwrap.dedent(new)


def test_imports_without_a_use_go_only_if_they_had_one() -> None:
    old = cst.parse_module("from tilelang.layout import make_swizzled_layout, Layout\nx = make_swizzled_layout\n")
    new = cst.parse_module("from tilelang.layout import make_swizzled_layout, Layout\n")
    assert retarget(Index.of(old), new).module.code == "from tilelang.layout import Layout\n"


@pytest.mark.parametrize(
    ("handler", "left"),
    [
        ("from tvm import tir", ""),
        ("tir = None", "try:\n    from tvm import tirx as tir\nexcept ImportError:\n    tir = None\n"),
    ],
)
def test_an_attempt_at_imports_goes_as_a_whole(handler: str, left: str) -> None:
    imports = f"try:\n    from tvm import tirx as tir\nexcept ImportError:\n    {handler}\n"
    old, new = (cst.parse_module("import os\n" + imports + rest) for rest in ("x = tir.min\n", ""))
    assert retarget(Index.of(old), new).module.code == "import os\n" + left


def test_pass_configs_of_a_gpu_are_said() -> None:
    module = cst.parse_module(
        "import tilelang\n\nK = tilelang.PassConfigKey\n"
        "x = {K.TL_DISABLE_WGMMA: True, tilelang.PassConfigKey.TIR_DISABLE_CSE: True}\n"
    )
    (text,) = (text for _, text in retarget(Index.of(module), module).left)
    assert text == "`K.TL_DISABLE_WGMMA` is for a GPU and has no known NPU counterpart"


@pytest.mark.parametrize(
    ("head", "left"),
    [
        ("import torch\n\ntorch.cuda.nvtx.range_push('x')\n", "torch.cuda.nvtx.range_push"),
        ("from tilelang.contrib import nvcc\n\nassert nvcc.get_version()\n", "nvcc.get_version"),
    ],
)
def test_what_has_no_counterpart_is_said(head: str, left: str) -> None:
    module = cst.parse_module(f"import torch\n{head}print(torch.cuda.is_available())\n")
    done = retarget(Index.of(module), module)
    assert [text for _, text in done.left] == [f"`{left}` is for a GPU and has no known NPU counterpart"]


HOST = "\n\nimport torch\n\nx = torch.ones(64, 64).cuda()\nprint(factory()(x))\n"


def test_whole_file() -> None:
    result = result_of(KERNEL + HOST)
    assert result.new_text is not None
    assert result.new_text.endswith(HOST.replace("cuda", "npu"))
    line = (KERNEL + HOST).splitlines().index("x = torch.ones(64, 64).cuda()") + 1
    assert [change.line for change in result.changes if change.code == "TL124"] == [line]
    assert result_of(result.new_text).new_text == result.new_text


def test_host_code_waits_for_the_last_kernel() -> None:
    text = KERNEL + "\n\n" + REFUSED[REFUSED.index("@tilelang") :] + HOST
    result = result_of(text)
    assert result.new_text is not None
    assert result.new_text.endswith(HOST)
    assert [(d.code, d.severity) for d in result.diagnostics if d.code == "TL125"] == [("TL125", "warning")]
    assert "is_npu=True" in result.new_text


def test_types_of_calls_change_where_no_call_needs_a_gpu() -> None:
    """TileLang for an NPU has no `T.bfloat16`; a variable that both get is named, and stays."""
    typed = KERNEL.replace("def factory(", "def factory(dtype=T.float16").replace("'float32'", "dtype")
    typed = typed.replace('"float32"', "dtype")
    alone = "\n\ndef alone():\n    kind = T.bfloat16\n    return factory(kind)\n"
    both = "\n\ndef both():\n    kind = T.bfloat16\n    return factory(kind), other(kind)\n"
    result = result_of(typed + "\n\n" + REFUSED[REFUSED.index("@tilelang") :] + alone + both)
    assert result.new_text is not None
    assert result.new_text.endswith(alone.replace("T.bfloat16", '"bfloat16"') + both)
    (found,) = [d for d in result.diagnostics if d.code == "TL125"]
    assert result.old_text.splitlines()[found.line - 1].strip() == "return factory(kind), other(kind)"


def test_the_factory_of_a_migrated_kernel_asks_the_npu_all_the_same() -> None:
    """Its code belongs to the kernel; that of the refused one and of the host stays."""
    asked = "from tilelang.carver.arch import driver"
    line = "    cores = driver.get_num_sms()\n    @T.prim_func"
    migrated = KERNEL.replace("    @T.prim_func", line, 1)
    refused = REFUSED[REFUSED.index("@tilelang") :].replace("    @T.prim_func", line, 1)
    new = result_of(f"{asked}\nimport torch\n{migrated}\n\n{refused}{HOST}").new_text or ""
    first, _, second = new.partition(refused)
    assert 'cores = int(torch.npu.get_device_properties("npu").cube_core_num)' in first
    assert second == HOST
    other = REFUSED[REFUSED.index("@tilelang") :]
    assert asked not in (result_of(f"{asked}\nimport torch\n{migrated}\n\n{other}{HOST}").new_text or "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("torch.cuda.nvtx.mark('x')", "fails on an NPU"),
        ("torch.cuda.nvtx.mark('x') if torch.cuda.is_available() else None", None),
        ("f = lambda: torch.cuda.nvtx.mark('x')", None),
    ],
)
def test_a_factory_that_needs_a_gpu_is_an_error_of_its_kernel_alone(line: str, said: str | None) -> None:
    other = KERNEL[KERNEL.index("@tilelang") :].replace("def factory", "def other")
    text = "import torch\n" + KERNEL.replace("    @T.prim_func", f"    {line}\n    @T.prim_func", 1) + "\n\n" + other
    result = judged(result_of(text))
    assert [kernel.errors for kernel in result.kernels] == [("TL125",) if said else (), ()]
    (found,) = [item for item in result.diagnostics if item.code == "TL125"]
    assert (said or "no known NPU counterpart") in found.message


def test_an_import_that_needs_a_gpu_is_an_error_of_the_file() -> None:
    other = KERNEL[KERNEL.index("@tilelang") :].replace("def factory", "def other")
    result = judged(result_of(f"import torch\n\ntorch.cuda.nvtx.mark('x')\n{KERNEL}\n\n{other}"))
    assert [kernel.errors for kernel in result.kernels] == [("TL125",), ("TL125",)]
    guarded = judged(result_of(f"import torch\n\nif True:\n    torch.cuda.nvtx.mark('x')\n{KERNEL}\n\n{other}"))
    assert [kernel.errors for kernel in guarded.kernels] == [(), ()]


def test_host_code_of_a_file_without_a_migrated_kernel_stays() -> None:
    result = result_of(REFUSED + HOST.replace("factory", "other"))
    assert result.new_text == result.old_text
    assert not [d for d in result.diagnostics if d.code == "TL125"]


def test_constants_that_the_kernel_shares_with_the_host() -> None:
    text = KERNEL.replace("@tilelang", "DTYPE = T.float32\n\n\n@tilelang").replace("'float32'", "DTYPE")
    text += "\n\nimport torch\n\nx = torch.ones(64, 64, dtype=DTYPE.as_torch())\nsize = DTYPE.bits\n"
    new = result_of(text).new_text
    assert new is not None
    assert 'DTYPE = "float32"' in new
    assert "dtype=getattr(torch, DTYPE))\nsize = tilelang.DataType(DTYPE).bits\n" in new


MADE = """
import tilelang
{head}

{decorator}
def factory(n):
    return make(n)


{use}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("k = factory.compile(4)", "k = factory(4)"),
        ("k = (factory.compile(n=4))(x)", "k = (factory(n=4))(x)"),
        ("print(factory.get_kernel_source(4))", "print(factory(4).get_kernel_source())"),
        ("s = (factory.get_kernel_source(n=4))", "s = (factory(n=4).get_kernel_source())"),
        ("t = factory.get_tir(factory.compile(4))", "t = factory(factory.compile(4)).prim_func"),
        ("def f(m):\n    return factory.compile(m)", "def f(m):\n    return factory(m)"),
        ("def f(factory):\n    return factory.compile(4)", "def f(factory):\n    return factory.compile(4)"),
        ("name = factory.func.__name__", "name = factory.__name__"),
        ("k = other.compile(4)", "k = other.compile(4)"),
        ("k = factory(4).compile", "k = factory(4).compile"),
        ("k = re.compile(4)", "k = re.compile(4)"),
    ],
)
@pytest.mark.parametrize("decorator", ["@tilelang.jit", "@tilelang.jit(out_idx=[1])", "@jit"])
def test_methods_of_a_factory(old: str, new: str, decorator: str) -> None:
    head = "from tilelang import jit"
    found = host(MADE.format(head=head, decorator=decorator, use=old))
    assert found == MADE.format(head=head, decorator=decorator, use=new)


def test_methods_of_other_functions_stay() -> None:
    text = MADE.format(head="", decorator="@cache", use="k = factory.compile(4)")
    assert host(text) == text


@pytest.mark.parametrize(
    "use",
    [
        "ks = factory.par_compile([{'n': 4}])",
        "f = factory.compile",
        "s = factory.func.signature",
        "k = factory.get_tir(factory.compile(4))",
    ],
)
def test_methods_without_a_counterpart_are_named(use: str) -> None:
    text = KERNEL + "\n\n" + use.replace("'n': 4", "") + "\n"
    (found,) = [d for d in result_of(text).diagnostics if d.code == "TL125"]
    assert found.line == len(text.splitlines())
    assert "returns a function" in found.message


def test_a_tuner_has_no_name() -> None:
    text = MADE.format(head="", decorator="@tilelang.autotune(configs=[])\n@tilelang.jit", use="k = factory.{}")
    assert host(text.format("compile(4)")) == text.replace("factory.{}", "factory(4)")
    assert host(text.format("func.__name__")) == text.format("func.__name__")
