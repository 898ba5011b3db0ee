"""A client of the language server that speaks plain JSON-RPC with its process."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class Client:
    """One session: starts the server, and ends it."""

    def __init__(self, root: Path, **capabilities: Any) -> None:
        command = [sys.executable, "-c", "from tl2npu.cli import main; main()", "lsp", "--stdio"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._number, self._uri = 0, ""
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._kept: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()
        self.ready = self.ask("initialize", processId=None, rootUri=root.as_uri(), capabilities=capabilities)
        self.tell("initialized")

    def ask(self, method: str, /, **params: Any) -> Any:
        """Send a request and wait for its result."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        number = self._number
        answer = self._wait(lambda message: message.get("id") == number and "method" not in message)
        return answer["result"] if "error" not in answer else answer["error"]

    def tell(self, method: str, /, **params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def open(self, uri: str, text: str) -> None:
        """Open the document that diagnostics are of from now on."""
        self._uri = uri
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)

    def type(self, uri: str, version: int, text: str) -> None:
        document = {"uri": uri, "version": version}
        self.tell("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])

    def diagnostics(self, version: int) -> list[dict[str, Any]]:
        """Wait for the diagnostics of a version."""
        told = self._wait(lambda m: self._is_of(m, self._uri) and m["params"].get("version") == version)
        found: list[dict[str, Any]] = told["params"]["diagnostics"]
        return found

    def published(self) -> list[int | None]:
        """The versions of all diagnostics of the document so far that nobody waited for."""
        return [m["params"].get("version") for m in self._kept if self._is_of(m, self._uri)]

    @staticmethod
    def _is_of(message: dict[str, Any], uri: str) -> bool:
        return message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri

    def close(self) -> int:
        """End the session; the exit code of the server."""
        try:
            self.ask("shutdown")
            self.tell("exit")
            return self.process.wait(20)
        finally:
            self.process.kill()
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                assert stream is not None
                stream.close()

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def _wait(self, wanted: Any) -> dict[str, Any]:
        for message in list(self._kept):
            if wanted(message):
                self._kept.remove(message)
                return message
        while True:
            message = self._messages.get(timeout=PATIENCE)
            assert message, "the server is gone"
            if wanted(message):
                return message
            self._kept.append(message)

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = 0
            try:
                while (line := stream.readline().strip()) or not length:
                    if not line:
                        self._messages.put({})
                        return
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                self._messages.put(json.loads(stream.read(length)))
            except ValueError:  # closed
                return
