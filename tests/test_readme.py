"""The documents say what is true: shown output is the tool's output, links lead somewhere, names exist.

``python -m tests.test_readme`` writes the shown output anew.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.in_process import python
from tl2npu.codes import CODES

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TOUR = ROOT / "docs" / "tour.md"
DEBUGGING = ROOT / "docs" / "debugging.md"
BROKEN = "docs/debugging"
CONFIGURATION = ROOT / "docs" / "configuration.md"
KERNEL = "fixtures/workspace/gemm_relu/before.py"
SKILL = ROOT / "tl2npu" / "skills" / "tl2npu" / "SKILL.md"
DOCUMENTS = sorted([*(path for top in ("", "docs/", "benchmarks/") for path in ROOT.glob(f"{top}*.md")), SKILL])
DOCUMENTS.append(ROOT / "docs" / "llms.txt")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")

every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in the root of the checkout, as a user without a terminal sees it."""
    environment = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")}
    return python("-m", "tl2npu", *arguments, cwd=ROOT, environment=environment)


CALL = "gemm_relu(M=256, N=256, K=192)"  # as the tour has it


def shown_output(page: Path) -> list[tuple[str, str]]:
    """The fences of a page that hold output: language and text, in the order of the page."""
    if page in (README, DEBUGGING):
        checked = run("check", f"{BROKEN}/scale_rows.py")
        executed = run("run", f"{BROKEN}/unsynchronised.py")
        assert (checked.returncode, executed.returncode) == (1, 0)
        found = [("text", checked.stdout), ("text", executed.stderr)]
        if page == DEBUGGING:
            compared = run("check", "--compare", "A2,A3,A5", f"{BROKEN}/wide_rows.py")
            explained = run("explain-log", f"{BROKEN}/plog.log")
            assert (compared.returncode, explained.returncode) == (1, 0)
            return [*found, ("text", compared.stdout), ("text", explained.stdout)]
    if page == README:
        diff = run("migrate", "--diff", KERNEL)
        verified = run("verify", KERNEL, "--case", KERNEL.replace("before.py", "case.toml"))
        found += [("diff", diff.stdout), ("text", verified.stdout)]
    else:
        diff = run("migrate", "--diff", "--explain", KERNEL)
        verified = run("verify", KERNEL, "--args", CALL)
        found = [("text", diff.stderr), ("text", verified.stdout)]
    assert diff.returncode == verified.returncode == 0
    return found


def fences(text: str) -> list[tuple[str, str]]:
    """The fences that hold output."""
    return [(language, body) for language, body in FENCE.findall(text) if language in ("diff", "text")]


def commands(text: str) -> list[list[str]]:
    """The words of every call of the program, in shell fences and between backquotes, without the program."""
    lines = [line for language, body in FENCE.findall(text) if language == "sh" for line in body.splitlines()]
    spans = SPAN.findall(FENCE.sub("", text))
    steps = [step.strip() for code in (*lines, *spans) for step in code.split("#")[0].split("&&")]
    calls = [re.split(r"(?:^|/)tl2npu ", step)[1:] for step in steps]
    return [call[0].split() for call in calls if call]


@pytest.mark.parametrize("page", [README, TOUR, DEBUGGING], ids=lambda page: str(page.name))
def test_shown_output_is_the_output(page: Path) -> None:
    assert fences(page.read_text(encoding="utf-8")) == shown_output(page)


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 200
    assert f"--args '{CALL}'" in TOUR.read_text(encoding="utf-8")


def test_shown_diff_is_the_fixture() -> None:
    """The patch of the README makes ``after.py`` out of ``before.py``, also without the tool."""
    patch = next(body for language, body in fences(README.read_text(encoding="utf-8")) if language == "diff")
    removed = [line[1:] for line in patch.splitlines() if line.startswith("-") and not line.startswith("---")]
    added = [line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++")]
    before = (ROOT / KERNEL).read_text(encoding="utf-8").splitlines()
    after = (ROOT / KERNEL).with_name("after.py").read_text(encoding="utf-8").splitlines()
    assert removed
    assert added
    assert set(removed) <= set(before)
    assert set(added) <= set(after)
    assert len(before) - len(removed) + len(added) == len(after)


@pytest.mark.parametrize("word", ["tl2npu migrate --diff", "-m pytest"])
def test_set_up_commands_can_be_extracted(word: str) -> None:
    """``.ci/run`` takes them out of the README: one line each, complete in itself."""
    lines = README.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line.startswith("python3 -m venv") and word in line]
    assert len(found) == 1
    assert "pip install" in found[0]
    assert f"'{word}'" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_set_up_command_migrates_and_verifies_the_shown_kernel() -> None:
    text = README.read_text(encoding="utf-8")
    assert f"tl2npu migrate --diff {KERNEL} && .venv/bin/tl2npu verify {KERNEL} --case " in text
    assert f"({KERNEL})" in text


