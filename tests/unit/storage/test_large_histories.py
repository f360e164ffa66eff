"""Measurements of large histories stay in the database until somebody looks; else they are what small ones are."""

import copy
import gc
import io
import json
import pickle
import sqlite3
from contextlib import closing

import pytest

import farthing as ft
from farthing.analysis import best
from farthing.costs import Ledger
from farthing.errors import StorageError
from farthing.session import session_of
from farthing.storage import json_text, measurement_rows, open_storage, rows
from farthing.storage.measurement_rows import UnreadMeasurements
from farthing.trials import Attempt, Failure, History, Measurement, Outcome, State, Suggestion
from farthing.trials.measurement import payments, savings

TRIALS, POINTS = 60, 5
SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"n": ft.Fidelity(1, 9, integer=True, trace=True)})


@pytest.fixture
def address(tmp_path):
    """A study of trials with curves; the last one runs."""
    study = ft.Study(SPACE, minimize="e", storage=tmp_path / "large.db", strategy=ft.Random(), seed=0)
    storage = open_storage(tmp_path / "large.db")
    for number in range(TRIALS):
        points = [
            Measurement(
                value=number + place / 8, cost={"training": 0.1 * place}, fidelity={"n": place + 1}, sequence=place
            )
            for place in range(POINTS)
        ]
        suggestion = Suggestion({"x": number / TRIALS}, {"n": POINTS})
        if number < TRIALS - 1:
            storage.add_trial("study", suggestion, Outcome(State.DONE, value=number, measurements=points))
        else:
            storage.open_trials("study", [suggestion], owner="somebody", lease=600.0)
            storage.record("study", Attempt(number, 1), points, lease=600.0)
    study.close()
    return tmp_path / "large.db"


@pytest.fixture
def small(address):
    return list(open_storage(address).history("study").trials)


@pytest.fixture
def large(address, small, monkeypatch):
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    monkeypatch.setattr(rows, "_AT_ONCE", 7)
    return list(open_storage(address).history("study").trials)


def objects_of(kind: type) -> int:
    gc.collect()
    return sum(type(thing) is kind for thing in gc.get_objects())


def test_a_large_history_is_equal_to_the_same_read_as_objects(small, large):
    assert all(isinstance(trial.measurements, UnreadMeasurements) for trial in large if trial.is_finished)
    assert all(isinstance(trial.measurements, tuple) for trial in small)
    assert large == small
    assert small == large
    assert [trial.points for trial in large] == [trial.points for trial in small]
    assert [trial.costs for trial in large] == [trial.costs for trial in small]
    assert repr(large[3].measurements) == repr(small[3].measurements)


def test_measurements_of_a_large_history_are_a_sequence(small, large):
    stored, plain = large[3].measurements, small[3].measurements
    assert (len(stored), stored[0], stored[-1], stored[1:3]) == (len(plain), plain[0], plain[-1], plain[1:3])
    assert plain[2] in stored
    assert list(reversed(stored)) == list(reversed(plain))
    assert stored != plain[:-1]
    with pytest.raises(IndexError):
        stored[POINTS]


def test_copies_of_a_large_history_are_plain(large):
    for twin in (copy.deepcopy(large[3]), pickle.loads(pickle.dumps(large[3]))):
        assert isinstance(twin.measurements, tuple)
        assert twin == large[3]


def test_opening_a_large_history_makes_no_object_of_a_measurement_that_is_over(address, monkeypatch):
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    before = objects_of(Measurement)
    study = ft.Study.load("study", address, strategy=ft.Random())
    history = study.history
    of_the_one_that_runs = POINTS
    assert (len(history), objects_of(Measurement) - before) == (TRIALS, of_the_one_that_runs)
    assert study.best.value == 0


