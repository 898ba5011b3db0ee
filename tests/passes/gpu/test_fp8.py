"""``--fp8 float16``: which kernels get float16 for their 8-bit floats, what is said, and that the numbers agree."""

from __future__ import annotations

import textwrap

import ml_dtypes
import numpy as np
import pytest

from tests.passes.gpu.support import IMPORTS, gpu_file
from tests.passes.simulated import run
from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult

WIDE = Options(fp8="float16")
PARAMS = "A: T.Tensor((128, 64), {0}), B: T.Tensor((128, 64), 'float32')"
BODY = """
a = T.alloc_shared((64, 64), {0})
b = T.alloc_fragment((64, 64), "float32")
T.copy(A[bx * 64, 0], a)
for i, j in T.Parallel(64, 64):
    b[i, j] = T.cast(a[i, j], "float32") * 0.5
T.copy(b, B[bx * 64, 0])
"""


def reading(dtype: str, **around: str) -> str:
    """A kernel that halves a tensor of 8-bit floats."""
    return gpu_file(PARAMS.format(dtype), BODY.format(dtype), **around)


def wide(text: str) -> FileResult:
    result = migrate_text(text, "k.py", WIDE)
    assert result.error is None
    return result


def errors(result: FileResult) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in result.diagnostics if d.severity == "error"]


def told(result: FileResult) -> list[str]:
    return [d.message for d in result.diagnostics if d.code == "TL100"]


