"""The page as text: structure, escaping, no network, contrast. What its script does is in ``test_browser.py``."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from tests.report.support import HOSTILE, RUN, hostile, many, report
from tl2npu.report import html
from tl2npu.report.build import build
from tl2npu.report.escape import visible
from tl2npu.report.html.markup import prose
from tl2npu.report.model import Report
from tl2npu.results import Cell, Diagnostic, FileResult, KernelResult
from tl2npu.rules import load_rules

PACKAGE = Path(html.__file__).parent
VOID = {"meta", "input", "br", "rect", "wbr"}


class Page(HTMLParser):
    """Elements with their attributes; fails on tags that do not pair."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.raw: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in <{tag}>"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            self.raw[self._open[-1]] = data
        else:
            self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


CHECKED = replace(report(), run=replace(RUN, task="check"))
REPORTS = {"full": report(), "empty": build(RUN, []), "hostile": hostile(), "many": many(1000), "check": CHECKED}
every_report = pytest.mark.parametrize("item", REPORTS.values(), ids=REPORTS)


@every_report
def test_it_is_well_formed_and_its_links_lead_somewhere(item: Report) -> None:
    page = Page(html.render(item))
    ids = Counter(str(attributes["id"]) for _, attributes in page.elements if "id" in attributes)
    assert max(ids.values()) == 1
    targets = {str(attributes["href"]) for attributes in page.of("a")}
    assert all(target.startswith("#") and target[1:] in ids for target in targets)
    labelled = {str(a["aria-labelledby"]) for _, a in page.elements if "aria-labelledby" in a}
    assert labelled <= set(ids)


