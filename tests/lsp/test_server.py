"""The server in a process of its own, spoken to as an editor does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import ROOT, Client
from tests.lsp.test_edits import applied
from tests.lsp.test_look import DONE, GEMM, two
from tl2npu.extras import pip_command
from tl2npu.lsp.edits import Edit, Position
from tl2npu.lsp.look import View, look, migrate_one
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.results import Diagnostic

RESOLVES = {"textDocument": {"codeAction": {"dataSupport": True, "resolveSupport": {"properties": ["edit"]}}}}
VERSIONED = {"workspace": {"workspaceEdit": {"documentChanges": True}}}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One session for the tests, each of which has documents of its own."""
    pytest.importorskip("pygls")
    session = Client(tmp_path_factory.mktemp("workspace"), **RESOLVES, **VERSIONED)
    yield session
    assert session.close() == 0


def actions(client: Client, uri: str, line: int, only: list[str] | None = None) -> Any:
    place = {"line": line - 1, "character": 0}
    context: dict[str, Any] = {"diagnostics": []} | ({"only": only} if only else {})
    where = {"start": place, "end": place}
    return client.ask("textDocument/codeAction", textDocument={"uri": uri}, range=where, context=context)


def carried_out(text: str, edits: list[dict[str, Any]], units: Any = "utf-16") -> str:
    found = [
        Edit(Position(**item["range"]["start"]), Position(**item["range"]["end"]), item["newText"]) for item in edits
    ]
    return applied(text, found, units)