def test_the_bill_of_a_large_history_is_the_same_and_makes_no_object_of_a_measurement(small, large, monkeypatch):
    problem = ft.Study(SPACE, minimize="e").problem
    expected = Ledger.of(History(problem, small)).to_json()

    def forbidden(*_):
        raise AssertionError("a measurement was made")

    monkeypatch.setattr(rows, "measurement", forbidden)
    history = History(problem, large)
    assert Ledger.of(history).to_json() == expected
    assert history.cost == pytest.approx(expected["total"])


def test_what_is_charged_and_what_failed_are_on_the_bill_of_a_large_history(address, monkeypatch):
    storage = open_storage(address)
    charge = [Measurement(cost={"training": 5.0}, charged=True)]
    storage.add_trial("study", Suggestion({"x": 0.5}), Outcome(State.DONE, value=0.1, measurements=charge))
    failed = Outcome(State.FAILED, failure=Failure("no"), measurements=[Measurement(cost={"training": 2.0})])
    storage.add_trial("study", Suggestion({"x": 0.5}), failed)
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    *_, charged, wasted = open_storage(address).history("study").trials
    assert isinstance(charged.measurements, UnreadMeasurements)
    assert (charged.costs, wasted.costs) == ({"training": 5.0}, {"failed": 2.0})


def trial_of_two_attempts(storage, last):
    [trial] = storage.open_trials("study", [Suggestion({"x": 0.5})], owner="one", lease=600.0, retries=1)
    first = [Measurement(cost={"training": 1.0}, sequence=0), Measurement(cost={"training": 2.0}, sequence=1)]
    again = Outcome(State.FAILED, failure=Failure("no"), measurements=first, retry=True)
    storage.close_trial("study", Attempt(trial.number, 1), again)
    claimed = storage.claim_trial("study", owner="two", lease=600.0)
    assert (claimed.number, claimed.attempt) == (trial.number, 2)
    storage.close_trial("study", Attempt(trial.number, 2), Outcome(State.DONE, value=0.1, measurements=last))


def test_several_attempts_and_savings_are_on_the_bill_of_a_large_history(address, monkeypatch):
    storage = open_storage(address)
    trial_of_two_attempts(storage, [Measurement(cost={"training": 4.0}, attempt=2)])
    trial_of_two_attempts(storage, [])
    saving = [Measurement(cost={"training": 16.0}, saved={"reuse": 32.0})]
    storage.add_trial("study", Suggestion({"x": 0.5}), Outcome(State.DONE, value=0.1, measurements=saving))
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    *_, again, unpaid, saved = open_storage(address).history("study").trials
    assert isinstance(again.measurements, UnreadMeasurements)
    first = [{"training": 1.0}, {"training": 2.0}]
    assert payments(again.measurements) == ([1, 1, 2], [False] * 3, [*first, {"training": 4.0}])
    assert again.costs == {"failed": 3.0, "training": 4.0}
    assert payments(unpaid.measurements) == ([1, 1], [False] * 2, first)
    assert unpaid.costs == {"failed": 3.0}
    assert (savings(again.measurements), savings(unpaid.measurements)) == ([], [])
    assert payments(saved.measurements) == ([1], [False], [{"training": 16.0}])
    assert savings(saved.measurements) == [{"reuse": 32.0}]


def test_a_large_history_goes_on_as_a_small_one_does(address, monkeypatch):
    other, storage = open_storage(address), open_storage(address)
    plain = other.history("study")
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    stored = storage.history("study")
    point = Measurement(value=1.0, fidelity={"n": 6}, sequence=POINTS)
    storage.record("study", Attempt(TRIALS - 1, 1), [point], lease=600.0)
    changed = storage.history("study", since=stored.version).trials
    assert changed == other.history("study", since=plain.version).trials
    assert len(changed[-1].measurements) == POINTS + 1


def test_opening_a_large_history_reads_the_measurements_of_no_trial_that_has_ended(address, monkeypatch):
    """A million rows take seconds and half a gigabyte, whoever needs them."""
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    read = rows_read(monkeypatch)
    history = ft.Study.load("study", address).history
    of_the_one_that_runs = POINTS
    assert (len(history), sum(read)) == (TRIALS, TRIALS + of_the_one_that_runs)
    assert len(history[3].points) == POINTS


