"""``docs/compiler-messages.md`` says of each message which rule reports its cause: each has a program that shows it.

Each program was given to the compiler at 95acbd7f, and ended in the message; those of the runtime were read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from tests.compiler_messages.page import PAGE, page
from tests.compiler_messages.rows import Row, program, rows
from tl2npu.migration import check_text
from tl2npu.options import Options

ROWS = list(rows())
SOUND = dict.fromkeys(("vector", "cube", "developer", "split"), "")
SOUND["developer-cube"] = "T.gemm_v0(a, b, c, init=True)\nT.copy(c, R)"


def errors(text: str, target: str) -> Collection[str]:
    """The codes of the errors that ``check`` finds."""
    options = Options()
    options = replace(options, backend=replace(options.backend, target=target))
    return {found.code for found in check_text(text, "k.py", options).diagnostics if found.severity == "error"}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.part.split(',')[0]}: {row.place}" for row in ROWS])
def test_the_rule_says_it(row: Row) -> None:
    found = errors(row.program, row.target)
    assert row.rule in found if row.rule != "-" else not found, row.program


@pytest.mark.parametrize("kernel", SOUND)
@pytest.mark.parametrize("target", ["ascendc", "pto"])
def test_the_kernels_around_the_statements_are_sound(kernel: str, target: str) -> None:
    assert not errors(program(kernel, SOUND[kernel]), target)


def test_the_page_is_made_of_the_rows() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tests.compiler_messages.page writes it"
