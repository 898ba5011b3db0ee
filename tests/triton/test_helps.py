"""Helps that say more than the rule: each is followed literally, and leads to a migrated kernel."""

from __future__ import annotations

import pytest

from tests.triton.test_translation import HEAD, vector
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.triton.result import migrate_triton

MAYBE = f"""{HEAD}@triton.jit
def k(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(z_ptr + i, x * 2.0, mask=i < n)
    if y_ptr is not None:
        tl.store(y_ptr + i, x, mask=i < n)


def f(x, y=None, keep=False):
    n = x.shape[0]
    z = torch.empty_like(x)
    if keep and y is None:
        y = torch.empty_like(x)
    k[(triton.cdiv(n, 64),)](x, y, z, n, BLOCK=64)
    return z, y


f(torch.randn(300), torch.randn(300))
f(torch.randn(300), keep=True)
"""
LAUNCH = "    k[(triton.cdiv(n, 64),)](x, y, z, n, BLOCK=64)\n"
INSIDE = "    print(k[(triton.cdiv(n, 64),)](x, y, z, n, BLOCK=64))\n"
BOTH = (
    "    if y is None:\n        k[(triton.cdiv(n, 64),)](x, None, z, n, BLOCK=64)\n"
    "    else:\n        k[(triton.cdiv(n, 64),)](x, y, z, n, BLOCK=64)\n"
)
SCALED = vector("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, (x * 2.0).to(KIND), mask=i < n)")
KIND = SCALED.replace("n, BLOCK: tl", "n, KIND: tl.constexpr, BLOCK: tl")
ZEROS = KIND.replace("(x * 2.0).to(KIND)", "x * 2.0 + tl.zeros((BLOCK,), dtype=KIND)")
HALVED = vector(
    "at = tl.load(p_ptr + i, mask=i < n, other=0)\nx = tl.load(x_ptr + i, mask=i < n)\n"
    "tl.store(y_ptr + i, x + (at // 2).to(tl.float32), mask=i < n)"
).replace("x_ptr, y_ptr,", "x_ptr, y_ptr, p_ptr,")
PLACES = HALVED.replace("def f(x):", "def f(x, p):").replace("(x, y, n", "(x, y, p, n")
PLACES = PLACES.replace(
    'f(torch.randn(300, device="cuda"))', "f(torch.randn(300), torch.zeros(300, dtype=torch.int32))"
)
SUMMED = vector(
    "count = tl.cdiv(tl.sum(tl.load(p_ptr + tl.arange(0, 16))), 4)\ns = tl.zeros((BLOCK,), tl.float32)\n"
    "for b in range(0, count):\n    s += tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, s, mask=i < n)"
)
SUMMED = SUMMED.replace("x_ptr, y_ptr,", "x_ptr, y_ptr, p_ptr,").replace("def f(x):", "def f(x, p):")
SUMMED = SUMMED.replace("(x, y, n", "(x, y, p, n").replace("f(torch.randn(300, ", "f(torch.randn(300), torch.ones(16, ")
PASSED = SUMMED.replace("count = tl.cdiv(tl.sum(tl.load(p_ptr + tl.arange(0, 16))), 4)", "pass")
PASSED = PASSED.replace("p_ptr, n,", "count, n,").replace("(x, y, p, n", "(x, y, triton.cdiv(int(p.sum()), 4), n")


@pytest.mark.parametrize(
    ("text", "code", "help", "followed"),
    [
        (
            MAYBE.replace(LAUNCH, INSIDE),
            "TL511",
            "launch the kernel in both branches of `if y is None:`",
            MAYBE.replace(LAUNCH, BOTH),
        ),
        (
            KIND.replace("y, n, BLOCK", "y, n, kinds(x), BLOCK"),
            "TL530",
            "pass an element type of Triton, as `tl.float32`",
            KIND.replace("y, n, BLOCK", "y, n, tl.float32, BLOCK"),
        ),
        (
            ZEROS.replace("y, n, BLOCK", "y, n, kinds(x), BLOCK"),
            "TL543",
            "or take that of a pointer: `x_ptr.dtype.element_ty`",
            ZEROS.replace("y, n, BLOCK", "y, n, kinds(x), BLOCK").replace("dtype=KIND", "dtype=x_ptr.dtype.element_ty"),
        ),
        (SUMMED, "TL543", "compute it on the host, and pass it as an argument", PASSED),
        (
            PLACES,
            "TL546",
            "divide on the host, and pass a tensor of the quotients",
            PLACES.replace("(at // 2)", "at").replace("(x, y, p, n", "(x, y, p // 2, n"),
        ),
    ],
)
def test_a_help_that_is_followed(text: str, code: str, help: str, followed: str) -> None:
    [refused] = [kernel.refused for kernel in to_tilelang(text).kernels]
    assert refused is not None
    assert refused.code == code
    assert help in refused.help
    done = migrate_triton(followed, "k.py", Options())
    assert [kernel.disposition for kernel in done.kernels] == ["migrated"], done.diagnostics


def test_a_help_stays_where_a_condition_of_the_host_might_decide() -> None:
    """``on`` changes, so that no launch can ask for it: the kernel is refused for what stops it without that."""
    switched = PLACES.replace("p_ptr, n,", "p_ptr, n, ON: tl.constexpr,").replace("(x, y, p, n", "(x, y, p, n, on")
    switched = switched.replace("def f(x, p):", "def f(x, p, on):").replace("int32))", "int32), chosen())")
    switched = switched.replace("    x = tl.load", "    if ON:\n        at += 1\n    x = tl.load", 1)
    switched = switched.replace("    n = x.shape[0]\n", "    n = x.shape[0]\n    on = on and n > 3\n")
    [refused] = [kernel.refused for kernel in to_tilelang(switched).kernels]
    assert refused is not None
    assert refused.help == "divide on the host, and pass a tensor of the quotients"


def test_what_to_do_about_none_names_and_hooks() -> None:
    """The rule's own words would lead nowhere there."""
    text = vector("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x + FROM, mask=i < n)")

    def help_of(changed: str) -> str:
        found = to_tilelang(changed).kernels[0].refused
        assert found is not None
        return found.help

    assert "import it at the top of the module" in help_of(text)
    none = text.replace("FROM", "0").replace("k[(triton.cdiv(n, 128),)](x, y", "k[(triton.cdiv(n, 128),)](None, y")
    assert "if x_ptr is not None:" in help_of(none)
    hook = "@triton.autotune([triton.Config({'BLOCK': 128}, pre_hook=zeroed('y_ptr'))], key=['n'])\n@triton.jit"
    hooked = text.replace("FROM", "0").replace("@triton.jit", hook).replace(", BLOCK=128", "")
    assert "`dq.zero_()` before it" in help_of(hooked)
