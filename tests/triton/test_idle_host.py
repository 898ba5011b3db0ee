"""What host code has only for the launch of a Triton kernel goes with it."""

from __future__ import annotations

import ast

import pytest

from tests.triton.test_translation import vector
from tl2npu.triton.host.idle import idle
from tl2npu.triton.migrate import to_tilelang

BODY = "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x * 2.0, mask=i < n)"


@pytest.mark.parametrize(
    "grid",
    [
        "grid = lambda meta: (triton.cdiv(n, meta['BLOCK']),)",
        "grid = (triton.cdiv(n, 128),)",
        "blocks = triton.cdiv(n, 128)\n    grid = (blocks, 1, 1)",
        "grid = (max(1, (n + 127) // 128),)",
        "def grid(meta):\n        return (triton.cdiv(n, meta['BLOCK']),)\n",
        "grid = lambda meta: (triton.cdiv(n, meta['BLOCK']),)  # one block for 128 elements",
    ],
)
def test_a_grid_that_nothing_reads_goes(grid: str) -> None:
    found = to_tilelang(vector(BODY, f"{grid}\n    k[grid](x, y, n, BLOCK=128)"))
    assert found.kernels[0].refused is None
    host = found.text.split("def f(x):\n")[1]
    assert "grid" not in host
    assert "blocks" not in host
    assert "triton" not in found.text
    assert "n = x.shape[0]\n" in host
    ast.parse(found.text)


@pytest.mark.parametrize(
    "use", ["print(grid)", "y.grid = grid", "def later():\n        return grid", "x = [grid for _ in range(2)]"]
)
def test_a_grid_that_something_reads_stays(use: str) -> None:
    host = f"grid = (triton.cdiv(n, 128),)\n    {use}\n    k[grid](x, y, n, BLOCK=128)"
    if "x =" in use:
        host = host.replace("x = ", "z = ")
    text = to_tilelang(vector(BODY, host)).text
    assert "grid = (tilelang.cdiv(n, 128),)" in text
    assert "import triton" not in text


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("def f():\n    g = (1,)\n    return 2\n", ["g = (1,)"]),
        ("def f():\n    g = ask()\n    return 2\n", []),  # it may do something
        ("def f():\n    g = (h := 1)\n    return h\n", []),
        ("def f():\n    g = 1\n    g = 2\n    return 2\n", []),  # more than once
        ("def f():\n    g = 1\n", []),  # the only statement
        ("def f():\n    @cache\n    def g(): return 1\n    return 2\n", []),
        ("def f():\n    other = (1,)\n    return 2\n", []),  # no name of a launch
        ("g = (1,)\ndef f():\n    return g\n", []),
        ("g = n.numel()\nx = 1\n", ["g = n.numel()"]),
    ],
)
def test_what_is_idle(text: str, gone: list[str]) -> None:
    assert [ast.unparse(stmt) for stmt in idle(text, frozenset({"g"}))] == gone


def test_a_kernel_that_stays_keeps_its_grid() -> None:
    body = BODY + "\ntl.inline_asm_elementwise('', '', [x], tl.float32, True, 1)"
    text = vector(body, "grid = (triton.cdiv(n, 128),)\n    k[grid](x, y, n, BLOCK=128)")
    found = to_tilelang(text)
    assert found.kernels[0].refused is not None
    assert found.text == text


def test_the_device_of_the_driver_is_the_npu() -> None:
    text = vector(BODY).replace('device="cuda"', "device=DEVICE")
    text = text.replace("\n\nf(torch", "\n\nDEVICE = triton.runtime.driver.active.get_active_torch_device()\nf(torch")
    new = to_tilelang(text).text
    assert '\nDEVICE = torch.device("npu")\n' in new
    assert "import triton" not in new
