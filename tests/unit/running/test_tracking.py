from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

import farthing as ft
from farthing.analysis.front import attained_along
from farthing.errors import InvalidArgument, MissingExtra
from farthing.running.tracking import Delivery, SoFar, StudyFacts
from farthing.session import session_of
from farthing.trackers import contents
from farthing.trackers.contents import numbers_at, standing
from farthing.trials import Problem

SPACE = ft.Space({"x": ft.Float(0.0, 1.0)}, fidelities={"epochs": ft.Fidelity(1, 3, integer=True, trace=True)})


class Listening(ft.trackers.Tracker):
    """Keeps what it is told."""

    patience = 300.0

    def __init__(self) -> None:
        self.told: list[tuple] = []

    def begin(self, study):
        self.told.append(("begin", study.name, study.identity, study.strategy))

    def start(self, trial):
        self.told.append(("start", trial.number))

    def report(self, trial, point):
        self.told.append(("report", trial.number, point.fidelity.get("epochs"), point.value))

    def end(self, trial, so_far):
        self.told.append(("end", trial.number, trial.state, so_far.trials))

    def finish(self, ledger):
        self.told.append(("finish", ledger.total))


def train(trial):
    if trial.number == 1:
        raise ValueError("diverged")
    for epoch in range(int(trial.fidelity["epochs"])):
        trial.report(trial.params["x"] + epoch, epochs=epoch + 1)


def run(tracker, *, trials=3, seed=0):
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=seed, cost_unit="epochs")
    study.run(train, budget=ft.Budget(trials=trials), executor="inline", trackers=[tracker], progress=False)
    return study


def test_a_tracker_is_told_what_happened_in_the_order_in_which_it_did():
    tracker = Listening()
    study = run(tracker)
    first = [("start", 0), *(("report", 0, p.fidelity["epochs"], p.value) for p in study.trials[0].points)]
    assert [told[0] for told in tracker.told[:1]] == ["begin"]
    assert tracker.told[1:6] == [*first, ("end", 0, "done", 1)]
    assert tracker.told[6:8] == [("start", 1), ("end", 1, "failed", 2)]
    assert tracker.told[-1] == ("finish", study.ledger.total)


class Failing(Listening):
    """Fails in every call but the last of a run."""

    def start(self, trial):
        raise OSError("no route\nto host")


def test_a_tracker_that_fails_is_warned_of_once_and_the_study_goes_on(caplog):
    study = run(Failing())
    assert len(study.history.done) == 2
    assert [record.getMessage() for record in caplog.records] == [
        "The tracker Failing failed, and the study goes on without it: OSError: no route to host"
    ]


class Late(Listening):
    """Cannot be reached at first: begins at the third try."""

    tries = 0

    def begin(self, study):
        self.tries += 1
        if self.tries < 3:
            raise OSError("not yet")
        super().begin(study)


def test_what_a_tracker_missed_is_told_at_the_end(caplog):
    tracker = Late()
    study = run(tracker)
    ends = [told[1] for told in tracker.told if told[0] == "end"]
    assert sorted(ends) == [0, 1, 2]
    for trial in study.history.done:
        told = [tuple(one[2:]) for one in tracker.told if one[:2] == ("report", trial.number)]
        assert told == [(point.fidelity["epochs"], point.value) for point in trial.points]


