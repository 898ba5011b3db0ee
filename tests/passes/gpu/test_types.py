"""dtype objects become strings."""

from __future__ import annotations

import pytest

from tests.passes.gpu.one_pass import after
from tests.passes.gpu.support import gpu_file
from tl2npu.kernel.blocked import Blocked
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.passes.plain.types.strings import to_strings


def test_defaults_locals_and_arguments() -> None:
    text = gpu_file(
        "A: T.Tensor((M, 64), dtype), B: T.Tensor((M, 64), T.float)",
        """
        a = T.alloc_shared((32, 64), dtype)
        b = T.alloc_fragment([32, 64], dtype=accum)
        c = T.alloc_local([1], T.int32)
        T.fill(b, -T.infinity(b.dtype))
        """,
        args="M, dtype: T.dtype = T.float16",
        factory="accum = T.float32 if dtype == T.float16 else T.float",
    )
    expected = (
        text.replace("dtype: T.dtype = T.float16", 'dtype: str = "float16"')
        .replace("T.float32 if dtype == T.float16 else T.float\n", '"float32" if dtype == "float16" else "float32"\n')
        .replace("64), T.float)", '64), "float32")')
        .replace("T.int32", '"int32"')
        .replace("b.dtype", "accum")
    )
    assert after(to_strings, text) == expected


def test_conversions_stay_where_the_function_exists() -> None:
    text = gpu_file(
        "A: T.Tensor((64,), acc)",
        """
        x = T.float32(1)
        y = T.bfloat16(x)
        z = acc(x)
        zero = acc(0)
        w = T.cast(x, T.float16)
        v: T.int32 = 3
        """,
        factory="acc = T.float32",
    )
    expected = (
        text.replace("acc = T.float32", 'acc = "float32"')
        .replace("T.bfloat16(x)", 'T.cast(x, "bfloat16")')
        .replace("acc(x)", "T.cast(x, acc)")
        .replace("acc(0)", "0.0")
        .replace("T.cast(x, T.float16)", 'T.cast(x, "float16")')
    )
    assert after(to_strings, text) == expected


def test_sizes_of_types() -> None:
    text = gpu_file(
        "A: T.Tensor((64,), dtype)",
        "T.copy(A[0:lanes], A[0:lanes])",
        args="dtype=T.float16",
        factory="lanes = 128 // dtype.bits\nwidth = 4 * dtype.bytes\nbits = T.dtype(dtype).bits",
    )
    expected = (
        text.replace("dtype=T.float16", 'dtype="float16"')
        .replace("128 // dtype.bits", "128 // tilelang.DataType(dtype).bits")
        .replace("4 * dtype.bytes", "4 * (tilelang.DataType(dtype).bits // 8)")
        .replace("T.dtype(dtype).bits", "tilelang.DataType(dtype).bits")
    )
    assert after(to_strings, text) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("T.Tensor[(64, 32), T.float16]", 'T.Tensor((64, 32), "float16")'),
        ("T.Tensor[[64, 32], dt]", "T.Tensor([64, 32], dt)"),
        ('T.Tensor[(64, 32), "float16"]', 'T.Tensor((64, 32), "float16")'),
        ("T.Tensor[64, 32]", "T.Tensor((64, 32))"),
        ("T.Tensor[(64), T.int32]", 'T.Tensor((64,), "int32")'),
        ("T.Tensor[shape, dt]", "T.Tensor(shape, dt)"),
    ],
)
def test_subscripted_tensors(old: str, new: str) -> None:
    text = gpu_file(f"A: {old}", "pass", factory='dt = "float32"\nshape = (64, 32)', args="dt2=None")
    assert after(to_strings, text.replace('dt = "float32"', "dt = T.float32")) == text.replace(old, new)


def test_other_spellings() -> None:
    text = (
        "import tilelang\nfrom tilelang import language as tl\nfrom tilelang.language import float16 as half\n\n"
        "FP32 = tl.float32\nUNUSED = tl.float32\n\n\n"
        "@tilelang.jit\ndef factory(n):\n    @tl.prim_func\n    def main(A: tl.Tensor((n,), half)):\n"
        "        with tl.Kernel(1, threads=128) as bx:\n            a = tl.alloc_shared((n,), FP32)\n\n"
        "    return main\n\n\n"
        "print(factory(tl.int32))\n"
    )
    expected = (
        text.replace("FP32 = tl.float32", 'FP32 = "float32"')
        .replace("(n,), half", '(n,), "float16"')
        .replace("factory(tl.int32)", 'factory("int32")')
    )
    assert after(to_strings, text) == expected


def test_star_import_of_another_module() -> None:
    head = "import tilelang\nimport tilelang.language as T\nfrom tilelang.autotuner import *\n\n\n"
    text = gpu_file("A: T.Tensor((64,), dtype)", "pass", factory="dtype = T.float16", head=head)
    assert after(to_strings, text) == text.replace("dtype = T.float16", 'dtype = "float16"')


