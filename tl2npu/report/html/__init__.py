"""One self-contained page: no network, no other files, and nothing in it runs but its own script.

``page`` puts the sections together; ``style.css`` and ``page.js`` go into it as they are. Without the script everything
can be read; with it the ledger can be sorted and filtered, and diffs stand side by side.
"""

from __future__ import annotations

from tl2npu.report.html.page import render

__all__ = ["render"]
