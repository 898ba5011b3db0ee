"""Open notebooks: what is told of their cells, and edits of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.lsp.client import Client
from tests.lsp.test_edits import ENCODINGS, texts, units
from tests.lsp.test_edits import offset as in_words
from tests.lsp.test_server import RESOLVES, VERSIONED, actions, carried_out
from tests.test_notebooks import FACTORY, IMPORTS, KERNELS, REFERENCE, SCRIPT
from tl2npu.cells import by_cells
from tl2npu.lsp.edits import Position, Units, lines_of, offset
from tl2npu.lsp.look import look, migrate_one
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.source.notebook import Notebook

pytestmark = pytest.mark.thorough

OTHER = FACTORY.replace("gemm_leaky", "second")
CELLS = ["# Prose", IMPORTS, FACTORY, "!ls\nx = 1", OTHER, REFERENCE]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    pytest.importorskip("pygls")
    session = Client(tmp_path, notebookDocument={"synchronization": {}}, **RESOLVES, **VERSIONED)
    yield session
    assert session.close() == 0


def document(number: int, text: str, version: int = 1) -> dict[str, Any]:
    language = "markdown" if text.startswith("# Prose") else "python"
    return {"uri": f"cell:{number}", "languageId": language, "version": version, "text": text}


def cell(number: int, text: str) -> dict[str, Any]:
    return {"kind": 1 if text.startswith("# Prose") else 2, "document": f"cell:{number}"}


def open_notebook(client: Client, uri: str, sources: list[str]) -> None:
    client.tell(
        "notebookDocument/didOpen",
        notebookDocument={
            "uri": uri,
            "notebookType": "jupyter-notebook",
            "version": 1,
            "cells": [cell(n, text) for n, text in enumerate(sources, 1)],
        },
        cellTextDocuments=[document(n, text) for n, text in enumerate(sources, 1)],
    )


def change(client: Client, uri: str, version: int, **cells: Any) -> None:
    client.tell(
        "notebookDocument/didChange", notebookDocument={"uri": uri, "version": version}, change={"cells": cells}
    )


def published(client: Client, uri: str, version: int | None = 1) -> list[dict[str, Any]]:
    told = client._wait(
        lambda m: (
            m.get("method") == "textDocument/publishDiagnostics"
            and (m["params"]["uri"], m["params"].get("version")) == (uri, version)
        )
    )
    found: list[dict[str, Any]] = told["params"]["diagnostics"]
    return found


def test_diagnostics_and_actions_stand_in_their_cells(client: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "a.ipynb").as_uri()
    sync = client.ready["capabilities"]["notebookDocumentSync"]
    assert sync["notebookSelector"] == [{"notebook": {"notebookType": "jupyter-notebook"}}]
    open_notebook(client, uri, CELLS)
    found = {n: published(client, f"cell:{n}") for n in range(2, 7)}
    assert [len(found[n]) for n in (2, 4, 6)] == [0, 0, 0]
    for number, name in ((3, "gemm_leaky.kernel"), (5, "second.kernel")):
        offer = next(item for item in found[number] if "can be migrated" in item["message"])
        assert f"`{name}`" in offer["message"]
        assert CELLS[number - 1].split("\n")[offer["range"]["start"]["line"]].strip() == "def kernel("

    assert [item["title"] for item in actions(client, "cell:2", 1)] == ["Migrate all kernels of this notebook"]
    one, whole = actions(client, "cell:5", 12)
    assert one["title"] == "Migrate kernel `second.kernel` to Developer mode"
    edited = client.ask("codeAction/resolve", **one)["edit"]["documentChanges"]
    assert [item["textDocument"] for item in edited] == [{"uri": "cell:5", "version": 1}]
    alone = carried_out(OTHER, edited[0]["edits"])
    assert alone in (migrate_text(f"{IMPORTS}\n\n\n{OTHER}\n", "a.py", Options()).new_text or "")
    edited = client.ask("codeAction/resolve", **whole)["edit"]["documentChanges"]
    new = {item["textDocument"]["uri"]: item["edits"] for item in edited}
    assert set(new) == {"cell:3", "cell:5"}
    assert carried_out(OTHER, new["cell:5"]) == alone
    hover = client.ask(
        "textDocument/hover",
        textDocument={"uri": "cell:5"},
        position=next(item for item in found[5] if item.get("code") == "TL905")["range"]["start"],
    )
    assert hover["contents"]["value"].startswith("# TL905")


def test_typing_moving_and_removing(client: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "a.ipynb").as_uri()
    open_notebook(client, uri, CELLS)
    assert published(client, "cell:3")
    # A keystroke in a line with a character that takes two units, in a cell of its own version.
    line = FACTORY.split("\n").index(next(text for text in FACTORY.split("\n") if "def gemm_leaky(" in text))
    start = {"line": line, "character": FACTORY.split("\n")[line].index("gemm_leaky")}
    end = {"line": line, "character": start["character"] + len("gemm_leaky")}
    typed = {"range": {"start": start, "end": end}, "text": "renamed"}
    change(client, uri, 2, textContent=[{"document": {"uri": "cell:3", "version": 2}, "changes": [typed]}])
    assert "`renamed.kernel`" in published(client, "cell:3", 2)[0]["message"]
    # The second kernel goes to the top, and comes without being opened again.
    change(client, uri, 3, structure={"array": {"start": 4, "deleteCount": 1}, "didClose": []})
    assert published(client, "cell:5", None) == []
    change(
        client,
        uri,
        4,
        structure={
            "array": {"start": 2, "deleteCount": 0, "cells": [cell(5, OTHER)]},
            "didOpen": [document(5, OTHER, 7)],
        },
    )
    assert "`second.kernel`" in published(client, "cell:5", 7)[0]["message"]
    one, _ = actions(client, "cell:5", 12)
    (edited,) = client.ask("codeAction/resolve", **one)["edit"]["documentChanges"]
    assert edited["textDocument"] == {"uri": "cell:5", "version": 7}
    # What is no code any more is no kernel.
    change(client, uri, 5, data=[{"kind": 1, "document": "cell:5"}])
    assert published(client, "cell:5", None) == []
    assert client.ask("codeAction/resolve", **one)["message"] == "the document has changed meanwhile"
    client.tell("notebookDocument/didClose", notebookDocument={"uri": uri}, cellTextDocuments=[])
    assert published(client, "cell:3", None) == []


def test_the_view_of_a_notebook() -> None:
    view = look(KERNELS, "a.ipynb")
    (kernel,) = view.kernels
    assert (kernel.result.cell, kernel.span) == (4, (1, FACTORY.count("\n") + 1))
    assert view.new_text == by_cells(KERNELS, "a.ipynb", lambda code: migrate_text(code, "a.ipynb", Options())).new_text
    assert migrate_one(KERNELS, "a.ipynb", (4, kernel.result.line), view.places) == view.new_text
    assert view.migrated((4, kernel.result.line)) == view.new_text
    assert [view.of_cell(n).kernels for n in (2, 4)] == [(), (kernel,)]
    assert SCRIPT[:20] in Notebook.read(view.new_text or "").code


@given(texts, units)
def test_offsets_are_those_of_the_protocol(text: str, unit: Units) -> None:
    lines = lines_of(text)
    encoding, size = ENCODINGS[unit]
    for number, line in enumerate(lines):
        plain = line.rstrip("\r\n")
        for end in range(len(plain) + 1):
            character = len(plain[:end].encode(encoding)) // size
            assert offset(lines, number, character, unit) == in_words(text, Position(number, character), unit)
    assert offset(lines, len(lines), 0, unit) == len(text)
