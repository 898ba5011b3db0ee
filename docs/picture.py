"""The picture of the README: commands run in a terminal of 100 columns, as an SVG.

``python docs/picture.py`` writes ``docs/terminal.svg``; a test makes it again and compares. It needs a system with
pseudo-terminals.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "terminal.svg"
KERNEL = "fixtures/gpu/flash_full_bhsd/before.py"
COMMANDS = (f"migrate --check {KERNEL}", f"verify {KERNEL} --case {KERNEL.replace('before.py', 'case.toml')}")
COLUMNS = 100

_STYLE = re.compile(r"\x1b\[([\d;]*)m")
_OTHER = re.compile(r"\x1b\[[\d;?]*[A-LN-Za-ln-z]")
_COLOURS = {31: "#f38ba8", 32: "#a6e3a1", 33: "#f9e2af", 34: "#89b4fa", 36: "#94e2d5"}
_TEXT, _GROUND, _PROMPT = "#cdd6f4", "#1e1e2e", "#a6adc8"
_WIDTH, _HEIGHT, _MARGIN = 8.43, 19, 16  # of a character of 14 pixels, of a line, around it all


def recorded(arguments: str) -> str:
    """What a command prints to a terminal."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    drop = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "GITHUB_ACTIONS", "CI")
    environment = {key: value for key, value in os.environ.items() if key not in drop} | {"TERM": "xterm-256color"}
    command = [sys.executable, "-m", "tl2npu", *arguments.split()]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL):
        os.close(theirs)
        data = b""
        try:
            while block := os.read(ours, 4096):
                data += block
        except OSError:  # Linux says so when the other end is closed
            pass
    os.close(ours)
    return _OTHER.sub("", data.decode("utf-8").replace("\r\n", "\n")).rstrip("\n")


def picture() -> str:
    """The SVG."""
    lines = [line for arguments in COMMANDS for line in (f"$ tl2npu {arguments}", *recorded(arguments).split("\n"), "")]
    rows: list[str] = []
    for line in lines[:-1]:
        _write(line, rows)
    width, height = round(COLUMNS * _WIDTH) + 2 * _MARGIN, len(rows) * _HEIGHT + 2 * _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
            f"<title>{escape('tl2npu migrates a kernel and verifies the migration')}</title>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{_GROUND}"/>',
            f'<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" fill="{_TEXT}">',
            *rows,
            "</g>",
            "</svg>\n",
        ]
    )


def _write(line: str, rows: list[str]) -> None:
    """Add a line, in as many rows as a terminal needs for it."""
    attributes = f' fill="{_PROMPT}"' if line.startswith("$ ") else ""
    column = 0
    parts: list[str] = []
    for index, piece in enumerate(_STYLE.split(line)):
        if index % 2:
            attributes = _attributes(piece)
        while index % 2 == 0 and piece:
            shown, piece = piece[: COLUMNS - column], piece[COLUMNS - column :]
            x, length = _MARGIN + column * _WIDTH, len(shown) * _WIDTH
            text = f'x="{x:.2f}" textLength="{length:.2f}" xml:space="preserve"{attributes}'
            parts.append(f"<tspan {text}>{escape(shown)}</tspan>" * bool(shown))
            column += len(shown)
            if piece:
                rows.append(_row(parts, len(rows)))
                parts, column = [], 0
    rows.append(_row(parts, len(rows)))


def _row(parts: list[str], number: int) -> str:
    return f'<text y="{_MARGIN + (number + 1) * _HEIGHT - 5}">{"".join(parts)}</text>'


def _attributes(codes: str) -> str:
    found = ""
    for code in map(int, codes.split(";") if codes else [0]):
        if code in _COLOURS:
            found += f' fill="{_COLOURS[code]}"'
        elif code == 1:
            found += ' font-weight="bold"'
    return found


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
