"""The server: documents come in as they are typed, diagnostics, code actions and rule pages go out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from tl2npu import __version__
from tl2npu.lsp import notebooks, protocol
from tl2npu.lsp.edits import Units, lines_of
from tl2npu.lsp.look import View, look, migrate_one
from tl2npu.lsp.worker import Worker, WorkerError
from tl2npu.rules import load_rules

PAUSE = 0.3
"""Seconds without a keystroke before a text is looked at."""

_KERNEL = types.CodeActionKind.QuickFix
_FILE = f"{types.CodeActionKind.SourceFixAll.value}.tl2npu"
_MODE = "Developer mode"
_MODES = {"npuir": "AscendNPU IR"}
_CONTENT_MODIFIED = -32801  # of the protocol
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    # All of their cells: those of prose count, too.
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook")
        )
    ]
)


@dataclass
class _Document:
    """An open document: what was seen last, and of which version the view is.

    ``cells``: those of a notebook; the text is then what its file would hold, and the version counts its changes.
    """

    version: int
    text: str
    cells: tuple[notebooks.Cell, ...] | None = None
    view: View | None = None
    pending: asyncio.Task[None] | None = None

    def shown(self, uri: str) -> list[_Shown]:
        """Every text of it that the editor shows, with its number."""
        if self.cells is None:
            return [_Shown(0, uri, self.version, self.text)]
        return [
            _Shown(number, cell.uri, cell.version, cell.text)
            for number, cell in enumerate(self.cells, 1)
            if cell.is_code
        ]

    def view_of(self, number: int) -> View:
        """What is to be said of one of these texts; what concerns a whole notebook is said of the first."""
        view = self.view or View()
        if self.cells is None:
            return view
        first = next((at for at, cell in enumerate(self.cells, 1) if cell.is_code), 0)
        return replace(view.of_cell(number), problem=view.problem if number == first else None)


class _Shown(NamedTuple):
    """A document or a cell of one; ``number`` counts cells from 1."""

    number: int
    uri: str
    version: int
    text: str


class Editor:
    """One session with an editor."""

    def __init__(self, pause: float = PAUSE) -> None:
        self._pause = pause
        self._open: dict[str, _Document] = {}
        self._worker = Worker()
        self._turn = asyncio.Lock()
        # Whole texts at each change: where lines end is then nobody's guess but ours.
        self.server = LanguageServer(
            "tl2npu",
            f"v{__version__}",
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
            notebook_document_sync=_NOTEBOOKS,
        )
        actions = types.CodeActionOptions(code_action_kinds=[_KERNEL, _FILE], resolve_provider=True)
        for name, handler, options in (
            (types.TEXT_DOCUMENT_DID_OPEN, self._opened, None),
            (types.TEXT_DOCUMENT_DID_CHANGE, self._changed, None),
            (types.TEXT_DOCUMENT_DID_SAVE, self._saved, None),
            (types.TEXT_DOCUMENT_DID_CLOSE, self._closed, None),
            (types.NOTEBOOK_DOCUMENT_DID_OPEN, self._notebook_opened, None),
            (types.NOTEBOOK_DOCUMENT_DID_CHANGE, self._notebook_changed, None),
            (types.NOTEBOOK_DOCUMENT_DID_CLOSE, self._notebook_closed, None),
            (types.TEXT_DOCUMENT_CODE_ACTION, self._actions, actions),
            (types.CODE_ACTION_RESOLVE, self._resolve, None),
            (types.TEXT_DOCUMENT_HOVER, self._hover, None),
            (types.SHUTDOWN, self._shutdown, None),
        ):
            self.server.feature(name, options)(_function(handler))

    # Documents

    async def _opened(self, params: Any) -> None:
        self._look_at(params.text_document.uri, params.text_document.version, params.text_document.text, pause=0.0)

    async def _changed(self, params: Any) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        self._look_at(uri, version, self.server.workspace.get_text_document(uri).source, self._pause)

    async def _saved(self, params: Any) -> None:
        """The configuration may be what was saved."""
        for uri, document in list(self._open.items()):
            if uri == params.text_document.uri or params.text_document.uri.endswith("pyproject.toml"):
                self._look_at(uri, document.version, document.text, pause=0.0, cells=document.cells)

    async def _closed(self, params: Any) -> None:
        self._close(params.text_document.uri)
        self._publish(params.text_document.uri, None, [])

    async def _notebook_opened(self, params: Any) -> None:
        cells = notebooks.opened(params)
        self._look_at(params.notebook_document.uri, 0, notebooks.file_text(cells), pause=0.0, cells=cells)

    async def _notebook_changed(self, params: Any) -> None:
        uri = params.notebook_document.uri
        document = self._open.get(uri)
        if document is None or document.cells is None:
            return
        cells = notebooks.changed(document.cells, params.change.cells, self._units)
        left = {cell.uri for cell in cells if cell.is_code}
        for part in document.shown(uri):
            if part.uri not in left:
                self._publish(part.uri, None, [])
        self._look_at(uri, document.version + 1, notebooks.file_text(cells), self._pause, cells)

    async def _notebook_closed(self, params: Any) -> None:
        uri = params.notebook_document.uri
        document = self._close(uri)
        for part in document.shown(uri) if document is not None else ():
            self._publish(part.uri, None, [])

    def _close(self, uri: str) -> _Document | None:
        document = self._open.pop(uri, None)
        if document is not None and document.pending is not None:
            document.pending.cancel()
        return document

    def _look_at(
        self, uri: str, version: int, text: str, pause: float, cells: tuple[notebooks.Cell, ...] | None = None
    ) -> None:
        before = self._open.get(uri)
        if before is not None and before.pending is not None:
            before.pending.cancel()
        document = _Document(version, text, cells)
        self._open[uri] = document
        document.pending = asyncio.ensure_future(self._look(uri, document, pause))

    async def _look(self, uri: str, document: _Document, pause: float) -> None:
        await asyncio.sleep(pause)
        try:
            async with self._turn:  # who is cancelled while waiting never begins
                # Shielded: a call once begun is let go on, since a new process would take longer than its rest.
                view = await asyncio.shield(
                    asyncio.ensure_future(self._call(look, document.text, self._path(uri, document)))
                )
        except WorkerError as error:
            view = View(problem=str(error))
        if self._open.get(uri) is not document:  # typed on meanwhile
            return
        document.view = view
        for part in document.shown(uri):
            found = protocol.diagnostics(document.view_of(part.number), part.text, self._units)
            self._publish(part.uri, part.version, found)

    def _seen(self, uri: str) -> tuple[str, _Document, _Shown] | None:
        """The document that a text of the editor is, or is a cell of, if anything is known of it yet."""
        for owner, document in self._open.items():
            if document.view is not None:
                for part in document.shown(owner):
                    if part.uri == uri:
                        return owner, document, part
        return None

    def _publish(self, uri: str, version: int | None, found: list[Any]) -> None:
        self.server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=found)
        )

    # Code actions

    async def _actions(self, params: Any) -> list[Any]:
        only = params.context.only
        seen = self._seen(params.text_document.uri)
        if seen is None:
            return []
        uri, document, part = seen
        view = document.view_of(part.number)
        found: list[Any] = []
        lines = lines_of(part.text)
        first, last = params.range.start.line + 1, params.range.end.line + 1
        for kernel in view.kernels if _wanted(_KERNEL, only) else ():
            if kernel.span[0] <= last and first <= kernel.span[1]:
                found.append(
                    types.CodeAction(
                        title=f"Migrate kernel `{kernel.result.name}` to {_MODES.get(kernel.result.target, _MODE)}",
                        kind=_KERNEL,
                        diagnostics=[protocol.can_be_migrated(kernel, lines, self._units)],
                        data={
                            "uri": uri,
                            "version": document.version,
                            "line": kernel.result.line,
                            "cell": kernel.result.cell,
                        },
                    )
                )
        if view.new_text is not None and _wanted(_FILE, only):
            found.append(
                types.CodeAction(
                    title=f"Migrate all kernels of this {'file' if document.cells is None else 'notebook'}",
                    kind=_FILE,
                    data={"uri": uri, "version": document.version, "line": None, "cell": None},
                )
            )
        return found if self._resolves else [await self._resolve(action) for action in found]

    async def _resolve(self, action: Any) -> Any:
        uri, version, line = action.data["uri"], action.data["version"], action.data["line"]
        cell = action.data["cell"]
        document = self._open.get(uri)
        if document is None or document.version != version or document.view is None:
            raise JsonRpcException("the document has changed meanwhile", _CONTENT_MODIFIED)
        try:
            view, place = document.view, (cell, line)
            new = view.new_text if line is None else view.migrated(place)
            if new is None:
                new = await self._call(migrate_one, document.text, self._path(uri, document), place, view.places)
        except WorkerError as error:
            raise JsonRpcException(str(error), _CONTENT_MODIFIED) from None
        texts = [new] if document.cells is None else ["", *notebooks.texts_of(new)]  # by the numbers of what is shown
        edited = [
            (part, edits)
            for part in document.shown(uri)
            if (edits := protocol.text_edits(part.text, texts[part.number], self._units)) or document.cells is None
        ]
        action.edit = self._workspace_edit(edited)
        return action

    def _workspace_edit(self, edited: list[tuple[_Shown, list[Any]]]) -> Any:
        workspace = self.server.client_capabilities.workspace
        knows = workspace.workspace_edit if workspace is not None else None
        if knows is None or not knows.document_changes:
            return types.WorkspaceEdit(changes={part.uri: edits for part, edits in edited})
        return types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(
                    text_document=types.OptionalVersionedTextDocumentIdentifier(uri=part.uri, version=part.version),
                    edits=edits,
                )
                for part, edits in edited
            ]
        )

    # Pages of rules

    async def _hover(self, params: Any) -> Any:
        seen = self._seen(params.text_document.uri)
        if seen is None:
            return None
        _, document, part = seen
        for item in protocol.diagnostics(document.view_of(part.number), part.text, self._units):
            text = protocol.rule_text(str(item.code)) if _holds(item.range, params.position) else None
            if text is not None:
                value = types.MarkupContent(kind=types.MarkupKind.Markdown, value=text)
                return types.Hover(contents=value, range=item.range)
        return None

    # What the session has

    async def _call(self, function: Any, *arguments: Any) -> Any:
        return await self._worker.call(function, *arguments)

    async def _shutdown(self, params: Any) -> None:
        await self._worker.close()

    def _path(self, uri: str, document: _Document) -> str:
        return protocol.path_of(uri, self.server.workspace.root_path, notebook=document.cells is not None)

    @property
    def _units(self) -> Units:
        encoding = self.server.workspace.position_encoding
        units: Units = getattr(encoding, "value", encoding)
        return units

    @property
    def _resolves(self) -> bool:
        """True if the editor asks for the edits of an action when it is chosen."""
        document = self.server.client_capabilities.text_document
        actions = document.code_action if document is not None else None
        support = actions.resolve_support if actions is not None else None
        return support is not None and "edit" in support.properties and bool(actions and actions.data_support)


def _function(method: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
    """A method as a function: pygls sets attributes on what it is given."""

    async def handler(params: Any) -> Any:
        return await method(params)

    return handler


def _wanted(kind: Any, only: Any) -> bool:
    """An editor that asks for ``source`` takes ``source.fixAll``."""
    name = str(getattr(kind, "value", kind))
    asked = [str(getattr(item, "value", item)) for item in only or ()]
    return only is None or any(name == item or name.startswith(f"{item}.") or not item for item in asked)


def _holds(span: Any, place: Any) -> bool:
    start, end = (span.start.line, span.start.character), (span.end.line, span.end.character)
    return start <= (place.line, place.character) <= end


def serve() -> None:
    """Speak with an editor on the standard streams until it goes."""
    load_rules()  # once, and not while somebody types
    Editor().server.start_io()
