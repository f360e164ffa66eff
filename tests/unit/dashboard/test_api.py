"""The API on the stored studies: one of each strategy."""

import base64
import csv
import hashlib
import io
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.analysis.lines import Lines
from farthing.dashboard import application as served
from farthing.dashboard.endpoints import key_of, name_of, openapi
from farthing.dashboard.routes import ENDPOINTS
from farthing.session import session_of
from farthing.storage import MemoryStorage, open_storage
from tests.unit.dashboard.conftest import STORED, client_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "dashboard_api.json"
with closing(sqlite3.connect(f"file:{STORED}?mode=ro", uri=True)) as stored:  # opening it as a storage would migrate it
    NAMES = [name for (name,) in stored.execute("SELECT name FROM study ORDER BY name")]
VIEWS = (
    "",
    "/best",
    "/bill",
    "/outlook",
    "/predictions",
    "/trials",
    "/trials/0",
    "/parameters",
    "/timeline",
    "/system",
)


@pytest.mark.parametrize("name", NAMES)
def test_every_view_of_every_kind_of_study_is_answered(client, name: str) -> None:
    for view in VIEWS:
        answer = client.get(f"/api/studies/{key_of(name)}{view}")
        assert answer.status_code == 200, (view, answer.text)
        json.dumps(answer.json(), allow_nan=False)


def test_kinds_of_studies_are_told_apart_without_importing_anything(client) -> None:
    kinds = {name: client.get(f"/api/studies/{key_of(name)}").json()["kind"] for name in NAMES}

    assert kinds["random"] == kinds["asha"] == "multifidelity"
    assert kinds["pb2"] == "population"
    assert kinds["lambo"] == "pipeline"
    assert kinds["online"] == "online"


def test_the_list_has_what_each_study_cost_and_found(client, database) -> None:
    found = {one["name"]: one for one in client.get("/api/studies").json()["studies"]}

    with ft.Study.load("asha", database) as study:
        assert found["asha"]["spent"] == pytest.approx(study.history.cost)
        assert found["asha"]["best"] == min(trial.value for trial in study.history.done)
        assert found["asha"]["trend"][-1] == found["asha"]["best"]


@pytest.mark.parametrize("name", NAMES)
def test_lines_agree_with_the_history(database, name: str) -> None:
    with ft.Study.load(name, database) as study:
        storage: Any = session_of(study).records._storage
        read, computed = Lines.from_rows(storage.lines(name).lines), Lines.of(study.history)

    assert read.counts == computed.counts
    assert read.cost.tolist() == pytest.approx(computed.cost.tolist())
    assert read.best(study.problem) == computed.best(study.problem)
    assert read.total == pytest.approx(computed.total)


def test_a_table_is_filtered_sorted_and_cut(client) -> None:
    def numbers(query: str) -> list[int]:
        return [one["number"] for one in client.get(f"/api/studies/asha/trials?{query}").json()["trials"]]

    def values(query: str) -> list[float]:
        return [one["value"] for one in client.get(f"/api/studies/asha/trials?{query}").json()["trials"]]

    assert numbers("limit=3&offset=2") == [2, 3, 4]
    assert numbers("state=failed") == [6, 13]
    best_first = values("sort=value&state=done")
    assert best_first == sorted(best_first)
    assert values("sort=value&order=down&state=done") == best_first[::-1]
    assert values("sort=value")[-2:] == [None, None]
    assert set(numbers("where=optimizer=adam")) < set(range(14))
    assert numbers("where=units=5..5") == [
        one["number"] for one in client.get("/api/studies/asha/trials").json()["trials"] if one["params"]["units"] == 5
    ]
    assert numbers("text=DIVERGED") == [6, 13]
    assert numbers("tag=none") == []
    rates = [one["params"]["rate"] for one in client.get("/api/studies/asha/trials?sort=param.rate").json()["trials"]]
    assert rates == sorted(rates)


def test_the_table_comes_as_csv_that_a_spreadsheet_does_not_execute(client, database) -> None:
    with ft.Study.load("asha", database) as study:
        study.annotate(3, comment="=cmd|' /C calc'!A0")

    answer = client.get("/api/studies/asha/trials.csv?state=done&sort=value")
    rows = list(csv.DictReader(io.StringIO(answer.text)))

    assert "attachment" in answer.headers["content-disposition"]
    assert [row["state"] for row in rows] == ["done"] * 12
    assert next(row for row in rows if row["number"] == "3")["comment"].startswith("'=cmd")


