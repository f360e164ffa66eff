"""Changes, reports, where a server may listen, and outlines of long studies."""

import json
import re

import pytest

import farthing as ft
from farthing.dashboard.server import Listening, serve, token_to_use
from farthing.errors import InvalidArgument
from farthing.storage.measurement_rows import UnreadMeasurements
from farthing.trials import History
from tests.unit.dashboard.conftest import client_of

SPACE = ft.Space({"x": ft.Float(0, 1), "kind": ft.Choice("a", (1, 2))}, fidelities={"epochs": ft.Fidelity(1, 9)})


@pytest.fixture
def study(storage):
    made = ft.Study(SPACE, minimize="loss", storage=storage, name="acts", strategy=ft.Hyperband(), seed=1)
    yield made
    made.close()


@pytest.fixture
def acting(storage, study):
    return client_of(storage, may_change=True)


def test_a_study_is_stopped_and_its_budget_changed(acting, study) -> None:
    assert acting.post("/api/studies/acts/stop", json={}).json() == {"running": 0}
    assert study.history.is_to_stop
    assert acting.get("/api/studies/acts").json()["is_to_stop"]

    assert acting.post("/api/studies/acts/budget", json={"cost": 5}).json()["budget"] == {"cost": 5}
    assert acting.post("/api/studies/acts/budget", json={"trials": 7}).json()["budget"] == {"cost": 5, "trials": 7}
    assert study.budget == ft.Budget(cost=5, trials=7)
    hard = acting.post("/api/studies/acts/budget", json={"hard": True}).json()["budget"]
    assert hard == {"cost": 5, "trials": 7, "hard": True}
    assert acting.get("/api/studies/acts").json()["hard_budget"] is True
    assert acting.post("/api/studies/acts/budget", json={"hard": False}).json()["budget"] == {"cost": 5, "trials": 7}
    for wrong in ({}, {"cost": -1}, {"cost": "5"}, {"cost": True}, {"money": 1}, []):
        assert acting.post("/api/studies/acts/budget", json=wrong).status_code == 422, wrong


def test_a_configuration_is_put_in_line(acting, study) -> None:
    answer = acting.post("/api/studies/acts/queue", json={"params": {"x": 0.5, "kind": [1, 2]}, "tags": ["mine"]})

    assert answer.status_code == 200, answer.text
    assert study.trials[0].params == {"x": 0.5, "kind": (1, 2)}
    assert study.trials[0].tags == ("mine",)
    for wrong in ({"x": 0.5}, {"x": 2.0, "kind": "a"}, {"x": 0.5, "kind": "a", "y": 1}):
        assert acting.post("/api/studies/acts/queue", json={"params": wrong}).status_code == 422, wrong


def test_half_a_character_is_refused_and_what_is_stored_is_exported(acting, study, storage) -> None:
    """A lone surrogate, which JSON can hold and no file can."""
    study.tell(study.ask(), 0.5)
    for body in (b'{"comment": "half\\ud83d"}', b'{"tags": ["half\\ud83d"]}'):
        headers = {"content-type": "application/json"}
        refused = acting.patch("/api/studies/acts/trials/0", content=body, headers=headers)
        assert refused.status_code == 422, refused.text
        assert "whole characters" in refused.json()["error"]
    assert study.trials[0].comment == ""

    storage.annotate("acts", 0, comment="half\ud83d", tags=["half\ud83d"])
    assert "half\\ud83d,half\\ud83d" in acting.get("/api/studies/acts/trials.csv").text
    assert acting.get("/api/studies/acts/trials/0").status_code == 200
    assert acting.get("/api/studies/acts/trials?text=half").json()["matching"] == 1


def test_a_trial_is_annotated_and_pruned(acting, study) -> None:
    going, waiting = study.ask(), study.enqueue({"x": 0.1, "kind": "a"})
    acting.patch(f"/api/studies/acts/trials/{going.number}", json={"comment": "<b>", "tags": ["t"]})
    for number in (going.number, waiting.number):
        assert acting.post(f"/api/studies/acts/trials/{number}/prune", json={}).json()["state"] == "pruned"

    assert study.trials[going.number].comment == "<b>"
    assert [trial.state for trial in study.trials] == ["pruned", "pruned"]
    assert acting.post("/api/studies/acts/trials/0/prune", json={}).status_code == 409
    assert acting.post("/api/studies/acts/trials/99/prune", json={}).status_code == 404
    assert acting.patch("/api/studies/acts/trials/0", json={}).status_code == 422
    with pytest.raises(ft.FarthingError):
        going.report(0.5, epochs=1)


