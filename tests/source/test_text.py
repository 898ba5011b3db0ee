from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tl2npu.source.text import SourceError, decode_source, read_source


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x = 1\n",
        b"x = 1",
        b"x = 1\r\ny = 2\r\n",
        b"x = 1\r\ny = 2\nz = 3\r",
        b"x = 1\n\x0cy = 2\n",
        "s = 'ä\x85\u2028'\n".encode(),
        b"# -*- coding: latin-1 -*-\ns = '\xe4'\n",
        b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\ns = '\x80'\n",
        codecs.BOM_UTF8 + "s = 'ä'\n".encode(),
        codecs.BOM_UTF8,
    ],
)
def test_bytes_survive(data: bytes) -> None:
    source = decode_source(data)
    assert source.encode() == data
    assert "\ufeff" not in source.text


def test_cookie_and_bom_are_understood() -> None:
    assert decode_source(b"# coding: latin-1\ns = '\xe4'\n").text.endswith("'ä'\n")
    bom = decode_source(codecs.BOM_UTF8 + "ä = 1".encode())
    assert (bom.text, bom.bom, bom.encoding) == ("ä = 1", True, "utf-8")


@pytest.mark.parametrize(
    ("text", "newline"), [("a\nb\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\r", "\r"), ("", "\n")]
)
def test_newline_is_the_most_frequent(text: str, newline: str) -> None:
    assert decode_source(text.encode()).newline == newline


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"x = 1\ny = '\xff'\n\n", "cannot decode as utf-8", 3),
        (b"x\ny\n\0", "NUL", 3),
        (b"# coding: klingon\n", "klingon", None),
        (b"# coding: utf-7\nx = '+AGE-'\n", "round trip", None),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", "decode", None),
    ],
)
def test_undecodable(data: bytes, message: str, line: int | None) -> None:
    if message.startswith("cannot decode as"):
        data = b"# padding\n" + data  # the first two lines have another way to fail
    with pytest.raises(SourceError, match=message) as caught:
        decode_source(data)
    assert caught.value.line == line
    assert "\n" not in str(caught.value)


def test_unencodable_new_text() -> None:
    source = decode_source(b"# coding: latin-1\nx = 1\n")
    with pytest.raises(SourceError, match=r"encoding iso-8859-1") as caught:
        source.with_text("# coding: latin-1\nx = '\u2028'\n").encode()
    assert caught.value.line == 2


def test_read_errors(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_source(tmp_path / "no.py")
    with pytest.raises(SourceError, match="directory"):
        read_source(tmp_path)
    big = tmp_path / "big.py"
    big.write_bytes(b"#" * 11)
    with pytest.raises(SourceError, match="too big"):
        read_source(big, max_bytes=10)
    assert read_source(big, max_bytes=11).text == "#" * 11
    with pytest.raises(SourceError, match="regular"):
        read_source(Path("/dev/null"))


@given(st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0")))
def test_any_text_survives(text: str) -> None:
    data = text.encode()
    try:
        source = decode_source(data)
    except SourceError:
        return
    assert source.encode() == data
