"""A tensor that the kernel uses in another shape than it takes it: ``T.Tensor(shape, dtype, x.data)``."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.gpu.support import agree, gpu_file, migrated, refused, result_of
from tl2npu.kernel.model import Copy, Memory
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits

RNG = np.random.default_rng(31)
X = RNG.standard_normal((3, 20, 7, 5)).astype(np.float32)
PARAMS = 'X: T.Tensor((N, C, H, W), "float32"), Y: T.Tensor((N, C, H, W), "float32")'
LAUNCH = "T.Kernel(T.ceildiv(H * W, 16), N, threads=128) as (bx, by)"
LINES = 'x_flat = T.Tensor((N, C, H * W), "float32", X.data)\ny_flat = T.Tensor((N, C, H * W), "float32", Y.data)\n'
BODY = """x = T.alloc_fragment((8, 16), "float32")
for c in T.serial(T.ceildiv(C, 8)):
    T.copy(x_flat[by, c * 8, bx * 16], x)
    for i, j in T.Parallel(8, 16):
        x[i, j] = x[i, j] * 2.0 + 1.0
    T.copy(x, y_flat[by, c * 8, bx * 16])
"""
VIEWS = {
    "the last axes": LINES,
    "names of arguments": LINES.replace('"float32", X.data', 'dtype="float32", data=X.data'),
    "a list": LINES.replace("(N, C, H * W)", "[N, C, H * W]"),
    "sizes that have names": LINES.replace("H * W", "HW"),
}


@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("inside", [True, False])
def test_views_stay_in_front_of_the_launch(views: str, inside: bool) -> None:
    text = gpu_file(PARAMS, (views if inside else "") + BODY, args="N, C, H, W", factory="HW = W * H\n", launch=LAUNCH)
    if not inside:
        lines = "".join(f"        {line}\n" for line in views.splitlines())
        text = text.replace("        with T.Kernel", f"{lines}        with T.Kernel")
    new = agree(text, {"X": X}, args=X.shape)
    assert new.index("y_flat = T.Tensor(") < new.index("with T.Kernel")
    assert "T.copy(x_flat[by, c * 8, bx * 16], x)" in new
    assert ("TL602" in {c.code for c in result_of(text).changes}) is inside


def test_views_in_a_macro() -> None:
    macro = "@T.macro\ndef double(p, q):\n    pq = H * W\n"
    lines = (LINES + BODY).replace("X.data", "p.data").replace("Y.data", "q.data").replace("H * W", "pq")
    factory = macro + f"    with {LAUNCH}:\n" + "".join(f"        {line}\n" for line in lines.splitlines())
    text = gpu_file(PARAMS, "pass", args="N, C, H, W", factory=factory, launch=LAUNCH)
    text = text.replace(f"        with {LAUNCH}:\n            pass\n", "        double(X, Y)\n")
    assert "double(X, Y)" in text
    agree(text, {"X": X}, args=X.shape)


def test_rows_that_were_several_axes() -> None:
    """A vector of 40 elements ends with the row of 35, as a copy of the second shape does."""
    body = """x_flat = T.Tensor((N * C, H * W), "float32", X.data)
y_flat = T.Tensor((N * C, H * W), "float32", Y.data)
x = T.alloc_fragment((40,), "float32")
T.copy(x_flat[bx, 0], x)
for j in T.Parallel(40):
    x[j] = x[j] * 2.0 + 1.0
