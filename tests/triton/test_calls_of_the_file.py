"""What the calls in a file pass decides whether a launch is translated: checks that its own calls fail are refusals."""

from __future__ import annotations

import pytest

from tests.triton.test_translation import HEAD, refusals, vector
from tl2npu.source.triton_imports import is_triton
from tl2npu.triton.migrate import to_tilelang

COPY = "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x, mask=i < n)"
OBJECT = vector(COPY).replace(
    "\n\ndef f", "\n\nclass View:\n    def __init__(self, base):\n        self.base = base\n\n\ndef f"
)


@pytest.mark.parametrize(("size", "codes"), [(300, []), (200, ["TL508"])])
def test_sizes_that_the_file_passes_and_a_check_would_stop(size: int, codes: list[str]) -> None:
    text = vector(COPY).replace("def f(x):", "def f(x, y):").replace("    y = torch.empty_like(x)\n", "")
    text = text.replace('f(torch.randn(300, device="cuda"))', f"f(torch.randn(300), torch.empty({size}))")
    assert refusals(text) == codes
    assert ("y.shape[0] == n" in to_tilelang(text).text) == (not codes)


def test_object_that_is_no_tensor() -> None:
    assert refusals(OBJECT) == []
    assert refusals(f"{OBJECT}f(View(torch.randn(300)))\n") == ["TL512"]


def test_reinterpreted_tensor() -> None:
    launch = "k[(triton.cdiv(n, 128),)](triton.reinterpret(x, tl.float8e5), y, n, BLOCK=128)"
    assert refusals(vector(COPY, launch)) == ["TL512"]


def test_list_of_sizes_is_no_size() -> None:
    listed = vector(COPY).replace(
        "y = torch.empty_like(x)", "shape = list(x.shape)\n    shape[0] = n\n    y = torch.empty(shape)"
    )
    assert "shape ==" not in to_tilelang(listed).text


def test_axis_that_a_tensor_does_not_have() -> None:
    assert (
        refusals(vector(COPY).replace("n = x.shape[0]", "n = x.shape[0]\n    columns = torch.empty(n).size(1)")) == []
    )


def test_names_of_triton_that_another_project_passes_on() -> None:
    named = vector(COPY).replace(
        "import triton\nimport triton.language as tl\n", "from vllm.triton_utils import tl, triton\n"
    )
    assert is_triton(named.encode())
    assert refusals(named) == []
    text = to_tilelang(named).text
    assert "vllm" not in text
    assert "triton." not in text
    kept = to_tilelang(named.replace("import tl,", "import HAS_TRITON, tl,")).text
    assert "from vllm.triton_utils import HAS_TRITON, tl, triton" in kept


DECORATED = vector("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x * x, mask=i < n)")


def decorated(imports: str, decorators: str, text: str = DECORATED) -> str:
    """The kernel of ``text`` under more decorators, which ``imports`` are for."""
    return text.replace("\n\n\n@triton.jit", f"\n{imports}\n\n\n{decorators}\n@triton.jit")


@pytest.mark.parametrize(
    ("imports", "decorator"),
    [
        ("from flag_gems.utils import libentry", "@libentry()"),
        ("from flag_gems.utils.libentry import libentry as quick", "@quick()"),
        ("import flag_gems.utils as u", "@u.libentry()"),
        ("from flag_gems import utils", "@utils.libentry()"),
    ],
)
def test_decorator_that_caches_launches(imports: str, decorator: str) -> None:
    """What it decorates is the same kernel, launched the same way."""
    text = to_tilelang(decorated(imports, decorator)).text
    assert decorator not in text
    assert text.partition("@tilelang.jit")[2] == to_tilelang(DECORATED).text.partition("@tilelang.jit")[2]


@pytest.mark.parametrize(
    ("imports", "decorator"),
    [
        ("def libentry():\n    return lambda kernel: kernel", "@libentry()"),
        ("from flag_gems.utils import libentry\nlibentry = print", "@libentry()"),
        ("from flag_gems.utils import libentry\nfrom flag_gems.others import libentry", "@libentry()"),
        ("from own.utils import libentry", "@libentry()"),
        ("from flag_gems.utils import pointwise_dynamic as libentry", "@libentry()"),
        ("from flag_gems.utils import libentry", "@libentry"),
        ("def autotune(configs, key):\n    return print", '@autotune([triton.Config({"BLOCK": 64})], key=["n"])'),
    ],
)
def test_decorator_of_another_meaning(imports: str, decorator: str) -> None:
    assert refusals(decorated(imports, decorator)) == ["TL543"]


