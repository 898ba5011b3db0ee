"""``while`` loops that count up are ``for`` loops; the others are refused."""

from __future__ import annotations

import pytest

from tests.triton.test_translation import HEAD, refusals
from tl2npu.triton.migrate import to_tilelang


def summed(loop: str, before: str = "start = 0", after: str = "") -> str:
    """Sums of rows, by a loop over blocks of columns."""
    lines = [*before.splitlines(), "total = tl.zeros((BLOCK,), tl.float32)", *loop.splitlines(), *after.splitlines()]
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"{HEAD}@triton.jit\ndef k(x_ptr, y_ptr, cols, step, BLOCK: tl.constexpr):\n    row = tl.program_id(0)\n{body}"
        "    tl.store(y_ptr + row, tl.sum(total, axis=0))\n\n\ndef f(x, step):\n    rows, cols = x.shape\n"
        "    y = torch.empty(rows, dtype=torch.float32)\n    k[(rows,)](x, y, cols, step, BLOCK=256)\n"
        "    return y\n\n\nf(torch.randn(8, 1000), 1)\n"
    )


AT = "    at = start + tl.arange(0, BLOCK)\n    total += tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0)\n"
FOR = summed(f"for start in range(0, cols, BLOCK):\n{AT}", before="")


@pytest.mark.parametrize(
    "loop",
    [
        f"while start < cols:\n{AT}    start += BLOCK",
        f"while cols > start:\n{AT}    start = start + BLOCK",
        f"while start <= cols - 1:\n{AT}    start = BLOCK + start",
        f"while start < tl.cdiv(cols, BLOCK) * BLOCK:\n{AT}    start += BLOCK",
    ],
)
def test_while_that_counts_up_is_a_for(loop: str) -> None:
    text = to_tilelang(summed(loop)).text
    assert "for start_step in T.serial(T.ceildiv(cols, BLOCK)):" in text
    assert text.replace("BLOCK * T.ceildiv(cols, BLOCK)", "cols") == to_tilelang(FOR).text


GRID = "blocks = tl.num_programs(0)\nstart = row * BLOCK"


def test_step_that_the_caller_passes_is_asserted() -> None:
    """0 never ends, and less never begins."""
    assert 'assert step >= 1, f"{step=}"\n' in to_tilelang(summed(f"while start < cols:\n{AT}    start += step")).text


@pytest.mark.parametrize(("step", "codes"), [("blocks * BLOCK", []), ("blocks", []), ("blocks - 1", ["TL540"])])
def test_step_by_the_number_of_blocks_is_at_least_1(step: str, codes: list[str]) -> None:
    body = f"while start < cols:\n    total += start\n    start += {step}"
    assert refusals(summed(body, GRID)) == codes


@pytest.mark.parametrize(
    ("loop", "code"),
    [
        (f"while start != cols:\n{AT}    start += BLOCK", "TL540"),
        (f"while start < cols:\n{AT}    start -= BLOCK", "TL540"),
        (f"while start < cols:\n{AT}    start += BLOCK - start", "TL540"),
        (f"while start < cols:\n{AT}    cols -= 1\n    start += BLOCK", "TL540"),
        (f"while start < cols:\n{AT}    start += step\n    step += 1", "TL540"),
        (f"while start < cols:\n    start += BLOCK\n{AT}    start += BLOCK", "TL540"),
        (f"while start < tl.load(x_ptr):\n{AT}    start += BLOCK", "TL540"),
        (f"while (start < cols) & (row < 3):\n{AT}    start += BLOCK", "TL540"),
        (f"while start < cols:\n{AT}    start += BLOCK\nelse:\n    total += 1.0", "TL540"),
        (f"while start < cols:\n{AT}    if row > 3:\n        break\n    start += BLOCK", "TL543"),
    ],
)
def test_while_of_another_kind_is_refused(loop: str, code: str) -> None:
    assert refusals(summed(loop)) == [code]


def test_counter_that_is_read_after_the_loop_is_refused() -> None:
    """A ``for`` leaves it one step behind, and unset where there is no turn."""
    loop = f"while start < cols:\n{AT}    start += BLOCK"
    assert refusals(summed(loop, after="total += start")) == ["TL545"]


def test_counter_that_is_no_integer_is_refused() -> None:
    assert refusals(summed(f"while start < cols:\n{AT}    start += BLOCK", "start = 0.5")) != []
