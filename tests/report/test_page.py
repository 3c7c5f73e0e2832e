"""The report in headless Chromium: no error, no request, toggles, hover, light, dark and a phone.

Skipped, saying why, where Playwright or Chromium is not installed.  With ``ADACOORD_SHOTS`` naming
a folder the screenshots are kept there.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import adacoord as ac
from adacoord.report.html import render
from adacoord.report.runs import compare, contenders

BROWSER = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
    )
    if BROWSER is None:
        pytest.skip("no Chromium on the path: install Debian's chromium")
    with playwright.sync_playwright() as p:
        found = p.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 20))
    b = np.where(A @ rng.standard_normal(20) + rng.standard_normal(300) > 0, 1.0, -1.0)
    problem = ac.Problem(A, b, "logistic", l2=1e-3)
    who = contenders("apdc,spdc,spdc:adaptive,dcd,sag,lbfgs", problem)
    runs = compare(problem, who, seeds=2, tol=1e-9, max_passes=150)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(
        render(
            runs,
            problem,
            title="toy: logistic",
            command="adacoord compare toy",
            settings={"tol": 1e-9, "seeds": 2},
        )
    )
    return path


@pytest.fixture
def page(browser, report, request):
    options = getattr(request, "param", {})
    page = browser.new_page(**({"viewport": {"width": 1200, "height": 900}} | options))
    page.complaints, page.asked = [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda sent: page.asked.append(sent.url))
    page.goto(report.as_uri())
    yield page
    assert page.complaints == []
    assert page.asked == [report.as_uri()]
    page.close()


def shoot(page, name):
    if folder := os.environ.get("ADACOORD_SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def curves(page, label, chart="passes"):
    return page.locator(f'[data-x="{chart}"] path.curve[data-label="{label}"]')


def test_curves_and_legend(page):
    for label in ("apdc", "spdc:adaptive", "lbfgs"):
        for chart in ("passes", "seconds"):
            assert curves(page, label, chart).count() == 2  # one a seed
    assert page.locator("#legend button").count() == 6
    shoot(page, "light")


def test_a_name_hides_and_shows_its_curves(page):
    button = page.get_by_role("button", name="dcd")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert curves(page, "dcd").count() == curves(page, "dcd", "seconds").count() == 0
    assert curves(page, "apdc").count() == 2
    button.press("Enter")  # by keyboard too
    assert curves(page, "dcd").count() == 2
    for each in page.locator("#legend button").all():
        each.click()
    assert page.get_by_text("Every solver is hidden").count() == 2


def test_hover_shows_values(page):
    tip = page.locator("#tip")
    assert tip.is_hidden()
    for name in ("apdc", "spdc", "spdc:adaptive", "dcd", "sag"):
        page.get_by_role("button", name=name, exact=True).click()  # lbfgs alone is left
    box = curves(page, "lbfgs").first.bounding_box()
    page.mouse.move(box["x"] + box["width"], box["y"] + box["height"])  # its end
    assert tip.is_visible()
    text = tip.inner_text()
    assert text.startswith("lbfgs, seed") and "gap" in text and "passes" in text
    assert float(text.split("gap ")[1].split("\n")[0]) < 1e-5
    shoot(page, "hover")
    page.mouse.move(5, 5)
    assert tip.is_hidden()


def test_logarithmic_axes(page):
    before = curves(page, "apdc").first.get_attribute("d")
    page.check("#log")
    assert curves(page, "apdc").first.get_attribute("d") != before
    assert "NaN" not in page.content() and "Infinity" not in page.content()


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
def test_dark(page):
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(v) for v in colour[4:-1].split(",")) < 60
    shoot(page, "dark")


@pytest.mark.parametrize("page", [{"viewport": {"width": 360, "height": 740}}], indirect=True)
def test_phone(page):
    assert page.evaluate("document.documentElement.scrollWidth") <= 360  # nothing sticks out
    size = page.evaluate("document.querySelector('.chart text').getBoundingClientRect().height")
    assert size >= 10  # readable
    for button in page.locator("#legend button").all():
        assert button.bounding_box()["height"] >= 30  # a finger hits it
    shoot(page, "phone")


def test_opens_at_once(page, report):
    """Generous: the script's own time, not the browser's start."""
    ready = page.evaluate("performance.getEntriesByType('navigation')[0].domComplete")
    print(f"complete after {ready:.0f} ms, {report.stat().st_size} bytes")
    assert report.stat().st_size < 3_000_000


def test_a_resize_draws_anew(page):
    before = page.locator(".chart svg").first.get_attribute("viewBox")
    page.set_viewport_size({"width": 500, "height": 700})
    page.wait_for_function(
        f"document.querySelector('.chart svg').getAttribute('viewBox') !== '{before}'"
    )
