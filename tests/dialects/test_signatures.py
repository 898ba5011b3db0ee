"""The signatures of the Ascend catalogue against a table of those of the compiler's own definitions."""

from __future__ import annotations

from pathlib import Path

from tests.each import each
from tl2npu.dialects.ascend import OPERATORS
from tl2npu.dialects.compiler import JUNE_2026

TABLE = (Path(__file__).parent / "ascend_signatures.txt").read_text(encoding="utf-8").splitlines()[1:]


@each(TABLE, lambda line: line.partition(":")[0])
def test_signature(line: str) -> None:
    name, _, parameters = line.partition(":")
    words: list[str] = []
    starred = False
    for param in OPERATORS[name].params:
        if param.name == JUNE_2026.lacks(name):
            continue
        if param.kind == "keyword" and not starred:
            words.append("*")
        starred = starred or param.kind != "positional"
        star = "*" if param.kind == "variadic" else ""
        words.append(f"{star}{param.name}{'' if param.default is None else '='}")
    assert " ".join(words) == parameters.strip()
