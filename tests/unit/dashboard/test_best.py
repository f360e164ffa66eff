"""What the first page calls the best is what the library does."""

import math
from typing import Any

import pytest

import farthing as ft
from farthing.analysis import best as best_module
from farthing.dashboard.endpoints import key_of
from farthing.dashboard.reading import StudyReader
from farthing.storage import open_storage
from tests.unit.dashboard.conftest import client_of
from tests.unit.dashboard.test_api import NAMES

SPACE = ft.Space(
    {"rate": ft.Float(1e-4, 1.0, log=True), "kind": ft.Choice("adam", "sgd")},
    fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)},
)


def score(params: dict[str, Any], epochs: float) -> float:
    return math.exp(-abs(math.log10(params["rate"]) + 2)) * (1 - math.exp(-epochs / 6))


@pytest.mark.parametrize("name", NAMES)
def test_the_best_of_every_kind_of_study_is_the_librarys(client, database, name: str) -> None:
    with ft.Study.load(name, database) as study:
        expected = study.best.to_json() if study.history.done else None

    found = client.get(f"/api/studies/{key_of(name)}/best").json()["best"]

    assert found == (expected and {**expected, "is_full": found["is_full"], "words": found["words"]})


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_model_that_prefers_another_trial_is_asked(tmp_path, direction: str) -> None:
    """A short run that is expected to become the best is named, and not the best that was trained to the end."""
    sign = -1.0 if direction == "minimize" else 1.0
    aim: Any = {direction: "score", "strategy": ft.TraceKG()}
    with ft.Study(SPACE, storage=tmp_path / "s.db", name="s", cost_unit="epochs", **aim) as study:
        for place, rate in enumerate([0.3, 0.1, 0.05, 0.0005, 0.011]):
            params, epochs = {"rate": rate, "kind": "adam"}, 9 if place == 4 else 27
            trace = [({"epochs": at}, sign * score(params, at)) for at in (3, 6, 9, 18, 27) if at <= epochs]
            study.add(params, trace[-1][1], fidelity={"epochs": epochs}, cost=float(epochs), trace=trace)
        best = study.best
        assert best.trial.number == 4
    storage = open_storage(tmp_path / "s.db")

    found = client_of(storage).get("/api/studies/s/best").json()["best"]

    storage.close()
    assert (found["trial"], found["params"]) == (best.trial.number, dict(best.params))
    assert found["words"] == best.lines()
    assert found["is_full"] is best.is_full


def test_a_stored_recommendation_is_shown_without_asking_the_model_again(tmp_path, monkeypatch) -> None:
    """Until the study has gone on: of 100 000 trials the model takes nine seconds and half a gigabyte."""
    monkeypatch.setattr(best_module, "MANY_RESULTS", 5)
    aim: Any = {"maximize": "score", "strategy": ft.TraceKG()}
    with ft.Study(SPACE, storage=tmp_path / "s.db", name="s", seed=0, cost_unit="epochs", **aim) as study:

        def work(trial: ft.RunningTrial) -> None:
            for epochs in range(1, int(trial.fidelity["epochs"]) + 1):
                trial.charge(1.0)
                trial.report(score(trial.params, epochs), epochs=epochs)

        study.run(work, budget=ft.Budget(trials=6), executor="inline", progress=False)
        expected = {**study.best.to_json(), "is_full": study.best.is_full, "words": study.best.lines()}
        storage = open_storage(tmp_path / "s.db")
        with monkeypatch.context() as context:
            context.setattr(StudyReader, "refresh", lambda _: pytest.fail("it was read for the model"))
            found = client_of(storage).get("/api/studies/s/best").json()["best"]
        study.add({"rate": 0.01, "kind": "adam"}, 9.0, fidelity={"epochs": 27}, cost=27.0)
        later = client_of(storage).get("/api/studies/s/best").json()["best"]
        storage.close()
        assert found == expected
        assert later["trial"] == study.best.trial.number != expected["trial"]


def test_before_any_result_it_says_why_there_is_none(tmp_path) -> None:
    ft.Study(SPACE, minimize="score", storage=tmp_path / "s.db", name="s").close()
    storage = open_storage(tmp_path / "s.db")
    answer = client_of(storage).get("/api/studies/s/best").json()
    storage.close()
    assert answer["best"] is None
    assert "Run some first" in answer["why"]


def test_a_contour_is_of_the_model_that_is_plotted(client, database) -> None:
    """Through the best trial it has the values of the slice in `study.plot("model")`."""
    with ft.Study.load("random", database) as study:
        expected = study.diagnose()
    sliced = next(one for one in expected.slices if one.parameter != "optimizer")

    found = client.get(f"/api/studies/random/contour?x={sliced.parameter}&y=optimizer").json()

    assert found["best"] == expected.best
    best = client.get(f"/api/studies/random/trials/{found['best']}").json()["params"]
    row = found["expected"][found["ys"].index(best["optimizer"])]
    along = dict(zip(sliced.values, sliced.expected, strict=True))
    shared = [(along[x], value) for x, value in zip(found["xs"], row, strict=True) if x in along]
    assert len(shared) > 1
    assert [one for one, _ in shared] == pytest.approx([other for _, other in shared])
