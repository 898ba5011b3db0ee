"""``tl2npu completion``."""

from __future__ import annotations

import click

_HELP = {
    "bash": 'eval "$(tl2npu completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(tl2npu completion zsh)" in ~/.zshrc',
    "fish": "tl2npu completion fish > ~/.config/fish/completions/tl2npu.fish",
}


@click.command(short_help="Print the script for completion in a shell.", epilog="; ".join(_HELP.values()))
@click.argument("shell", type=click.Choice(list(_HELP)))
def completion(shell: str) -> None:
    """Print the script that makes SHELL complete the commands and options of tl2npu."""
    from click.shell_completion import get_completion_class

    from tl2npu.cli import cli

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(cli, {}, "tl2npu", "_TL2NPU_COMPLETE").source())
