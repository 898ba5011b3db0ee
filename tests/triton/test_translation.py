"""Triton kernels as TileLang kernels for a GPU: what is printed, and what must be refused rather than guessed."""

from __future__ import annotations

import pytest

from tl2npu.options import Options
from tl2npu.triton import migrate
from tl2npu.triton.migrate import to_tilelang
from tl2npu.triton.result import migrate_triton

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"


LARGE = (
    f"{HEAD}@triton.autotune([triton.Config({{'B': b}}) for b in (131072, 65536, 4096)], key=['n'])\n@triton.jit\n"
    "def k(x_ptr, y_ptr, n, B: tl.constexpr):\n    i = tl.program_id(0) * B + tl.arange(0, B)\n"
    "    x = tl.load(x_ptr + i, mask=i < n)\n    tl.store(y_ptr + i, x * x, mask=i < n)\n\n\ndef f(x):\n"
    "    n = x.shape[0]\n    y = torch.empty_like(x)\n\n    def grid(meta):\n        size = meta['B']\n"
    "        blocks = triton.cdiv(n, size)\n        return (blocks,)\n\n    k[grid](x, y, n)\n    return y\n\n\n"
    "f(torch.randn(70000))\n"
)
"""Two tiles of 65536 floats, half of each for each vector core, are 262144 bytes: more than a unified buffer holds."""


def test_first_configuration_that_fits() -> None:
    done = migrate_triton(LARGE, "k.py", Options())
    assert [kernel.disposition for kernel in done.kernels] == ["migrated"]
    assert "def k(n, B=4096):" in (done.new_text or "")
    assert "T.Kernel(T.ceildiv(n, B)" in (done.new_text or "")
    said = [item.message for item in done.diagnostics if item.code == "TL504"]
    assert said == ["configuration 3 of `autotune` is the default: those before it do not fit"]
    assert "TL801" not in {item.code for item in done.diagnostics}


def test_no_configuration_fits() -> None:
    """The first again, with what is wrong with it."""
    done = migrate_triton(LARGE.replace("4096", "60000"), "k.py", Options())
    assert "def k(n, B=131072):" in (done.new_text or "")
    assert "TL801" in {item.code for item in done.diagnostics}


def test_grid_of_a_function_that_branches() -> None:
    branch = "        if n > 5:\n            size = 1\n        blocks"
    assert refusals(LARGE.replace("        blocks", branch, 1)) == ["TL511"]


