from __future__ import annotations

from pathlib import Path

import pytest

from tl2npu.options import Options
from tl2npu.verify.calls import parse_assignments, parse_call, parse_symbols, read_case
from tl2npu.verify.given import settings_of
from tl2npu.verify.settings import Call, UsageError

GIVEN = {
    "calls": (),
    "case": None,
    "inputs": (),
    "symbols": (),
    "shrink": False,
    "timeout": None,
    "arithmetic": "precise",
    "backend": "sim",
    "seed": 0,
    "rtol": None,
    "atol": None,
    "script_args": None,
    "check": True,
    "reference": None,
    "standard": "tl2npu",
    "golden": None,
    "table": None,
}


def test_a_call() -> None:
    call = parse_call("matmul(256, N=-1, scale=0.5, dtype='float16', shape=(1, 2), flag=None)")
    assert call.factory == "matmul"
    assert call.arguments == {
        "0": 256,
        "N": -1,
        "scale": 0.5,
        "dtype": "float16",
        "shape": (1, 2),
        "flag": None,
    }
    assert str(parse_call("f(256, 'a', N=-1)")) == "f(256, 'a', N=-1)"  # as it was typed


@pytest.mark.parametrize("text", ["matmul", "matmul(", "a.b(c=1)", "f(x=y)", "f(**{})", "1", "f(x=__import__('os'))"])
def test_what_is_no_call(text: str) -> None:
    with pytest.raises(UsageError, match="--args"):
        parse_call(text)


def test_a_case_file(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text('factory = "f"\nargs = { n = 4 }\ninputs = { I = "0" }\nsymbols = { M = 8 }\nother = 1\n')
    assert read_case(path) == Call("f", {"n": 4}, {"I": "0"}, {"M": 8})
    for text in (
        'factory = "f"\n',
        "args = {}\n",
        "factory = 3\nargs = {}\n",
        "no toml",
        'factory="f"\nargs={}\ninputs={a=1}',
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"case\.toml"):
            read_case(path)
    with pytest.raises(UsageError, match="cannot read"):
        read_case(tmp_path / "missing.toml")


def test_assignments() -> None:
    assert parse_assignments(["I = a == b", "J=1"], "--input") == {"I": "a == b", "J": "1"}
    assert parse_symbols(["M=12"]) == {"M": 12}
    for text in ("I", "=1", "1=2", "I="):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            parse_assignments([text], "--input")
    for text in ("M=0", "M=x", "M=-3"):
        with pytest.raises(UsageError, match="--size"):
            parse_symbols([text])


def test_settings_of_the_command_line(tmp_path: Path) -> None:
    case = tmp_path / "case.toml"
    case.write_text('factory = "g"\nargs = {}\ninputs = { I = "1", J = "2" }\n')
    given = GIVEN | {"calls": ("f(n=1)",), "case": case, "inputs": ("I=3",), "script_args": "--size '4 5'"}
    settings = settings_of(given, Options(device="A5", verify_timeout=7.0))
    assert settings.calls == (Call("f", {"n": 1}, {"I": "3"}), Call("g", {}, {"I": "3", "J": "2"}))
    assert (settings.device, settings.timeout, settings.script_args) == ("A5", 7.0, ("--size", "4 5"))
    assert settings_of(GIVEN | {"timeout": 3.0}, Options()).timeout == 3.0


@pytest.mark.parametrize("wrong", [{"inputs": ("I=1",)}, {"symbols": ("M=1",)}, {"shrink": True}, {"timeout": -1.0}])
def test_settings_that_do_not_go_together(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        settings_of(GIVEN | wrong, Options())