@every_document
def test_links_lead_to_files(path: Path) -> None:
    targets = [t for t in LINK.findall(path.read_text(encoding="utf-8")) if not t.startswith(("http", "#"))]
    assert [t for t in targets if not (path.parent / t.split("#")[0]).exists()] == []


@every_document
def test_anchors_are_headings(path: Path) -> None:
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        if target.startswith("http") or not anchor:
            continue
        other = (path.parent / name) if name else path
        headings = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
        slugs = {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in slugs


@every_document
def test_codes_exist(path: Path) -> None:
    named = set(re.findall(r"\bTL\d{3}\b", path.read_text(encoding="utf-8")))
    assert named - set(CODES) == set()


@every_document
def test_paths_in_code_exist(path: Path) -> None:
    """`passes/ascend/sync.py` is a file of the package, `fixtures/` a folder of the repository."""
    roots = (ROOT, ROOT / "tl2npu")
    tops = {item.name for root in roots for item in root.iterdir()}
    missing = []
    for span in SPAN.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        word = span.rstrip("/")
        is_path = "/" in span and re.fullmatch(r"[\w./-]+", word) is not None and word.split("/")[0] in tops
        if is_path and not any((root / word).exists() for root in roots):
            missing.append(span)
    assert missing == []


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """The help of every command; the empty name is that of the program."""
    top = run("--help").stdout
    names = re.findall(r"^  ([a-z-]+) ", top.split("Commands:")[1], re.MULTILINE)
    assert "migrate" in names
    helps = {"": top} | {name: run(name, "--help").stdout for name in names}
    for name in ("merge", "render", "schema", "compare", "badge"):
        helps["report"] += run("report", name, "--help").stdout
    return helps


@every_document
def test_commands_and_options_exist(path: Path, helps: dict[str, str]) -> None:
    for words in commands(path.read_text(encoding="utf-8")):
        name = words[0] if not words[0].startswith("-") else ""
        assert name in helps, words
        for option in words:
            if option.startswith("-") and option != "-":
                assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", helps[name]), words


def test_commands_are_found() -> None:
    found = commands(README.read_text(encoding="utf-8"))
    assert ["migrate", "--diff", KERNEL] in found
    assert ["rule", "--error", "507015"] in found
    assert len(found) >= 8


@every_document
def test_options_in_code_exist(path: Path, helps: dict[str, str]) -> None:
    every = " ".join(helps.values())
    for span in SPAN.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        if re.fullmatch(r"--[a-z][a-z-]*( \S+)?", span) and path.parent != ROOT / "benchmarks":
            option = span.split()[0]
            assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", every), span


def test_configuration_table_is_complete() -> None:
    from tl2npu.checked import keys

    section = CONFIGURATION.read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {key for row in rows for key in SPAN.findall(row)}
    assert named == set(keys())


def test_shown_configuration_is_the_default(tmp_path: Path) -> None:
    from tl2npu.config import load_options
    from tl2npu.options import Options

    tables = [body for language, body in FENCE.findall(CONFIGURATION.read_text(encoding="utf-8")) if language == "toml"]
    assert len(tables) == 1
    (tmp_path / "pyproject.toml").write_text(tables[0], encoding="utf-8")
    assert load_options(tmp_path, {}) == Options()
    assert tables[0].count(" = ") == 4


@every_document
def test_nothing_private_is_named(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/work\b|/tmp\b|\bshared/|TODO(?!\(tl2npu\))|FIXME", text)


def test_named_pages_exist() -> None:
    """No page of a rule, document or fixture points to a document that the project does not have."""
    # `docs/TileLang-Ascend Programming Guide.md` of tilelang-ascend, the guides of its branch npuir
    foreign = {"Guide.md", "开发指南.md", "EnvironmentVariables.md"}
    users = {"ledger.md", "AGENTS.md"}  # files of the reader's repository
    pages = [*DOCUMENTS, *ROOT.glob("rules/*/*.md")]
    own = {path.name for path in pages} | foreign | users
    texts = [*pages, *ROOT.glob("fixtures/*/*/case.toml")]
    named = {name for path in texts for name in re.findall(r"[\w.-]+\.md\b", path.read_text(encoding="utf-8"))}
    assert named - own == set()


def rewrite(page: Path) -> None:
    """Write the shown output into a page."""
    text = page.read_text(encoding="utf-8")
    outputs = iter(shown_output(page))

    def fence(match: re.Match[str]) -> str:
        language, output = next(outputs)
        assert match.group(1) == language
        return f"```{language}\n{output}```"

    page.write_text(re.sub(r"^```(diff|text)\n(.*?)^```$", fence, text, flags=re.MULTILINE | re.DOTALL), "utf-8")


if __name__ == "__main__":
    for page in (README, TOUR, DEBUGGING):
        rewrite(page)