def test_tuner_of_another_project() -> None:
    """``libtuner`` is ``triton.autotune`` under another name."""
    body = DECORATED.partition("arange(0, BLOCK)\n")[2].partition("\n\n\n")[0].replace("    ", "")
    launched = vector(body, "k[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, y, n)")
    tuned = '@tuner(configs=[triton.Config({"BLOCK": 256})], key=["n"]'
    own = decorated("from flag_gems.utils import libtuner as tuner", f'{tuned}, strategy=["log"])', launched)
    usual = decorated("from triton import autotune as tuner", f"{tuned})", launched)
    assert refusals(own) == []
    assert to_tilelang(own).text.partition("@tilelang.jit")[2] == to_tilelang(usual).text.partition("@tilelang.jit")[2]
    assert "def k(n, BLOCK=256):" in to_tilelang(own).text


def test_program_id_of_another_project() -> None:
    """FlagGems' has 64 bits."""
    imports = "from flag_gems.utils import triton_lang_extension as ext"
    text = DECORATED.replace("tl.program_id", "ext.program_id").replace("\n\n\n@", f"\n{imports}\n\n\n@", 1)
    assert refusals(text) == []
    assert to_tilelang(text).text == to_tilelang(DECORATED).text


ROWS = f"""{HEAD}@triton.jit
def k(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + at, mask=at < n)
    tl.store(y_ptr + tl.program_id(0) * stride + at, 2 * x, mask=at < n)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        y = torch.empty_like(x)
        k[(x.shape[0],)](x, y, n, n, BLOCK=triton.next_power_of_2(n))
        return y


twice = Twice.apply
twice(torch.randn(4, 100), 100)
"""


def test_stride_of_rows_is_the_width_where_a_call_shows_the_rank() -> None:
    """The launch passes the width as the stride of rows: the host must check that it is."""
    assert refusals(ROWS) == []
    assert "assert x.shape[1] == n" in to_tilelang(ROWS).text
    assert refusals(ROWS.replace("(4, 100), 100", "(4, 100), 50")) != []


def test_stride_of_the_first_axis_does_not_show_the_rank() -> None:
    """It is asked for the rows of a matrix, so that the tensor must not be taken for a vector, whose stride is 1."""
    text = ROWS.replace("(x, y, n, n,", "(x, y, x.stride(0), n,").replace("x.shape[0],)", "rows,)")
    text = text.replace("ctx, x, n)", "ctx, x, n, rows)").split("twice =")[0]
    assert "x.stride(0) == n" in to_tilelang(text).text


def test_creation_of_an_object_is_no_call_of_its_forward() -> None:
    layer = ROWS.replace("torch.autograd.Function", "torch.nn.Module").replace("ctx, x", "self, x")
    layer = layer.replace("    @staticmethod\n", "    def __init__(self, w):\n        self.w = w\n\n").split("twice =")[
        0
    ]
    assert refusals(f"{layer}layer = Twice(torch.randn(100))\nlayer(torch.randn(4, 100), 100)\n") == []


def test_launch_without_blocks() -> None:
    """Triton launches nothing then."""
    assert "if n > 0:" not in to_tilelang(vector(COPY)).text
    empty = to_tilelang(f"{vector(COPY)}f(torch.randn(0))\n").text
    assert "    if n > 0:\n        k(" in empty


def test_part_of_a_tensor_is_not_contiguous() -> None:
    text = vector(COPY).replace("    n = x", "    x, z = x.chunk(2, dim=-1)\n    n = x")
    assert refusals(text) == ["TL521"]
    assert refusals(text.replace("dim=-1", "dim=0")) == []
    rows = ROWS.replace("(x, y, n, n,", "(x, y, x.stride(0), n,").replace("ctx, x, n):", "ctx, xz, n):")
    rows = rows.replace("        y =", "        x, z = xz.chunk(2, dim=1)\n        y =").replace("(4, 100)", "(4, 200)")
    assert "(x.contiguous(), y)" in to_tilelang(rows).text
    written = to_tilelang(rows.replace("(x, y, x", "(y, x, x")).text
    assert "x_contiguous = x.contiguous()\n        k(" in written
    assert "(y, x_contiguous)\n        x.copy_(x_contiguous)\n" in written


