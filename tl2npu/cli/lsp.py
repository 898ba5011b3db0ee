"""``tl2npu lsp``."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import click


@click.command(short_help="Serve an editor.")
@click.option("--stdio", is_flag=True, help="Speak on the standard streams, as it does anyway.")
def lsp(stdio: bool) -> None:
    """Serve an editor: diagnostics while typing, code actions to migrate a kernel, pages of rules.

    It needs the extra `lsp`.
    """
    missing = [name for name in ("pygls", "lsprotocol") if find_spec(name) is None]
    if missing:
        from tl2npu.extras import pip_command

        click.echo(f"tl2npu lsp needs {' and '.join(missing)}: {pip_command('lsp')}", err=True)
        sys.exit(2)
    from tl2npu.lsp.server import serve

    serve()