def test_another_kernel_of_the_factory_stays() -> None:
    text = gpu_file("A: T.Tensor((64,), T.float16)", "pass")
    other = "    @T.prim_func\n    def other(B: T.Tensor((64,), T.float16)):\n"
    other += "        with T.Kernel(1) as bx:\n            pass\n\n"
    text = text.replace("    return main", other + "    return main")
    assert after(to_strings, text) == text.replace("A: T.Tensor((64,), T.float16)", 'A: T.Tensor((64,), "float16")')


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ("A: T.StridedTensor((64, 64), (128, 1), T.float16)", "TL193"),
        ("A: T.Tensor((64, 64), T.float8_e4m3fn)", "TL191"),
        ("A: T.Tensor((64, 64), T.float4_e2m1fn)", "TL191"),
        ("A: T.ptr", "TL193"),
    ],
)
def test_refused(params: str, code: str) -> None:
    with pytest.raises(Blocked) as caught:
        after(to_strings, gpu_file(params, "pass"))
    assert caught.value.code == code


def test_conversion_inside_a_conversion() -> None:
    text = gpu_file("A: T.Tensor((64,), acc)", "x = acc(T.bfloat16(1))", factory="acc = T.float32")
    expected = text.replace("acc(T.bfloat16(1))", 'T.cast(T.cast(1, "bfloat16"), acc)')
    assert after(to_strings, text) == expected.replace("acc = T.float32", 'acc = "float32"')


def test_size_of_a_type_needs_a_name() -> None:
    head = "import tilelang.language as T\nfrom tilelang import jit\n\n\n"
    text = gpu_file("A: T.Tensor((64,), d)", "pass", factory="d = T.float32\nn = d.bits", head=head, jit="@jit")
    expected = "from tilelang import DataType\n" + text.replace("T.float32", '"float32"').replace(
        "d.bits", "DataType(d).bits"
    )
    assert after(to_strings, text) == expected


def test_a_question_about_a_type_is_no_use() -> None:
    text = gpu_file(
        "A: T.Tensor((64,), dtype)", "pass", args="dtype='float32'", factory="assert dtype != T.float8_e4m3fn"
    )
    assert after(to_strings, text) == text.replace("T.float8_e4m3fn", '"float8_e4m3fn"')


@pytest.mark.parametrize("host", ["run(factory(T.float8_e4m3fn))", "x = x.to(torch.float8_e5m2)"])
def test_callers_may_choose_a_type_that_does_not_exist(host: str) -> None:
    text = gpu_file("A: T.Tensor((64,), dtype)", "pass", args="dtype") + f"\n{host}\n"
    with pytest.raises(Blocked) as caught:
        after(to_strings, text)
    assert caught.value.code == "TL191"
    chosen = text.replace("factory(dtype)", "factory(dtype='float16')").replace("factory(T.float8_e4m3fn)", "factory()")
    assert after(to_strings, chosen) == chosen


def _two(shared: str) -> str:
    """Two factories in one class, of which the second cannot be migrated."""
    lines = ["import tilelang", "import tilelang.language as T", "", "", "class Kernels:", "    def both(self):"]
    lines += ["        dtype = T.float16"] if shared else []
    for name, body in (("good", "T.copy(A[bx * 64], a)"), ("bad", "tx = T.get_warp_idx()")):
        lines += ["", "        @tilelang.jit(out_idx=[1])", f"        def {name}():"]
        lines += [] if shared else ["            dtype = T.float16", ""]
        lines += [
            "            @T.prim_func",
            "            def main(A: T.Tensor((128,), dtype), B: T.Tensor((128,), dtype)):",
        ]
        lines += [
            "                with T.Kernel(2, threads=128) as bx:",
            "                    a = T.alloc_shared((64,), dtype)",
        ]
        lines += [
            f"                    {body}",
            "                    T.copy(a, B[bx * 64])",
            "",
            "            return main",
        ]
    return "\n".join([*lines, "", "        return good(), bad()"]) + "\n"


def test_the_types_of_a_kernel_that_is_refused_stay() -> None:
    result = migrate_text(_two(""), "k.py", Options())
    assert [kernel.disposition for kernel in result.kernels] == ["migrated", "refused"]
    assert result.new_text is not None
    first, second = result.new_text.split("def bad")
    assert 'dtype = "float16"' in first
    assert "dtype = T.float16" in second


def test_types_that_two_factories_share() -> None:
    result = migrate_text(_two("shared"), "k.py", Options())
    assert result.new_text is not None
    assert result.new_text.count('dtype = "float16"') == 1
    assert "T.float16" not in result.new_text
