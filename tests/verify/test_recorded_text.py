"""Traces know the file that they were recorded from by the text of its functions."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest

from tl2npu.traces import child
from tl2npu.verify.reference import texts

PLAIN = "def f(x):\n    y = x\n\n    return y\n"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace("\n\n", "\n    \n"),  # a line of blanks
        PLAIN.rstrip("\n"),
    ],
    ids=["plain", "blanks", "no-last-line-end"],
)
def test_both_sides_form_the_same_digest(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(child.__file__).parent))
    record = importlib.import_module("record")  # it runs as a script, beside its own modules
    path = tmp_path / "module.py"
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location("module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert record._source(module.f)[2] == texts(text)["f"]