def test_opening_a_large_history_counts_the_measurements_of_no_trial(address, monkeypatch):
    """To count a million rows takes a tenth of opening, and few who open a study ask how many there are."""
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    fetched: list[int] = []
    plain = rows.plain
    monkeypatch.setattr(rows, "plain", lambda found: ((fetched.append(len(rest)), rest)[1] for rest in plain(found)))
    history = ft.Study.load("study", address).history
    of_the_one_that_runs = POINTS
    assert (len(history), sum(fetched)) == (TRIALS, TRIALS + of_the_one_that_runs)
    assert [len(trial.measurements) for trial in history] == [POINTS] * TRIALS
    assert sum(fetched) == 2 * TRIALS + of_the_one_that_runs


def test_the_texts_of_many_trials_are_decoded_together(address, monkeypatch):
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    decoded: list[str] = []
    decode = json_text.from_text
    for module in (json_text, rows):
        monkeypatch.setattr(module, "from_text", lambda text: (decoded.append(text), decode(text))[1])
    assert len(open_storage(address).history("study").trials) == TRIALS
    of_the_one_that_runs = 2 * POINTS
    assert len(decoded) <= 2 + of_the_one_that_runs


@pytest.mark.parametrize("column", ["params", "note"])
@pytest.mark.parametrize("text", ["", "1],[2", '{"x":0.5},{"x":0.5}', '{"x":{"a":1}', "[1", "NaN}"])
def test_one_wrong_text_among_many_is_refused_with_the_number_of_its_trial(address, column, text):
    with closing(sqlite3.connect(address)) as connection, connection:
        connection.execute(f"UPDATE trial SET {column} = ? WHERE number = 3", (text,))
    with pytest.raises(StorageError, match="Trial 3 cannot be read"):
        open_storage(address).history("study")


def test_a_trial_of_a_large_history_without_measurements_costs_nothing_and_reads_nothing(address, monkeypatch):
    open_storage(address).add_trial("study", Suggestion({"x": 0.5}), Outcome(State.FAILED, failure=Failure("no")))
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    *_, failed = open_storage(address).history("study").trials
    assert isinstance(failed.measurements, UnreadMeasurements)
    read = rows_read(monkeypatch)
    assert (failed.costs, failed.saved, len(failed.measurements)) == ({}, {}, 0)
    assert not read
    assert failed.measurements == ()


def rows_read(monkeypatch) -> list[int]:
    """Grows by the measurements of which an object is made, and by the trials that are read."""
    read: list[int] = []
    for name in ("measurement", "entry"):
        made = getattr(rows, name)
        monkeypatch.setattr(rows, name, lambda *given, made=made, **named: (read.append(1), made(*given, **named))[1])
    return read


def test_what_is_kept_of_an_export_does_not_grow_with_the_measurements(address, monkeypatch):
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    monkeypatch.setattr(measurement_rows, "BLOCK", 2)
    monkeypatch.setattr(measurement_rows, "MOST_BLOCKS", 1)
    study = ft.Study.load("study", address)
    before = len(study.history) and objects_of(Measurement)
    study.export(Discarding(), format="json")
    assert objects_of(Measurement) - before <= 3 * POINTS


def test_an_export_is_what_it_was_and_has_one_trial_in_memory_at_a_time(address):
    study = ft.Study.load("study", address)
    text = study.export(format="json")
    assert text == json.dumps(json.loads(text), indent=1)
    file = io.StringIO()
    assert study.export(file, format="json") is None
    assert file.getvalue() == text
    assert len(json.loads(text)["trials"]) == TRIALS


def test_an_export_without_trials_is_json():
    study = ft.Study(SPACE, minimize="e")
    text = study.export(format="json")
    assert text == json.dumps(json.loads(text), indent=1)


