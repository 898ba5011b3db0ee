"""Sizes from the callers of a factory."""

from __future__ import annotations

import pytest

from tl2npu.kernel.factories.callers import callers_of
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.runtime import runtime_names
from tl2npu.source.index import Index

HEAD = "import tilelang\nimport tilelang.language as T\nimport math\n"
TEMPLATE = """
@tilelang.jit(out_idx=[0])
def factory({args}):
{body}
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            pass
    return main
"""


def file(args: str, body: str = "", module: str = "", calls: str = "") -> FileKernels:
    lines = "\n".join("    " + line for line in body.splitlines())
    return FileKernels(Index.parse(HEAD + module + TEMPLATE.format(args=args, body=lines) + calls))


def values(
    args: str, body: str = "", module: str = "", calls: str = "", shapes: bool = False
) -> list[dict[str, int]]:
    kernels = file(args, body, module, calls)
    return [caller.values for caller in callers_of(kernels, kernels.located[0], shapes=shapes)]


def test_defaults_without_a_call() -> None:
    assert values("m, n=32, dtype='float16'", "k = n * 2") == [{"n": 32, "k": 64}]


def test_a_function_that_hands_its_parameters_through() -> None:
    """What counts is what its own callers give it."""
    through = "def build(m, n=16):\n    return factory(m, n=n)\n"
    assert values("m, n=32", calls=through) == [{"n": 16}]
    assert values("m, n=32", calls=through + "build(64)\nbuild(8, 4)\n") == [{"m": 64, "n": 16}, {"m": 8, "n": 4}]
    other = "def build(n, m=16):\n    return factory(n, m)\nbuild(64)\n"
    assert values("m, n=32", calls=other) == [{"m": 64, "n": 16}]
    assert values("m, n=32", calls="def build(m):\n    return build(m), factory(m)\n") == [{"n": 32}]


def test_calls_win_over_defaults() -> None:
    assert values("m, n=32", calls="factory(128)\nfactory(m=64, n=8)") == [{"m": 128, "n": 32}, {"m": 64, "n": 8}]


def test_a_call_in_a_function_has_its_defaults() -> None:
    main = "def main(size=256, rows=other):\n    half = size // 2\n    kernel = factory(half, n=rows)\n"
    assert values("m, n=32", calls=main) == [{"m": 128}]
    assert values("m, n=32", calls="other = 4\n" + main) == [{"m": 128, "n": 4, "other": 4}]
    assert values("m, n=32", calls="size = 8\n" + main.replace("=256, rows=other", ", rows")) == [{"size": 8}]


def test_what_a_call_does_not_say_stays_unknown() -> None:
    assert values("m, n=32", calls="factory(*sizes)") == [{"n": 32}]
    assert values("m, n=32, *, k=8", calls="factory(1, **sizes)") == [{"m": 1, "n": 32, "k": 8}]
    partial = "from functools import partial\nmake = partial(factory, 64)\n"
    assert values("m, n=32", calls=partial) == [{"m": 64, "n": 32}]
    both = "factory(8, 8)\nfactory(*sizes)"
    assert values("m, n=32", calls=both) == [{"m": 8, "n": 8}, {"n": 32}]
    through = "def build(m, n=16):\n    return factory(m, n=n)\nbuild(8, x.shape[0])\n"
    assert values("m, n=32", calls=through) == [{"m": 8}]  # not the 16 that the call replaces
    assert values("m, n=32", calls="factory(x.shape[0], 16)") == [{"n": 16}]


SCRIPT = """
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="softmax")
    parser.add_argument({option})
    args = parser.parse_args({given})
    factory(args.size)
"""


@pytest.mark.parametrize(
    ("option", "given", "value"),
    [
        ('"--size", type=int, default=256', "", 256),
        ('"-s", "--size", type=int, default=2 * 128', "", 256),
        ('"--n-tile", dest="size", default=256', "None", 256),
        ('"--size", action="store_true"', "", 0),
        ('"--size", type=int, default="256"', "", None),  # argparse would convert it
        ('"--size", type=int, required=True', "", None),
        ('"--size", type=int, default=256', "sys.argv[2:]", None),
        ('"--other", type=int, default=256', "", None),
        ('"size", type=int', "", None),
    ],
)
def test_the_command_line(option: str, given: str, value: int | None) -> None:
    """What a script without arguments passes; the expected values are those of Python's argparse."""
    calls = SCRIPT.format(option=option, given=given)
    (found,) = values("m, n=32", module="import argparse, sys\n", calls=calls)
    assert found == ({"n": 32} if value is None else {"m": value, "n": 32})


