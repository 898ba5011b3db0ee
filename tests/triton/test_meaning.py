"""What a Triton kernel means where a translation is easily another kernel: Triton's interpreter judges, or it stays."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.triton.test_translation import HEAD, refusals, vector
from tl2npu.options import Options
from tl2npu.triton.migrate import to_tilelang
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings

LOAD = "x = tl.load(x_ptr + i, mask=i < n)\n"
STORE = "\ntl.store(y_ptr + i, x, mask=i < n)"
HALF, NORMAL = "torch.full((200,), 100.0).half()", "torch.randn(200)"

MEANT = {
    # an early end, in every place where it can be followed
    "early_end": (
        "if pid == 0:\n    tl.store(y_ptr + i, 7.0 + 0.0 * i, mask=i < n)\n    return\n" + LOAD + STORE,
        NORMAL,
    ),
    "ends_in_else": (LOAD + "if pid == 0:\n    x = x * 2.0\nelse:\n    return" + STORE, NORMAL),
    "inner_end": (
        LOAD
        + "if pid > 0:\n    if pid > 1:\n        tl.store(y_ptr + i, x, mask=i < n)\n        return\n    x = -x"
        + STORE,
        NORMAL,
    ),
    # an early end of a function
    "returned_tile": (LOAD + "x = chosen(x, pid) + x" + STORE, NORMAL),
    "returned_places": (
        "at, more = other(pid, tl.num_programs(0))\nj = at * BLOCK + tl.arange(0, BLOCK)\n"
        + "x = tl.load(x_ptr + j, mask=j < n, other=3.0) + more"
        + STORE,
        NORMAL,
    ),
    "returned_nothing": (LOAD + "stored(y_ptr + i, x, i < n, pid)", NORMAL),
    # what only either way knows goes on behind a branch
    "mask_by_branch": (
        "if n % BLOCK == 0:\n    m = None\nelse:\n    m = i < n\nx = tl.load(x_ptr + i, mask=m)\n"
        "tl.store(y_ptr + i, x + 1.0, mask=m)",
        NORMAL,
    ),
    "same_condition": (
        LOAD
        + "if s > 1:\n    z = x * 2.0\nx = x + 1.0\nif s > 1:\n    x = x + z\nif not s > 1 or pid > 9:\n    x = -x"
        + STORE,
        f"{NORMAL}, 2",
    ),
    "condition_that_changes": (
        LOAD + "q = s\nif q > 1:\n    z = x * 2.0\nelse:\n    z = 4.0\nq -= 1\nif q > 1:\n    x = x + z" + STORE,
        f"{NORMAL}, 2",
    ),
    "tensor_by_branch": (
        "for k in range(3):\n    if (pid + k) % 2 == 0:\n        p = x_ptr\n        j = i\n    else:\n"
        "        p = y_ptr\n        j = i + 0 * k\n    x = tl.load(p + j, mask=j < n, other=1.0)\n"
        "    tl.store(y_ptr + i, x + k, mask=i < n)",
        NORMAL,
    ),
    # one of two numbers, by loaded data
    "number_by_data": (
        "m = tl.load(x_ptr + pid)\nm = 2.0 if m > 0.0 else m\n" + LOAD + "x = x * m" + STORE,
        NORMAL,
    ),
    # a second name for a tile that a loop or a branch changes
    "other_name": (LOAD + "b = x\nfor k in range(3):\n    x = x + b\nx += b" + STORE, NORMAL),
    "condition_before": (
        LOAD + "c = x > 0\nfor k in range(3):\n    x = tl.where(c, x * -2.0, x + 1.0)" + STORE,
        NORMAL,
    ),
    "value_by_branch": (
        "x = tl.load(x_ptr + i, mask=i < n, other=0.0)\nif pid == 1:\n    a = 2.0\n    b = x\nelse:\n"
        "    a = tl.sum(x, axis=0)\n    if pid > 1:\n        a = -1.0\n    b = x * 3.0\nx = b + a" + STORE,
        NORMAL,
    ),
    "integer_by_branch": (
        LOAD + "if pid == s:\n    q = pid * 3 // 2\nelse:\n    q = 7 - pid\nif q > 5:\n    q = 1\nx = x + q" + STORE,
        f"{NORMAL}, 1",
    ),
    "data_in_one_branch": (
        "x = tl.load(x_ptr + i, mask=i < n, other=0.0)\nq = pid + 5\nif pid == 1:\n"
        "    q = tl.sum((x > 0).to(tl.int32), axis=0)\nx = x + q" + STORE,
        NORMAL,
    ),
    "name_in_branch": (LOAD + "b = x\nif pid == 1:\n    x = x * 2.0\nx += b" + STORE, NORMAL),
    "sum_before": (
        "x = tl.load(x_ptr + i, mask=i < n, other=0.0)\ns = tl.sum(x, axis=0)\nt = s\n"
        "for k in range(3):\n    s = s + tl.sum(x * t, axis=0)\ntl.store(y_ptr + pid, s + t)",
        NORMAL,
    ),
    # element types
    "half_by_float": (LOAD + "x = x * s\nx = x * 0.001" + STORE, f"{HALF}, 5000.0"),
    "half_quotient": (LOAD + "t = x / 0.001\nx = t * 0.001" + STORE, HALF),
    "half_number": (LOAD + "x = (x - x + 1.0) * tl.full((BLOCK,), 70000.0, tl.float16).to(tl.float32)" + STORE, NORMAL),
    "half_largest": (
        "x = tl.load(x_ptr + i, mask=i < n, other=0.0)\nm = tl.max(x, axis=0)\nx = (x - m) * 300.0 / 300.0" + STORE,
        f"{HALF} * -300",
    ),
    "half_sum": (
        "x = tl.load(x_ptr + i, mask=i < n, other=0.0)\nx = tl.sum(x, axis=0, dtype=tl.float32)\n"
        "tl.store(y_ptr + pid, x * 0.01)",
        f"{HALF} * 300",
    ),
    "halves_of_two_kinds": (
        LOAD + "x = (x.to(tl.float16) * x.to(tl.bfloat16)).to(tl.float32)" + STORE,
        f"{NORMAL} * 200",
    ),
    "rounded_between": (LOAD + "h = x.to(tl.float16)\nx = (h * h).to(tl.float32) - x" + STORE, f"{NORMAL} * 200"),
    "narrow_integer": (
        LOAD + "x = tl.where(x + s > 100, 1, 0)" + STORE,
        "torch.full((200,), 100, dtype=torch.int8), 100",
    ),
    "cut_off": (
        LOAD + "x = (x * 40.0).to(tl.int8).to(tl.float32) + x.to(tl.int32)" + STORE,
        "torch.rand(200) * 6 - 3",
    ),  # in an int8
    "upper_bits": (LOAD + "q = (x * 1000.0).to(tl.int32)\nx = q.to(tl.int8).to(tl.float32)" + STORE, NORMAL),
    "halves_to_even": (LOAD + "x = tl.extra.cuda.libdevice.rint(x)" + STORE, "(torch.ones(64).cumsum(0) - 32.0) / 2"),
    "nearest": (
        LOAD + "x = tl.extra.cuda.libdevice.llrint(127.0 * x)" + STORE,
        "(torch.ones(256).cumsum(0) - 128.0) / 254",
    ),
    # what a mask at a size leaves alone
    "first_half": (
        "j = tl.arange(0, BLOCK)\nh = n // 2\na = tl.load(x_ptr + j, mask=j < h, other=0.0)\n"
        "b = tl.load(x_ptr + h + j, mask=j < h, other=0.0)\ntl.store(y_ptr + j, a - b, mask=j < h)\n"
        "if s > 1:\n    tl.store(y_ptr + h + j, a + b, mask=j < h)",
        "torch.randn(64), 1",
    ),
    # one vector as a column and as what is summed
    "all_of_a_matrix": (
        "j = tl.arange(0, BLOCK)\nm = tl.load(x_ptr + j[:, None] * 16 + tl.arange(0, 16)[None, :])\n"
        "r = tl.sum(m, axis=1)\nt = r / tl.max(tl.abs(m))\nif pid == 0:\n    tl.store(y_ptr + j, t)",
        "torch.randn(1024)",
    ),
    # a name for two things in one branch
    "own_name_in_a_branch": (
        LOAD
        + "for k in range(2):\n    t = x * 2.0\n    if s > 1:\n        t = tl.sum(t, axis=0)\n"
        + "        tl.store(y_ptr + pid, t)\n    else:\n        tl.store(y_ptr + i, t, mask=i < n)",
        "torch.randn(64), 2",
    ),
    "wrapped_integer": (
        LOAD + "x = (x * 2).to(tl.float32) * 0.5 + s" + STORE,
        "torch.full((200,), 30000, dtype=torch.int16), 1",
    ),
    # numbers that are zero, loops without turns, arguments by name
    "flag": ("x = tl.load(x_ptr + i, mask=(i < n) & (s > 0), other=0.5)" + STORE, f"{NORMAL}, 0"),
    "no_turns": (
        "q = 0\nfor k in range(3, s):\n    q += 1\nx = tl.load(x_ptr + i, mask=i < n) + q" + STORE,
        f"{NORMAL}, 1",
    ),
    "by_name": (LOAD + "x = tl.where(x > 0.5, y=x, x=-x)" + STORE, NORMAL),
    "default": (LOAD + "SCALE = 50.0\nx = scaled(x) + SCALE" + STORE, NORMAL),
    "signed_zero": (LOAD + "x = 1.0 / (0.0 - x)" + STORE, "torch.zeros(64)"),
    # single elements
    "element_beyond": (LOAD + "x += tl.load(x_ptr + pid * 100, mask=pid * 100 < n, other=5.0)" + STORE, NORMAL),
    "element_beyond_zero": (LOAD + "x += tl.load(x_ptr + pid * 100, mask=pid * 100 < n, other=0.0)" + STORE, NORMAL),
    "element_beyond_number": (
        LOAD + "x += tl.load(x_ptr + pid * 100, mask=pid < s, other=5.0)" + STORE,
        f"{NORMAL}, 2",
    ),
    "element_that_is_stored": (
        "s = tl.load(x_ptr)\ntl.store(x_ptr + i, s + 1.0 + 0.0 * i, mask=i < n)\nx = 0.0 * i + tl.load(x_ptr + 1) - s"
        + STORE,
        "torch.ones(64)",
    ),
    "rows_of_the_other_core": (
        "for k in range(3):\n    x = tl.load(x_ptr + i + k, mask=i + k < n, other=0.0)\n"
        "    tl.store(x_ptr + i, x + 1.0, mask=i < n)",
        "torch.randn(64)",
    ),
}


def script() -> str:
    """A file with a kernel, its wrapper and a call for each entry."""
    text = f"{HEAD}SCALE = tl.constexpr(2.0)\n\n\n@triton.jit\n"
    text += "def scaled(x, by: tl.constexpr = SCALE):\n    return x * by\n\n\n"
    text += "@triton.jit\ndef chosen(x, pid):\n    if pid > 2:\n        return x * 2.0\n    return x\n\n\n"
    text += "@triton.jit\ndef other(pid, count):\n    if pid == 0:\n        return pid + 2, 2\n"
    text += "    if pid < count - 1:\n        return pid, 1\n    return 0, pid * 3\n\n\n"
    text += "@triton.jit\ndef stored(p, x, m, pid):\n    if pid == 1:\n        return\n    tl.store(p, x, mask=m)\n\n\n"
    calls = ""
    for name, (body, call) in MEANT.items():
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        more = ", s" if "," in call.replace("(200,), ", "") else ""
        text += (
            f"@triton.jit\ndef {name}(x_ptr, y_ptr, n{more}, BLOCK: tl.constexpr):\n    pid = tl.program_id(0)\n"
            f"    i = pid * BLOCK + tl.arange(0, BLOCK)\n{lines}\n\ndef run_{name}(x{more}):\n    n = x.shape[0]\n"
            f"    y = torch.zeros_like(x)\n    {name}[(triton.cdiv(n, 64),)](x, y, n{more}, BLOCK=64)\n"
            "    return y\n\n\n"
        )
        calls += f"run_{name}({call})\n"
    return text + calls


@pytest.mark.thorough
def test_every_kernel_is_translated() -> None:
    assert refusals(script()) == []


@pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")
def test_every_kernel_computes_what_it_computed(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(script(), encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    wrong = {kernel.name: kernel.reason for kernel in result.kernels if kernel.status != "verified"}
    assert wrong.keys() == {"element_that_is_stored"}
    assert "which nothing orders" in wrong["element_that_is_stored"]  # translated, and refused as a GPU kernel
    assert {kernel.name for kernel in result.kernels} == set(MEANT)


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("TL542", LOAD + "for t in range(3):\n    if pid == 1:\n        return\n    x += 1.0" + STORE),
        ("TL542", LOAD + "m = tl.load(x_ptr)\nx = x * (tl.load(x_ptr + n) if m > 0.0 else m)" + STORE),
        ("TL543", LOAD + "x = tl.exp(x, precision=3)" + STORE),
        ("TL530", LOAD + "x = tl.maximum(x, 1.0, propagate_nan=tl.PropagateNan.ALL)" + STORE),
        ("TL530", LOAD + "x = x - tl.max(x, axis=0, propagate_nan=True)" + STORE),
        ("TL530", LOAD + 'x = x.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32)' + STORE),
        ("TL521", "x = tl.load(x_ptr + i + (pid - 3), mask=(i + pid < n + 3) & (i + pid >= 2))" + STORE),
        ("TL545", LOAD + "x = x * TWICE_SET" + STORE),
    ],
)
def test_refused_rather_than_guessed(code: str, body: str) -> None:
    text = vector(body).replace(
        "@triton.jit\ndef k", "TWICE_SET = 1\nif True:\n    TWICE_SET = 2\n\n\n@triton.jit\ndef k"
    )
    assert refusals(text) == [code]


@pytest.mark.parametrize(
    ("code", "decorator"),
    [
        ("TL514", '@triton.heuristics({"BLOCK": lambda args: 64 * n})'),
        ("TL514", '@triton.heuristics({"BLOCK": lambda args: len(args)})'),
        ("TL514", '@triton.autotune([triton.Config({"BLOCK": 64}, pre_hook=lambda a: a["y_ptr"].zero_())], key=["n"])'),
    ],
)
def test_decorators_that_do_something_else(code: str, decorator: str) -> None:
    text = vector(LOAD + STORE, "k[(triton.cdiv(n, 64),)](x, y, n)").replace("@triton.jit", f"{decorator}\n@triton.jit")
    assert refusals(text) == [code]


COMPUTED = """options = [3, 4]
configs = [triton.Config({"BLOCK": size}, num_stages=s, pre_hook=blocks) for size in [64, 32] for s in options]
if "FAST" in globals():
    configs = [triton.Config(dict(BLOCK=16), pre_hook=blocks)]


