"""``k = triton.jit(k)`` is the decorator that it stands for; what makes kernels otherwise is refused."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from tests.triton.test_translation import HEAD, refusals, vector
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.triton.result import check_triton, migrate_triton

COPY = "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, 2.0 * x, mask=i < n)"
DECORATED = vector(COPY)
KERNEL, HOST = DECORATED.removeprefix(HEAD).removeprefix("@triton.jit\n").split("\n\n\ndef f")
TUNED = 'triton.autotune([triton.Config({"BLOCK": 128})], key=["n"])'


def wrapped(statement: str, head: str = "", kernel: str = KERNEL) -> str:
    return f"{HEAD}{head}{kernel.rstrip()}\n\n\n{statement}\n\n\ndef f{HOST}"


@pytest.mark.parametrize(
    ("statement", "head"),
    [
        ("k = triton.jit(k)", ""),
        ("k = triton.jit(k, noinline=True)", ""),
        ('k = triton.jit(do_not_specialize=["n"])(k)', ""),
        ("k = jit(k)", "from triton import jit\n"),
        ("k = wrap(k)", "wrap = triton.jit\n"),
        ("k = wrap(k)", "from triton import jit\nwrap = jit\n"),
        ('k = functools.partial(triton.jit, do_not_specialize=["n"])(k)', "import functools\n"),
        ("k = wrap(k)", "from functools import partial\nwrap = partial(triton.jit, noinline=True)\n"),
    ],
)
def test_the_same_as_the_decorator(statement: str, head: str) -> None:
    """Nothing of Triton is left."""
    expected = [line for line in to_tilelang(DECORATED).text.splitlines() if line]
    lines = to_tilelang(wrapped(statement, head)).text.splitlines()
    imports = ("import functools", "from functools")
    assert [line for line in lines if line and not line.startswith(imports)] == expected


@pytest.mark.parametrize("head", ["wrap = triton.jit\n", "import functools\nwrap = functools.partial(triton.jit)\n"])
def test_a_decorator_by_another_name(head: str) -> None:
    text = wrapped("", head, f"@wrap\n{KERNEL}")
    assert refusals(text) == []
    assert "triton" not in to_tilelang(text).text


def test_a_tuner_around_it() -> None:
    text = wrapped(f"k = {TUNED}(triton.jit(k))").replace(", BLOCK=128)", ")")
    decorated = DECORATED.replace("@triton.jit", f"@{TUNED}\n@triton.jit").replace(", BLOCK=128)", ")")
    assert to_tilelang(text).text.split() == to_tilelang(decorated).text.split()
    half = wrapped(f"k = {TUNED}(k)", kernel=f"@triton.jit\n{KERNEL}").replace(", BLOCK=128)", ")")
    assert to_tilelang(half).text.split() == to_tilelang(decorated).text.split()


def test_a_kernel_with_a_name_of_its_own() -> None:
    """The factory has the name of the function, by which Triton knows the kernel, too."""
    text = wrapped("k = triton.jit(body)", kernel=KERNEL.replace("def k(", "def body("))
    expected = DECORATED.replace("def k(", "def body(").replace("k[(", "body[(")
    assert to_tilelang(text).text.split() == to_tilelang(expected).text.split()


@pytest.mark.parametrize(
    "statement",
    [
        "k = triton.jit(body)\nother = triton.jit(body)",
        "if torch.cuda.is_available():\n    k = triton.jit(body)",
        "k = mine(body)",
        "k = [triton.jit(f) for f in (body,)][0]",
    ],
)
def test_what_is_not_read_is_refused(statement: str) -> None:
    text = wrapped(statement, kernel=KERNEL.replace("def k(", "def body("))
    line = text.split("\n").index(next(line for line in text.split("\n") if line.startswith("def body("))) + 1
    result = migrate_triton(text, "k.py", Options())
    assert [(k.name, k.line, k.disposition, k.codes) for k in result.kernels] == [("body", line, "refused", ("TL560",))]
    assert result.new_text == text


def test_host_code_is_no_kernel() -> None:
    """Types of Triton in a function of the host; a device function of a kernel."""
    host = "def kind(x):\n    return tl.float16 if x.dtype == torch.float16 else tl.float32\n\n\n"
    assert refusals(DECORATED.replace("def f(x):", f"{host}def f(x):")) == []


def test_check_names_both() -> None:
    for text in (wrapped("k = triton.jit(k)"), wrapped("k = mine(k)")):
        result = check_triton(migrate_triton(text, "k.py", Options(kernels=("none",))), Options())
        assert "TL501" in {item.code for item in result.diagnostics}


def test_what_only_wraps_the_launch() -> None:
    launch = "k[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128)"
    text = DECORATED.replace(launch, f"torch.library.wrap_triton(k){launch.removeprefix('k')}")
    assert to_tilelang(text).text == to_tilelang(DECORATED).text


def test_kernels_of_a_condition() -> None:
    """Kernel, host code and imports stay where they are; nothing of Triton is left."""
    imports = "import triton\nimport triton.language as tl\n"
    tried = f"try:\n{indent(imports, ' ' * 4)}    HAS = True\nexcept ImportError:\n    HAS = False\n"
    body = indent(DECORATED.removeprefix(HEAD), "    ")
    text = to_tilelang(f"import torch\n{tried}\nif HAS:\n{body}").text
    ast.parse(text)
    assert "triton" not in text
    assert "try:\n    import tilelang\n    import tilelang.language as T\n    HAS = True\n" in text
    inner = dedent(text.partition("if HAS:\n")[2])
    assert inner.split() == to_tilelang(DECORATED).text.partition("as T\n")[2].split()


def test_a_function_that_returns_a_value_is_no_kernel() -> None:
    """Triton lets no kernel return one: other modules call it in theirs."""
    number = "@triton.jit\ndef number():\n    return tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)\n"
    done = to_tilelang(f"{HEAD}{number}")
    assert done.kernels == ()
    stops = number.replace("return tl", "n = tl").replace("(0)\n", "(0)\n    if n > 3:\n        return\n", 1)
    assert [kernel.name for kernel in to_tilelang(f"{HEAD}{stops}").kernels] == ["number"]