def test_tensors_of_backward_are_like_those_of_forward() -> None:
    """What ``forward`` saves and returns shows the ranks and types in ``backward``."""
    backward = """
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(dy)
        n = dy.shape[1]
        k[(dy.shape[0],)](x, dx, x.stride(0), n, BLOCK=triton.next_power_of_2(n))
        return dx, None
"""
    text = ROWS.replace("\n        return y\n", backward).replace("(4, 100)", "(4, 100, dtype=torch.float16)")
    gradient = to_tilelang(text.replace("k[(dy.shape[0],)](x, dx", "k[(dy.shape[0],)](dy, dx")).text
    assert "(dy.contiguous(), dx)" in gradient
    assert "dy.is_contiguous()" not in gradient
    passed = (
        text.replace(
            "        n = dy.shape[1]\n",
            "        return back(x, dy), None\n\n\ndef back(x, dy):\n    n = 100\n    dx = dy.new_empty(4, 100)\n",
        )
        .replace("        k[(dy.shape[0],)](x, dx, x.stride(0)", "    k[(dy.shape[0],)](dy, dx, dy.stride(0)")
        .replace("        return dx, None", "    return dx")
    )
    unknown = passed.replace("        return y\n", "        return sorted([y])[0]\n")
    unknown = unknown.replace("n = 100", "_, n = dy.shape")
    for shown in (passed, unknown):
        assert "(dy.contiguous()" in to_tilelang(shown).text
    text = to_tilelang(text).text.split("class Twice")[0]
    assert 'x_ptr: T.Tensor((x_shape_0, n), "float16")' in text
    assert 'y_ptr: T.Tensor((dy_shape_0, n), "float16")' in text
    assert "float32" not in text


def test_inputs_of_a_benchmark_show_the_types() -> None:
    """Nothing in the file calls the model: a harness does."""
    model = vector(COPY).split("\n\nf(torch.randn(300")[0] + """

class Model(torch.nn.Module):
    def forward(self, x):
        return f(x)


def get_inputs():
    return [torch.randn(300, dtype=torch.float16)]
"""
    assert 'x_ptr: T.Tensor((n,), "float16")' in to_tilelang(model).text


def test_dictionary_of_keyword_arguments() -> None:
    text = vector(COPY, 'config = {"BLOCK": 128, "num_warps": 4}\n    k[(triton.cdiv(n, 128),)](x, y, n, **config)')
    assert "k(n=n" in to_tilelang(text).text
    changed = text.replace("    k[(", '    config["BLOCK"] = 64\n    k[(')
    unseen = text.replace('{"BLOCK": 128, "num_warps": 4}', "configuration()")
    for other in (changed, unseen):  # what the launch does not pass otherwise is in it
        assert "BLOCK=config['BLOCK'])" in to_tilelang(other).text
    assert refusals(text.replace("**config", "**configuration()")) == ["TL511"]
    assert refusals(unseen.replace("**config", "**config, **config")) == ["TL511"]


MORE = "    more = {}\n    if torch.version.hip:\n        more = {'waves_per_eu': 1, 'kpack': 2}\n    k[("


@pytest.mark.parametrize(
    ("before", "word", "found"),
    [
        (MORE, "**more", ""),
        ("    k[(", "**({'num_stages': n} if n > 7 else {})", ""),
        (MORE.replace("'kpack'", "'LIMIT'"), "**more", "more.get('LIMIT', 0)"),
        (MORE.replace("    k[(", "    more.update(LIMIT=1)\n    k[("), "**more", "more.get('LIMIT', 0)"),
        (MORE.replace("    k[(", "    more |= options()\n    k[("), "**more", "more.get('LIMIT', 0)"),
        ("    k[(", "**({'LIMIT': n} if n > 7 else {})", "({'LIMIT': n} if n > 7 else {}).get('LIMIT', 0)"),
        ("    k[(", "**(options() if n > 7 else {})", "TL511"),
    ],
)
def test_dictionaries_that_the_launch_unpacks(before: str, word: str, found: str) -> None:
    """What no parameter of the kernel takes is the compiler's; ``LIMIT`` is one that has a default."""
    text = vector("x = tl.load(x_ptr + i, mask=i < n - LIMIT)\ntl.store(y_ptr + i, x, mask=i < n)")
    text = text.replace("BLOCK: tl.constexpr)", "BLOCK: tl.constexpr, LIMIT: tl.constexpr = 0)")
    assert refusals(text) == []
    text = text.replace("    k[(", before).replace("BLOCK=128)", f"BLOCK=128, {word})")
    assert refusals(text) == (["TL511"] if found == "TL511" else [])
    assert found == "TL511" or f"LIMIT={found}" * bool(found) in to_tilelang(text).text


