"""Configurations of ``triton.autotune`` that code makes, and numbers that conditions choose."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, refusals, vector
from tl2npu.across.symbols import Symbols
from tl2npu.source.constants import UNKNOWN
from tl2npu.source.functions import Scope
from tl2npu.triton.host.decorators import configurations
from tl2npu.triton.migrate import to_tilelang


def found(module: str, configs: str) -> tuple[list[dict[object, object]], bool]:
    tree = ast.parse(module)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    values = {ast.unparse(n.targets[0]): n.value for n in tree.body if isinstance(n, ast.Assign)}
    made, doubtful = configurations(ast.parse(configs, mode="eval").body, Scope(values, functions))
    return [dict(item.values) for item in made], doubtful


LOOPS = """
def make(sizes=(32, 64), largest=64):
    configs = []
    for size in sizes:
        for warps in [2, 4]:
            if size * warps > largest * 2:
                continue_ = True
            else:
                config = triton.Config({"B": size, "W": warps}, num_warps=warps)
                configs.append(config)
    return configs
"""
NAMED = "def named(name='BLOCK'):\n    return [triton.Config({name: 2 ** p}, num_warps=p) for p in range(5, 7)]\n"
GPU = """
def gpu():
    if is_hip():
        return amd()
    return [Config({'B': 16}), *more]
more = [Config({'B': 8})]
"""
POWERS = """
def powers(start, end):
    found = []
    while start <= end:
        found.append(start)
        start = start << 1
    return found

def make():
    if not lanes():
        return []
    configs = []
    for b in powers(8, 64):
        if b < 32:
            continue
        for w in [4, 8, 16]:
            if b * w > 256:
                break
            configs.append(Config({"B": b, "W": w}))
    return configs
"""
KEEP = "def keep(c):\n    return c.kwargs['B'] * c.num_warps >= 128\n"
WARPS = "[triton.Config({'B': b}, num_warps=w) for b in (32, 64) for w in (2, 4)]"


@pytest.mark.parametrize(
    ("module", "configs", "values"),
    [
        (LOOPS, "make()", [{"B": 32, "W": 2}, {"B": 32, "W": 4}, {"B": 64, "W": 2}]),
        (LOOPS, "make([16], largest=8)", []),
        (NAMED, "named()", [{"BLOCK": 32}, {"BLOCK": 64}]),
        (NAMED, "named(name='ROWS')", [{"ROWS": 32}, {"ROWS": 64}]),
        (GPU, "gpu()", [{"B": 16}, {"B": 8}]),
        (POWERS, "make()", [{"B": 32, "W": 4}, {"B": 32, "W": 8}, {"B": 64, "W": 4}]),
        (KEEP, f"list(filter(keep, {WARPS}))", [{"B": 32}, {"B": 64}, {"B": 64}]),
        (KEEP, f"[c for c in {WARPS} if keep(c)]", [{"B": 32}, {"B": 64}, {"B": 64}]),
        ("", "[triton.Config({}, num_warps=w) for w in (1, 2)]", [{}, {}]),
        ("", "[triton.Config({**{'A': 1}, 'B': max(2, 3)})]", [{"A": 1, "B": 3}]),
        ("", "somewhere()", []),
    ],
)
def test_what_code_makes(module: str, configs: str, values: list[dict[object, object]]) -> None:
    assert found(module, configs) == (values, False)


def test_what_depends_on_the_machine() -> None:
    """Of a filter by the machine nobody knows what it lets through: one configuration is taken, and no other tried."""
    assert found("", "[c for c in [Config({'B': 1}), Config({'B': 2})] if fits(c)]") == ([{"B": 1}], True)
    skips = "def f():\n    found = []\n    for b in (1, 2):\n        if slow(b):\n            continue\n"
    assert found(skips + "        found += [Config({'B': b})]\n    return found\n", "f()") == ([{"B": 1}], True)
    assert found("", "[Config({'B': lanes()})]") == ([{"B": UNKNOWN}], False)


def test_a_function_that_never_ends() -> None:
    assert found("def f():\n    return f()\n", "f()") == ([], False)
    big = "[triton.Config({'B': a}) for a in range(4000) for b in range(4000)]"
    assert found("", big) == ([], False)


COPY = "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, 2.0 * x, mask=i < n)"


def test_configurations_of_another_module(tmp_path: Path) -> None:
    """The import stays, as another kernel may need it; what only this file's decorator called goes."""
    (tmp_path / "setup.py").touch()
    other = NAMED.replace("range(5", "range(SMALL // 8")
    (tmp_path / "tuning.py").write_text(f"import triton\n\nSMALL = 32\n\n\n{other}")
    launch = "k[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, y, n)"
    text = vector(COPY, launch).replace("@triton.jit", '@triton.autotune(named(), key=["n"])\n@triton.jit')
    text = text.replace(HEAD, f"{HEAD}from tuning import named\n\n\n")
    symbols, file = Symbols(), tmp_path / "kernel.py"
    file.write_text(text)
    symbols.reads(file, text)
    done = to_tilelang(text, path=file, symbols=symbols)
    assert [kernel.refused for kernel in done.kernels] == [None]
    assert "def k(n, BLOCK=16):" in done.text


