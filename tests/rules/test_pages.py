"""The catalogue itself: format of the pages, agreement with the table of codes and the index."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.each import each
from tests.rules.examples import examples, examples_in, index_page
from tl2npu.codes import CODES, ROWS
from tl2npu.rules import GROUPS, Rule, RuleError, load_rules, parse_page, rules_directory

RULES = load_rules()
ROOT = Path(__file__).resolve().parents[2]
FORBIDDEN = re.compile(r"/work\b|/tmp\b|\bshared/|TODO(?!\(tl2npu\))|FIXME")

every_rule = each(RULES.values(), lambda page: page.code)


def test_each_code_stands_in_the_table_once() -> None:
    assert Counter(row.code for row in ROWS) == dict.fromkeys(CODES, 1)


@every_rule
def test_file_name_is_code_and_name(page: Rule) -> None:
    assert page.path.name == f"{page.code}-{page.name}.md"
    assert page.path.parent.name == page.group


@every_rule
def test_code_belongs_to_group(page: Rule) -> None:
    assert re.fullmatch(r"TL\d{3}", page.code)
    assert page.code.startswith(GROUPS[page.group])


@every_rule
def test_name_is_kebab_case(page: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", page.name)


@every_rule
def test_version_is_a_release(page: Rule) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", page.since)


@every_rule
def test_nothing_private_is_named(page: Rule) -> None:
    assert not FORBIDDEN.search(page.path.read_text(encoding="utf-8"))


@every_rule
def test_kind_of_example_fits(page: Rule) -> None:
    """What rewrites shows an edit, what only reports shows a kernel on which it reports."""
    kinds = {example.kind for example in examples(page)}
    if page.safety == "display-only":
        assert "refused" in kinds
        assert "edit" not in kinds
    else:
        assert "edit" in kinds
        assert "refused" not in kinds


@every_rule
def test_refused_examples_expect_this_code(page: Rule) -> None:
    for example in examples(page):
        if example.kind == "refused":
            assert page.code in {code for _, code in example.expected}
            assert {code for _, code in example.expected} <= set(CODES)


@every_rule
def test_edits_change_something(page: Rule) -> None:
    assert all(example.text != example.after for example in examples(page))


@every_rule
def test_limits_name_their_evidence(page: Rule) -> None:
    if page.group != "instructions":  # of which some are limits and some are edits
        assert bool(page.evidence) == (page.group == "output")


@every_rule
def test_examples_are_python(page: Rule) -> None:
    if page.code == "TL901":
        return
    for example in examples(page):
        ast.parse(example.text)
        ast.parse(example.after or "")


@every_rule
def test_summary_is_one_short_sentence(page: Rule) -> None:
    assert page.summary.endswith(".")
    assert len(page.summary) <= 200
    assert "\n" not in page.summary
    assert page.summary.count("`") % 2 == 0  # not cut inside code


def test_no_paragraph_stands_on_two_pages() -> None:
    seen: Counter[str] = Counter()
    for page in RULES.values():
        prose = re.sub(r"```.*?```", "", page.text, flags=re.DOTALL)
        paragraphs = {" ".join(p.split()) for p in prose.split("\n\n")}
        seen.update(p for p in paragraphs if len(p) > 60 and not p.startswith(("#", "- ")))
    assert [text for text, count in seen.items() if count > 1] == []


def test_every_page_is_in_the_table() -> None:
    assert set(RULES) - set(CODES) == set()


def test_every_code_has_a_page() -> None:
    assert set(CODES) - set(RULES) == set()


@every_rule
def test_page_and_table_agree(page: Rule) -> None:
    row = CODES[page.code]
    assert (row.code, row.name, row.severity, row.safety) == (
        page.code,
        page.name,
        page.severity,
        page.safety,
    )


@each(CODES, str)
def test_remedy_is_an_imperative(code: str) -> None:
    remedy = CODES[code].remedy
    assert remedy[0].islower() or remedy[0] == "`" or remedy.startswith("GPU")
    assert not remedy.endswith(".")
    assert "\n" not in remedy


def test_table_is_sorted_and_unique() -> None:
    names = [row.name for row in CODES.values()]
    assert len(set(names)) == len(names)
    assert list(CODES) == sorted(CODES)


def test_index_is_current() -> None:
    """Run ``python -m tests.rules.examples > docs/rules.md`` if this fails."""
    stored = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    assert stored == index_page(RULES)


def test_every_file_in_the_catalogue_is_a_page() -> None:
    files = {path for path in rules_directory().rglob("*") if path.is_file()}
    assert files == {page.path for page in RULES.values()}


PAGE = """+++
code = "TL999"
name = "some-pattern"
group = "tool"
severity = "info"
safety = "safe"
disposition = "replace"
since = "0.1.0"
+++