def test_number_that_a_name_had_before_a_loop() -> None:
    """``step`` is 1 at first, and passed with what the loop makes of it."""
    text = vector("x = tl.load(x_ptr + i * step, mask=i < n)\ntl.store(y_ptr + i, x, mask=i < n)")
    text = text.replace("n, BLOCK: tl", "n, step, BLOCK: tl").replace("x, y, n, BLOCK", "x, y, n, step, BLOCK")
    looped = text.replace("    n = x", "    step = 1\n    for turn in range(2):\n        step *= 2\n    n = x")
    assert "x_ptr[BLOCK * pid], x)" in to_tilelang(text.replace("    n = x", "    step = 1\n    n = x")).text
    assert "x_ptr: T.Tensor((n, step)" in to_tilelang(looped).text
    assert "step=1" not in to_tilelang(looped).text


FLAG = f"""{HEAD}@triton.jit
def k(x_ptr, y_ptr, n, DOUBLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if DOUBLE:
        factor = 2
    else:
        factor = 3
    tl.store(y_ptr + i, x * factor, mask=i < n)


def f(x, double=False):
    y = torch.empty_like(x)
    k[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), DOUBLE=double, BLOCK=128)
    return y


x = torch.randn(1000, device="cuda")
"""


def test_a_condition_that_all_calls_decide_alike_is_asserted() -> None:
    found = to_tilelang(FLAG + "f(x)\nf(x + 1, False)\n")
    assert found.kernels[0].refused is None
    assert 'assert double == 0, f"{double=}"\n' in found.text
    assert "* 3" in found.text


@pytest.mark.parametrize("calls", ["f(x)\nf(x, True)\n", "f(x, flag())\n", ""])
def test_a_condition_that_calls_decide_differently_has_a_kernel_for_each_way(calls: str) -> None:
    text = to_tilelang(FLAG + calls).text
    assert "double == 0" not in text
    assert "* 2" in text
    assert "* 3" in text


def test_rows_of_an_unknown_tensor_are_no_sum_of_sizes() -> None:
    """The steps show its shape, if two sizes of other tensors are one: the host checks that."""
    text = f"""{HEAD}@triton.jit
def k(v, b, o, step, T, V: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * step + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < V
    for _ in range(T):
        tl.store(o + at, tl.load(v + at, mask=mask) + tl.load(b + at, mask=mask), mask=mask)
        at += V


def f(x: torch.Tensor, v: torch.Tensor, b: torch.Tensor):
    B, T, V = *x.shape[:2], v.shape[2]
    o = torch.empty_like(v)
    k[(B,)](v, b, o, v.stride(0), T, V=V, BLOCK=128)
    return o


x = torch.ones(2, 5, 100)
f(x, torch.ones(2, 5, 100), sorted([x])[0])
"""
    new = to_tilelang(text).text
    assert "assert v.shape[1] == T" in new
    assert "b.view(B, T, V)" in new


def test_steps_of_a_tensor_are_checked_from_the_smallest_on() -> None:
    """Chunks of K rows one behind the other: the host checks the width of the tensor first, then its rows."""
    text = f"""{HEAD}@triton.jit
def k(h, o, s_h, s_r, s_o, K, V, BK: tl.constexpr, BV: tl.constexpr):
    first = h + tl.program_id(1) * s_h + tl.program_id(0) * K * V
    at = tl.make_block_ptr(first, (K, V), (s_r, 1), (0, 0), (BK, BV), (1, 0))
    last = o + tl.program_id(1) * s_o + tl.program_id(0) * K * V
    to = tl.make_block_ptr(last, (K, V), (V, 1), (0, 0), (BK, BV), (1, 0))
    tl.store(to, tl.load(at, boundary_check=(0, 1)), boundary_check=(0, 1))


def f(h: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    C, K, V = *x.shape, y.shape[1]
    o = torch.empty(h.shape[0], C, K, V)
    k[(C, h.shape[0])](h, o, h.stride(0), h.stride(1), o.stride(0), K, V, BK=64, BV=64)
    return o


f(torch.ones(2, 96, 40), torch.ones(3, 32), torch.ones(1, 40))
"""
    new = to_tilelang(text).text
    assert "assert h.stride(1) == V" in new
    assert "assert h.shape[1] == C * K" in new


