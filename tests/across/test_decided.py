"""Conditions of a module on Triton's version, and on environment variables."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tl2npu.across.decided import TRITON, Verdict, decided
from tl2npu.across.symbols import Chosen, Constant, External, Function, Symbols

THIS = ".".join(map(str, TRITON))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("version.parse(triton.__version__) >= version.parse('3.0.0')", True),
        ("triton.__version__ >= '3.0.0'", True),
        ("Version('3.10') <= Version(triton.__version__)", False),  # numbers, no text
        ("not version.parse(triton.__version__) < version.parse('2.2')", True),
        ("NEW", True),
        (f"version.parse(triton.__version__) == version.parse('{THIS}.0')", True),
        (f"version.parse(triton.__version__) > version.parse('{THIS}.0')", False),
        (f"version.parse(triton.__version__) < version.parse('{THIS}.1')", True),
        ("version.parse(torch.__version__) >= version.parse('2.0')", None),
        ("version.parse(triton.__version__) >= oldest()", None),
        ("version.parse(triton.__version__) >= version.parse('3.0rc1')", None),
        ("2 <= version.parse(triton.__version__) < 4", None),
        ("LOOP", None),
        ("version.parse('3.0') < version.parse('4.0')", None),
        ("os.environ.get('FAST', '0') == '1'", False),
        ("os.getenv('FAST', '1') != '0'", True),
        ("not FAST", True),
        ("os.environ.get('FAST') == '1'", None),  # what it is not is None
        ("os.environ.get('FAST', default) == '1'", None),
        ("int(os.environ.get('FAST', '0')) == 1", None),
    ],
)
def test_a_comparison(text: str, found: bool | None) -> None:
    values = {"NEW": "OTHER", "OTHER": "triton.__version__ != '2.0'", "LOOP": "LOOP"}
    values["FAST"] = "os.getenv('FAST', '0') == '1'"
    known = {name: ast.parse(value, mode="eval").body for name, value in values.items()}
    verdict = decided(ast.parse(text, mode="eval").body, known)
    assert verdict == (None if found is None else Verdict(found, "FAST" * ("FAST" in text)))


MODULE = """\
import os
import triton
import triton.language as tl

if os.environ.get("FAST", "0") == "1":
    SCALE = 2.0
    def grown(x): return x * 2.0
    def both(x): return x
    exp = tl.exp2
else:
    SCALE = 1.0
    def grown(x): return x
    both = grown
    exp = tl.exp

if triton.__version__ >= "3.0":
    LIMIT = 4
    def bounded(x): return min(x, 4)
else:
    LIMIT = 2
    bounded = abs
"""


def test_of_a_variable_only_functions_are_chosen_and_not_as_if_nothing_were_asked(tmp_path: Path) -> None:
    (file := tmp_path / "m.py").write_text(MODULE, encoding="utf-8")
    symbols = Symbols()
    found = symbols.defined(file, "grown")
    assert isinstance(found, Chosen)
    assert isinstance(found.found, Function)
    assert (found.variable, found.found.node.lineno) == ("FAST", 12)
    assert symbols.defined(file, "exp") == Chosen(External("triton.language.exp"), "FAST")
    assert [symbols.defined(file, name) for name in ("SCALE", "both")] == [None, None]
    assert symbols.defined(file, "LIMIT") == Constant(4)
    bounded = symbols.defined(file, "bounded")
    assert isinstance(bounded, Function)
    assert bounded.node.lineno == 18
