"""The table of all kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from tl2npu.report.effort import duration, effort
from tl2npu.report.html.markup import badge, code_link, e, long_code
from tl2npu.report.model import Entry, Report, counted, place
from tl2npu.results import VERDICTS, KernelResult

_SHOWN = 4  # codes of a kernel; more stand behind a click
_COLUMNS = ("Kernel", "File", "Form", "Outcome", "Effort", "Codes", "Verified by")


def ledger(report: Report, places: Mapping[str, str], known: Set[str]) -> str:
    """The controls and the table; ``places`` are the anchors of the files, ``known`` the codes that have a rule."""
    kernels = list(report.kernels())
    if not kernels:
        return "<p>No kernels were found.</p>"
    head = "".join(
        f'<th role="columnheader" scope="col" aria-sort="none"><button type="button">{name}</button></th>'
        for name in _COLUMNS
    )
    rows = "\n".join(_row(entry, kernel, places.get(entry.path), known) for entry, kernel in kernels)
    return f"""{_controls(kernels)}
<table id="kernels" role="table">
<caption>All kernels, by file. Click a column name to sort.</caption>
<thead role="rowgroup"><tr role="row">{head}</tr></thead>
<tbody role="rowgroup">
{rows}
</tbody>
</table>"""


def _controls(kernels: list[tuple[Entry, KernelResult]]) -> str:
    styles = sorted({kernel.source for _, kernel in kernels})
    found = {kernel.verdict for _, kernel in kernels}
    dispositions = [name for name in VERDICTS if name in found]
    return f"""<form class="controls" hidden role="search" aria-label="Filter kernels">
<label>Name, path or code <input type="search" name="text" autocomplete="off"></label>
<label>Outcome <select name="disposition"><option value="">all</option>{_options(dispositions)}</select></label>
<label>Style <select name="style"><option value="">all</option>{_options(styles)}</select></label>
<label>Verified <select name="verified"><option value="">all</option>{_options(["yes", "no"])}</select></label>
<button type="reset">Reset</button>
<output name="count" role="status"></output>
</form>"""


def _options(names: Sequence[str]) -> str:
    return "".join(f"<option>{e(name)}</option>" for name in names)


def _row(entry: Entry, kernel: KernelResult, anchor: str | None, known: Set[str]) -> str:
    work = effort(entry, kernel)
    name = long_code(kernel.name)
    name = name if anchor is None else f'<a href="#{anchor}">{name}</a>'
    form = kernel.source if kernel.target == "none" else f"{kernel.source} → {kernel.target}"
    verified = "" if not kernel.rewritten else "no" if kernel.verified is None else "yes"
    order = VERDICTS.index(kernel.verdict)
    cells = [
        (_COLUMNS[1], "", long_code(place(entry.path, kernel))),
        (_COLUMNS[2], "", e(form)),
        (_COLUMNS[3], f' data-key="{order}"', badge(kernel.verdict) + warnings(entry, kernel)),
        (_COLUMNS[4], f' data-key="{work.minutes}"', duration(work.minutes)),
        (_COLUMNS[5], f' data-key="{len(kernel.codes)}"', _codes(entry, kernel, known)),
        (_COLUMNS[6], f' data-key="{verified}"', proof(kernel) if kernel.rewritten else ""),
    ]
    rest = "".join(f'<td role="cell" data-label="{label}"{key}>{text}</td>' for label, key, text in cells)
    about = f'data-disposition="{e(kernel.verdict)}" data-style="{e(kernel.source)}" data-verified="{verified}"'
    return f'<tr role="row" {about}><th role="rowheader" scope="row">{name}</th>{rest}</tr>'


def proof(kernel: KernelResult) -> str:
    """What executed or evaluated old and new, and how far they were apart."""
    verified = kernel.verified
    if verified is None:
        same = kernel.checked is not None and kernel.checked.equal
        return f'<span class="muted">{"same values on random inputs" if same else "not executed"}</span>'
    where = {"sim": "simulator"}.get(verified.backend, verified.backend)
    launches = "1 launch" if verified.calls == 1 else f"{verified.calls} launches"
    if verified.max_error is None:
        return "accepted by the compiler"
    return f"{e(where)}: {launches}, largest difference {verified.max_error:.3g}"


def warnings(entry: Entry, kernel: KernelResult) -> str:
    """A badge with the number of warnings about a kernel, nothing where there are none."""
    number = sum(item.diagnostic.severity == "warning" for item in entry.findings_of(kernel))
    return f' <span class="badge partial">{counted(number, "warning")}</span>' if number else ""


def _codes(entry: Entry, kernel: KernelResult, known: Set[str]) -> str:
    links = [code_link(code, code in known, severity) for code, severity in entry.codes_of(kernel)]
    if len(links) <= _SHOWN + 1:
        return " ".join(links)
    more = f"<details><summary>{len(links) - _SHOWN} more</summary>{' '.join(links[_SHOWN:])}</details>"
    return f"{' '.join(links[:_SHOWN])} {more}"