def test_a_name_that_is_unpacked_twice_stands_for_two_sizes() -> None:
    """And sizes of the configuration that autotuning begins with are numbers where the host checks them."""
    text = f"""{HEAD}@triton.autotune([triton.Config({{"BLOCK": 64}})], key=["n"])
@triton.heuristics({{"WHOLE": lambda args: args["n"] % args["BLOCK"] == 0}})
@triton.jit
def k(x, y, n, step, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WHOLE:
        value = tl.load(x + tl.program_id(1) * step + at)
        tl.store(y + tl.program_id(1) * n + at, value)
    else:
        value = tl.load(x + tl.program_id(1) * step + at, mask=at < n)
        tl.store(y + tl.program_id(1) * n + at, value, mask=at < n)


def f(x: torch.Tensor):
    m, m, n = x.shape
    y = torch.empty(m, n)
    k[lambda meta: (triton.cdiv(n, meta["BLOCK"]), m)](x, y, n, x.stride(1))
    return y


f(torch.ones(1, 3, 100))
"""
    new = to_tilelang(text).text
    assert "x: T.Tensor((x_shape_0, x_shape_1, n)" in new
    assert "x_shape_0=x.shape[0], x_shape_1=m)" in new
    assert "assert n % 64 == 0" in new


def test_handlers_of_exceptions_launch_too() -> None:
    """Behind ``try`` nothing is known of what its body sets, if a handler goes on."""
    tried = """    try:
        k[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128)
    except RuntimeError:
        k[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64)
"""
    text = vector(COPY)
    launch = next(line for line in text.splitlines(True) if "k[(" in line)
    new = to_tilelang(text.replace(launch, tried)).text
    assert "BLOCK=128)(x, y)" in new
    assert "BLOCK=64)(x, y)" in new
    before = "    try:\n        n = 200\n    except RuntimeError:\n        pass\n"
    assert "def k(n, BLOCK" in to_tilelang(text.replace(launch, before + launch)).text
    assert "def k(n=200, BLOCK" in to_tilelang(text.replace(launch, before.replace("pass", "raise") + launch)).text


def test_a_tile_without_a_mask_is_as_wide_as_it_likes() -> None:
    """It is one block of several of a row, not the row."""
    text = f"""{HEAD}@triton.jit
def k(x, y, n, m, BLOCK: tl.constexpr):
    rows = tl.arange(0, 16)[:, None]
    at = tl.program_id(0) * n * m + rows * m + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(y + at, tl.load(x + at, mask=rows < n), mask=rows < n)


def f(x: torch.Tensor):
    b, n, m = x.shape
    y = torch.empty_like(x)
    BLOCK = min(triton.next_power_of_2(m), 32)
    k[(b, triton.cdiv(m, BLOCK))](x, y, n, m, BLOCK=BLOCK)
    return y


f(torch.ones(2, 16, 128))
"""
    new = to_tilelang(text).text
    assert "y: T.Tensor((b, n, m)" in new
    assert "32) == m" not in new


def test_rows_of_a_table_that_begins_again() -> None:
    """The table may have more rows than the remainder reaches, and its steps are those of the remainder."""
    body = "j = tl.arange(0, BLOCK)\nx = tl.load(x_ptr + (pid % 5) * step + j, mask=j < n, other=0.0)\n"
    text = vector(f"{body}tl.store(y_ptr + pid * n + j, x, mask=j < n)", "k[(7,)](z, y, n, step, BLOCK=128)")
    text = text.replace("y_ptr, n,", "y_ptr, n, step,").replace("torch.empty_like(x)", "torch.empty(7, n)")
    text = text.replace("def f(x):", "def f(x, step):\n    z = x.squeeze()").replace('device="cuda")', "), 100")
    assert "(z.view(-1, n)[: 5], y)" in to_tilelang(text.replace("300, ), 100", "300), 300")).text


def test_tensor_that_only_one_branch_makes() -> None:
    """Who reaches the launch has come through the branch: there is no case in which it is None."""
    text = (
        vector(COPY).replace("    y = torch", "    if flag:\n        y = torch").replace("def f(x)", "def f(x, flag)")
    )
    assert refusals(text.split("\n\nf(torch")[0]) == []


def test_size_that_is_computed_from_itself() -> None:
    text = vector(COPY, "k[(triton.cdiv(n, b),)](x, y, n, BLOCK=b)").replace("def f(x)", "def f(x, b)")
    text = text.replace("    y = torch", "    b = b // 2\n    y = torch").split("\n\nf(torch")[0]
    assert refusals(text) == []
    assert "BLOCK=b" in to_tilelang(text).text