T.copy(x, y_flat[bx, 0])
"""
    text = gpu_file(PARAMS, body, args="N, C", factory="H = 7\nW = 5\n", launch="T.Kernel(N * C, threads=128) as bx")
    agree(text, {"X": X}, args=X.shape[:2])


def test_a_tensor_that_is_used_in_both_shapes() -> None:
    body = LINES.replace("(N, C, H * W)", "(N * C * H, W)") + (
        'x = T.alloc_fragment((8, W), "float32")\nT.copy(X[by, bx, 0, 0], x)\n'
        "for i, j in T.Parallel(8, W):\n    x[i, j] = x_flat[by, j] + x[i, j]\nT.copy(x, Y[by, bx, 0, 0])\n"
    )
    text = gpu_file(PARAMS, body, args="N, C, H", factory="W = 8\n", launch="T.Kernel(C, N, threads=128) as (bx, by)")
    assert "x_flat" not in migrated(text)


OWN = """y_flat = T.Tensor((N, C, H * W), "float32", Y.data)
x = T.alloc_fragment((8, 16), "float32")
y = T.alloc_shared((8, 16), "float32")
for c in T.serial(T.ceildiv(C, 8)):
    for i, j in T.Parallel(8, 16):
        s = bx * 16 + j
        if c * 8 + i < C and s < H * W:
            x[i, j] = X[by, c * 8 + i, s // W, s % W] * 2.0 + 1.0
    T.copy(x, y)
    if C % 8 == 0:
        T.copy(y, y_flat[by, c * 8, bx * 16])
    else:
        for i, j in T.Parallel(8, 16):
            s = bx * 16 + j
            h = s // W
            if c * 8 + i < C and s < H * W:
                Y[by, c * 8 + i, h, s % W] = y[i, j]
"""
OWN_FILE = {
    "two axes": OWN,
    "the number in place": OWN.replace("h = s // W", "h = (bx * 16 + j) // W"),
    "numbers for names": OWN.replace("s % W] = y", "(j + 16 * bx) % W] = y"),
    "both conditions of the row": OWN.replace(
        "if c * 8 + i < C and s < H * W:\n                Y", "if (s < H * W) & (c * 8 + i < C):\n                Y"
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("body", OWN_FILE.values(), ids=OWN_FILE.keys())
@pytest.mark.parametrize("channels", [20, 16])
def test_elements_that_the_view_has_too(body: str, channels: int) -> None:
    """With a view of ``X`` as well, which is read by its own indices only."""
    views = 'x_flat = T.Tensor((N, C, H * W), "float32", X.data)\nx0 = T.alloc_fragment((8, 16), "float32")\n'
    body = views + body.replace("T.copy(x, y)", "T.copy(x_flat[by, c * 8, bx * 16], x0)\n    T.copy(x, y)")
    text = gpu_file(PARAMS, body, args="N, C, H, W", launch=LAUNCH)
    new = agree(text, {"X": X[:, :channels]}, args=(3, channels, 7, 5))
    assert "Y[" not in new
    assert "X[" not in new


def test_the_last_axes_of_a_whole_tile() -> None:
    """``(B, K)`` of ``(B, C, H, W)``: three axes are one number."""
    body = """flat = T.Tensor((N, C * H * W), "float32", Y.data)
x = T.alloc_shared((4, 16), "float32")
for i, j in T.Parallel(4, 16):
    k = bx * 16 + j
    if by * 4 + i < N and k < C * H * W:
        x[i, j] = X[by * 4 + i, k // (H * W), k // W % H, k % W] * 2.0
T.copy(x, flat[by * 4, bx * 16])
for i, j in T.Parallel(4, 16):
    k = bx * 16 + j
    if by * 4 + i < N and k < C * H * W:
        Y[by * 4 + i, k // (H * W), k // W % H, k % W] = x[i, j] + 1.0
"""
    launch = "T.Kernel(T.ceildiv(C * H * W, 16), T.ceildiv(N, 4), threads=128) as (bx, by)"
    x = X[:, :4]
    body = body.replace("x = T.alloc_shared", 'xf = T.Tensor((N, C * H * W), "float32", X.data)\nx = T.alloc_shared')
    body = body.replace(
        "T.copy(x, flat[by * 4", "for i, j in T.Parallel(4, 16):\n    x[i, j] = x[i, j] + 0.0\nT.copy(x, flat[by * 4"
    )
    text = gpu_file(PARAMS, body, args="N, C, H, W", launch=launch)
    new = agree(text, {"X": x}, args=x.shape)
    assert "Y[" not in new


OTHER_ELEMENTS = {
    "axes changed": ("h, s % W] = y", "s % W, h] = y"),
    "another number": ("h, s % W] = y", "h, (s + 1) % W] = y"),
    "a row more": ("h = s // W", "h = s // W + 1"),
    "not taken apart": ("h, s % W] = y", "0, s] = y"),
    "a copy": ("Y[by, c * 8 + i, h, s % W] = y[i, j]", "T.copy(y[i, 0], Y[by, c, h, 0])"),
}


@pytest.mark.parametrize("change", OTHER_ELEMENTS.values(), ids=OTHER_ELEMENTS.keys())
def test_elements_that_are_no_ones_of_the_view(change: tuple[str, str]) -> None:
    text = gpu_file(PARAMS, OWN.replace(*change), args="N, C, H, W", launch=LAUNCH)
    assert text != gpu_file(PARAMS, OWN, args="N, C, H, W", launch=LAUNCH)
    assert {code for code, _ in refused(text)} <= {"TL170", "TL902", "TL153"}


REFUSED = {
    "a shape of the launch": LINES.replace("(N, C, H * W)", "(N, C, H * W + bx - bx)", 1),
    "too few elements": LINES.replace("(N, C, H * W)", "(N, C, H * W - 1)", 1),
    "another type": LINES.replace('"float32", X', '"int32", X'),
    "strides": LINES.replace("X.data", "X.data, (C * H * W, H * W, 1)"),
}


@pytest.mark.parametrize("views", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_second_shape(views: str) -> None:
    assert "TL902" in {code for code, _ in refused(gpu_file(PARAMS, views + BODY, args="N, C, H, W", launch=LAUNCH))}


def test_the_compiler_for_ascendnpu_ir_knows_no_views() -> None:
    views = LINES.replace("(N, C, H * W)", "(N * C * H, W)")
    body = views + BODY.replace("by, c * 8, bx * 16", "c * 8, bx * 16")
    text = gpu_file(PARAMS, body, args="N, C, H, W", launch=LAUNCH)
    new = migrate_text(text, "k.py", Options(target="npuir")).new_text or ""
    assert new == text or ".data" not in new


def test_tiles_in_front_of_the_launch_stand_above_numbers() -> None:
    """The compiler allocates nothing between a number that gets a name and the launch."""
    body = """x = T.alloc_fragment((16, 40), "float32")
w = T.alloc_fragment((40,), "float32")
T.copy(X[bx * 16, 0], x)
T.copy(W[0], w)
for i, j in T.Parallel(16, 40):
    x[i, j] = x[i, j] * w[j]
T.copy(x, Y[bx * 16, 0])
"""
    params = 'X: T.Tensor((64, 40), "float32"), W: T.Tensor((40,), "float32"), Y: T.Tensor((64, 40), "float32")'
    text = gpu_file(params, body, launch="T.Kernel(blocks, threads=128) as bx")
    text = text.replace("        with T.Kernel", "        blocks = 64 // 16\n        with T.Kernel")
    given = RNG.standard_normal((64, 40)).astype(np.float32), RNG.standard_normal(40).astype(np.float32)
    new = agree(text, {"X": given[0], "W": given[1]})
    assert new.index("w = T.alloc") < new.index("blocks = 64 // 16") < new.index("with T.Kernel")


def test_no_store_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that drops the only store of an output is found out, and the kernel stays as it is."""

    def forgetful(job: Job) -> None:
        edits = Edits(job.file.index)
        for stmt in job.kernel.walk():
            if isinstance(stmt, Copy) and stmt.dst.buffer.memory is Memory.GM:
                edits.remove(stmt.node)
        job.apply(edits)

    body = 'x = T.alloc_shared((16, 64), "float32")\nT.copy(X[bx * 16, 0], x)\nT.copy(x, Y[bx * 16, 0])'
    text = gpu_file('X: T.Tensor((32, 64), "float32"), Y: T.Tensor((32, 64), "float32")', body)
    assert result_of(text).kernels[0].disposition == "migrated"
    monkeypatch.setattr("tl2npu.passes.pipelines.gpu.renamed.drop", forgetful)
    result = result_of.__wrapped__(text)
    assert result.kernels[0].disposition == "refused"
    assert "would not store `Y`" in result.diagnostics[0].message