SPELLINGS = {
    "an attribute": reading("T.float8_e4m3fn"),
    "a string": reading("'float8_e4m3fn'"),
    "the older string": reading('"e5m2_float8"'),
    "a local": reading("kind", factory="kind = T.float8_e5m2"),
    "a choice": reading("kind", args="wide=False", factory="kind = T.float8_e5m2 if wide else T.float8_e4m3fn"),
    "a default": reading("kind", args="kind=T.float8_e4m3fn"),
    "a type that is annotated": reading("kind", args='kind: T.dtype = "float8_e4m3fn"'),
    "a constant of the module": reading("FP8", head=IMPORTS + "FP8 = T.float8_e4m3fn\n\n\n"),
    "a default by a constant": reading("kind", args="kind=FP8", head=IMPORTS + 'FP8 = "float8_e5m2"\n\n\n'),
    "an import": reading("float8_e5m2", head=IMPORTS + "from tilelang.language import float8_e5m2\n\n\n"),
    "a name of torch": reading("torch.float8_e4m3fnuz", head="import torch\n" + IMPORTS),
    "what TileLang chooses": reading(
        "kind",
        factory="kind = determine_fp8_type()",
        head=IMPORTS + "from tilelang.language.fp8 import determine_fp8_type\n\n\n",
    ),
    "a caller": reading("kind", args="kind") + "\n\nkernel = factory(T.float8_e4m3fn)\n",
    "a caller by name": reading("kind", args="n, kind") + '\n\nkernel = factory(3, kind="float8_e4m3fn")\n',
    "a caller with a constant": IMPORTS
    + "F8 = T.float8_e5m2\n\n\n"
    + reading("kind", args="kind", head="")
    + "\n\nkernel = factory(F8)\n",
    "a table": reading("KINDS['a']", factory="KINDS = {'a': T.float8_e4m3fn, 'b': T.float8_e5m2}"),
    "a function of the file": reading("kind()", head=IMPORTS + "def kind():\n    return T.float8_e5m2\n\n\n"),
    "a tuner": reading(
        "kind",
        args="kind",
        jit="@tilelang.autotune(configs=[{'kind': T.float8_e4m3fn}, {'kind': 'float8_e5m2'}])\n"
        "@tilelang.jit(out_idx=[-1])",
    ),
    "an assertion": reading("kind", args="kind=T.float8_e4m3fn", factory="assert kind in [T.float8_e4m3fn]"),
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_spellings(text: str) -> None:
    result = wide(text)
    assert errors(result) == []
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    assert "TL100" in result.kernels[0].codes
    new = result.new_text or ""
    factory = new[new.index("def factory") : new.index("return main")]
    assert "float8" not in factory
    assert "fp8" not in factory.lower()
    assert errors(check_and_again(new)) == []
    assert [kernel.disposition for kernel in migrate_text(text, "k.py", Options()).kernels] == ["refused"]


def check_and_again(new: str) -> FileResult:
    assert wide(new).new_text == new
    return check_text(new, "k.py", Options())


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_values_that_are_read_are_the_same(name: str) -> None:
    text = reading(f"T.{name}")
    values = np.resize(np.arange(256, dtype=np.uint8), (128, 64)).view(getattr(ml_dtypes, name))
    old = run(text, {"A": values}, "factory", ())
    new = run(wide(text).new_text or "", {"A": values.astype(np.float16)}, "factory", ())
    expected = values.astype(np.float32) * 0.5
    np.testing.assert_array_equal(new["B"], expected)
    np.testing.assert_array_equal(old["B"], expected)


def test_what_is_said_of_a_tensor_that_is_read() -> None:
    text = "now float16: `A`; pass fp8 tensors as `x.to(torch.float16)`, which keeps every value"
    assert told(wide(reading("T.float8_e4m3fn"))) == [text]


WRITING = gpu_file(
    "A: T.Tensor((128, 64), 'float32'), B: T.Tensor((128, 64), T.float8_e4m3fn)",
    """
    a = T.alloc_fragment((64, 64), "float32")
    q = T.alloc_fragment((64, 64), T.float8_e4m3fn)
    T.copy(A[bx * 64, 0], a)
    for i, j in T.Parallel(64, 64):
        q[i, j] = T.clamp(a[i, j] * 3.0, -448.0, 448.0)
    T.copy(q, B[bx * 64, 0])
    """,
)


def test_values_that_are_written_keep_their_digits_and_their_clamp() -> None:
    values = np.linspace(-200, 200, 128 * 64, dtype=np.float32).reshape(128, 64)
    result = wide(WRITING)
    new = run(result.new_text or "", {"A": values}, "factory", ())["B"]
    assert new.dtype == np.float16
    exact = np.clip(values * np.float32(3), -448, 448)
    np.testing.assert_array_equal(new, exact.astype(np.float16))
    old = run(WRITING, {"A": values}, "factory", ())["B"]
    assert (np.abs(new.astype(np.float32) - old.astype(np.float32)) <= np.abs(exact) * 2**-4 + 2**-10).all()
    lost = "values are no longer rounded to float8_e4m3fn, nor limited to its range by the conversion"
    assert told(result) == [f"now float16: `q`, `B`; {lost}"]


def test_a_copy_of_8_bit_floats_says_that_its_values_are_the_same() -> None:
    body = "a = T.alloc_shared((64, 64), T.float8_e5m2)\nT.copy(A[bx * 64, 0], a)\nT.copy(a, B[bx * 64, 0])"
    text = gpu_file("A: T.Tensor((128, 64), T.float8_e5m2), B: T.Tensor((128, 64), T.float8_e5m2)", body)
    keep = "now float16: `A`; pass fp8 tensors as `x.to(torch.float16)`, which keeps every value"
    assert told(wide(text)) == [keep, "now float16: `B`; callers get float16 tensors with the same values"]


@pytest.mark.parametrize(
    ("limit", "number"),
    [
        ("T.max_value(T.float8_e4m3fn)", "448.0"),
        ("T.min_value('float8_e5m2')", "-57344.0"),
        ("T.max_value(kind)", "448.0"),
    ],
)
def test_limits_are_those_of_the_old_type(limit: str, number: str) -> None:
    text = WRITING.replace("448.0)", f"{limit})").replace("def factory()", "def factory(kind=T.float8_e4m3fn)")
    new = wide(text).new_text or ""
    assert f", {number})" in new
    assert limit not in new


REFUSED = {
    "a question": (
        reading("kind", args="kind=T.float8_e4m3fn", factory="n = 1 if kind == T.float8_e4m3fn else 2"),
        "the kernel asks whether a type is `T.float8_e4m3fn`: with float16 the answer is another one",
    ),
    "bits": (
        reading("T.float8_e4m3fn").replace('T.cast(a[i, j], "float32")', 'T.reinterpret(a[i, j], "uint8")'),
        '`T.reinterpret(a[i, j], "uint8")` reads the bits of fp8 values, which float16 does not have',
    ),
    "the limit of one of two types": (
        WRITING.replace("448.0)", "T.max_value(kind))")
        .replace("T.float8_e4m3fn", "kind")
        .replace("def factory():", "def factory(e=0):\n    kind = T.float8_e4m3fn if e else T.float8_e5m2\n"),
        "`T.max_value(kind)` is another number for float16",
    ),
    "the limit of what only callers know": (
        WRITING.replace("448.0)", "T.max_value(kind))").replace("def factory():", "def factory(kind):"),
        "`T.max_value(kind)` is another number for float16",
    ),
    "infinity": (
        reading("T.float8_e5m2").replace("* 0.5", "* T.infinity(T.float8_e5m2)"),
        "`T.infinity(T.float8_e5m2)` is another number for float16",
    ),
    "scales": (reading("T.float8_e8m0fnu"), "the NPU has no counterpart for this element type: T.float8_e8m0fnu"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_would_mean_something_else_is_refused(text: str, message: str) -> None:
    result = wide(text)
    assert errors(result) == [("TL191", message)]
    assert result.new_text == text
    assert told(result) == []


OTHER = """

@tilelang.jit(out_idx=[-1])
def other():
    @T.prim_func
    def main(A: T.Tensor((128, 64), FP8), B: T.Tensor((128, 64), FP8)):
        with T.Kernel(2, threads=128) as bx:
            tid = T.get_thread_binding()
            B[bx, tid] = A[bx, tid + T.tvm_warp_shuffle(0, 1, 0, 32, 32)]

    return main
"""


def test_a_refused_kernel_beside_keeps_its_types() -> None:
    head = IMPORTS + "FP8 = T.float8_e4m3fn\n\n\n"
    text = reading("FP8", head=head) + OTHER
    result = wide(text)
    assert [kernel.disposition for kernel in result.kernels] == ["migrated", "refused"]
    new = result.new_text or ""
    assert "FP8 = T.float8_e4m3fn" in new
    assert OTHER.strip() in new
    assert 'A: T.Tensor((128, 64), "float16")' in new


def test_kernels_of_one_factory_follow_together() -> None:
    text = reading("kind", factory="kind = T.float8_e4m3fn")
    second = textwrap.indent(textwrap.dedent(OTHER.split("def other():")[1]), "    ").replace("FP8", "kind")
    text = text.replace("    return main\n", second.replace("main", "second").replace("return second", "return main"))
    result = wide(text)
    assert [kernel.disposition for kernel in result.kernels] == ["refused", "refused"]
    assert result.new_text == text
    assert ("TL191", "not migrated: `factory.second` of the same factory was refused") in errors(result)


HOST = """

def quantised(x):
    kind = torch.float8_e4m3fn
    limit = torch.finfo(torch.float8_e4m3fn).max
    return (x / limit).to(kind)


def main():
    x = torch.randn(128, 64, device="cuda")
    y = torch.empty(128, 64, dtype=torch.float8_e5m2, device="cuda")
    factory()(quantised(x))
    factory()(x.to(torch.float8_e4m3fn))
    back = x.to(torch.float8_e5m2).float()
    assert y.dtype == torch.float8_e5m2
    return back, helper(x, torch.float8_e4m3fn)
"""


def test_host_code_converts_on() -> None:
    text = reading("T.float8_e4m3fn", head="import torch\n" + IMPORTS) + HOST
    result = wide(text)
    new = result.new_text or ""
    expected = (
        HOST.replace("to(kind)", "to(kind).to(torch.float16)")
        .replace("(x.to(torch.float8_e4m3fn))", "(x.to(torch.float8_e4m3fn).to(torch.float16))")
        .replace("dtype=torch.float8_e5m2", "dtype=torch.float16")
        .replace("== torch.float8_e5m2", "== torch.float16")
        .replace('"cuda"', '"npu"')
    )
    assert new.endswith(expected)
    line = text[: text.index("return back")].count("\n") + 1
    found = [(d.line, d.message) for d in result.diagnostics if d.code == "TL100"][-1]
    assert found == (line, "`torch.float8_e4m3fn` stays here; the kernels of this file take float16 now")


def test_types_of_tilelang_in_host_code_follow() -> None:
    host = "\n\ndef main(kind=T.float8_e4m3fn):\n    return factory(kind)(torch.zeros(4).to(kind.as_torch()))\n"
    text = reading("kind", args="kind", head="import torch\n" + IMPORTS) + host
    result = wide(text)
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    new = result.new_text or ""
    assert 'def main(kind="float16"):' in new
    assert "`T.float8_e4m3fn` is float16 now: tensors made of it are not rounded to fp8" in told(result)


def test_without_kernels_that_changed_host_code_stays() -> None:
    text = reading("'float16'", head="import torch\n" + IMPORTS) + HOST
    assert "dtype=torch.float8_e5m2" in (wide(text).new_text or "")
    assert told(wide(text)) == []


def test_the_refusal_names_the_option() -> None:
    result = migrate_text(reading("T.float8_e4m3fn"), "k.py", Options())
    (found,) = [d for d in result.diagnostics if d.severity == "error"]
    assert found.code == "TL191"
    assert "`--fp8 float16`" in found.help