def test_element_type_by_a_name_of_the_host() -> None:
    body = "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x.to(kind), mask=i < n)"
    text = vector(body, "k[(triton.cdiv(n, 128),)](x, y, n, kind=kind, BLOCK=128)")
    text = text.replace("y_ptr, n,", "y_ptr, n, kind: tl.constexpr,")
    kind = "    kind = tl.float32 if x.dtype == torch.float32 else tl.float16\n    y = torch"
    assert refusals(text.replace("    y = torch", kind)) == []


def test_sizes_of_tiles_that_are_combined_are_equal() -> None:
    body = "j = tl.arange(0, C)\nx = tl.load(x_ptr + j) + tl.load(x_ptr + tl.arange(0, BLOCK))\ntl.store(y_ptr + j, x)"
    text = vector(body, "k[(1,)](x, y, n, C=c, BLOCK=b)").replace("n, BLOCK", "n, C: tl.constexpr, BLOCK")
    text = text.replace("def f(x)", "def f(x, c, b)")
    assert "assert b == c" in to_tilelang(text.replace('device="cuda")', "), 32, 32")).text
    assert refusals(text.replace('device="cuda")', "), 32, 64")) != []


ROWS_OF_HEADS = vector(COPY).partition("def f(")[0] + (
    "def f(x):\n    x = x.transpose(1, 2)\n    b, t, h, d = x.shape\n"
    "    x = x.contiguous()\n    y = torch.empty_like(x)\n"
    "    k[(triton.cdiv(b * t * h * d, 64),)](x, y, b * t * h * d, BLOCK=64)\n    return y\n\n\n"
    "f(torch.randn(2, 3, 5, 8))\n"
)


def test_shape_of_a_transposed_tensor() -> None:
    text = to_tilelang(ROWS_OF_HEADS).text
    assert refusals(ROWS_OF_HEADS) == []
    assert "assert" not in text  # what `contiguous` gives is, and `empty_like` of it
    for order in ("x.permute(0, 2, 1, 3)", "x.permute((0, 2, 1, 3))", "x.swapaxes(-3, 2)"):
        assert to_tilelang(ROWS_OF_HEADS.replace("x.transpose(1, 2)", order)).text == text.replace(
            "x.transpose(1, 2)", order
        )


def test_transposed_tensor_is_not_contiguous() -> None:
    assert refusals(ROWS_OF_HEADS.replace("x = x.contiguous()", "x = x.float()")) == ["TL521"]


def test_sizes_that_only_an_earlier_tensor_of_the_name_showed() -> None:
    text = ROWS.replace("(ctx, x, n):\n", "(ctx, x):\n        x = x.view(-1, x.shape[-1])\n        rows, n = x.shape\n")
    text = text.replace("x.shape[0],)", "rows,)").replace("(4, 100), 100", "(2, 2, 100)")
    assert "rows, n = x.shape" in text
    assert "twice(torch.randn(2, 2, 100))" in text
    assert refusals(text) == []
    assert "rows=rows" in to_tilelang(text).text


def test_number_that_a_call_passes_is_not_that_of_a_later_value() -> None:
    """After ``n = n // 2`` the 200 of the call is no size of the launch any more."""
    text = vector(COPY).replace("def f(x):\n    n = x.shape[0]", "def f(x, n):\n    n = n // 2")
    assert refusals(f"{text}f(torch.randn(100), 200)\n") == []


UNTYPED = f"""{HEAD}@triton.jit
def k(x_ptr, i_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    i = tl.load(i_ptr + row)
    x = tl.load(x_ptr + AT * cols + at, mask=at < cols, other=0.0)
    tl.store(y_ptr + row * cols + at, x, mask=at < cols)


def f(x, i):
    rows, cols = x.shape
    n = i.shape[0]
    y = torch.empty(n, cols, dtype=x.dtype, device=x.device)
    k[(n,)](x, i, y, cols, BLOCK=triton.next_power_of_2(cols))
    return y
"""


@pytest.mark.parametrize("at", ["i", "i.to(tl.int64)", "(i + 2)", "tl.maximum(i.to(tl.int64), 0)"])
def test_tensor_of_which_only_integers_make_sense(at: str) -> None:
    """Nothing shows the type of ``i``, but a float is no index."""
    done = to_tilelang(UNTYPED.replace("AT", at))
    assert 'i_ptr: T.Tensor((i_shape_0,), "int32")' in done.text
    assert 'x_ptr: T.Tensor((rows, cols), "float32")' in done.text
    told = {note.message for kernel in done.kernels for note in kernel.notes if note.code == "TL505"}
    assert "`i_ptr` is taken for int32: nothing in the file shows its element type" in told


