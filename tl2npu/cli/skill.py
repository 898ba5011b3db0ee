"""``tl2npu skill``."""

from __future__ import annotations

import click


@click.command(short_help="Print the skill file for coding agents.")
@click.option("--path", is_flag=True, help="Print the directory of the skill instead, to copy or to link.")
def skill(path: bool) -> None:
    """Print the skill file that tells a coding agent how to work with tl2npu."""
    from pathlib import Path

    import tl2npu

    folder = Path(tl2npu.__file__).parent / "skills" / "tl2npu"
    click.echo(str(folder) if path else (folder / "SKILL.md").read_text(encoding="utf-8").rstrip("\n"))