class Blocked(Listening):
    """Takes its first call and does not come back from it until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = Event()

    def begin(self, study):
        self.may.wait()
        super().begin(study)


def test_a_tracker_that_hangs_holds_up_no_trial_and_the_end_only_for_its_patience(caplog):
    tracker = Blocked()
    tracker.patience = 0.1
    study = run(tracker)
    tracker.may.set()
    assert len(study.history.done) == 2
    assert tracker.told in ([], [("begin", "study", session_of(study).files.identity, "Random")])
    assert [record.getMessage() for record in caplog.records] == [
        "The tracker Blocked did not take all of it within 0.1 seconds, and the rest is left out"
    ]


def test_a_full_queue_drops_and_the_end_of_the_run_makes_up_for_it(caplog):
    tracker = Blocked()
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0)
    study.run(train, budget=ft.Budget(trials=5), executor="inline", progress=False)
    delivery = Delivery(tracker, room=2)
    delivery.open(StudyFacts("full", "0", "Random", study.problem))
    so_far = SoFar()
    for trial in study.history.done:
        so_far = so_far.after(trial, study.problem)
        delivery.start(trial)
        delivery.end(trial, so_far)
    tracker.may.set()
    delivery.close(study.ledger)
    assert [told[1] for told in tracker.told if told[0] == "end"] == [0, 2, 3, 4]
    assert len([told for told in tracker.told if told[0] == "report"]) == 12
    assert len(caplog.records) == 1
    assert "slower than the study" in caplog.text


def test_an_attempt_that_is_tried_again_is_one_trial():
    tracker = Listening()
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0)
    study.run(train, budget=ft.Budget(trials=2), executor="inline", retries=1, trackers=[tracker], progress=False)
    about_second = [told for told in tracker.told if told[:2] in (("start", 1), ("end", 1))]
    assert about_second == [("start", 1), ("start", 1), ("end", 1, "failed", 2)]


def test_a_resumed_study_keeps_its_identity(tmp_path):
    identities = []
    for _ in range(2):
        tracker = Listening()
        with ft.Study(SPACE, minimize="error", strategy=ft.Random(), storage=tmp_path / "study.db") as study:
            study.run(train, budget=ft.Budget(trials=1), executor="inline", trackers=[tracker], progress=False)
        identities.append(tracker.told[0][2])
    assert identities[0] == identities[1]


@pytest.mark.parametrize("given", [3, ["mlflow"], [Listening]])
def test_trackers_must_be_trackers(given):
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random())
    with pytest.raises(InvalidArgument, match=r"trackers must be a list of trackers, got .* Write trackers="):
        study.run(train, budget=ft.Budget(trials=1), trackers=given)


def test_a_missing_library_is_named_with_its_extra():
    with pytest.raises(MissingExtra, match=r"ft.trackers.MLflow needs no_such_module, .*'farthing\[mlflow\]'"):
        contents.library("no_such_module.part", tracker="MLflow", extra="mlflow")


def test_the_best_so_far_follows_the_direction():
    study = run(Listening(), trials=4)
    values = [trial.value for trial in study.history.done]
    assert SoFar.of(study.history).best == min(values)
    turned = Problem(SPACE, minimize=False)
    best = SoFar()
    for trial in study.history:
        best = best.after(trial, turned)
    assert best.best == max(values)


def refused(work, trackers):
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0)
    study.run(work, budget=ft.Budget(trials=1), executor="inline", trackers=trackers, progress=False, retries=0)
    return study.trials[0].failure.reason


class Folders(Listening):
    """Work reaches the folder of its trial."""

    def __init__(self, folder) -> None:
        super().__init__()
        self.folder = str(folder)

    def address(self, study):
        return {"folder": f"{self.folder}/{study.name}"}

    @staticmethod
    @contextmanager
    def reach(address, number):
        yield Path(address["folder"]) / str(number)


class Halfway(Listening):
    def address(self, study):
        return {"folder": study.name}


def test_work_reaches_what_its_tracker_gives_it(tmp_path):
    def work(trial):
        with trial.tracker() as own:
            assert own.name == str(trial.number)
            return len(own.parent.name)

    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0, name="four")
    study.run(work, budget=ft.Budget(trials=2), executor="inline", trackers=[Folders(tmp_path)], progress=False)
    assert [trial.value for trial in study.trials] == [4, 4]


def test_a_tracker_with_an_address_and_no_way_to_it_says_what_is_missing():
    def work(trial):
        with trial.tracker():
            return 1.0

    assert "Define reach(address, number)" in refused(work, [Halfway()])


def test_work_says_which_tracker_it_means_if_there_are_several(tmp_path):
    def any_tracker(trial):
        with trial.tracker():
            return 1.0

    def one_by_name(trial):
        with trial.tracker("Folders") as own:
            return float(own.name)

    assert "A trial reaches a tracker of its run, got none" in refused(any_tracker, [])
    assert "got none" in refused(any_tracker, [Listening()]), "it has nothing to give"
    assert "got several: Folders, Other" in refused(any_tracker, [Folders(tmp_path), Other(tmp_path)])
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0)
    both = [Folders(tmp_path), Other(tmp_path)]
    study.run(one_by_name, budget=ft.Budget(trials=1), executor="inline", trackers=both, progress=False)
    assert study.trials[0].value == 0.0


class Other(Folders):
    pass


def test_all_values_of_a_study_of_several_are_told_and_no_best_is():
    points, standings = [], []

    class Reading(Listening):
        def begin(self, study):
            self.study = study
            super().begin(study)

        def report(self, trial, point):
            points.append(numbers_at(self.study, point))

        def end(self, trial, so_far):
            standings.append(standing(self.study, so_far))

    def work(trial):
        trial.report({"error": trial.params["x"], "speed": 1.0 + trial.number, "memory": 3.0 + trial.number}, epochs=3)

    limits = {"memory": ft.AtMost(4.5)}
    tracker = Reading()
    study = ft.Study(
        SPACE, minimize="error", maximize="speed", constraints=limits, strategy=ft.Random(), cost_unit="coins", seed=0
    )
    study.run(work, budget=ft.Budget(trials=3), executor="inline", trackers=[tracker], progress=False)
    assert tracker.study.settings["aim"] == "minimize error; maximize speed; memory ≤ 4.5"
    assert [point["speed"] for point in points] == [1.0, 2.0, 3.0]
    assert all(point.keys() == {"error", "speed", "memory"} for point in points)
    known = {"cost", "front.size", "front.hypervolume", "knee.trial", "knee.error", "knee.speed", "within_limits"}
    assert all(one.keys() == known for one in standings[:2])
    assert standings[-1]["front.size"] == len(SoFar.of(study.history).front.trials) <= 2
    assert [one["within_limits"] for one in standings] == [1.0, 1.0, pytest.approx(2 / 3)]


def test_a_tracker_is_told_the_hypervolume_and_the_knee_as_measured():
    study = ft.Study(SPACE, minimize=["error", "size"], strategy=ft.Random(), noise=False)
    for error, size in [(3.0, 3.0), (0.0, 10.0), (0.1, 2.0), (1.0, 0.0)]:
        study.tell(study.ask(), {"error": error, "size": size})
    so_far = SoFar.of(study.history)
    told = standing(StudyFacts("one", "0", "Random", study.problem), so_far)
    assert told["front.hypervolume"] == pytest.approx(attained_along(study.history)[-1].found)
    assert (told["knee.trial"], told["knee.error"], told["knee.size"]) == (2, 0.1, 2.0)
    assert "within_limits" not in told


def test_under_limits_the_best_so_far_keeps_them():
    study = ft.Study(SPACE, minimize="error", constraints={"memory": ft.AtMost(1)}, strategy=ft.Random(), seed=0)
    for error, memory in [(0.1, 2.0), (0.4, 0.5), (0.3, 1.0), (0.2, 1.5)]:
        study.tell(study.ask(), {"error": error, "memory": memory})
    so_far = SoFar.of(study.history)
    assert (so_far.best, so_far.best_trial) == (0.3, study.trials[2])
    told = standing(StudyFacts("one", "0", "Random", study.problem), so_far)
    assert (told["best.error"], told["within_limits"]) == (0.3, 0.5)
