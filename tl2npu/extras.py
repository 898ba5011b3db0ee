"""How an extra is installed, from where tl2npu itself was installed: a name alone would be looked for on an index."""

from __future__ import annotations

import json
from importlib import metadata
from urllib.parse import urlsplit
from urllib.request import url2pathname


def pip_command(extra: str) -> str:
    """``pip install '/home/me/tl2npu[lsp]'``: the checkout or wheel, the repository, or the index."""
    return f"pip install '{_source(extra)}'"


def _source(extra: str) -> str:
    try:
        told = json.loads(metadata.distribution("tl2npu").read_text("direct_url.json") or "{}")
        url = told.get("url", "")
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        url, told = "", {}
    if url.startswith("file:"):
        return f"{url2pathname(urlsplit(url).path)}[{extra}]"
    if url and "vcs_info" in told:
        return f"tl2npu[{extra}] @ {told['vcs_info'].get('vcs', 'git')}+{url}"
    return f"tl2npu[{extra}]"
