"""The page in a browser, by keyboard. Needs selenium, Chromium and its driver; without them the tests are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.support import HOSTILE, RUN, hostile, many, report
from tl2npu.report import html
from tl2npu.report.build import build
from tl2npu.report.escape import visible
from tl2npu.report.model import Report
from tl2npu.results import Diagnostic, FileResult, KernelResult

webdriver = pytest.importorskip("selenium.webdriver")
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if BROWSER is None or DRIVER is None:
    pytest.skip("no Chromium with its driver", allow_module_level=True)

from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


class Shown:
    """A page in a window of a size in CSS pixels."""

    def __init__(self, browser: Any, path: Path, item: Report, width: int = 1280, height: int = 800) -> None:
        path.write_text(html.render(item), encoding="utf-8")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(path.as_uri())
        self.browser = browser

    def js(self, code: str) -> Any:
        return self.browser.execute_script(f"return {code}")

    def press(self, *keys: str) -> None:
        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def focused(self) -> str:
        return str(self.js("document.activeElement.textContent.trim()"))

    def tab_to(self, text: str, limit: int = 60) -> None:
        """Press Tab until the focus is on what has this text; the focus must be visible all the way."""
        for _ in range(limit):
            self.press(Keys.TAB)
            assert self.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            if self.focused() == text:
                return
        raise AssertionError(f"{text!r} cannot be reached")

    def names(self) -> list[str]:
        return list(
            self.js("[...document.querySelectorAll('#kernels tbody tr:not([hidden]) th')].map(e => e.innerText)")
        )

    def messages(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser")]


def kernels() -> Report:
    rows = [("f2", 30, "gpu"), ("f10", 20, "vid"), ("f1", 10, "gpu")]
    return build(
        RUN,
        [
            FileResult(
                f"{line}.py", "a\n", "b\n", None, (KernelResult(name, line, style, "developer", "migrated", "so"),)
            )
            for name, line, style in rows
        ],
    )


def test_sorting_by_keyboard(browser: Any, tmp_path: Path) -> None:
    page = Shown(browser, tmp_path / "r.html", kernels())
    page.tab_to("Kernel")
    page.press(Keys.ENTER)
    assert page.names() == ["f1", "f2", "f10"]
    assert page.js("document.querySelector('#kernels th').getAttribute('aria-sort')") == "ascending"
    page.press(Keys.SPACE)
    assert page.names() == ["f10", "f2", "f1"]
    assert page.js("document.querySelector('#kernels th').getAttribute('aria-sort')") == "descending"
    page.tab_to("File")
    page.press(Keys.ENTER)
    assert page.names() == ["f1", "f10", "f2"]
    sorts = page.js("[...document.querySelectorAll('#kernels thead th')].map(e => e.getAttribute('aria-sort'))")
    assert sorts == ["none", "ascending", *["none"] * 5]


def test_filtering_by_keyboard(browser: Any, tmp_path: Path) -> None:
    page = Shown(browser, tmp_path / "r.html", kernels())
    count = "document.querySelector('output').value"
    assert page.js(count) == "3 of 3 kernels shown"
    while page.js("document.activeElement.name") != "text":
        page.press(Keys.TAB)
    page.press("f", "1", " ", "V", "i", "d")
    assert (page.names(), page.js(count)) == (["f10"], "1 of 3 kernels shown")
    page.tab_to("Reset")
    page.press(Keys.ENTER)
    assert page.js(f"new Promise(done => setTimeout(() => done({count}), 50))") == "3 of 3 kernels shown"
    while page.js("document.activeElement.name") != "style":
        page.press(Keys.SHIFT + Keys.TAB)
    page.press("g")
    assert page.names() == ["f2", "f1"]


def test_a_kernel_leads_to_its_diff(browser: Any, tmp_path: Path) -> None:
    page = Shown(browser, tmp_path / "r.html", report())
    page.press(Keys.TAB)
    assert page.focused() == "Skip to the results"
    page.press(Keys.ENTER)
    page.tab_to("f.main")
    page.press(Keys.ENTER)
    assert page.js("new Promise(done => setTimeout(() => done(document.getElementById('file-1').open), 300))")
    assert page.focused().startswith("a/b.py")
    cells = page.js(
        "[...document.querySelectorAll('table.diff tbody tr')].map(r => [...r.cells].map(c => c.innerText))"
    )
    assert cells == [
        ["line 2"],
        ["2", "  ", "2", "  "],
        ["3", "  ", "3", "  "],
        ["4", "  def f():", "4", "  def f():"],
        ["5", "− \twith T.Scope('C'):", "", ""],
        ["TL201 the scope goes"],
        ["6", "− \t\tT.copy(a, b)", "5", "+ \tT.copy(a, b)"],
        ["TL210 indented"],
        ["7", "      x = 'ü'", "6", "      x = 'ü'"],
    ]
    page.press(Keys.ENTER)
    assert not page.js("document.getElementById('file-1').open")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (320, 200)], ids=["laptop", "400 %"])
def test_nothing_scrolls_sideways(browser: Any, tmp_path: Path, width: int, height: int) -> None:
    long = FileResult(
        "d/" * 80 + "k.py", "x" * 500, "y" * 500, None, (KernelResult("k" * 200, 1, "g", "d", "migrated", ""),)
    )
    reports = {"full": report(), "hostile": hostile(), "many": many(40), "long": build(RUN, [long])}
    for name, item in reports.items():
        page = Shown(browser, tmp_path / "r.html", item, width, height)
        page.js("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert (
            page.js("new Promise(done => setTimeout(() => done(document.documentElement.scrollWidth), 100))") <= width
        ), name
        assert page.js("document.querySelectorAll('table.diff').length") > 0
        assert (page.js("document.querySelector('table.diff tr.gap td').colSpan") == 4) == (width == 1280)
        assert page.messages() == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_all_figures_are_seen(browser: Any, tmp_path: Path, width: int) -> None:
    """No table of figures scrolls sideways: the outcomes behind the edge of a phone were not found."""
    page = Shown(browser, tmp_path / "r.html", many(40), width)
    cells = "[...document.querySelectorAll('.figures td')]"
    assert 0 < page.js(f"Math.max(...{cells}.map(e => e.getBoundingClientRect().right))") <= width
    told = page.js(f"{cells}.map(e => getComputedStyle(e, '::before').content)")
    assert ('"unchanged "' in told) == (width < 1000)  # in the row where no column head is shown
    assert page.js("[...document.querySelectorAll('.figures')].every(e => e.scrollWidth <= e.clientWidth)")


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_badges_and_words_have_room(browser: Any, tmp_path: Path, width: int) -> None:
    page = Shown(browser, tmp_path / "r.html", many(40), width)
    wide = page.js(
        "[...document.querySelectorAll('.tiles div')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText)"
    )
    assert wide == []
    line = page.js("Number.parseFloat(getComputedStyle(document.body).lineHeight)")
    heads = page.js("[...document.querySelectorAll('.figures thead th')].map(e => e.clientHeight)")
    assert max(heads) < 2 * line


def test_carets_stand_below_what_they_mark(browser: Any, tmp_path: Path) -> None:
    item = Diagnostic("TL184", "thread-level-code", "error", 1, "no", kernel="f")
    file = FileResult("k.py", f"x = {'y' * 150}", "", None, (KernelResult("f", 1, "g", "d", "refused", ""),), (item,))
    page = Shown(browser, tmp_path / "r.html", build(RUN, [file]), 390)
    page.js("document.querySelectorAll('details').forEach(e => e.open = true)")
    pre = "document.querySelector('li > pre')"
    line = page.js(f"Number.parseFloat(getComputedStyle({pre}).lineHeight)")
    rows = page.js(f"{pre}.textContent.split('\\n').length")
    assert page.js(f"{pre}.clientHeight") < line * (rows + 1)
    assert page.js("document.documentElement.scrollWidth") <= 390


def test_hostile_texts_do_nothing(browser: Any, tmp_path: Path) -> None:
    page = Shown(browser, tmp_path / "r.html", hostile())
    page.js("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert page.js("new Promise(done => setTimeout(() => done(document.scripts.length), 100))") == 1
    assert page.js("document.images.length") == 0
    assert visible(HOSTILE) in page.js("document.querySelector('table.diff').innerText")
    assert page.messages() == []


def test_printing_and_the_dark(browser: Any, tmp_path: Path) -> None:
    page = Shown(browser, tmp_path / "r.html", report())
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.js(background)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
    assert page.js(background) != light
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    assert page.js("getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
    assert page.js(background) == light  # dark pages are printed like light ones
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