def test_the_best_is_put_in_line_to_be_verified_once(acting, study) -> None:
    study.add({"x": 0.2, "kind": "a"}, 0.5, fidelity={"epochs": 1})

    first = acting.post("/api/studies/acts/verify", json={}).json()
    again = acting.post("/api/studies/acts/verify", json={}).json()

    assert first == {"enqueued": [1], "waiting": [], "verified": None, "runs": 0}
    assert again == {"enqueued": [], "waiting": [1], "verified": None, "runs": 0}
    assert study.trials[1].fidelity == {"epochs": 9}
    assert study.trials[1].tags == ("verification",)


def test_what_a_page_asked_to_verify_is_carried_out_by_verify(acting, study) -> None:
    study.add({"x": 0.2, "kind": "a"}, 0.5, fidelity={"epochs": 1})
    acting.post("/api/studies/acts/verify", json={})

    done = study.verify(lambda trial: trial.params["x"], executor="inline", progress=False)

    assert (done.number, done.value, done.tags) == (1, 0.2, ("verification",))
    best = acting.get("/api/studies/acts/best").json()["best"]
    assert (best["trial"], best["fidelity"], best["is_full"]) == (1, {"epochs": 9}, True)
    answer = acting.post("/api/studies/acts/verify", json={}).json()
    assert answer["enqueued"] == answer["waiting"] == []
    assert answer["verified"]["number"] == 1


def test_a_run_that_is_alive_takes_up_what_a_page_asked_to_verify(acting, study) -> None:
    """The page asks in the middle of a run; the run then trains it, before what its strategy suggests."""
    answers = []

    def work(trial: ft.RunningTrial) -> float:
        if trial.number == 3:
            answers.append(acting.post("/api/studies/acts/verify", json={}).json())
        return trial.params["x"]

    study.run(work, budget=ft.Budget(trials=8), executor="inline", progress=False)

    (answer,) = answers
    assert answer["runs"] == 1
    (number,) = answer["enqueued"]
    assert study.trials[number].state == "done"
    assert study.trials[number].fidelity == {"epochs": 9}
    assert study.trials[number].tags == ("verification",)
    assert acting.get("/api/studies/acts").json()["runs"] == 0


