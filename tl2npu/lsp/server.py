"""The server: documents come in as they are typed, diagnostics, code actions and rule pages go out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from tl2npu import __version__
from tl2npu.lsp import protocol
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


@dataclass
class _Document:
    """An open document: what was seen last, and of which version the view is."""

    version: int
    text: str
    view: View | None = None
    pending: asyncio.Task[None] | None = None


class Editor:
    """One session with an editor."""

    def __init__(self, pause: float = PAUSE) -> None:
        self._pause = pause
        self._open: dict[str, _Document] = {}
        self._worker = Worker()
        self._turn = asyncio.Lock()
        # Whole texts at each change: where lines end is then nobody's guess but ours.
        self.server = LanguageServer(
            "tl2npu", f"v{__version__}", text_document_sync_kind=types.TextDocumentSyncKind.Full
        )
        actions = types.CodeActionOptions(code_action_kinds=[_KERNEL, _FILE], resolve_provider=True)
        for name, handler, options in (
            (types.TEXT_DOCUMENT_DID_OPEN, self._opened, None),
            (types.TEXT_DOCUMENT_DID_CHANGE, self._changed, None),
            (types.TEXT_DOCUMENT_DID_SAVE, self._saved, None),
            (types.TEXT_DOCUMENT_DID_CLOSE, self._closed, None),
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
                self._look_at(uri, document.version, document.text, pause=0.0)

    async def _closed(self, params: Any) -> None:
        document = self._open.pop(params.text_document.uri, None)
        if document is not None and document.pending is not None:
            document.pending.cancel()
        self._publish(params.text_document.uri, None, [])

    def _look_at(self, uri: str, version: int, text: str, pause: float) -> None:
        before = self._open.get(uri)
        if before is not None and before.pending is not None:
            before.pending.cancel()
        document = _Document(version, text)
        self._open[uri] = document
        document.pending = asyncio.ensure_future(self._look(uri, document, pause))

    async def _look(self, uri: str, document: _Document, pause: float) -> None:
        await asyncio.sleep(pause)
        try:
            async with self._turn:  # who is cancelled while waiting never begins
                # Shielded: a call once begun is let go on, since a new process would take longer than its rest.
                view = await asyncio.shield(asyncio.ensure_future(self._call(look, document.text, self._path(uri))))
        except WorkerError as error:
            view = View(problem=str(error))
        if self._open.get(uri) is not document:  # typed on meanwhile
            return
        document.view = view
        self._publish(uri, document.version, protocol.diagnostics(view, document.text, self._units))

    def _publish(self, uri: str, version: int | None, found: list[Any]) -> None:
        self.server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=found)
        )

    # Code actions

    async def _actions(self, params: Any) -> list[Any]:
        uri, only = params.text_document.uri, params.context.only
        document = self._open.get(uri)
        if document is None or document.view is None:
            return []
        found: list[Any] = []
        lines = lines_of(document.text)
        first, last = params.range.start.line + 1, params.range.end.line + 1
        for kernel in document.view.kernels if _wanted(_KERNEL, only) else ():
            if kernel.span[0] <= last and first <= kernel.span[1]:
                found.append(
                    types.CodeAction(
                        title=f"Migrate kernel `{kernel.result.name}` to {_MODES.get(kernel.result.target, _MODE)}",
                        kind=_KERNEL,
                        diagnostics=[protocol.can_be_migrated(kernel, lines, self._units)],
                        data={"uri": uri, "version": document.version, "line": kernel.result.line},
                    )
                )
        if document.view.new_text is not None and _wanted(_FILE, only):
            found.append(
                types.CodeAction(
                    title="Migrate all kernels of this file",
                    kind=_FILE,
                    data={"uri": uri, "version": document.version, "line": None},
                )
            )
        return found if self._resolves else [await self._resolve(action) for action in found]

    async def _resolve(self, action: Any) -> Any:
        uri, version, line = action.data["uri"], action.data["version"], action.data["line"]
        document = self._open.get(uri)
        if document is None or document.version != version or document.view is None:
            raise JsonRpcException("the document has changed meanwhile", _CONTENT_MODIFIED)
        try:
            new = document.view.new_text if line is None else None
            if new is None:
                new = await self._call(migrate_one, document.text, self._path(uri), line)
        except WorkerError as error:
            raise JsonRpcException(str(error), _CONTENT_MODIFIED) from None
        edits = protocol.text_edits(document.text, new, self._units)
        action.edit = self._workspace_edit(uri, version, edits)
        return action

    def _workspace_edit(self, uri: str, version: int, edits: list[Any]) -> Any:
        workspace = self.server.client_capabilities.workspace
        knows = workspace.workspace_edit if workspace is not None else None
        if knows is None or not knows.document_changes:
            return types.WorkspaceEdit(changes={uri: edits})
        document = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(text_document=document, edits=edits)])

    # Pages of rules

    async def _hover(self, params: Any) -> Any:
        document = self._open.get(params.text_document.uri)
        if document is None or document.view is None:
            return None
        for item in protocol.diagnostics(document.view, document.text, self._units):
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

    def _path(self, uri: str) -> str:
        return protocol.path_of(uri, self.server.workspace.root_path)

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