def test_a_session(client: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "a.py").as_uri()
    text = two()
    client.open(uri, text)
    found = client.diagnostics(1)
    offers = [item for item in found if "can be migrated" in item["message"]]
    assert [item["severity"] for item in offers] == [3, 3]
    line = text.split("\n")[offers[1]["range"]["start"]["line"]]
    assert line == "    def other("
    assert offers[1]["range"]["start"]["character"] == 4
    assert offers[1]["range"]["end"]["character"] == len(line)
    numbered = next(item for item in found if item.get("code") == "TL905")
    assert numbered["codeDescription"]["href"].endswith(("TL905-assumed-even-extent.md", "TL905-assumed-even-extent/"))

    one, file = actions(client, uri, offers[1]["range"]["start"]["line"] + 3)
    assert one["title"] == "Migrate kernel `second.other` to Developer mode"
    assert one["diagnostics"] == [offers[1]]
    assert "edit" not in one
    assert file["title"] == "Migrate all kernels of this file"
    (change,) = client.ask("codeAction/resolve", **one)["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 1}
    new = carried_out(text, change["edits"])
    path = str(tmp_path / "a.py")
    assert new == migrate_one(text, path, (None, offers[1]["range"]["start"]["line"] + 1), look(text, path).places)
    assert new.startswith(text[: text.index("def second")].rsplit("@", 1)[0])  # nothing above it is touched
    (change,) = client.ask("codeAction/resolve", **file)["edit"]["documentChanges"]
    assert carried_out(text, change["edits"]) == migrate_text(text, "a.py", Options()).new_text

    place = numbered["range"]["start"]
    hover = client.ask("textDocument/hover", textDocument={"uri": uri}, position=place)
    assert hover["contents"]["kind"] == "markdown"
    assert hover["contents"]["value"].startswith("# TL905 assumed-even-extent\n")
    assert client.ask("textDocument/hover", textDocument={"uri": uri}, position={"line": 0, "character": 0}) is None

    client.type(uri, 2, DONE)
    assert client.diagnostics(2) == []
    assert client.ask("codeAction/resolve", **one)["message"] == "the document has changed meanwhile"
    assert actions(client, uri, 10) == []
    client.type(uri, 3, DONE.replace("init=(t == 0)", "init=False"))
    assert [(item["code"], item["severity"]) for item in client.diagnostics(3)] == [("TL898", 1)]


def test_only_the_last_version_is_told(client: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, GEMM)
    for version in range(2, 30):
        client.type(uri, version, GEMM + f"x = {version}\n")
        # Whoever types is answered at once, whatever is being worked on.
        assert client.ask("textDocument/hover", textDocument={"uri": uri}, position={"line": 0, "character": 0}) is None
    client.diagnostics(29)
    assert len(client.published()) <= 2
    client.tell("textDocument/didClose", textDocument={"uri": uri})
    assert client.diagnostics(None) == []  # type: ignore[arg-type]


def test_actions_by_kind(client: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, GEMM)
    client.diagnostics(1)
    kinds = {only: [item["kind"] for item in actions(client, uri, 20, [only])] for only in ("quickfix", "source")}
    assert kinds == {"quickfix": ["quickfix"], "source": ["source.fixAll.tl2npu"]}
    assert actions(client, uri, 20, ["refactor"]) == []
    assert [item["kind"] for item in actions(client, uri, 1)] == ["source.fixAll.tl2npu"]  # the imports


def test_positions_in_units(client: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "a.py").as_uri()
    line = "x = '😀😀' + tilelang.T.Kernel("
    client.open(uri, f"{line}\n")
    (broken,) = client.diagnostics(1)
    assert broken["code"] == "TL901"
    assert broken["range"]["end"] == {"line": 0, "character": len(line.encode("utf-16-le")) // 2}


@pytest.mark.thorough
def test_an_editor_that_knows_little(tmp_path: Path) -> None:
    pytest.importorskip("pygls")
    client = Client(tmp_path)
    uri = (tmp_path / "ü.py").as_uri()
    text = GEMM.replace("\n", "\r\n").replace("import torch", "import torch  # 😀")
    client.open(uri, text)
    client.diagnostics(1)
    one, file = actions(client, uri, 20)
    assert carried_out(text, one["edit"]["changes"][uri]) == migrate_text(text, "a.py", Options()).new_text
    assert one["edit"] == file["edit"]
    assert client.close() == 0


def test_the_configuration_of_the_workspace(client: Client, tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text("[tool.tl2npu]\nthreds = '1'\n", encoding="utf-8")
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, GEMM)
    (problem,) = client.diagnostics(1)
    assert "unknown key 'threds'" in problem["message"]
    settings.write_text("[tool.tl2npu]\nthreads = '1'\n", encoding="utf-8")
    client.tell("textDocument/didSave", textDocument={"uri": uri})
    assert any("developer-threads1" in item["message"] for item in client.diagnostics(1))


@pytest.mark.thorough
def test_files_of_the_workspace_are_not_imported(tmp_path: Path) -> None:
    """A file beside the kernels that has the name of a module is not that module."""
    pytest.importorskip("pygls")
    client = Client(tmp_path, **RESOLVES, **VERSIONED)
    for name in ("black.py", "libcst.py", "pickle.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')\n", encoding="utf-8")
    client.open((tmp_path / "a.py").as_uri(), GEMM)
    assert client.diagnostics(1)
    assert client.close() == 0


def test_without_the_extra(tmp_path: Path) -> None:
    code = "import sys; sys.modules['pygls'] = None; from tl2npu.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "lsp"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "tl2npu lsp needs " in done.stderr
    assert pip_command("lsp") in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.thorough
def test_what_may_go_wrong_is_a_warning() -> None:
    """Tiles that may not fit (TL801) were shown as information, beside an offer to migrate the kernel."""
    pytest.importorskip("lsprotocol")
    from tl2npu.lsp.protocol import diagnostics

    items = tuple(Diagnostic("TL801", "memory-capacity", level, 1, "x") for level in ("error", "warning", "info"))
    found = diagnostics(View(obstacles=items), "x = 1\n", "utf-16")
    assert [int(item.severity) for item in found] == [2, 2, 4]
    assert [int(item.severity) for item in diagnostics(View(faults=items), "x = 1\n", "utf-16")] == [1, 2, 3]
