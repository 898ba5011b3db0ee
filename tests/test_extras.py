"""What is said of an extra leads to the place that tl2npu came from, and to no stranger's package on an index."""

from __future__ import annotations

import json
from importlib import metadata
from types import SimpleNamespace

import pytest

from tl2npu import extras


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (None, "pip install 'tl2npu[lsp]'"),
        ({"url": "file:///home/me/my%20tl2npu", "dir_info": {}}, "pip install '/home/me/my tl2npu[lsp]'"),
        ({"url": "file:///d/tl2npu-0.1.0-py3-none-any.whl"}, "pip install '/d/tl2npu-0.1.0-py3-none-any.whl[lsp]'"),
        (
            {"url": "https://example.org/tl2npu", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "pip install 'tl2npu[lsp] @ git+https://example.org/tl2npu'",
        ),
    ],
)
def test_the_command(monkeypatch: pytest.MonkeyPatch, told: object, expected: str) -> None:
    text = None if told is None else json.dumps(told)
    monkeypatch.setattr(metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))
    assert extras.pip_command("lsp") == expected


def test_without_an_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "distribution", none)
    assert extras.pip_command("mcp") == "pip install 'tl2npu[mcp]'"