def vector(body: str, launch: str = "k[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128)") -> str:
    """A kernel on vectors with a body of its own."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return (
        f"{HEAD}@triton.jit\ndef k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
        "    pid = tl.program_id(0)\n    i = pid * BLOCK + tl.arange(0, BLOCK)\n"
        f"{lines}\n\ndef f(x):\n    n = x.shape[0]\n    y = torch.empty_like(x)\n    {launch}\n    return y\n"
        '\n\nf(torch.randn(300, device="cuda"))\n'
    )


MATMUL = f"""{HEAD}@triton.jit
def mm(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * am + rk[None, :] * ak
    b_ptrs = b_ptr + rk[:, None] * bk + rn[None, :] * bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK), other=0.0)
        b = tl.load(b_ptrs, mask=(rk[:, None] < K - k * BK) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK * ak
        b_ptrs += BK * bk
    tl.store(c_ptr + rm[:, None] * cm + rn[None, :] * cn, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=torch.float16)
    mm[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BM=64, BN=64, BK=32,
    )
    return c


matmul(torch.randn(100, 90, device="cuda").half(), torch.randn(90, 80, device="cuda").half())
"""


CHUNKS = f"""{HEAD}@triton.jit
def states(k, h, s_k, s_h, T, K, BT: tl.constexpr, BK: tl.constexpr, NT):
    i_k, i_b = tl.program_id(0), tl.program_id(1)
    b_h = tl.zeros([BK, BK], dtype=tl.float32)
    for i_t in range(NT - 1, -1, -1):
        p_h = tl.make_block_ptr(h + i_b * s_h + i_t * K * K, (K, K), (K, 1), (i_k * BK, 0), (BK, BK), (1, 0))
        tl.store(p_h, b_h, boundary_check=(0, 1))
        p_k = tl.make_block_ptr(k + i_b * s_k, (T, K), (K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_h += tl.dot(tl.trans(b_k), b_k)


def f(k, v):
    B, T, K, V = *k.shape, v.shape[-1]
    h = k.new_empty(B, triton.cdiv(T, 64) * K, K)
    states[(triton.cdiv(K, 32), B)](k, h, k.stride(0), h.stride(0), T, K, BT=64, BK=32, NT=triton.cdiv(T, 64))
    return h
"""


def refusals(text: str) -> list[str]:
    """The codes of the kernels that stay, and TL508 for those with tensors that are moved row by row."""
    kernels = to_tilelang(text).kernels
    in_rows = ["TL508" for kernel in kernels if "TL508" in {note.code for note in kernel.notes}]
    return [kernel.refused.code for kernel in kernels if kernel.refused is not None] + in_rows


def test_mask_becomes_the_end_of_the_tensor() -> None:
    done = to_tilelang(vector("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x * 2.0, mask=i < n)"))
    assert "T.copy(x_ptr[BLOCK * pid], x)" in done.text
    assert "y_tile[i] = x[i] * 2.0" in done.text
    assert "k(n=n, BLOCK=128)(x, y)" in done.text
    assert "import triton" not in done.text


def test_other_fills_what_lies_outside() -> None:
    body = 'x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))\ntl.store(y_ptr + i, x, mask=i < n)'
    assert "if_then_else(" in to_tilelang(vector(body)).text


@pytest.mark.parametrize(
    ("between", "where", "selects"),
    [
        ("", "i < n", False),
        ("x = x.to(tl.float32)", "(i < n) & (i < n)", False),
        ("", "i < n - 1", True),
        ("x += 1.0", "i < n", True),
        ("for turn in range(2):\n    x += 1.0", "i < n", True),
    ],
)
def test_second_mask_is_one_only_where_the_tile_is_not_zero(between: str, where: str, selects: bool) -> None:
    lines = ["x = tl.load(x_ptr + i, mask=i < n, other=0)", between, f"x = tl.where({where}, x, 0.0)"]
    body = "\n".join([*filter(None, lines), "tl.store(y_ptr + i, x, mask=i < n)"])
    text = to_tilelang(vector(body).replace('"cuda"', '"cuda", dtype=torch.float16')).text
    assert ("if_then_else(" in text) == selects


def test_strides_become_shapes() -> None:
    text = to_tilelang(MATMUL).text
    assert 'a_ptr: T.Tensor((M, K), "float16")' in text
    assert 'b_ptr: T.Tensor((K, N), "float16")' in text
    assert "T.gemm(a, b, acc)" in text
    assert "assert a.is_contiguous() and b.is_contiguous()" in text


def test_joined_axes_of_a_tensor_are_split_by_the_steps_of_its_addresses() -> None:
    text = to_tilelang(CHUNKS).text
    assert "h.view(B, tilelang.cdiv(T, 64), K, K)" in text
    assert "h[by, TL.ceildiv(T, 64) - i_t_step - 1, BK * bx : BK + BK * bx, 0:BK]" in text
    assert 'assert k.is_contiguous(), "k must be contiguous"\n' in text


@pytest.mark.parametrize(
    ("rows", "asserted"),
    [
        ("rm % M", False),
        ("tl.where(rm < M, rm, 0)", False),
        ("(rm + 1) % M", True),  # another row wraps around than the store cuts off
    ],
)
def test_wrapped_rows_are_only_asserted_away_where_a_store_keeps_them(rows: str, asserted: bool) -> None:
    text = MATMUL.replace("a_ptr + rm[:, None]", f"a_ptr + ({rows})[:, None]")
    text = text.replace("mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK)", "mask=rk[None, :] < K - k * BK")
    assert ("% 64 == 0" in to_tilelang(text).text or refusals(text) == ["TL508"]) is asserted


def test_wrapped_elements_that_are_summed_are_asserted_away() -> None:
    row = "r = tl.arange(0, 16)[:, None]\nx = tl.load(x_ptr + r * n + (i % n)[None, :])\n"
    text = to_tilelang(vector(row + "tl.store(y_ptr + i, tl.sum(x * 1.0, 0), mask=i < n)")).text
    assert "% 128" not in text
    text = to_tilelang(vector(row + "tl.store(y_ptr + tl.arange(0, 16), tl.sum(x * 1.0, 1))")).text
    assert "n % 128 == 0" in text


def test_padded_columns_are_cut_off() -> None:
    part = "part = tl.arange(0, 64)[None, :] < 48\n"
    body = "at = i[:, None] * 64 + tl.arange(0, 64)[None, :]\nx = tl.load(x_ptr + at, mask=part & (i[:, None] < n))\n"
    plain = f"{part}{body}tl.store(y_ptr + at, x * 2.0, mask=part & (i[:, None] < n))"
    summed = f"{part}{body}tl.store(y_ptr + at, x + tl.sum(x, 1)[:, None], mask=i[:, None] < n)"
    plain, summed = (to_tilelang(vector(text).replace("randn(300", "randn(300, 64")).text for text in (plain, summed))
    assert "(BLOCK, 48)" in plain
    assert "(BLOCK, 64)" not in plain
    assert "T.copy(x_part, x[0, 0])" in summed


def test_product_that_is_stored_transposed_is_computed_so() -> None:
    text = MATMUL.replace("c_ptr + rm[:, None] * cm + rn[None, :] * cn", "c_ptr + rn[None, :] * cm + rm[:, None] * cn")
    text = to_tilelang(text.replace("torch.empty((M, N)", "torch.empty((N, M)")).text
    assert "acc = T.alloc_fragment((BN, BM)" in text
    assert "T.gemm(b, a, acc, transpose_A=True, transpose_B=True)" in text
    assert "T.copy(c_tile, c_ptr[BN * pid_n, BM * pid_m])" in text


def test_text_that_the_launch_does_not_show_is_asked_for() -> None:
    body = 'x = tl.load(x_ptr + i, mask=i < n)\nif ACT == "relu":\n    x = tl.maximum(x, 0.0)\ntl.store(y_ptr + i, x)'
    text = vector(body, "k[(triton.cdiv(n, 128),)](x, y, n, ACT=act, BLOCK=128)").replace(
        "n, BLOCK: tl", "n, ACT, BLOCK: tl"
    )
    assert "if act == 'relu':" in to_tilelang(text.replace("def f(x)", "def f(x, act)")).text
    assert refusals(text.replace("ACT=act", 'ACT="relu"')) == []


def test_configurations_that_a_function_returns_are_followed() -> None:
    body = "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x, mask=i < n)"
    text = vector(body, 'k[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)')
    found = "def all():\n    if n:\n        return of_gpu()\n    return []\n\n\n"
    found += "def of_gpu():\n    return [triton.Config({'BLOCK': 64})]\n\n\n"
    text = text.replace("@triton.jit", f"{found}@triton.autotune(configs=all(), key=[])\n@triton.jit")
    assert "def k(n, BLOCK=64):" in to_tilelang(text).text


def test_text_that_no_call_passes_is_its_default() -> None:
    body = 'x = tl.load(x_ptr + i, mask=i < n)\nif ACT == "relu":\n    x = tl.maximum(x, 0.0)\n'
    body += "tl.store(y_ptr + i, x, mask=i < n)"
    text = vector(body, "k[(triton.cdiv(n, 128),)](x, y, n, ACT=act, BLOCK=128)")
    text = to_tilelang(text.replace("n, BLOCK: tl", "n, ACT, BLOCK: tl").replace("def f(x)", 'def f(x, act="")')).text
    assert "assert act == ''" in text
    assert "T.max" not in text


def test_every_second_element_is_a_column() -> None:
    body = "x = tl.load(x_ptr + 2 * i, mask=i < n // 2)\ntl.store(y_ptr + i, x, mask=i < n)"
    done = to_tilelang(vector(body))
    assert "x.view(n // 2, 2)" in done.text


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x, mask=i < n - 1)", "TL508"),
        ("x = tl.load(x_ptr + i - 1, mask=i < n)\ntl.store(y_ptr + i, x, mask=i < n)", "TL521"),
        ("x = tl.load(x_ptr + i // 2, mask=i < n)\ntl.store(y_ptr + i, x, mask=i < n)", "TL508"),
        ("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i * 0, x, mask=i < n)", "TL520"),
        ("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x, mask=x > 0)", "TL522"),
        ("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x, mask=(i - 5) // 2 < n)", "TL522"),
        ("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x * (2, 3)[2], mask=i < n)", "TL543"),
    ],
)
def test_what_would_be_silently_wrong_is_refused(body: str, code: str) -> None:
    assert refusals(vector(body)) == [code]


def test_old_value_is_kept_for_its_other_name() -> None:
    body = "x = tl.load(x_ptr + i, mask=i < n)\nold = x\nx = x + 1.0\ntl.store(y_ptr + i, x * old, mask=i < n)"
    text = to_tilelang(vector(body)).text
    assert "x_1[i] = x[i] + 1.0" in text
    assert "y_tile[i] = x_1[i] * x[i]" in text


def test_result_stands_beside_the_file() -> None:
    body = "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x, mask=i < n)"
    result = migrate_triton(vector(body), "src/kernel.py", Options())
    assert result.beside == "src/kernel_tilelang.py"
    assert [kernel.disposition for kernel in result.kernels] == ["migrated"]
    assert "is_npu=True" in (result.new_text or "")


def test_refused_kernel_keeps_its_file() -> None:
    text = vector("x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, tl.cumsum(x, 0), mask=i < n)")
    result = migrate_triton(text, "kernel.py", Options())
    assert not result.changed
    assert [(item.code, item.line) for item in result.diagnostics] == [("TL531", 11)]


TILES = f"""{HEAD}@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    before = tl.zeros((BLOCK,), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        i = tile * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(y_ptr + i, x * 2, mask=i < n)


def f(x):
    y = torch.empty_like(x)
    k[(4,)](x, y, x.numel(), BLOCK=128)
    return y


f(torch.randn(1000, device="cuda"))
"""


def test_a_loop_that_spreads_tiles_over_cores_is_a_block_for_each() -> None:
    assert "with T.Kernel(T.ceildiv(n, BLOCK), threads=" in to_tilelang(TILES).text
    again = TILES.replace("x * 2", "x + before").replace("mask=i < n)\n\n", "mask=i < n)\n        before = x\n\n")
    assert "with T.Kernel(4, threads=" in to_tilelang(again).text  # a tile needs the one before
    in_place = TILES.replace(
        "        tl.store", "        x += tl.load(y_ptr + i + BLOCK, mask=i + BLOCK < n)\n        tl.store"
    )
    assert "with T.Kernel(4, threads=" in to_tilelang(in_place).text  # and here what another has written
    other = TILES.replace("range(tl.program_id(0), ", "range(tl.program_id(0) + 1, ")
    assert "with T.Kernel(T.ceildiv(n, BLOCK) - 1, threads=" in to_tilelang(other).text


def test_a_translation_that_breaks_the_rules_of_the_ir_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the tool costs the kernel, not the file."""

    def broken(kernel: object) -> None:
        raise migrate.Malformed("`x` is not declared")

    monkeypatch.setattr(migrate, "check", broken)
    body = "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x * 2.0, mask=i < n)"
    assert refusals(vector(body)) == ["TL902"]


@pytest.mark.parametrize(
    ("turns", "loop"),
    [
        ("TURNS=turns", "for turn in T.serial(TURNS):"),  # only the caller knows
        ("TURNS=70", "for turn in T.serial(70):"),  # too many to write out
        ("TURNS=2", ""),
        ("TURNS=0", ""),
    ],
)
def test_static_range_is_written_out_or_stays_a_loop(turns: str, loop: str) -> None:
    body = "x = tl.load(x_ptr + i, mask=i < n)\ny = x\nfor turn in tl.static_range(TURNS):\n    y = y * x + turn\n"
    body += "tl.store(y_ptr + i, y, mask=i < n)"
    text = vector(body, f"k[(triton.cdiv(n, 128),)](x, y, n, {turns}, BLOCK=128)")
    text = text.replace("n, BLOCK: tl", "n, TURNS: tl.constexpr, BLOCK: tl").replace("def f(x)", "def f(x, turns)")
    done = to_tilelang(text)
    assert [kernel.refused for kernel in done.kernels] == [None]
    assert loop in done.text
    assert ("T.serial" in done.text) == bool(loop)


def test_loop_in_place_of_a_static_range_carries_what_a_loop_can() -> None:
    """Where the turns are written out, a pointer may move by another amount in each of them."""
    body = "for turn in tl.static_range(TURNS):\n    x = tl.load(x_ptr + i, mask=i < n)\n"
    body += "    tl.store(y_ptr + i, x, mask=i < n)\n    i += turn * 128"
    text = vector(body, "k[(triton.cdiv(n, 128),)](x, y, n, TURNS=turns, BLOCK=128)")
    text = text.replace("n, BLOCK: tl", "n, TURNS: tl.constexpr, BLOCK: tl").replace("def f(x)", "def f(x, turns)")
    assert refusals(text) == ["TL541"]


READ = "x = tl.load(x_ptr + i, mask=i < n, other=0.0)\n"


@pytest.mark.parametrize(
    "counted",
    [
        "c = tl.sum((x > 0.5).to(tl.int32))",
        "f = x > 0.5\nc = tl.sum(f)",
        "f = tl.where(x > 0.5, 200, -3)\nc = tl.sum(f, axis=0)",
        "c = tl.sum((x > 0.5).to(tl.int64))",
        "c = tl.max(tl.where(x > 0.5, 70000, 3))",
        "c = 0\nfor t in range(n):\n    c += tl.sum((x > t).to(tl.int32))",
    ],
)
def test_small_integers_are_reduced_as_floats(counted: str) -> None:
    """A sum of as many terms as a unified buffer holds is exact while each is at most 256."""
    text = vector(f"{READ}{counted}\ntl.store(y_ptr + pid, c.to(tl.float32))")
    text = text.replace("torch.empty_like(x)", "torch.empty(triton.cdiv(n, 128))")
    done = migrate_triton(text, "k.py", Options())
    assert [kernel.disposition for kernel in done.kernels] == ["migrated"]


@pytest.mark.parametrize(
    "summed",
    [
        "c = tl.sum(tl.where(x > 0.5, 257, 0))",  # 2**16 of them are more than 2**24
        "f = (x > 0.5).to(tl.int32)\nif pid > 0:\n    f = f * 1000\nc = tl.sum(f)",
        "f = (x > 0.5).to(tl.int32)\nfor t in range(n):\n    f = f + f\nc = tl.sum(f)",
        "f = x.to(tl.int32)\nif pid > 0:\n    f = (x > 0.5).to(tl.int32)\nc = tl.sum(f)",
        "c = tl.max(x.to(tl.int32))",
        "c = tl.sum(x.to(tl.int16))",
        "c = tl.sum(tl.load(z_ptr + i, mask=i < n, other=0))",
    ],
)
def test_integers_of_any_size_are_not(summed: str) -> None:
    launch = "k[(triton.cdiv(n, 128),)](x, y, z, n, BLOCK=128)"
    text = vector(f"{READ}{summed}\ntl.store(y_ptr + pid, c.to(tl.float32))", launch)
    made = "torch.empty(triton.cdiv(n, 128))\n    z = torch.ones(n, dtype=torch.int32)"
    text = text.replace("torch.empty_like(x)", made)
    done = migrate_triton(text.replace("y_ptr, n", "y_ptr, z_ptr, n"), "k.py", Options())
    assert [item.code for item in done.diagnostics if item.severity == "error"] == ["TL164"]


def test_one_name_for_two_loaded_numbers() -> None:
    """It is a tile that is loaded twice: the number is no constant of the block."""
    body = "y = tl.zeros((BLOCK,), tl.float32)\nfor c in tl.static_range(2):\n    w = tl.load(w_ptr + c)\n"
    body += "    y += w * tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, y, mask=i < n)"
    text = vector(body, "k[(triton.cdiv(n, 128),)](x, y, torch.ones(2), n, BLOCK=128)")
    done = to_tilelang(text.replace("y_ptr, n", "y_ptr, w_ptr, n"))
    assert [kernel.refused for kernel in done.kernels] == [None]
    assert done.text.count("T.copy(w_ptr[") == 2


def test_products_as_triton_2_0_wrote_them() -> None:
    old = MATMUL.replace("tl.dot(a, b)", "tl.dot(a, tl.trans(b), trans_b=True)")
    new = MATMUL.replace("tl.dot(a, b)", "tl.dot(a, tl.trans(tl.trans(b)))")
    assert to_tilelang(old).text == to_tilelang(new).text