def test_integer_that_may_be_negative_is_divided_as_triton_does() -> None:
    """Triton cuts off the decimals, ``//`` of TileLang rounds down. Elements of tiles have no such division."""
    assert "x_ptr[T.truncdiv(i_1, 2), " in to_tilelang(UNTYPED.replace("AT", "(i // 2)")).text
    assert "x_ptr[T.truncmod(i_1, 2), " in to_tilelang(UNTYPED.replace("AT", "(i % 2)")).text
    tile = "x = x * ((at - 4) // 3).to(tl.float32)\n    tl.store(y_ptr"
    assert refusals(UNTYPED.replace("AT", "i").replace("tl.store(y_ptr", tile)) == ["TL546"]


def test_tensor_of_a_known_type_is_taken_for_nothing_else() -> None:
    called = "\n\nf(torch.randn(8, 40), torch.randn(8))\n"
    assert refusals(UNTYPED.replace("AT", "i.to(tl.int64)") + called) == ["TL546"]
    assert refusals(UNTYPED.replace("AT", "i") + called) == ["TL523"]


def test_tensor_that_is_a_number_elsewhere_stays_one() -> None:
    """Only what comes from ``i`` is an index; the elements of ``x`` are numbers."""
    text = to_tilelang(UNTYPED.replace("AT", "(i + 1)").replace("at, x, mask", "at, x * 2, mask")).text
    assert 'i_ptr: T.Tensor((i_shape_0,), "int32")' in text
    assert text.count('"int32")') == 1


@pytest.mark.parametrize(
    ("question", "holds"),
    [
        ("x.dtype.is_floating()", True),
        ("x.dtype.is_fp16()", False),
        ("x.dtype.is_fp32()", True),
        ("x_ptr.dtype.element_ty.is_int()", False),
        ("x.dtype.primitive_bitwidth == 32", True),
        ("tl.int8.is_int_signed()", True),
        ("tl.uint8.is_int_signed()", False),
        ("(x < 0.0).dtype.is_int_unsigned()", True),
        ("i.dtype.is_int()", True),
    ],
)
def test_questions_about_an_element_type(question: str, holds: bool) -> None:
    body = f"x = tl.load(x_ptr + i, mask=i < n)\nif {question}:\n    x = x * 3.0\ntl.store(y_ptr + i, x, mask=i < n)"
    text = vector(body)
    assert refusals(text) == []
    assert ("* 3.0" in to_tilelang(text).text) == holds


def test_bits_of_an_index_are_not_known() -> None:
    """It may have 32 or 64 in Triton."""
    body = "x = tl.load(x_ptr + i, mask=i < n)\nif i.dtype.is_int64():\n    x = -x\ntl.store(y_ptr + i, x, mask=i < n)"
    assert refusals(vector(body)) == ["TL530"]


def test_name_that_the_module_gives_to_a_function() -> None:
    body = "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, root(x), mask=i < n)"
    for imports in (
        "root = tl.math.rsqrt",
        "from triton.language.extra import libdevice\nroot = libdevice.rsqrt",
        "from flag_gems.utils import tl_extra_shim as shim\nroot = shim.rsqrt",
    ):
        assert "T.rsqrt(x[i])" in to_tilelang(decorated(imports, "", vector(body))).text
    assert refusals(decorated("root = tl.rsqrt\nroot = tl.exp", "", vector(body))) == ["TL545"]
    assert refusals(decorated("root = torch.rsqrt", "", vector(body))) == ["TL544"]


def test_option_of_another_compiler_is_told() -> None:
    text = DECORATED.replace("BLOCK=128)", "BLOCK=128, num_warps=4, buffer_size=2048)")
    done = to_tilelang(text)
    assert done.text == to_tilelang(DECORATED).text
    told = [note.message for kernel in done.kernels for note in kernel.notes if note.code == "TL504"]
    assert told == ["`buffer_size` is an option of another compiler, which is left out"]


@pytest.mark.parametrize(
    ("sizes", "codes"),
    [("[32, 64]", []), ("[32, 64] if n_gpus() else [16]", []), ("sizes()", ["TL514"])],
)
def test_lists_of_a_configuration(sizes: str, codes: list[str]) -> None:
    text = vector(COPY, "k[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, y, n)")
    tuned = "@triton.autotune([triton.Config({'BLOCK': b}, num_warps=w) for b in SIZES for w in WARPS], key=['n'])"
    text = decorated(f"SIZES = {sizes}\nWARPS = warps()", tuned, text)
    assert refusals(text) == codes
    assert ("BLOCK=32)" in to_tilelang(text).text) == (not codes)


