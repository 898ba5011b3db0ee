"""Notebooks: the code comes out as one module, and back into the very same text."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tl2npu.source.notebook import Notebook, NotebookSkipped, is_notebook
from tl2npu.source.notebook.magics import mask
from tl2npu.source.text import SourceError


def cell(source: Any, kind: str = "code", **more: Any) -> dict[str, Any]:
    more = {"execution_count": 3, "outputs": [{"text": ["T.Kernel(\n"]}]} | more if kind == "code" else more
    return {"cell_type": kind, "metadata": {"source": "no"}, "source": source} | more


def book(*cells: dict[str, Any], **more: Any) -> dict[str, Any]:
    kernel = {"kernelspec": {"name": "python3", "language": "python"}, "language_info": {"name": "python"}}
    return {"cells": list(cells), "metadata": kernel, "nbformat": 4, "nbformat_minor": 5} | more


def jupyter(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def renamed(text: str, old: str, new: str, path: str | None = None) -> str:
    """The notebook after its module was changed."""
    read = Notebook.read(text)
    assert old in read.code
    return read.with_code(read.code.replace(old, new), path)


def test_names() -> None:
    assert is_notebook("a/b.ipynb")
    assert not is_notebook("a/b.ipynb.py")


def test_the_module_is_the_cells_in_order() -> None:
    text = jupyter(book(cell(["a = 1\n", "b = 2"]), cell("# prose", "markdown"), cell("c = a + b\n"), cell([])))
    read = Notebook.read(text)
    values: dict[str, Any] = {}
    exec(compile(read.code, "module", "exec"), values)
    assert values["c"] == 3
    assert [item.number for item in read.cells] == [1, 3, 4]
    lines = read.code.split("\n")
    assert read.place(lines.index("b = 2") + 1) == (1, 2)
    assert read.place(lines.index("c = a + b") + 1) == (3, 1)


sources = st.one_of(
    st.text(max_size=30), st.lists(st.text(max_size=12), max_size=5), st.lists(st.sampled_from(["a\n", "%b\n", "c"]))
)


@pytest.mark.thorough
@given(st.lists(sources, min_size=1, max_size=4), st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_untouched_code_gives_the_same_text(cells: list[Any], ascii_only: bool, indent: Any) -> None:
    content = book(*map(cell, cells))
    text = json.dumps(content, ensure_ascii=ascii_only, indent=indent)
    if "\0" in "".join(map("".join, cells)):
        return
    read = Notebook.read(text)
    if read.python:
        assert read.with_code(read.code, None) == text


@given(st.text(st.sampled_from('ab\n\x0c\u2028é"\\<\r'), max_size=20), st.booleans(), st.booleans())
def test_new_text_is_what_a_reader_reads(new: str, ascii_only: bool, as_list: bool) -> None:
    old = "x = 1\nmarker\ny = 'é'"
    text = json.dumps(book(cell(old.splitlines(True) if as_list else old), cell("z")), ensure_ascii=ascii_only)
    done = json.loads(renamed(text, "marker", f"marker{new}marker"))
    source = done["cells"][0]["source"]
    assert isinstance(source, list) == as_list
    assert "".join(source) == old.replace("marker", f"marker{new}marker")
    done["cells"][0]["source"] = old.splitlines(True) if as_list else old
    assert done == json.loads(text)


def test_only_the_changed_lines_change_in_a_list() -> None:
    text = jupyter(book(cell(["a = 1\n", "b = 2\n", "c = 3"]), cell(["d = 4"])))
    new = renamed(text, "b = 2", "b = 5\nbb = 6")
    expected = text.replace('"b = 2\\n",', '"b = 5\\n",\n    "bb = 6\\n",')
    assert expected != text
    assert new == expected


@pytest.mark.parametrize(
    ("old", "new"), [("c = 3", "c = 4"), ("c = 3", "c = 3\nd"), ("a = 1\n", ""), ("b = 2\nc = 3", "b")]
)
def test_lists_stay_as_json_writes_them(old: str, new: str) -> None:
    """Whatever changes, the result is what Jupyter itself would write of the new text."""
    code = "a = 1\nb = 2\nc = 3"
    text = jupyter(book(cell(code.splitlines(True))))
    assert renamed(text, old, new) == jupyter(book(cell(code.replace(old, new).splitlines(True))))


@pytest.mark.parametrize("separators", [(",", ":"), (" ,\n ", ": ")])
def test_gaps_stay(separators: tuple[str, str]) -> None:
    content = book(cell(["a = 1\n", "b = 2"]))
    text = json.dumps(content, separators=separators)
    content["cells"][0]["source"] = ["a = 1\n", "x\n", "b = 2"]
    assert renamed(text, "a = 1\n", "a = 1\nx\n") == json.dumps(content, separators=separators)


def test_crlf_order_of_keys_and_missing_newline_stay() -> None:
    content = {"nbformat": 4, **book(dict(reversed(cell(["a = 1\n", "b"]).items())))}
    text = json.dumps(content, indent=2).replace("\n", "\r\n")
    assert renamed(text, "a = 1", "a = 2") == text.replace('"a = 1\\n"', '"a = 2\\n"')


def test_lines_that_stay_keep_their_escapes() -> None:
    raw = r'["if 1 \u003c 2: # caf\u00E9\n", "    x = 1"]'
    text = json.dumps(book(cell("RAW"))).replace('"RAW"', raw)
    assert renamed(text, "x = ", "y = ") == text.replace("x = ", "y = ")


def test_new_text_is_escaped_as_the_notebook_is() -> None:
    text = json.dumps(book(cell("x"), cell("é")), ensure_ascii=True)
    assert r'"\u00f6"' in renamed(text, "x\n", "ö\n")
    text = json.dumps(book(cell("x"), cell("é")), ensure_ascii=False)
    assert '"ö"' in renamed(text, "x\n", "ö\n")


def test_of_a_key_twice_the_last_one_counts() -> None:
    text = json.dumps(book(cell("a = 1"))).replace('"source": "a = 1"', '"source": "b", "source": "a = 1"')
    assert renamed(text, "a = 1", "a = 2") == text.replace('"a = 1"', '"a = 2"')


def test_black_lays_out_cells_that_it_laid_out_before(tmp_path: Path) -> None:
    path = str(tmp_path / "a.ipynb")  # no configuration of black around it
    call = "f(" + ", ".join(["argument"] * 9) + ")"
    text = jupyter(book(cell(["x = 1\n", "y = 2"]), cell(["x=1\n", "y = 3"])))
    first = json.loads(renamed(text, "y = 2", f"y = {call}", path))["cells"][0]["source"]
    second = json.loads(renamed(text, "y = 3", f"y = {call}", path))["cells"][1]["source"]
    assert first == ["x = 1\n", "y = f(\n", *["    argument,\n"] * 9, ")"]
    assert second == ["x=1\n", f"y = {call}"]


def test_lines_of_the_file() -> None:
    text = jupyter(book(cell(["a\n", "\n", "b"]), cell("c\nd\n"), cell(["x", "y\n", "z\nw"]), cell([])))
    read = Notebook.read(text)
    lines = text.split("\n")
    of = [[lines[number - 1].strip(" ,") for number in read._lines_of(item)] for item in read.cells]
    assert of[0] == ['"a\\n"', '"\\n"', '"b"']
    assert of[1] == ['"source": "c\\nd\\n"'] * 3
    assert of[2] == ['"x"', '"z\\nw"', '"z\\nw"']
    assert of[3] == ['"source": []']


# Magics


@pytest.mark.parametrize(
    "line",
    [
        "%load_ext autoreload",
        "!ls *.py",
        "  !ls",
        "?np.sum",
        "np.sum?",
        "np.sum??",
        "%timeit f(1)",
        "!ls {a['x']}",
        "%%time",
    ],
)
def test_lines_of_ipython(line: str) -> None:
    indented = line.startswith(" ")
    text = f"if a:\n{line}\nb" if indented else f"{line}\nb"
    masked = mask(text, "mark")
    ast.parse(masked.text)
    assert line.strip() not in masked.text
    assert masked.restore(masked.text) == text


@pytest.mark.parametrize(
    "text",
    [
        "x = (a\n% b)",
        "x = a \\\n% b",
        "x = '''\n%d\n!ls\n''' % 3",
        'x = f"""\n{a}?\n%s\n"""',
        "x = '(' # (\ny = a % b",
        "x = 'a\\\n%b'",
        "assert a != b",
        "x = a != b",
        "x = {'a':\n'b?'}",
        "# what?",
        "s = 'what?'",
    ],
)
def test_python_that_looks_like_it(text: str) -> None:
    assert mask(text, "mark").text == text


@pytest.mark.parametrize("text", ["files = !ls", "a, b = %magic 1", "n: int = 3\nx.y = !pwd", "z[0] = !pwd"])
def test_values_of_magics_are_unknown(text: str) -> None:
    masked = mask(text, "mark").text
    assert "get_ipython()" in masked
    ast.parse(masked)


def test_magics_that_go_on() -> None:
    text = "!ls \\\n  a \\\n  b\nx = 1\n%y \\\r\nz\r\nw"
    masked = mask(text, "mark")
    tree = ast.parse(masked.text)
    assert [type(node).__name__ for node in tree.body] == ["Pass", "Assign", "Pass", "Expr"]
    assert masked.restore(masked.text) == text


def test_lost_magics_are_told() -> None:
    text = jupyter(book(cell("%a\nx = 1\n%b")))
    read = Notebook.read(text)
    lost = "\n".join(line for line in read.code.split("\n") if not line.endswith("-2"))
    with pytest.raises(SourceError, match="cell 1: a line that is not Python would be lost"):
        read.with_code(lost, None)


def test_lost_borders_are_told() -> None:
    read = Notebook.read(jupyter(book(cell("a"), cell("b"))))
    with pytest.raises(SourceError, match="cell 2 is no longer a cell of its own"):
        read.with_code("a\nb\n", None)


@pytest.mark.parametrize("first", ["%%bash", "%%writefile a.py", "\n%%html x", "%%python"])
def test_cells_of_other_languages_are_left_out(first: str) -> None:
    text = jupyter(book(cell(f"{first}\nrm -rf ("), cell("x = 1")))
    read = Notebook.read(text)
    assert read.code == "x = 1\n"
    assert json.loads(renamed(text, "x = 1", "x = 2"))["cells"][1]["source"] == "x = 2"


@pytest.mark.parametrize("first", ["%%time", "%%capture out"])
def test_cells_of_python_are_read(first: str) -> None:
    text = jupyter(book(cell(f"{first}\nx = 1")))
    assert renamed(text, "x = 1", "x = 2") == text.replace("x = 1", "x = 2")


def test_the_language_of_a_single_cell() -> None:
    text = jupyter(book(cell("ls (", metadata={"vscode": {"languageId": "shellscript"}}), cell("x")))
    assert Notebook.read(text).code == "x\n"


# What is no notebook of Python


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: not a notebook: invalid JSON: Expecting property name enclosed in double quotes"),
        ("", "line 1: not a notebook: invalid JSON: Expecting value"),
        ("[]", "not a notebook: the JSON is not an object"),
        ("{}", "not a notebook: no list of cells"),
        ('{"cells": [3], "nbformat": 4}', "not a notebook: cell 1 is not an object"),
        ('{"cells": [{"cell_type": "code", "source": 3}]}', "not a notebook: the source of cell 1 is neither"),
        ('{"cells": [{"cell_type": "code", "source": "\\ud800"}]}', "cell 1 has a character that no text has"),
        ('{"nbformat": 3, "worksheets": []}', "a notebook of format 3: save it in format 4 first"),
        ("[" * 100_000, "not a notebook: the JSON is nested too deep"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        Notebook.read(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (book(cell("x"), metadata={"language_info": {"name": "R"}}), "a notebook in R"),
        (book(cell("x"), metadata={"kernelspec": {"language": "julia"}}), "a notebook in julia"),
        (book(cell("x", "markdown")), "a notebook without code cells"),
        (book(), "a notebook without code cells"),
    ],
)
def test_nothing_to_read(content: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotebookSkipped, match=f"^{reason}$"):
        Notebook.read(jupyter(content))


@pytest.mark.parametrize("metadata", [{}, None, {"kernelspec": None}, {"kernelspec": {"name": "x"}}])
def test_a_notebook_that_does_not_say_is_python(metadata: Any) -> None:
    assert Notebook.read(jupyter(book(cell("x"), metadata=metadata))).code == "x\n"
