"""Starts a child script: ``python start.py SCRIPT REQUEST EVENTS``. Standard library only, as SCRIPT's interpreter is
any that the user names.

SCRIPT defines ``main(request, emit) -> int``: ``request`` is the object in the JSON file REQUEST, ``emit`` writes a
dict as a line of EVENTS. What it returns is the exit code, and is told as the event ``exit`` before Python ends; an
exception that it lets pass is printed, and the code is 1.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any


def emitter(stream: IO[str]) -> Callable[[dict[str, Any]], None]:
    """Writes events as lines of JSON, each with ``time`` on the monotonic clock, ``cpu`` time (seconds) and ``pid``."""

    def emit(event: dict[str, Any]) -> None:
        now = {"time": time.monotonic(), "cpu": time.process_time(), "pid": os.getpid()}
        stream.write(json.dumps({**event, **now}, default=str) + "\n")
        stream.flush()

    return emit


def main(script: str, request: str, events: str) -> int:
    """Load the script under a name that no user's module has, and run it."""
    del sys.path[0]  # the folder of this file, which must not hide modules of the user
    spec = importlib.util.spec_from_file_location(f"_tl2npu_child_{Path(script).stem}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    with Path(events).open("a", encoding="utf-8") as stream:
        emit = emitter(stream)
        try:
            spec.loader.exec_module(module)
            code = int(module.main(json.loads(Path(request).read_text(encoding="utf-8")), emit))
        except Exception:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        emit({"event": "exit", "code": code})
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