def blocks(args):
    size = args["BLOCK"]
    if isinstance(args["x_ptr"], int):
        return
    args["x_ptr"].block_shape = [size]


def keep(config):
    return config.num_stages > 3


"""


@pytest.mark.parametrize(
    "configs",
    ["configs", "list(filter(keep, configs))", "[c for c in configs if keep(c)]", "[triton.Config(dict(BLOCK=64))]"],
)
def test_configurations_that_the_file_computes(configs: str) -> None:
    """Any is right: the first that is written out is taken, and what else there may be is told."""
    text = vector(LOAD + STORE, "k[(triton.cdiv(n, 64),)](x, y, n)")
    text = text.replace("@triton.jit", f'{COMPUTED}@triton.autotune(configs={configs}, key=["n"])\n@triton.jit')
    found = to_tilelang(text)
    assert "def k(n, BLOCK=64):" in found.text
    computed = "dict" not in configs
    assert [note.code for note in found.kernels[0].notes if note.code == "TL504"] == ["TL504"] * computed
    assert refusals(text.replace("].block_shape = [size]", "].zero_()")) == (["TL514"] if computed else [])
    zeroing = text.replace('size = args["BLOCK"]', 'size = args["y_ptr"].zero_()')
    assert refusals(zeroing) == (["TL514"] if computed else [])


def test_default_whose_name_means_something_else_at_the_launch() -> None:
    text = vector(LOAD + "x = x * F" + STORE).replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, F: tl.constexpr = G")
    text = text.replace("@triton.jit", "G = 3\n\n\n@triton.jit")
    assert refusals(text) == []
    assert refusals(text.replace("    n = x.shape[0]", "    G = 5\n    n = x.shape[0]")) == ["TL514"]


def test_two_functions_of_one_name() -> None:
    inner = "\n\ndef make():\n    @triton.jit\n    def k(x_ptr):\n        tl.store(x_ptr, 1.0)\n    return k\n"
    assert refusals(vector(LOAD + STORE) + inner) == ["TL543"]


def test_number_that_is_taken_to_be_no_less_is_checked() -> None:
    """The load may begin in front of the tensor where ``by`` is negative: the mask leaves those elements out."""
    body = "x = tl.load(x_ptr + i + by, mask=(i + by >= 0) & (i + by < n), other=0.0)" + STORE
    text = (
        vector(body)
        .replace("y_ptr, n,", "y_ptr, n, by,")
        .replace("def f(x)", "def f(x, by)")
        .replace("y, n,", "y, n, by,")
    )
    assert "assert by >= 0" in to_tilelang(text.split("\n\nf(torch")[0]).text
    below = to_tilelang(text.replace('device="cuda")', "), -3")).text
    assert "if by + row + BLOCK * pid >= 0 and by + row + BLOCK * pid < n:" in below
    assert refusals(text.replace('device="cuda")', "), 0")) == []


@pytest.mark.parametrize(
    "made", ["torch.empty(8, n // 8).t_()", "torch.empty(n, memory_format=torch.channels_last)", "torch.empty(n)"]
)
def test_new_tensors_that_are_not_contiguous(made: str) -> None:
    text = vector(LOAD + STORE).replace("torch.empty_like(x)", made)
    if made.endswith("t_()"):
        text = text.replace(made, "torch.empty(8, n // 8)\n    y.t_()\n    y = y.view(n)")
    assert ("y.is_contiguous()" in to_tilelang(text).text) == ("_" in made)


CARRIED = f"""{HEAD}@triton.jit
def k(a_ptr, b_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(a_ptr + m[:, None] * N + n[None, :])
    b = tl.trans(tl.load(b_ptr + m[:, None] * N + n[None, :]))
    total = tl.zeros((M, M), tl.float32)
    for turn in range(3):
        total += tl.dot(a, b)
        b = NEXT
    tl.store(y_ptr + m[:, None] * M + m[None, :], total)


def f(a, b):
    y = torch.empty((16, 16), dtype=torch.float32)
    k[(1,)](a, b, y, M=16, N=32)
    return y


f(torch.randn(16, 32), torch.randn(16, 32))
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="no triton here")
@pytest.mark.parametrize(
    "value", ["tl.zeros((N, M), tl.float32) + turn", "tl.load(a_ptr + n)[:, None] * tl.load(b_ptr + m)[None, :]"]
)
def test_what_a_loop_carries_keeps_its_layout(tmp_path: Path, value: str) -> None:
    """``b`` lies in memory as it was loaded, columns first; what the loop puts there has to lie like that."""
    file = tmp_path / "k.py"
    file.write_text(CARRIED.replace("NEXT", value), encoding="utf-8")
    result = verify_files(file, None, Settings(), Options())
    assert [kernel.status for kernel in result.kernels] == ["verified"]
