"""Text to HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from tl2npu.report.escape import visible
from tl2npu.results import WITH_ERRORS

_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\([^)\s]+\)|\*([^*\s](?:[^*]*[^*\s])?)\*")
_MARKS = {"migrated": "✓", "partial": "◐", "refused": "✕", "unchanged": "="}
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def e(text: object) -> str:
    """A text, inside of an element or of a quoted attribute."""
    return escape(visible(str(text)))


def code(text: str) -> str:
    """A name, path or piece of source."""
    return f"<code>{e(text)}</code>"


def long_code(text: str) -> str:
    """A path or dotted name, which is broken between its parts where it does not fit."""
    parts = re.sub("([/._])", r"\1<wbr>", e(text))
    return f"<code>{parts}</code>"


def message(text: str) -> str:
    """A message: what stands between backquotes is source."""
    return "".join(code(part) if n % 2 else e(part) for n, part in enumerate(re.split(r"`([^`]+)`", text)))


def code_link(code: str, known: bool, severity: str = "") -> str:
    """A code that leads to its rule, where the page has it; marked where it is an error or a warning."""
    link = f'<a href="#{e(code)}">{e(code)}</a>' if known else e(code)
    return f'<span class="{severity}" title="{severity}">{link}</span>' if severity in ("error", "warning") else link


def badge(verdict: str) -> str:
    """A verdict: a mark, a word and a colour."""
    mark = "!" if WITH_ERRORS in verdict else _MARKS.get(verdict, "?")
    return f'<span class="badge {css_class(verdict)}"><span aria-hidden="true">{mark}</span> {e(verdict)}</span>'


def css_class(verdict: str) -> str:
    """That of its colour."""
    return "errors" if WITH_ERRORS in verdict else e(verdict)


def prose(text: str) -> str:
    """The Markdown of rule pages, as far as they use it; tables stay as they stand, links lose their targets."""
    return "\n".join(_blocks(text))


def _blocks(text: str) -> Iterator[str]:
    fence: list[str] | None = None
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith("```"):
            if fence is None:
                yield from _block(block)
                block, fence = [], []
            else:
                yield f"<pre>{_source(fence)}</pre>"
                fence = None
        elif fence is not None:
            fence.append(line)
        elif line.strip():
            block.append(line)
        else:
            yield from _block(block)
            block = []


def _block(lines: list[str]) -> Iterator[str]:
    if not lines:
        return
    if lines[0].startswith("|"):
        yield f"<pre>{_source(lines)}</pre>"
    elif _ITEM.match(lines[0]):
        items: list[str] = []
        for line in lines:
            if _ITEM.match(line):
                items.append(_ITEM.sub("", line, count=1))
            else:
                items[-1] += " " + line.strip()
        yield "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
    else:
        yield f"<p>{_inline(' '.join(line.strip() for line in lines))}</p>"


def _inline(text: str) -> str:
    done, at = "", 0
    for match in _INLINE.finditer(text):
        span, bold, link, stressed = match.groups()
        done += e(text[at : match.start()])
        if span:
            done += code(span)
        elif link:
            done += _inline(link)
        else:
            done += f"<strong>{_inline(bold)}</strong>" if bold else f"<em>{_inline(stressed)}</em>"
        at = match.end()
    return done + e(text[at:])


def _source(lines: list[str]) -> str:
    return "\n".join(e(line) for line in lines)