## What it does

Replaces a thing. More text.

## Why

Because.

## Example

```python before
a = 1  ## Why
```

```python after
a = 2
```

## Use instead

The other.

## Fix safety

Safe.

## References

- None.
"""


def test_a_page_is_read() -> None:
    page = parse_page(PAGE, Path("x.md"))
    assert (page.code, page.summary) == ("TL999", "Replaces a thing.")
    found = examples_in(PAGE, Path("x.md"))
    assert [(e.kind, e.text, e.after) for e in found] == [("edit", "a = 1  ## Why\n", "a = 2\n")]
    assert page.sections["Fix safety"] == "Safe."
    assert PAGE.splitlines()[found[0].line - 1] == "```python before"


def test_expected_lines_are_read() -> None:
    body = "```python refused\nf()\ng()  # expect: TL801 TL802\n```"
    text = PAGE.replace("Because.", body)
    example = examples_in(text, Path("x.md"))[0]
    assert (example.kind, example.expected) == ("refused", ((2, "TL801"), (2, "TL802")))


MENDED = "```python refused\nf()\nh()\ng()  # expect: TL801\nh()\n```\n\n```diff mended\n{}\n```"


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        ("-g()", "f()\nh()\nh()\n"),
        (" f()\n+k()", "f()\nk()\nh()\ng()\nh()\n"),
        ("-f()\n@@\n g()\n-h()", "h()\ng()\n"),
        ("-g()\n+if a:\n+    g()", "f()\nh()\nif a:\n    g()\nh()\n"),
    ],
)
def test_an_edit_is_applied(edit: str, text: str) -> None:
    found = examples_in(PAGE.replace("Because.", MENDED.format(edit)), Path("x.md"))
    assert [example.text for example in found if example.kind == "mended"] == [text]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Because.", MENDED.format("-h()"), "not once in the kernel above"),
        ("Because.", MENDED.format("-k()"), "not once in the kernel above"),
        ("Because.", MENDED.format(" f()"), "a change"),
        ("Because.", MENDED.format("-g()\nk()"), "needs lines with"),
        ("Because.", "```diff mended\n-f()\n```", "`mended` without `refused`"),
        ("+++\ncode", "code", "front matter"),
        ('severity = "info"', 'severity = "bad"', "severity"),
        ('group = "tool"', 'group = "nowhere"', "group"),
        ('since = "0.1.0"', "since = 1", "since"),
        ('since = "0.1.0"', 'since = "0.1.0"\nlevel = "x"', "unknown keys: level"),
        ('since = "0.1.0"', 'since = "0.1.0"\nevidence = "E1"', "evidence"),
        ("## Why\n\nBecause.\n", "## Why\n", "Why"),
        ("## Why\n\nBecause.\n", "", "Why"),
        ("## References", "## Sources", "References"),
        ("```python after\na = 2\n```", "", "without `after`"),
        ("```python before\na = 1  ## Why\n```", "", "without `before`"),
        ("```python before", "```python earlier", "unknown fence"),
        ("Because.", "```python refused\nf()\n```", "needs `# expect: CODE`"),
        ("- None.", "```python accepted\n", "not closed"),
        ("Replaces a thing. More text.", "Replaces a thing", "sentence"),
        ("## Fix safety\n\nSafe.\n", "## Fix safety\n\nSafe.\n\n## More\n\nText.\n", "this order"),
    ],
)
def test_malformed_pages_are_errors(old: str, new: str, message: str) -> None:
    assert old in PAGE
    text, path = PAGE.replace(old, new, 1), Path("x.md")
    with pytest.raises(RuleError, match=re.escape(message)):  # noqa: PT012  (either says it)
        parse_page(text, path)
        examples_in(text, path)