def test_a_list_of_another_module(tmp_path: Path) -> None:
    """What the list is made of are names of that module, and of one that it imports itself."""
    (tmp_path / "sizes.py").write_text(
        "from lists import more\n\nB = 16\nall_of = [triton.Config({'BLOCK': B}), *more]\n"
    )
    (tmp_path / "lists.py").write_text("B = 32\nmore = [triton.Config({'BLOCK': b}) for b in (B, 2 * B)]\n")
    launch = "k[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, y, n)"
    text = vector(COPY, launch).replace("@triton.jit", "@triton.autotune(every, key=[])\n@triton.jit")
    text = "from sizes import all_of as every\nB = 7\n" + text
    file, symbols = tmp_path / "kernel.py", Symbols()
    file.write_text(text)
    symbols.reads(file, text)
    done = to_tilelang(text, path=file, symbols=symbols)
    assert [(kernel.refused, kernel.configurations) for kernel in done.kernels] == [(None, 3)]
    assert "def k(n, BLOCK=16):" in done.text
    assert "def k(n, BLOCK=64):" in to_tilelang(text, path=file, symbols=symbols, chosen={"k": 2}).text


def test_functions_that_only_decorators_called_go() -> None:
    launch = "k[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, y, n)"
    tuned = f'{NAMED}\n\ndef sizes():\n    return named()\n\n\n@triton.autotune(sizes(), key=["n"])\n@triton.jit'
    text = vector(COPY, launch).replace("@triton.jit", tuned)
    new = to_tilelang(text).text
    assert "def named" not in new
    assert "triton" not in new
    kept = to_tilelang(text + "\n\nprint(named())\n").text
    assert "def named" in kept
    assert "def sizes" not in kept


def test_a_kernel_that_is_wrapped_by_one_statement_after_the_other() -> None:
    plain = vector(COPY.replace("2.0", "F"), "k[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128)")
    plain = plain.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, F: tl.constexpr")
    decorated = plain.replace("@triton.jit", '@triton.heuristics({"F": lambda args: args["BLOCK"] > 64})\n@triton.jit')
    kernel, host = plain.replace("@triton.jit\n", "").split("\n\n\ndef f")
    second = 'k = triton.heuristics({"F": lambda args: args["BLOCK"] > 64})(k)'
    wrapped = f"{kernel}\n\n\nk = triton.jit(k)\n{second}\n\n\ndef f{host}"
    assert refusals(wrapped) == refusals(decorated) == []
    assert to_tilelang(wrapped).text.split() == to_tilelang(decorated).text.split()


CHOSEN = f"""{HEAD}@triton.jit
def k(x_ptr, n_ptr, y_ptr, C: tl.constexpr):
    row = tl.program_id(0)
    n = tl.load(n_ptr + row)
    c = tl.arange(0, C)
    on = tl.where(TEST, 3, 1)
    s = tl.zeros((C,), tl.float32)
    for i in range(0, on):
        s += tl.load(x_ptr + i * C + c)
    tl.store(y_ptr + row * C + c, s)


def f(x, n):
    rows, cols = x.shape
    y = torch.zeros(n.shape[0], cols)
    k[(n.shape[0],)](x, n, y, C=cols)
    return y


f(torch.randn(8, 64), torch.zeros(4, dtype=torch.int32))
"""


@pytest.mark.parametrize(
    ("test", "count"),
    [
        ("row < n", "T.min(1, T.max(0, n - row)) * 2 + 1"),
        ("n <= 4", "T.min(1, T.max(0, 5 - n)) * 2 + 1"),
        ("(row < n) & (n < 9)", "T.min(1, T.max(0, 9 - n)) * T.min(1, T.max(0, n - row)) * 2 + 1"),
        ("~(row < n)", "3 - T.min(1, T.max(0, n - row)) * 2"),
    ],
)
def test_numbers_that_conditions_choose(test: str, count: str) -> None:
    """1 + 2 where the condition holds: 3, else 1."""
    text = CHOSEN.replace("TEST", test)
    assert refusals(text) == []
    assert f"in T.serial({count}):" in to_tilelang(text).text


COPY = "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x, mask=i < n)"


@pytest.mark.parametrize(
    "decorators",
    [
        "@own.tuner([triton.Config({'BLOCK': 64}, num_warps=2)], ['n'])\n@triton.jit\n",
        "@tuner(configs=[triton.Config({'BLOCK': Sizes.BLOCK})], key=['n'], cache=True)\n@triton.jit\n",
        "@eval(\"triton.heuristics({'BLOCK': lambda args: 64})\")\n@triton.jit\n",
    ],
)
def test_whoever_gets_configurations_chooses_one(decorators: str) -> None:
    """Of another package, with sizes of a class; and a decorator that is written as a text."""
    text = vector(COPY, "k[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, y, n)")
    text = text.replace("@triton.jit\n", f"class Sizes:\n    BLOCK = 64\n\n\n{decorators}")
    assert refusals(text) == []
    assert "64" in to_tilelang(text).text
    assert refusals(text.replace("key=['n'], ", "").replace(", ['n']", "").replace("heuristics", "other")) == ["TL543"]


def test_a_switch_by_a_layout_is_asked_at_the_launch() -> None:
    head = "@triton.heuristics({'ONE': lambda args: args['s'] == 1})\n@triton.jit\n"
    text = vector("s = 1 if ONE else s\n" + COPY.replace("x_ptr + i", "x_ptr + i * s")).replace("@triton.jit\n", head)
    text = text.replace("n, BLOCK: tl", "n, s, ONE: tl.constexpr, BLOCK: tl").replace("y, n, B", "y, n, x.stride(0), B")
    text = text.replace("    n = x.shape[0]\n", "    n = y.shape[0]\n").replace("    y = torch.empty_like(x)\n", "")
    text = text.replace("def f(x):", "def f(x, y):").partition("\n\nf(")[0] + "\n"
    assert refusals(text) == []
    assert "if x.stride(0) == 1:" in to_tilelang(text).text