@every_report
def test_people_who_do_not_see_it_find_their_way(item: Report) -> None:
    page = Page(html.render(item))
    assert page.of("html") == [{"lang": "en"}]
    names = Counter(name for name, _ in page.elements)
    assert (names["h1"], names["main"], names["header"], names["title"]) == (1, 1, 1, 1)
    assert [attributes["aria-label"] for attributes in page.of("nav")] == ["Sections"]
    assert names["table"] == names["caption"]
    assert all("scope" in attributes for attributes in page.of("th"))
    links = [attributes for tag, attributes in page.elements if tag == "a"]
    assert links[0]["class"] == "skip"
    levels = [int(name[1]) for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert not [a for _, a in page.elements if str(a.get("tabindex", "0")) > "0"]


def test_every_control_has_a_label_and_every_column_says_how_it_is_sorted() -> None:
    text = html.render(report())
    page = Page(text)
    controls = text[text.index('<form class="controls"') : text.index("</form>")]
    assert len(re.findall(r"<label>[^<]+<(?:input|select) ", controls)) == 4
    assert len(re.findall(r"<(?:input|select) ", controls)) == 4
    heads = [attributes for attributes in page.of("th") if attributes.get("role") == "columnheader"]
    assert [head["aria-sort"] for head in heads] == ["none"] * 7
    assert len(re.findall(r'<th [^>]*aria-sort="none"><button type="button">', text)) == 7
    assert page.of("output") == [{"name": "count", "role": "status"}]


@every_report
def test_nothing_is_loaded_and_only_its_own_script_runs(item: Report) -> None:
    text = html.render(item)
    page = Page(text)
    policy = next(str(a["content"]) for a in page.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    for name in ("script", "style"):
        assert len(page.of(name)) == 1
        digest = b64encode(sha256(page.raw[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert not {"src", "style", "srcset", "action"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?:", page.raw["style"])
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|fetch|https?:", page.raw["script"])


def test_hostile_texts_stay_texts() -> None:
    """The page has the elements that it has for harmless texts, and shows the others."""
    page, harmless = Page(html.render(hostile())), Page(html.render(report()))
    assert {name for name, _ in page.elements} <= {name for name, _ in harmless.elements}
    assert {key for _, a in page.elements for key in a} <= {key for _, a in harmless.elements for key in a}
    shown = visible(HOSTILE)
    assert "".join(page.text).count(shown.replace("`", "")) + "".join(page.text).count(shown) >= 10
    assert "\x1b" not in "".join(page.text)
    assert [a["data-name"] for a in page.of("pre") if "data-name" in a] == [shown]


def test_the_ledger() -> None:
    text = html.render(report())
    body = text.index("<tbody", text.index('id="kernels"'))
    first = text[body : text.index("</tr>", body)]
    assert '<a href="#file-1"><code>f.<wbr>main</code></a>' in first
    assert "<code>a/<wbr>b.<wbr>py:4</code>" in first
    assert "expert → developer" in first
    assert 'data-key="6">minutes</td>' in first
    assert '<a href="#TL201">TL201</a> <a href="#TL210">TL210</a>' in first
    assert "simulator: 2 launches, largest difference 0.5" in first
    assert 'data-disposition="migrated" data-style="expert" data-verified="yes"' in first


def test_files_show_findings_and_the_diff() -> None:
    text = html.render(report())
    part = text[text.index('id="file-1"') : text.index('id="file-2"')]
    assert "1 migrated, 1 refused, 3 findings, +1 −2" in part
    assert "too <code>much</code> of it" in part
    assert '<pre class="diff" data-name="a/b.py">@@ -2,6 +2,5 @@\n' in part
    assert "-\twith T.Scope(&#x27;C&#x27;):\n" in part
    assert "Error: no such file" in text[text.index('id="file-2"') :]


def test_findings_and_codes_begin_with_the_worst() -> None:
    """A kernel with an error, a warning and a note, in the reverse order of their lines and of their codes."""
    found = [
        Diagnostic("TL101", "a", "info", 1, "note", kernel="f"),
        Diagnostic("TL115", "b", "warning", 2, "doubt", kernel="f"),
        Diagnostic("TL115", "b", "warning", 4, "more", kernel="f"),
        Diagnostic("TL801", "c", "error", 3, "fault", kernel="f"),
    ]
    codes = ("TL001", "TL101", "TL115", "TL801")
    item = FileResult("k.py", "x\n", "y\n", None, (KernelResult("f", 1, "g", "d", "refused", "", codes),), tuple(found))
    entry = build(RUN, [item]).entries[0]
    assert entry.codes_of(entry.kernels[0]) == [
        ("TL801", "error"),
        ("TL115", "warning"),
        ("TL101", "info"),
        ("TL001", ""),
    ]
    text = html.render(build(RUN, [item]))
    files = text[text.index('id="file-1"') :]
    assert [files.index(word) for word in ("fault", "doubt", "more", "note")] == sorted(
        files.index(word) for word in ("fault", "doubt", "more", "note")
    )
    row = text[text.index("<tbody", text.index('id="kernels"')) :].split("</tr>")[0]
    assert '</span> refused</span> <span class="badge partial">2 warnings</span>' in row
    assert row.index("TL801") < row.index("TL115") < row.index("TL101") < row.index("TL001")
    assert '<span class="warning" title="warning"><a href="#TL115">' in row


def test_each_change_has_its_reason() -> None:
    text = html.render(report())
    reasons = text[text.index('<ul class="reasons">') :].split("</ul>")[0]
    assert '<li data-line="5"><span>line 5: </span><a href="#TL201">TL201</a> the scope goes</li>' in reasons


def test_figures() -> None:
    text = html.render(report())
    table = text[text.index("Outcomes by source style") :]
    row = re.search(r'<tr><th scope="row">expert</th>(.*?)</tr>', table)
    assert row is not None
    assert re.findall(r">([^<]+)<", row.group(1)) == ["1", "0", "0", "0", "1", "1", "minutes"]
    codes = re.findall(r'<tr><th scope="row"><a href="#(TL\d+)">', table[table.index("Most frequent codes") :])
    assert codes == ["TL184", "TL801", "TL904"]


def test_statistics_stand_first() -> None:
    text = html.render(report())
    sections = re.findall(r'<section id="(\w+)"', text)
    assert sections[:3] == ["overview", "statistics", "ledger"]
    assert '<a class="skip" href="#ledger">' in text  # past the figures


def test_a_check_has_no_ledger() -> None:
    text = html.render(CHECKED)
    assert "<h1>tl2npu check</h1>" in text
    assert 'id="kernels"' not in text
    assert "3 findings" in text
    tiles = re.findall(r"<dt>(?:<span[^>]*>)?(.*?)(?:</span>)?</dt><dd>(.*?)</dd>", text)
    assert tiles == [
        ("error", "1"),
        ("warning", "1"),
        ("info", "1"),
        ("kernels", "2"),
        ("files", "2"),
        ("files that failed", "1"),
    ]


def test_every_rule_page_can_be_shown() -> None:
    for rule in load_rules().values():
        for section in rule.sections.values():
            page = Page(prose(section))
            assert {name for name, _ in page.elements} <= {"p", "pre", "ul", "li", "code", "strong", "em"}
            assert "](" not in "".join(page.text) or "`" in section or "|" in section


def test_prose() -> None:
    text = "a `b<` **c `d`** *f g* 2 * 3 * 4\n[e](f.md)\n\n- one\n  more\n- two\n\n```python\n## x\n\ny\n```\nend\n"
    assert prose(text).split("\n") == [
        "<p>a <code>b&lt;</code> <strong>c <code>d</code></strong> <em>f g</em> 2 * 3 * 4 e</p>",
        "<ul><li>one more</li><li>two</li></ul>",
        *["<pre>## x", "", "y</pre>"],
        "<p>end</p>",
    ]


def test_a_page_of_many_files_stays_small() -> None:
    assert len(html.render(many(1000)).encode()) < 2_000_000


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(theme: int) -> None:
    style = (PACKAGE / "style.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", style.split("@media")[theme]))
    pairs = [(text, back) for text in ("text", "muted", "link", "bad", "half", "same") for back in ("page", "panel")]
    pairs += [(name, f"{name}-back") for name in ("good", "half", "bad", "same")]
    pairs += [("text", back) for back in ("old-back", "new-back", "old-mark", "new-mark")]
    pairs += [("muted", back) for back in ("old-back", "new-back")]
    weak = [(pair, contrast(*(colours[name] for name in pair))) for pair in pairs]
    assert [item for item in weak if item[1] < 4.5] == []
    edges = [("edge", "page"), ("edge", "panel"), ("good", "page"), ("half", "page"), ("bad", "page"), ("link", "page")]
    assert [pair for pair in edges if contrast(*(colours[name] for name in pair)) < 3] == []


def test_places_in_notebooks() -> None:
    kernel = KernelResult("f", 2, "gpu", "developer", "migrated", "", cell=4, file_line=30)
    item = Diagnostic("TL801", "memory-capacity", "error", 2, "x", kernel="f", cell=4, file_line=30)
    file = FileResult("k.ipynb", "{}", "[]", None, (kernel,), (item,), cells=(Cell(4, "one\ntwo"),))
    text = html.render(build(RUN, [file]))
    assert "<code>k.<wbr>ipynb:cell 4:2</code>" in text
    assert text.count("cell 4, line 2: ") == 2
    assert "<pre>2 | two\n" in text


def test_estimates_are_a_chart_for_each_kernel_slowest_first() -> None:
    pipes = ((("GM to UB", 30.0), ("vector", 90.0)), (), (("cube", 200.0),))
    kernels = tuple(
        KernelResult(name, 2, "gpu", "developer", "migrated", "", pipes=of)
        for name, of in zip("abc", pipes, strict=True)
    )
    text = html.render(build(RUN, [FileResult("k.py", "x\n", "y\n", None, kernels)])).split('id="estimates"')[1]
    heads = re.findall(r"<details><summary>(.*?)</summary>", text.split("</section>")[0])
    added = "the sum of its pipes"
    assert heads == [
        f"<code>c</code>: 200 cycles, {added}, most on cube",
        f"<code>a</code>: 120 cycles, {added}, most on vector",
    ]
    assert '<td>30</td><td><meter max="120" value="30" aria-hidden="true"></meter> 25%</td>' in text
