"""The page of a study of several objectives, and of one under a limit, in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import farthing as ft
from tests.browser.conftest import Dashboard, start

SPACE = ft.Space({"units": ft.Int(8, 512, log=True), "rate": ft.Float(1e-4, 1e-1, log=True)})
NAMES = ("several", "limited")
LOOKS = {"light": {}, "dark": {"color_scheme": "dark"}, "phone": {"viewport": {"width": 390, "height": 844}}}
PIXELS = """() => {
  const canvas = document.querySelector('main section[aria-label^="latency against error"] canvas, main .chart canvas');
  return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.filter((part) => part).length;
}"""


def work(trial: ft.RunningTrial) -> dict[str, float]:
    units, rate = trial.params["units"], trial.params["rate"]
    trial.charge(1.0)
    error = 0.05 + 3 / units + 0.05 * abs(rate - 0.01) / 0.01
    return {"error": error, "latency": 0.2 + units / 100, "memory": units / 32}


def write(path: Path) -> None:
    with ft.Study(
        SPACE, minimize=["error", "latency"], storage=path, name="several", seed=0, cost_unit="dollars"
    ) as study:
        study.run(work, budget=ft.Budget(trials=14), executor="inline", progress=False)
    with ft.Study(
        SPACE,
        minimize="error",
        constraints={"memory": ft.AtMost(4)},
        storage=path,
        name="limited",
        seed=0,
        cost_unit="dollars",
    ) as study:
        study.run(work, budget=ft.Budget(trials=14), executor="inline", progress=False)


@pytest.fixture(scope="module")
def fronts(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("fronts") / "fronts.db"
    write(path)
    return path


@pytest.fixture(scope="module")
def shown(fronts: Path) -> Iterator[Dashboard]:
    with start(fronts) as started:
        yield started


def opened(visit, shown: Dashboard, name: str, **look):
    """The page of the study once its front and its best have been worked out, which come after the page."""
    page = visit(shown, **look).open(f"study/{name}")
    page.get_by_text("Working out the front …").wait_for(state="detached")
    expect(page.locator(".fact.good")).to_be_visible()
    for canvas in page.locator("main .chart canvas").all():
        expect(canvas).to_be_visible()
    assert page.locator(".failure").count() == 0
    return page


def test_the_page_of_several_objectives_has_the_front_with_its_points_and_the_values_of_the_knee(
    shown, fronts, visit
) -> None:
    with ft.Study.load("several", fronts) as study:
        front, knee = study.front, study.best

    page = opened(visit, shown, "several")

    card = page.get_by_role("region", name="latency against error, as expected")
    expect(card).to_contain_text(front.title)
    expect(card.locator(".u-legend")).to_contain_text("error (less is better)")
    drawn = card.get_by_role("img").get_attribute("aria-label")
    assert f"dominated: {len(front.others)} points" in drawn
    assert f"the front: {len(front) - 1} points" in drawn
    assert f"trial {knee.trial.number}: 1 points" in drawn, "the knee is one of the front, in a colour of its own"
    assert f"the edge of what is dominated: {len(front)} points" in drawn
    assert drawn.count("with its uncertainty") == 2, "of the front and of its knee, not of what is dominated"
    assert page.evaluate(PIXELS) > 0
    expect(page.get_by_role("region", name="Hypervolume against cost, as measured").locator("canvas")).to_be_visible()
    fact = page.locator(".fact.good")
    expect(fact).to_contain_text("knee of the front")
    expect(fact).to_contain_text(re.compile(r"error 0\.\d+, latency \d"))
    expect(fact.get_by_role("link", name=f"trial {knee.trial.number}", exact=True)).to_be_visible()


def test_the_front_is_as_wide_as_the_page(shown, visit) -> None:
    page = opened(visit, shown, "several")
    names = ("The best configuration", "latency against error, as expected", "Hypervolume against cost, as measured")
    widths = [page.get_by_role("region", name=name).bounding_box()["width"] for name in names]
    assert widths == pytest.approx([widths[0]] * 3, abs=1)


def test_a_point_of_the_front_opens_its_trial(shown, fronts, visit) -> None:
    with ft.Study.load("several", fronts) as study:
        numbers = {trial.number for trial in study.trials}
    page = opened(visit, shown, "several")

    page.get_by_role("region", name="latency against error, as expected").locator(".u-over").click()

    page.wait_for_url(re.compile(r"#/study/several/trial/\d+"))
    assert int(page.url.rpartition("/")[2]) in numbers
    expect(page.locator("main")).to_contain_text("latency")


def test_the_page_of_a_limit_has_the_limit_and_how_it_is_kept(shown, fronts, visit) -> None:
    with ft.Study.load("limited", fronts) as study:
        kept = sum(trial.points[-1].metrics["memory"] <= 4 for trial in study.trials)
        best, tried = study.best, len(study.trials)
    assert 0 < kept < tried

    page = opened(visit, shown, "limited")

    card = page.get_by_role("region", name="memory ≤ 4", exact=True)
    expect(card).to_contain_text(f"Kept by {kept} of {tried} results.")
    drawn = card.get_by_role("img").get_attribute("aria-label")
    assert f"within it: {kept} points" in drawn
    assert f"beyond it: {tried - kept} points" in drawn
    assert f"memory ≤ 4: {tried} points, last 4" in drawn
    expect(page.get_by_role("region", name="Best error within the limits").locator("canvas")).to_be_visible()
    fact = page.locator(".fact.good")
    expect(fact).to_contain_text(re.compile(r"error 0\.\d+, memory \d"))
    expect(fact.get_by_role("link", name=f"trial {best.trial.number}", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="The best configuration")).to_contain_text("limit ≤ 4")


@pytest.mark.parametrize("tab", ["trials", "parameters", "contour", "timeline", "trial/0"])
@pytest.mark.parametrize("name", NAMES)
def test_their_other_pages_are_drawn_without_a_fault(shown, visit, name: str, tab: str) -> None:
    page = visit(shown).open(f"study/{name}/{tab}")
    assert page.locator(".failure").count() == 0, page.locator("main").inner_text()
    if name == "several" and tab in ("parameters", "contour"):
        expect(page.get_by_label("Objective").locator("option")).to_have_text(["error", "latency"])


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", NAMES)
def test_neither_page_has_a_serious_barrier(shown, visit, name: str, look: str) -> None:
    page = opened(visit, shown, name, **LOOKS[look])
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in ("serious", "critical")]
    assert not serious, (look, name, serious)