@pytest.mark.parametrize(
    "path",
    [
        "/api/studies/asha/trials?limit=0",
        "/api/studies/asha/trials?limit=501",
        "/api/studies/asha/trials?offset=-1",
        "/api/studies/asha/trials?sort=param.nothing",
        "/api/studies/asha/trials?order=sideways",
        "/api/studies/asha/trials?state=asleep",
        "/api/studies/asha/trials?where=rate",
        "/api/studies/asha/trials?limit=1&limit=2",
        "/api/studies/log-ei/contour?x=rate&y=rate",
        "/api/studies/log-ei/contour?x=rate&y=nothing",
        f"/api/studies/asha/trials?text={'x' * 1001}",
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words(client, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code == 422
    assert answer.json()["error"]


def test_what_is_not_there_is_not_found(client) -> None:
    for path in (
        "/api/studies/nothing",
        "/api/studies/asha/trials/99",
        "/api/nothing",
        "/api/studies/asha/trials/0/log",
    ):
        assert client.get(path).status_code == 404


def test_a_model_says_what_matters_and_fills_a_contour(client) -> None:
    model = client.get("/api/studies/log-ei/model").json()
    found = client.get("/api/studies/log-ei/contour?x=rate&y=layers").json()

    assert sum(model["importance"].values()) > 0
    assert set(model["importance"]) == set(model["importance_deviation"])
    assert len(found["expected"]) == len(found["ys"]) == 3
    assert len(found["expected"][0]) == len(found["xs"]) == 31
    assert client.get("/api/studies/online/model").status_code == 404


def test_an_answer_that_the_page_has_is_not_sent_again(client) -> None:
    first = client.get("/api/studies/asha")

    again = client.get("/api/studies/asha", headers={"if-none-match": first.headers["etag"]})

    assert again.status_code == 304
    assert not again.content


def test_what_happens_to_a_study_is_seen_at_the_next_look(client, database) -> None:
    before = client.get("/api/studies/random").json()["trials"]
    with ft.Study.load("random", database) as study:
        study.enqueue({"rate": 0.01, "units": 8, "layers": 2, "optimizer": "adam"})

    after = client.get("/api/studies/random").json()

    assert after["trials"] == before + 1
    assert after["in_flight"][-1]["params"]["units"] == 8
    assert after["counts"]["pending"] == 1


def test_a_study_that_is_deleted_is_gone_from_the_pages(client, database) -> None:
    assert client.get("/api/studies/sobol").status_code == 200
    ft.delete_study("sobol", database)

    assert client.get("/api/studies/sobol").status_code == 404
    assert "sobol" not in {one["name"] for one in client.get("/api/studies").json()["studies"]}


def test_a_study_in_memory_is_shown_too() -> None:
    storage = MemoryStorage()
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="loss", storage=storage, name="kept/in memory")
    study.add({"x": 0.5}, 1.0, cost=2.0)
    client = client_of(storage)
    key = client.get("/api/studies").json()["studies"][0]["key"]

    for view in VIEWS:
        assert client.get(f"/api/studies/{key}{view}").status_code == 200, view
    assert client.get(f"/api/studies/{key}").json()["spent"] == 2.0


def test_a_list_that_is_followed_is_what_a_new_server_would_show(client, database) -> None:
    """A study that changes while it is looked at is added up from lines, not by the database."""
    client.get("/api/studies")
    for name in ("asha", "random"):
        with ft.Study.load(name, database) as study:
            trial = study.ask()
            study.tell(trial, 0.001, cost=3.0)
            study.tell(study.ask(), failure="it broke", cost=1.0)
            study.ask()

    followed = client.get("/api/studies").json()["studies"]
    with closing(open_storage(database)) as storage:
        anew = client_of(storage).get("/api/studies").json()["studies"]

    assert [one.pop("spent") for one in followed] == pytest.approx([one.pop("spent") for one in anew])
    assert followed == anew
    assert next(one for one in followed if one["name"] == "asha")["counts"]["running"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_lines_that_are_updated_are_those_that_are_read_at_once(storage, name: str) -> None:
    whole = storage.lines(name)
    early = [line for line in whole.lines if line[0] < len(whole.lines) // 2]
    stale = [(*line[:1], "running", None, 0.0, *line[4:6], None, *line[7:]) for line in early]

    updated = Lines.from_rows(stale).updated(whole.lines)

    expected = Lines.from_rows(whole.lines)
    assert updated.states == expected.states
    assert updated.number.tolist() == expected.number.tolist()
    assert updated.cost.tolist() == expected.cost.tolist()
    assert updated.owners == expected.owners
    assert updated.results == storage.results(name)
    assert updated.spent.tolist() == expected.spent.tolist()


def test_studies_are_compared(client) -> None:
    found = client.get("/api/compare?study=asha&study=random").json()["studies"]

    assert [one["name"] for one in found] == ["asha", "random"]
    assert client.get("/api/compare?" + "&".join(["study=asha"] * 9)).status_code == 422


@pytest.mark.parametrize("name", ["digits", "a/b", "..", "~", "a b", "ß", "<script>", "%2F", "x~20y", "a.b"])
def test_any_name_has_a_key_of_its_own_that_is_no_path(name: str) -> None:
    key = key_of(name)

    assert name_of(key) == name
    assert all(letter.isalnum() or letter in "-_~" for letter in key)


def test_the_kept_document_is_that_of_the_routes(client) -> None:
    served_document = client.get("/api/openapi.json").json()

    assert served_document == json.loads(json.dumps(openapi(ENDPOINTS)))
    assert json.loads(DOCUMENT.read_text()) == served_document, "python -m farthing.dashboard.document > " + str(
        DOCUMENT
    )
    assert {(one.method, one.path) for one in ENDPOINTS} == {
        (method.upper(), path) for path, own in served_document["paths"].items() for method in own
    }


def test_passwords_are_never_shown(client, monkeypatch) -> None:
    from farthing.errors import StorageError

    def broken(*_):
        raise StorageError("got postgresql://me:secret@host/db, which does not answer.")

    monkeypatch.setattr("farthing.dashboard.reading.ShownStudies.versions", broken)
    answer = client.get("/api/studies")

    assert answer.status_code == 503
    assert "secret" not in answer.text
    assert ":***@" in answer.text


def test_a_fault_of_ours_tells_strangers_nothing(client, monkeypatch, caplog) -> None:
    monkeypatch.setattr("farthing.dashboard.reading.ShownStudies.versions", lambda _: 1 / 0)

    answer = client.get("/api/studies")

    assert answer.status_code == 503
    assert "ZeroDivision" not in answer.text
    assert "ZeroDivision" in caplog.text


def test_every_page_is_served_small_and_typed(client) -> None:
    page = client.get("/")

    assert page.headers["content-type"].startswith("text/html")
    assert "<script>" not in page.text
    (style,) = re.findall("<style>(.*?)</style>", page.text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'self' 'sha256-{digest}';" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    for path in sorted(served.STATIC.rglob("*.js")):
        answer = client.get(f"/static/{path.relative_to(served.STATIC).as_posix()}")
        assert answer.headers["content-type"].startswith("text/javascript"), path
        assert answer.headers["content-encoding"] == "gzip"
        again = client.get(str(answer.url), headers={"if-none-match": answer.headers["etag"]})
        assert again.status_code == 304


def test_it_lives_below_a_base_path(storage) -> None:
    client = client_of(storage, base_path="/board")

    assert client.get("/board/").status_code == 200
    assert client.get("/board/api/studies").status_code == 200
    assert client.get("/board/static/app.js").status_code == 200
    assert client.get("/api/studies").status_code == 404


def test_reading_imports_no_strategy_of_the_database(tmp_path, monkeypatch) -> None:
    (tmp_path / "booby_trap.py").write_text("raise SystemExit('executed')")
    monkeypatch.syspath_prepend(tmp_path)
    storage = open_storage(tmp_path / "trap.db")
    study = ft.Study(
        ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)}), minimize="loss", storage=storage, name="trap"
    )
    for place in range(6):
        study.add({"x": place / 6, "y": place / 7}, float(place))
    storage.update_study("trap", strategy={"name": "booby_trap:Trap", "arguments": {}})
    client = client_of(storage)

    for view in (*VIEWS, "/model", "/contour?x=x&y=y"):
        assert client.get(f"/api/studies/trap{view}").status_code == 200, view
    storage.close()