def test_files_are_shown_only_if_they_are_pictures(acting, study, database) -> None:
    def work(trial: ft.RunningTrial) -> float:
        with trial.checkpoint() as folder:
            (folder / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
            (folder / "page.html").write_text("<script>alert(1)</script>")
            (folder / "fake.png").write_text("<svg onload=alert(1)>")
            (folder / "link.txt").symlink_to(database)
        return 0.5

    study.run(work, budget=ft.Budget(trials=1), executor="inline", progress=False)
    number = next(trial.number for trial in study.trials if trial.checkpoint)
    trial = acting.get(f"/api/studies/acts/trials/{number}").json()
    found = {file["name"]: file["image"] for file in trial["files"]}
    assert found == {"plot.png": True, "page.html": False, "fake.png": False}

    for name, kind, place in (("plot.png", "image/png", "inline"), ("page.html", "application/octet-stream", "attach")):
        answer = acting.get(f"/api/studies/acts/trials/{number}/file", params={"name": name})
        assert answer.headers["content-type"] == kind
        assert answer.headers["content-disposition"].startswith(place)
        assert "sandbox" in answer.headers["content-security-policy"]
    assert acting.get(f"/api/studies/acts/trials/{number}/file", params={"name": "link.txt"}).status_code == 404


def test_a_report_is_one_file_that_asks_for_nothing(study, tmp_path) -> None:
    for place in range(12):
        study.add({"x": place / 12, "kind": "a"}, place / 7, cost=1.0, fidelity={"epochs": 9})
    study.annotate(1, comment="</script><script>alert(1)</script>")

    made = study.report(tmp_path / "acts.html")
    text = (tmp_path / "acts.html").read_text()

    assert text == made.text
    assert "</script><script>alert" not in text
    assert not re.findall(r'(?:src|href)="(?!#)[^"]*"', text)
    answers = json.loads(re.search(r'id="report-data">(.*?)</script>', text)[1])
    assert answers["api/studies/acts"]["trials"] == 12
    assert answers["api/studies/acts/trials/1"]["comment"].startswith("</script>")
    assert "api/studies/acts/contour?x=x&y=kind" in answers
    assert answers["api/studies/acts/outlook"]["outlook"]["expected"] >= 0.0
    assert 'sandbox="allow-scripts"' in made._repr_html_()
    assert "acts" in repr(made)


def test_a_report_is_written_by_a_command(study, database, tmp_path, monkeypatch) -> None:
    from click.testing import CliRunner

    from farthing.cli.app import farthing

    study.add({"x": 0.5, "kind": "a"}, 1.0)
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(farthing, ["report", "acts", "--storage", str(database)])

    assert ended.exit_code == 0, ended.output
    assert "acts.html" in ended.output
    assert (tmp_path / "acts.html").stat().st_size > 50_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"host": "0.0.0.0"}, "--expose"),
        ({"host": "0.0.0.0", "is_exposed": True}, "encrypted"),
        ({"proxy": "board.example"}, "origin"),
        ({"proxy": "https://board.example/path"}, "origin"),
        ({"base_path": "board"}, "base path"),
        ({"base_path": "/a/../b"}, "base path"),
        ({"port": 70_000}, "port"),
    ],
)
def test_a_server_listens_elsewhere_only_on_purpose_and_encrypted(arguments, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        Listening(**arguments)


def test_a_server_may_listen_elsewhere_behind_a_proxy() -> None:
    assert Listening(host="0.0.0.0", is_exposed=True, proxy="https://board.example", base_path="/b").port == 8017
    assert Listening(host="::1").host == "::1"


def test_a_certificate_that_is_none_is_refused_in_a_sentence(storage, tmp_path) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")
    listening = Listening(port=0, certificate=tmp_path / "cert.pem", key=tmp_path / "cert.pem")
    with pytest.raises(InvalidArgument, match="a certificate and the key that belongs to it"):
        serve(storage, listening, place="stored.db")


def test_a_token_is_random_or_long_enough(monkeypatch) -> None:
    assert token_to_use() != token_to_use()
    monkeypatch.setenv("FARTHING_DASHBOARD_TOKEN", "short")
    with pytest.raises(InvalidArgument, match="16"):
        token_to_use()
    monkeypatch.setenv("FARTHING_DASHBOARD_TOKEN", "long-enough-for-this")
    assert token_to_use() == "long-enough-for-this"


@pytest.mark.parametrize("name", ["asha", "pb2", "random", "trace-kg"])
def test_a_large_study_is_the_same_history_with_its_measurements_unread(storage, name: str, monkeypatch) -> None:
    problem = storage.load_study(name).problem
    read = storage.history(name)
    monkeypatch.setattr("farthing.storage.measurement_rows.MANY", 1)
    lazy = storage.history(name)
    whole, outline = (History(problem, one.trials, events=one.events, version=one.version) for one in (read, lazy))

    assert any(isinstance(trial.measurements, UnreadMeasurements) for trial in outline)
    assert outline.cost == whole.cost
    assert [trial.costs for trial in outline] == [trial.costs for trial in whole]
    assert [trial.saved for trial in outline] == [trial.saved for trial in whole]
    assert [tuple(trial.measurements) for trial in outline] == [tuple(trial.measurements) for trial in whole]
    assert [len(trial.measurements) for trial in outline] == [len(trial.measurements) for trial in whole]
    assert storage.count_measurements(name) == sum(len(trial.measurements) for trial in whole)
    assert storage.events(name) == list(whole.events)


def test_a_large_study_is_read_without_its_curves(storage, monkeypatch) -> None:
    monkeypatch.setattr("farthing.dashboard.reading.MANY_MEASUREMENTS", 3)
    client = client_of(storage)

    about = client.get("/api/studies/asha").json()
    assert about["is_large"]
    assert about["ledger"] is None
    assert client.get("/api/studies/asha/bill").json()["total"] == pytest.approx(about["spent"])
    for view in ("/system", "/parameters", "/timeline", "/trials?sort=param.rate", "/predictions"):
        assert client.get(f"/api/studies/asha{view}").status_code == 200


def test_a_page_has_the_outlook_of_the_study(acting, study) -> None:
    early = acting.get("/api/studies/acts/outlook").json()
    for place in range(12):
        study.add({"x": place / 12, "kind": "a"}, (place / 12 - 0.4) ** 2, cost=2.0, fidelity={"epochs": 9})

    found = acting.get("/api/studies/acts/outlook").json()

    assert early["outlook"] is None
    assert "Run some" in early["why"]
    assert found == {"outlook": study.outlook().to_json(), "why": ""}


def test_the_outlook_of_a_long_study_goes_by_some_runs_at_the_price_of_all(acting, study, monkeypatch) -> None:
    monkeypatch.setattr("farthing.dashboard.routes.charts.MOST_IN_OUTLOOK", 10)
    for place in range(40):
        study.add({"x": place / 40, "kind": "a"}, (place / 40 - 0.4) ** 2, cost=2.0, fidelity={"epochs": 9})

    found = acting.get("/api/studies/acts/outlook").json()["outlook"]

    assert found["cost"] == pytest.approx(20.0)
    assert found["trials"] == 10
    assert 0.0 <= found["low"] <= found["expected"] <= found["high"]