def test_constants_that_the_user_gives_for_configurations_that_are_not_seen() -> None:
    text = vector(COPY, "k[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, y, n)")
    text = decorated("", "@triton.autotune(configs=runtime.get_tuned_config('copy'), key=['n'])", text)
    assert refusals(text) == ["TL514"]
    assert to_tilelang(text, tuned=["OTHER=64"]).text == text
    done = to_tilelang(text, tuned=["OTHER=32", "BLOCK=64"])
    assert "BLOCK=64)" in done.text
    (told,) = [note.message for kernel in done.kernels for note in kernel.notes if note.code == "TL504"]
    assert told.startswith("BLOCK=64 by `--tuned`")
    # Those that are written out hold, and a hook that is seen is still in the way.
    written = text.replace("runtime.get_tuned_config('copy')", "[triton.Config({'BLOCK': 32})]")
    assert "BLOCK=32)" in to_tilelang(written, tuned=["BLOCK=64"]).text
    hooked = text.replace("key=['n']", "key=['n'], pre_hook=lambda a: a['y_ptr'].zero_()")
    assert to_tilelang(hooked, tuned=["BLOCK=64"]).text == hooked


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("@staticmethod\n    def forward(ctx, x, n):", "twice(x, n)"),
        ("@staticmethod\n    def forward(context, x, n):", "Twice.apply(x, n)"),
        ("@classmethod\n    def forward(cls, ctx, x, n):", "twice(x, n)"),
        ("@classmethod\n    def forward(klass, saved, x, n):", "Twice.apply(x, n)"),
        ("@classmethod\n    def forward(cls, x, n):", "Twice.forward(x, n)"),
        ("@staticmethod\n    def forward(x, n):", "Twice.forward(x, n)"),
        (
            "@staticmethod\n    def setup_context(ctx, i, o):\n        pass\n\n"
            "    @staticmethod\n    def forward(x, n):",
            "twice(x, n)",
        ),
        ("@staticmethod\n    def run(ctx, x, n):", "Twice.run(None, x, n)"),
        ("@classmethod\n    def run(cls, x, n):", "Twice.run(x, n)"),
    ],
)
def test_first_parameters_that_no_call_gives(head: str, call: str) -> None:
    """Read one place off, ``x`` would be the number: 4 rows of 100 elements, which the second call has not."""
    text = ROWS.replace("@staticmethod\n    def forward(ctx, x, n):", head).split("twice(")[0]
    right = f"{text}x, n = torch.randn(4, 100), 100\n{call}\n"
    assert refusals(right) == []
    assert "x_shape_0=x.shape[0])(x, y)" in to_tilelang(right).text
    assert refusals(right.replace("4, 100), 100", "4, 100), 50")) == ["TL508"]


def test_a_plain_function_gets_all_that_it_takes() -> None:
    """Whatever its first parameter is called."""
    function = ROWS.split("class Twice")[0] + "def f(ctx, n):\n    x = ctx\n" + ROWS.split("ctx, x, n):\n")[1]
    function = function.split("twice =")[0].replace("        ", "    ") + "f(torch.randn(4, 100), {})\n"
    assert refusals(function.format(100)) == []
    assert refusals(function.format(50)) != []


SEVERAL = f"""{HEAD}@triton.jit
def k(x_ptr, y_ptr, total, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < total)
    tl.store(y_ptr + i, x * 2.0, mask=i < total)


def layout(x, lane):
    if lane is None:
        return x.shape[1], 0
    return 1, 0


def f(x, lane=None):
    n = x.shape[0]
    per, first = layout(x, lane)
    y = torch.empty(n, per)
    total = n * per
    k[(triton.cdiv(total, 64),)](x, y, total, BLOCK=64)
    return y


f(torch.randn(40, 3))
"""


def test_what_a_function_returns_in_one_way_or_another_is_not_the_last_of_them() -> None:
    """``per`` is 3 in the call: a kernel for 1 would leave two thirds of ``y`` as they are."""
    text = to_tilelang(SEVERAL).text
    assert "T.Kernel(T.ceildiv(per * x_shape_0, BLOCK)" in text
    assert 'y_ptr: T.Tensor((per * x_shape_0,), "float32")' in text
    alike = to_tilelang(SEVERAL.replace("return x.shape[1], 0", "return 1, 0")).text
    assert 'y_ptr: T.Tensor((total, 1), "float32")' in alike