def test_the_command_line_in_a_function() -> None:
    lines = """
def main(argv=None):
    p = argparse.ArgumentParser()
    p.add_argument("--size", type=int, default=256)
    args, rest = p.parse_known_args(argv)
    {changed}
    bench(args.size)

def bench(size, n=4):
    factory(size, n)

main()
"""
    assert values("m, n", module="import argparse\n", calls=lines.format(changed="")) == [{"m": 256, "n": 4}]
    assert values("m, n", module="import argparse\n", calls=lines.format(changed="args.size = f()")) == [{"n": 4}]
    more = lines.format(changed="p.set_defaults(size=8)")
    assert values("m, n", module="import argparse\n", calls=more) == [{"m": 256, "n": 4}]  # parsed before
    early = more.replace("    args, rest", "    p.set_defaults(size=8)\n    args, rest")
    assert values("m, n", module="import argparse\n", calls=early) == [{"n": 4}]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("r = T.ceildiv(n, 24)", 2),
        ("r = T.floordiv(n, 24) * 100 + T.floormod(n, 24)", 108),
        ("r = tilelang.math.next_power_of_2(n + 1)", 64),
        ("r = max(n // 2, 20)", 20),
        ("r = 64 if n > 16 else 8", 64),
        ("r = n\nif n == 32:\n    r = 1\nelse:\n    r = 2", 1),
        ("r, q = n - 1, n + 1", 31),
        ("r = int(n / 3)", 10),
        ("r = 2**5", 32),
        ("r = math.ceil(n / 3)", 11),
        ("r = 1 if dtype == 'float16' else 2", 1),
        ("r = 1 if dtype in ('float32', 'float') else 2", 2),
        ("r = n << 2", 128),
    ],
)
def test_statements_of_the_factory(body: str, value: int) -> None:
    assert values("n=32, dtype='float16'", body)[0]["r"] == value


@pytest.mark.parametrize(
    "body",
    [
        "r = 5\nfor i in range(3):\n    r = r + 1",
        "r = 5\nr += 1",
        "r = 5\nif unknown:\n    r = 6",
        "r = other(n)",
        "r = n // 0",
        "r = 5\nr = foo",
    ],
)
def test_what_is_not_known_is_forgotten(body: str) -> None:
    assert "r" not in values("n=32", body)[0]


def test_parameters_hide_module_names() -> None:
    assert values("m, n", "k = m", "m = 5\nq = 7\n") == [{"q": 7}]


def test_names_that_live_at_run_time() -> None:
    kernels = file("m, n", 'k = T.symbolic("k")', 's = T.symbolic("s")\n', "factory(s, 8)\nfactory(4, 4)")
    assert runtime_names(kernels, kernels.located[0]) == {"k", "s", "m"}


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        ("torch.randn(6, 8)", (6, 8)),
        ("torch.zeros((6, 8), dtype=torch.float16, device='npu')", (6, 8)),
        ("torch.empty(size=[2 * 3, 8]).to('npu')", (6, 8)),
        ("torch.randint(0, 9, (6, 8)).float()", (6, 8)),
        ("torch.full((6, 8), 9)", (6, 8)),
        ("torch.randn_like(torch.ones(6, 8))", (6, 8)),
        ("torch.rand(*torch.ones(6, 8).shape)", (6, 8)),
        ("torch.randn(k, 8)", (None, 8)),
        ("torch.randn(6, 8).T", None),
        ("torch.randn(6, 8)[:4]", None),
        ("make(6, 8)", None),
    ],
)
def test_sizes_of_tensors(made: str, shape: tuple[int | None, ...] | None) -> None:
    """Whatever asks for them; ``k`` is not known."""
    known = [{name: size for name, size in zip("mn", shape or (), strict=False) if size is not None}]
    for given in ("x.shape[0], x.shape[1]", "x.size(0), x.shape[-1]", "*x.shape", "*x.size()"):
        calls = f"import torch\ndef run(x):\n    return factory({given})(x)\nrun({made})\n"
        assert values("m, n", calls=calls, shapes=True) == known, given
        assert values("m, n", calls=calls) == [{}]
    unpacked = f"import torch\ndef run(x):\n    m, n = x.shape\n    return factory(m, n)(x)\nrun({made})\n"
    assert values("m, n", calls=unpacked, shapes=True) == known


def test_number_of_elements() -> None:
    calls = "import torch\ndef run(x):\n    return factory(x.numel(), x.dim())(x)\nrun(torch.ones(6, 8, 2))\n"
    assert values("m, n", calls=calls, shapes=True) == [{"m": 96, "n": 3}]
    assert values("m, n", calls=calls.replace("6, 8", "6, k"), shapes=True) == [{"n": 3}]
