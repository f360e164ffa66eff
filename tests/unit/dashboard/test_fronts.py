"""Pages of several objectives and limits: every answer names the values that it is of."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

import farthing as ft
from farthing.dashboard.endpoints import key_of
from farthing.storage import open_storage
from tests.unit.dashboard.conftest import client_of

SPACE = ft.Space({"x": ft.Float(0.0, 1.0), "y": ft.Float(0.0, 1.0)})
KEY = key_of("net")


@pytest.fixture
def net(tmp_path) -> ft.Study:
    study = ft.Study(
        SPACE,
        minimize="error",
        maximize="speed",
        constraints={"memory": ft.AtMost(1.0)},
        storage=str(tmp_path / "net.db"),
        name="net",
        strategy="Sobol",
    )
    for i in range(10):
        x, y = i / 9, (i % 3) / 3
        study.add({"x": x, "y": y}, {"error": x + y, "speed": x, "memory": x + y / 2}, cost=2.0)
    return study


@pytest.fixture
def pages(net: ft.Study, tmp_path) -> Any:
    storage = open_storage(tmp_path / "net.db")
    yield client_of(storage)
    storage.close()


def read(pages: TestClient, view: str = "") -> Any:
    answer = pages.get(f"/api/studies/{KEY}{view}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_first_page_says_what_is_asked_of_results(pages: TestClient) -> None:
    about = read(pages)
    assert about["aim"] == "minimize error; maximize speed; memory ≤ 1"
    assert about["objectives"] == [{"name": "error", "minimize": True}, {"name": "speed", "minimize": False}]
    assert (about["needed"], about["limits"], about["worth"]) == (["speed", "memory"], {"memory": "≤ 1"}, [])
    [row] = pages.get("/api/studies").json()["studies"]
    assert (row["best"], row["trend"], row["aim"]) == (None, [], about["aim"])


def test_the_best_has_all_values_in_words_and_numbers(pages: TestClient, net: ft.Study) -> None:
    best = read(pages, "/best")["best"]
    assert best["values"].keys() == {"error", "speed", "memory"}
    assert best["trial"] == net.best.trial.number
    assert "The knee of a front of" in best["words"][0]


def test_the_front_is_that_of_the_study(pages: TestClient, net: ft.Study) -> None:
    found = read(pages, "/front")["front"]
    assert [point["trial"] for point in found["points"]] == [point.trial.number for point in net.front]
    assert len(found["others"]) == 10 - len(found["points"])
    assert found["attained"]["spent"][-1] == 20.0
    [limit] = found["limits"]
    assert (limit["name"], limit["bound"]) == ("memory", 1.0)
    assert limit["keeps"] == [value <= 1.0 for value in limit["values"]]


def test_pages_of_one_value_say_which(pages: TestClient) -> None:
    def values(of: str) -> list[float]:
        return list(read(pages, f"/parameters{of}")["value"])

    assert sorted(values("")) == sorted(values("?of=error")) != sorted(values("?of=speed"))
    assert read(pages, "/model?of=speed")["value"] == "speed"
    assert read(pages, "/contour?x=x&y=y&of=memory")["expected"]
    assert pages.get(f"/api/studies/{KEY}/model?of=weight").status_code == 422
    assert "of one value without limits" in read(pages, "/outlook")["why"]


def test_studies_are_compared_by_one_value(pages: TestClient) -> None:
    answer = pages.get(f"/api/compare?study={KEY}")
    assert answer.status_code == 422
    assert "compared by one value without limits, got 'net'" in answer.json()["error"]


def test_a_study_of_one_value_has_no_front(client: TestClient) -> None:
    found = client.get(f"/api/studies/{key_of('random')}/front").json()
    assert found["front"] is None
    assert "A front is of several objectives or limits" in found["why"]


def test_a_report_holds_the_front_and_the_views_of_each_objective(net: ft.Study) -> None:
    text = net.report().text
    kept = json.loads(text.partition('id="report-data">')[2].partition("</script>")[0])
    views = {address.partition("net")[2] for address in kept}
    assert {"/front", "/parameters?of=error", "/parameters?of=speed", "/model?of=speed"} <= views
    assert "/parameters" not in views


def test_the_front_page_has_the_best_for_each_sum(tmp_path) -> None:
    where = tmp_path / "net.db"
    with ft.Study(SPACE, minimize=["error", "cost"], cost_unit="$", noise=False, storage=where, name="net") as study:
        for place, dollars in enumerate([0.8, 7.0, 80.0]):
            study.add({"x": place / 10, "y": 0.5}, 1 / dollars, cost=dollars)
    storage = open_storage(where)
    found = read(client_of(storage), "/front")["front"]
    storage.close()
    assert [(one["sum"], one["trial"], one["predicted"]["cost"][0]) for one in found["for_sums"]] == [
        (1.0, 0, 0.8),
        (10.0, 1, 7.0),
        (100.0, 2, 80.0),
    ]