class Discarding(io.TextIOBase):
    """Remembers how much came and at what most at once."""

    def __init__(self) -> None:
        self.total = self.most = 0

    def write(self, text: str) -> int:
        self.total += len(text)
        self.most = max(self.most, len(text))
        return len(text)


def test_what_is_exported_is_written_trial_by_trial(address):
    file = Discarding()
    ft.Study.load("study", address).export(file, format="json")
    assert file.most < 3 * file.total / TRIALS


@pytest.mark.parametrize("format", ["json", "csv"])
def test_an_export_leaves_nothing_of_the_measurements_in_the_history(address, format):
    """A million of them would stay, as objects, for as long as the study is open."""
    study = ft.Study.load("study", address)
    study.export(Discarding(), format=format)
    assert not [trial for trial in study.history if "points" in vars(trial)]


def test_an_unknown_format_leaves_no_file(tmp_path):
    with pytest.raises(ft.FarthingError, match="format"):
        ft.Study(SPACE, minimize="e").export(tmp_path / "trials.xlsx")
    assert not (tmp_path / "trials.xlsx").exists()


BESTS = {
    "minimized": ({"minimize": "e"}, SPACE, [({"n": 9}, 0.4), ({"n": 9}, 0.2), ({"n": 3}, 0.1), ({"n": 9}, 0.2)]),
    "maximized": ({"maximize": "e"}, SPACE, [({"n": 9}, 0.4), ({"n": 9}, 0.5), ({"n": 3}, 0.9), ({"n": 9}, 0.5)]),
    "short": ({"minimize": "e"}, SPACE, [({"n": 2}, 0.4), ({"n": 3}, 0.5), ({"n": 3}, 0.3)]),
    "plain": ({"minimize": "e"}, ft.Space({"x": ft.Float(0, 1)}), [(None, 0.4), (None, 0.2)]),
}


@pytest.mark.parametrize("name", BESTS)
def test_the_best_that_is_searched_for_is_the_best_of_the_history(tmp_path, name, monkeypatch):
    aim, space, results = BESTS[name]
    study = ft.Study(space, **aim, storage=tmp_path / "study.db", strategy=ft.Random(), seed=0)
    for place, (fidelity, value) in enumerate(results):
        study.add({"x": place / 8}, value, fidelity=fidelity)
    study.tell(study.ask(), failure="no")
    expected = study.best
    study.close()
    reader = ft.Study.load("study", tmp_path / "study.db")
    monkeypatch.setattr(best, "_by_history", lambda *_, **__: pytest.fail("the history was read"))
    assert reader.best == expected
    assert session_of(reader).records.history.version == 0


def test_a_study_without_a_result_has_no_best_to_search_for(tmp_path):
    study = ft.Study(SPACE, minimize="e", storage=tmp_path / "study.db", strategy=ft.Random(), seed=0)
    study.tell(study.ask(), failure="no")
    with pytest.raises(ft.FarthingError, match="got none among 1 trials"):
        _ = ft.Study.load("study", tmp_path / "study.db").best


@pytest.mark.parametrize(
    "column",
    [
        ("cost", '{"training":"much"}'),
        ("cost", '{"training":NaN}'),
        ("cost", '{"training":-1}'),
        ("cost", '{"of nobody":1}'),
        ("saved", '{"a":"much"}'),
    ],
)
def test_what_was_changed_by_hand_is_refused_where_it_is_summed(address, monkeypatch, column):
    monkeypatch.setattr(measurement_rows, "MANY", 10)
    with closing(sqlite3.connect(address)) as connection, connection:
        connection.execute(f"UPDATE measurement SET {column[0]} = ? WHERE trial = 3", column[1:])
    trials = list(open_storage(address).history("study").trials)
    with pytest.raises(StorageError, match="A stored"):
        assert trials[3].cost + sum(trials[3].saved.values()) == 0.0
