"""Every page of a study of each kind, in a real browser."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import farthing as ft
from farthing.dashboard.endpoints import key_of
from tests.browser.some_studies import INJECTION

INJECTED = key_of(f"study {INJECTION}")
TABS = ("", "trials", "parameters", "contour", "timeline", "trial/0")
KINDS = {"digits": None, "curves": "Curves", "population": "Population", "pipeline": "Pipeline", "online": "Rounds"}
PLACES = [
    "",
    "compare?study=digits&study=curves",
    *(f"study/{name}/{tab}".rstrip("/") for name in KINDS for tab in TABS),
    *(f"study/{name}/system" for name, tab in KINDS.items() if tab),
    f"study/{key_of('no trials yet')}",
    f"study/{key_of('no trials yet')}/trials",
    f"study/{key_of('no trials yet')}/parameters",
    f"study/{key_of('no trials yet')}/timeline",
]
EVERY_KIND_OF_PAGE = [
    "",
    "compare?study=digits&study=curves",
    *(f"study/digits/{tab}".rstrip("/") for tab in TABS),
    *(f"study/{name}/system" for name, tab in KINDS.items() if tab),
    f"study/{key_of('no trials yet')}",
    f"study/{INJECTED}",
]
LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}},
    "phone, dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}


def test_every_page_of_every_kind_is_drawn_without_a_fault(dashboard, visit) -> None:
    visitor = visit(dashboard)
    for place in PLACES:
        page = visitor.open(place)
        assert page.locator(".failure").count() == 0, (place, page.locator("main").inner_text())


@pytest.mark.parametrize(("name", "tab"), [(name, tab) for name, tab in KINDS.items() if tab])
def test_each_system_has_a_view_of_its_own(dashboard, visit, name: str, tab: str) -> None:
    page = visit(dashboard).open(f"study/{name}")

    page.get_by_role("navigation", name="Views of the study").get_by_role("link", name=tab).click()

    expect(page.locator("main .chart canvas, main .drawing svg").first).to_be_visible()


def test_the_first_page_of_a_study_says_what_it_cost_and_found(dashboard, visit) -> None:
    page = visit(dashboard).open("study/digits")

    expect(page.get_by_role("heading", name="digits", exact=True)).to_be_visible()
    expect(page.locator(".fact").first).to_contain_text("dollars")
    expect(page.locator(".facts")).to_contain_text("left of the cost budget")
    expect(page.get_by_role("region", name="Best error against cost").locator(".chart")).to_be_visible()
    expect(page.locator("section", has_text="Failures")).to_contain_text("the model does not fit")


@pytest.mark.parametrize("name", ["digits", "maximised", "population"])
def test_the_best_on_the_first_page_is_the_librarys(dashboard, studies, visit, name: str) -> None:
    with ft.Study.load(name, studies) as study:
        best = study.best

    page = visit(dashboard).open(f"study/{name}")

    expect(
        page.locator(".fact.good").get_by_role("link", name=f"trial {best.trial.number}", exact=True)
    ).to_be_visible()
    region = page.get_by_role("region", name="The best configuration")
    shown = dict(zip(region.locator("dt").all_inner_texts(), region.locator("dd").all_inner_texts(), strict=True))
    assert shown.keys() == best.params.keys()
    for param, value in best.params.items():
        is_number = isinstance(value, float)
        assert (float(shown[param]) == pytest.approx(value, rel=1e-4)) if is_number else (shown[param] == str(value))


def test_the_chart_of_the_first_page_has_a_choice_of_axes(dashboard, visit) -> None:
    page = visit(dashboard).open("study/digits?x=trials&log=1")

    expect(page.get_by_role("region", name="Best error against trials").locator(".chart canvas")).to_be_visible()
    expect(page.get_by_label("log scale")).to_be_checked()
    page.get_by_label("Across").select_option("time")
    expect(page.get_by_role("region", name="Best error against time").locator(".chart canvas")).to_be_visible()
    page.get_by_label("log scale").uncheck()
    assert "log=0" in page.url


def test_nothing_is_said_to_be_expected_where_nothing_was_predicted(dashboard, visit) -> None:
    """Hyperband predicts no values."""
    page = visit(dashboard).open("study/curves/trial/0")
    expect(page.locator(".fact").first).not_to_contain_text("expected")
    page = visit(dashboard).open("study/curves")
    page.get_by_role("region", name="Cost, predicted and paid").wait_for()
    expect(page.get_by_text("The band is where the model expected each trial")).not_to_be_visible()


def test_a_band_has_gaps_where_nothing_was_predicted(dashboard, visit) -> None:
    told = [{"spent": at, "expected_value": [1.0, 0.5] if at in (1, 2, 5) else None} for at in range(7)]
    drawn = visit(dashboard).page.evaluate(
        """async (told) => {
            const { bandOf } = await import("./static/pages/overview.js");
            return bandOf(told, "spent", () => ({ low: 0, high: 2 }));
        }""",
        told,
    )
    assert [row["x"] for row in drawn if row["low"] is None] == [0, 3, 4, 6]
    assert [row["x"] for row in drawn if row["low"] is not None] == pytest.approx([1, 2, 4.976, 5.024])


def test_a_note_is_told_in_words_and_its_json_is_folded(dashboard, visit) -> None:
    page = visit(dashboard).open("study/digits/trial/20")
    region = page.get_by_role("region", name="Why it was suggested")

    expect(region).to_contain_text("By a model fitted to 20 trials")
    expect(region.locator("pre")).not_to_be_visible()
    region.locator("summary").click()
    expect(region.locator("pre")).to_contain_text("theta")


LEGENDS = """() => [...document.querySelectorAll(".u-legend .u-series:not([hidden]), .legend > *")].map((entry) => {
    const own = entry.getBoundingClientRect(), around = entry.closest(".chart, .legend").getBoundingClientRect();
    const isInside = own.left >= around.left - 1 && own.right <= around.right + 1 && own.top >= around.top - 1
        && own.bottom <= around.bottom + 1 && own.right <= innerWidth;
    return [entry.textContent, isInside];
})"""


def test_legends_are_whole_on_a_phone(dashboard, visit) -> None:
    visitor = visit(dashboard, **LOOKS["phone"])
    places = ["study/digits", "study/curves/parameters", "study/online/system", "study/digits/timeline"]
    for place in [*places, "compare?study=digits&study=curves&study=population"]:
        page = visitor.open(place)
        page.locator("main .chart canvas, main .drawing svg").first.wait_for()
        page.wait_for_function(f"() => ({LEGENDS})().length > 0")  # a legend is drawn after its picture
        entries = page.evaluate(LEGENDS)
        assert [entry for entry, is_inside in entries if not is_inside] == [], place


@pytest.mark.parametrize("look", LOOKS)
def test_no_page_has_a_serious_barrier(dashboard, visit, look: str) -> None:
    visitor = visit(dashboard, **LOOKS[look])
    places = EVERY_KIND_OF_PAGE if look == "light" else ["", "study/digits", "study/curves/trials"]
    for place in places:
        page = visitor.open(place)
        found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        told = [(one["id"], one["nodes"][0]["html"][:200]) for one in serious]
        assert not serious, (look, place, told)


@pytest.mark.parametrize("look", ["phone", "phone, dark"])
def test_a_phone_needs_no_sideways_scrolling(dashboard, visit, look: str) -> None:
    visitor = visit(dashboard, **LOOKS[look])
    for place in ["", "study/digits", "study/curves/trials", "study/curves/system", "study/population/system"]:
        page = visitor.open(place)
        width = page.evaluate("() => document.documentElement.scrollWidth")
        assert width <= 390, (place, width)


def test_names_and_notes_stay_text(dashboard, visit) -> None:
    visitor = visit(dashboard)
    for tab in (*TABS, "trial/2", "trial/6"):
        page = visitor.open(f"study/{INJECTED}/{tab}".rstrip("/"))
        assert page.locator("main img, main script").count() == 0, tab
    page = visitor.open(f"study/{INJECTED}/trial/2")
    expect(page.locator(".comment")).to_have_text(INJECTION)
    expect(page.locator("h1")).to_have_text(f"study {INJECTION}")
    page = visitor.open(f"study/{INJECTED}")
    expect(page.locator(".failures")).to_contain_text(INJECTION)
    page = visitor.open("")
    expect(page.locator("table.studies")).to_contain_text(INJECTION)


def test_the_table_is_sorted_and_filtered_by_its_address(dashboard, visit) -> None:
    visitor = visit(dashboard)
    page = visitor.open("study/curves/trials?sort=value&state=done")
    values = [float(text) for text in page.locator("tbody tr td:nth-child(3)").all_inner_texts()]
    assert values == sorted(values)

    page.get_by_role("button", name="error ↑").click()
    expect(page.get_by_role("button", name="error ↓")).to_be_visible()
    assert "order=down" in page.url

    page.get_by_label("Where").select_option("kind")
    page.get_by_placeholder("0.01..0.1 or text").fill("adam")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("button", name="Remove kind=adam")).to_be_visible()
    assert "where=kind" in page.url

    page.locator("summary", has_text="Columns").click()
    page.get_by_label("worker").uncheck()
    expect(page.get_by_role("columnheader", name="worker")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("columnheader", name="worker")).to_have_count(0)
    expect(page.get_by_role("button", name="Remove kind=adam")).to_be_visible()


def test_the_table_is_downloaded_as_csv(dashboard, visit) -> None:
    page = visit(dashboard).open("study/curves/trials?state=done")

    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()

    assert download.value.path().read_text().startswith("number,state,value,cost,param.rate")


def test_files_are_shown_if_they_are_pictures_and_else_only_downloaded(dashboard, visit) -> None:
    page = visit(dashboard).open("study/curves/trials?sort=fidelity.epochs&order=down&state=done")
    page.locator("tbody a").first.click()
    files = page.locator(".files li")

    expect(files.filter(has_text="picture.png").locator("img")).to_be_visible()
    expect(files.filter(has_text="page.html").locator("img")).to_have_count(0)
    with page.expect_download() as download:
        files.filter(has_text="page.html").get_by_role("link").click()
    assert "alert(3)" in download.value.path().read_text()


def test_the_keyboard_reaches_everything(dashboard, visit) -> None:
    page = visit(dashboard).open("study/digits")
    page.reload()
    page.locator("main .page").wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("() => document.activeElement.textContent.trim().slice(0, 30)"))
    assert {"Overview", "Trials", "Parameters", "Contour", "Timeline", "Studies", "Compare"} <= seen


def test_dark_colours_are_remembered(dashboard, visit) -> None:
    page = visit(dashboard).open("")
    page.get_by_role("button", name="Use dark colours").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


SHIFTS = """() => new Promise((resolve) => {
    let sum = 0;
    new PerformanceObserver((list) => {
        for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => resolve(sum), 1500);
})"""
LARGEST_SHIFT = 0.1
"""What the Web Vitals call good."""


@pytest.mark.parametrize("look", ["light", "phone"])
def test_nothing_moves_while_a_page_comes(dashboard, visit, look: str) -> None:
    visitor = visit(dashboard, **LOOKS[look])
    for place in ["", "study/digits", "study/curves", "study/curves/trials", "study/digits/parameters"]:
        visitor.open(place)
        visitor.page.reload()
        visitor.page.locator("#main .page").wait_for()
        shift = visitor.page.evaluate(SHIFTS)
        assert shift <= LARGEST_SHIFT, (look, place, shift)


def test_a_study_says_what_going_on_would_bring(dashboard, visit) -> None:
    page = visit(dashboard).open("study/digits")

    expect(page.get_by_role("region", name="Is it worth going on?")).to_contain_text("is expected to improve error by")
    page = visit(dashboard).open(f"study/{INJECTED}")
    expect(page.locator(".outlook")).to_contain_text(re.compile("expected|needs at least"))


def test_the_band_of_the_prediction_comes_after_the_chart(dashboard, visit) -> None:
    page = visit(dashboard).open("study/digits")

    expect(page.get_by_text("The band is where the model expected each trial")).to_be_visible()
    expect(page.get_by_role("region", name="Cost, predicted and paid")).to_be_visible()


def test_a_report_is_drawn_without_a_request(studies, browser, tmp_path) -> None:
    with ft.Study.load("digits", studies) as study:
        made = study.report(tmp_path / "digits.html")
    (tmp_path / "notebook.html").write_text(f"<!doctype html><title>A notebook</title>{made._repr_html_()}")
    for name, frame in (("digits.html", None), ("notebook.html", "iframe")):
        context = browser.new_context()
        page = context.new_page()
        asked, faults = [], []
        page.on("request", lambda request, own=asked: own.append(request.url))
        page.on("console", lambda message, own=faults: own.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error, own=faults: own.append(str(error)))
        page.goto(f"file://{tmp_path / name}")
        shown = page.frame_locator(frame) if frame else page

        expect(shown.locator(".chart canvas").first).to_be_visible()
        expect(shown.locator(".outlook")).to_contain_text("is expected to improve error by")
        shown.get_by_role("link", name="Parameters").click()
        expect(shown.get_by_role("region", name="What matters")).to_be_visible()
        shown.get_by_role("link", name="Trials").click()
        expect(shown.locator("table.trials")).to_be_visible()
        assert not [url for url in asked if url.startswith("http")], asked
        assert not faults
        context.close()


def test_what_is_not_there_is_said(dashboard, visit) -> None:
    page = visit(dashboard).open("study/nothing", shows=".failure")
    expect(page.get_by_role("alert")).to_contain_text(re.compile("Not here"))


def test_without_a_token_there_is_no_page(dashboard, browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(dashboard.origin)
    assert answer.status == 401
    expect(page.locator("body")).to_contain_text("Open the address with the token")
    page.goto(dashboard.url)
    page.locator("#main h1").wait_for()
    assert "token" not in page.url
    assert context.cookies()[0]["httpOnly"]
    assert context.cookies()[0]["sameSite"] == "Strict"
    context.close()


def test_a_page_of_a_stranger_gets_nothing(dashboard, visit, tmp_path) -> None:
    """With the cookie in the browser, a page of another origin can neither read nor change."""
    page = visit(dashboard).page
    stranger = page.context.new_page()
    stranger.goto("data:text/html,<p>a stranger</p>")
    outcome = stranger.evaluate(
        """async (origin) => {
            const tries = [["GET", "/api/studies"], ["POST", "/api/studies/digits/stop"]];
            const found = [];
            for (const [method, path] of tries) {
                try { found.push((await fetch(origin + path, {method, credentials: "include", mode: "cors"})).status); }
                catch { found.push("refused"); }
            }
            return found;
        }""",
        dashboard.origin,
    )
    assert outcome == ["refused", "refused"]
