"""The recommendation: what it says of itself, and how it is trained to full fidelity."""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from benchmarks.baselines.curve_guided import FreezeThawEI
from farthing.analysis.model import fit_history
from farthing.errors import InvalidArgument, NoResult
from farthing.execution.platform import usable_cores
from farthing.extending import History, Randomness, Remaining, Strategy
from farthing.strategies import Recommendation
from farthing.trials import Prediction

EPOCHS = {"epochs": ft.Fidelity(1, 27, integer=True, trace=True)}
CURVES = ft.Space({"x": ft.Float(0, 1)}, fidelities=EPOCHS)
TWO = ft.Space({"x": ft.Float(0, 1)}, fidelities={**EPOCHS, "data": ft.Fidelity(0.25, 1.0)})


@dataclass(frozen=True)
class Predicting(ft.ASHA):
    """Recommends by a "model" that knows the truth, x, whatever was measured; only the furthest trial of a run."""

    def recommend(self, history: History) -> Recommendation | None:
        best = min(history.done, key=lambda trial: (trial.params["x"], -history.reach(trial)), default=None)
        return None if best is None else Recommendation(best.params, best, Prediction(best.params["x"], 0.004))


def train(trial: ft.RunningTrial) -> None:
    """Saves how often an epoch was trained at all, so that a run that did not continue is found out."""
    done, trained = 0, 0
    if trial.resume_dir:
        done, trained = map(int, (trial.resume_dir / "epochs").read_text().split())
    for epoch in range(done + 1, int(trial.fidelity["epochs"]) + 1):
        trained += 1
        trial.report(trial.params["x"] + 1 / epoch, epochs=epoch, metrics={"trained": trained})
    (trial.checkpoint_dir / "epochs").write_text(f"{int(trial.fidelity['epochs'])} {trained}")


def forgetful(trial: ft.RunningTrial) -> None:
    for epoch in range(1, int(trial.fidelity["epochs"]) + 1):
        trial.report(trial.params["x"] + 1 / epoch, epochs=epoch)


def epochs(params: Mapping[str, Any], fidelity: Mapping[str, float]) -> float:
    return fidelity["epochs"] * fidelity.get("data", 1.0)


def study_of(space: ft.Space = CURVES, *, work: Any = train, trials: int = 8, **settings: Any) -> ft.Study:
    strategy = settings.pop("strategy", Predicting(fidelity="epochs"))
    study = ft.Study(space, minimize="error", strategy=strategy, cost=epochs, cost_unit="epochs", **settings)
    if trials:
        study.run(work, budget=ft.Budget(trials=trials), executor="inline")
    return study


def test_the_recommendation_is_the_strategys_with_the_best_measured_beside_it() -> None:
    study = study_of(trials=27)
    best = study.best
    assert best.params["x"] == min(trial.params["x"] for trial in study.trials)
    assert best.predicted == Prediction(best.params["x"], 0.004)
    assert best.measured is not None
    assert best.measured.fidelity == {"epochs": 27}
    assert best.to_json()["measured_value"] == best.measured.value


def test_verifying_goes_on_from_the_checkpoint_and_pays_the_difference(tmp_path: Path) -> None:
    study = study_of(storage=tmp_path / "study.db")
    best, spent = study.best, study.ledger.total
    reached = best.trial.fidelity["epochs"]
    assert reached < 27
    trial = study.verify(train)
    assert (trial.params, trial.fidelity, trial.state) == (best.params, {"epochs": 27}, ft.State.DONE)
    assert (trial.resume_from, trial.points[0].fidelity["epochs"]) == (best.trial.number, reached + 1)
    assert trial.points[-1].metrics == {"trained": 27}
    assert trial.cost == study.ledger.total - spent == 27 - reached
    assert trial.tags == ("verification",)
    assert trial.checkpoint is not None
    assert study.checkpoints.path(trial.checkpoint).is_dir()
    assert study.best.trial.number == trial.number


def test_what_is_verified_is_not_trained_again() -> None:
    study = study_of()
    first = study.verify(train, executor="inline")
    assert study.verify(train, executor="inline").number == first.number
    assert len(study.trials) == first.number + 1


def test_a_study_without_fidelities_has_nothing_to_verify() -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", strategy=ft.Random())
    study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=3), executor="inline")
    assert study.verify(lambda trial: 0.0).number == study.best.trial.number
    assert len(study.trials) == 3


def test_without_a_checkpoint_a_verification_starts_over_and_pays_in_full() -> None:
    study = study_of(work=forgetful)
    trial = study.verify(forgetful, executor="inline")
    assert (trial.resume_checkpoint, trial.cost, trial.points[0].fidelity["epochs"]) == (None, 27, 1)


def test_a_run_on_part_of_the_data_is_not_taken_for_one_on_all_of_it() -> None:
    study = study_of(TWO, trials=0)
    study.enqueue({"x": 0.1}, fidelity={"epochs": 9, "data": 0.25})
    study.run(train, budget=ft.Budget(trials=1), executor="inline")
    assert study.best.trial.fidelity == {"epochs": 9, "data": 0.25}
    trial = study.verify(train, executor="inline")
    assert (trial.resume_from, trial.fidelity, trial.cost) == (None, {"epochs": 27, "data": 1.0}, 27)


def test_a_run_on_all_of_the_data_is_continued_though_a_shorter_one_is_recommended() -> None:
    study = study_of(TWO, trials=0)
    for fidelity in ({"epochs": 27, "data": 0.25}, {"epochs": 3, "data": 1.0}):
        study.enqueue({"x": 0.1}, fidelity=fidelity)
    study.run(train, budget=ft.Budget(trials=2), executor="inline")
    assert study.best.trial.number == 0
    trial = study.verify(train, executor="inline")
    assert (trial.resume_from, trial.resume_checkpoint is not None, trial.cost) == (1, True, 24)


def test_there_must_be_something_to_recommend() -> None:
    with pytest.raises(NoResult, match="got none among 0 trials"):
        study_of(trials=0).verify(train)


def test_a_budget_that_a_verification_does_not_fit_forbids_it() -> None:
    study = study_of()
    spent, to_go = study.ledger.total, 27 - study.best.trial.fidelity["epochs"]
    with pytest.raises(InvalidArgument, match=f"predicted to cost {to_go:.3g}, with cost 1 left. Budgets count all"):
        study.verify(train, budget=ft.Budget(cost=spent + 1))
    assert study.ledger.total == spent
    assert study.verify(train, budget=ft.Budget(cost=spent + to_go), executor="inline").cost == to_go


def test_a_measured_cost_is_predicted_in_proportion() -> None:
    clock = ft.FakeClock()

    def timed(trial: ft.RunningTrial) -> None:
        done = int((trial.resume_dir / "epoch").read_text()) if trial.resume_dir else 0
        for epoch in range(done + 1, int(trial.fidelity["epochs"]) + 1):
            clock.advance(2.0)
            trial.report(trial.params["x"] + 1 / epoch, epochs=epoch)
        (trial.checkpoint_dir / "epoch").write_text(str(epoch))

    study = ft.Study(CURVES, minimize="error", strategy=Predicting(), clock=clock)
    study.run(timed, budget=ft.Budget(trials=3), executor="inline")
    trial = study.verify(timed, executor="inline")
    assert trial.suggestion.predicted_cost is not None
    assert trial.suggestion.predicted_cost.mean == pytest.approx(trial.cost)


def test_other_trials_that_wait_are_left_alone() -> None:
    study = study_of()
    waiting = study.enqueue({"x": 0.9})
    asked = study.ask()  # takes the enqueued one: another owner holds it
    queued = study.enqueue({"x": 0.8})
    trial = study.verify(train)
    states = {number: study.trials[number].state for number in (waiting.number, queued.number, trial.number)}
    assert asked.number == waiting.number
    assert list(states.values()) == [ft.State.RUNNING, ft.State.PENDING, ft.State.DONE]


def test_an_interrupted_verification_is_taken_up_again() -> None:
    study = study_of()

    def interrupted(trial: ft.RunningTrial) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.verify(interrupted, executor="inline")
    number = len(study.trials) - 1
    assert study.trials[number].state is ft.State.PENDING
    assert study.verify(train, executor="inline").number == number
    assert len(study.trials) == number + 1


def test_a_verification_that_fails_says_why_and_may_be_tried_again() -> None:
    study = study_of()

    def broken(trial: ft.RunningTrial) -> None:
        raise OSError("no disk")

    with pytest.raises(NoResult, match="which is failed: OSError: no disk"):
        study.verify(broken, executor="inline")
    assert study.verify(train, executor="inline").state is ft.State.DONE


def test_retries_and_time_limits_are_those_of_a_run() -> None:
    study = study_of()
    attempts: list[int] = []

    def flaky(trial: ft.RunningTrial) -> None:
        attempts.append(trial.attempt)
        if trial.attempt == 1:
            raise OSError("no disk")
        train(trial)

    assert study.verify(flaky, executor="inline", retries=1).state is ft.State.DONE
    assert attempts == [1, 2]
    other = study_of()
    count = len(other.trials)
    with pytest.raises(InvalidArgument, match="which cannot be stopped"):
        other.verify(train, executor="inline", time_limit=1.0)
    assert len(other.trials) == count, "what is refused leaves no trial behind"


def test_every_run_that_a_model_may_come_back_to_keeps_its_last_checkpoint(tmp_path: Path) -> None:
    """Also one that was trained to the end and is not the best: a model may think better of it later."""
    study = study_of(storage=tmp_path / "study.db", trials=27)
    continued = {trial.resume_from for trial in study.trials}
    ends = [trial for trial in study.trials if trial.number not in continued]
    assert {trial.fidelity["epochs"] for trial in ends} >= {1, 27}
    for trial in study.trials:
        if trial.number in continued:
            assert trial.checkpoint is None
        else:
            assert trial.checkpoint is not None
            assert (study.checkpoints.path(trial.checkpoint) / "epochs").is_file()


def test_a_strategy_that_goes_by_what_was_measured_keeps_no_more_than_it_may_resume_and_the_best() -> None:
    study = study_of(trials=27, strategy=ft.ASHA(fidelity="epochs"))
    kept = {trial.number for trial in study.trials if trial.checkpoint is not None}
    assert kept == study.strategy.resumable(study.history) | {study.best.trial.number}


def test_a_study_is_printed_with_every_run_once_what_went_furthest_first() -> None:
    study = study_of(trials=9)
    continued = {trial.resume_from for trial in study.trials}
    rows = [line.split() for line in str(study).splitlines() if line[:1].isdecimal()]
    shown = [study.trials[int(row[0])] for row in rows]
    assert {trial.number for trial in shown} == {trial.number for trial in study.trials} - continued
    assert [trial.fidelity["epochs"] for trial in shown] == sorted((t.fidelity["epochs"] for t in shown), reverse=True)


def test_a_recommendation_that_was_never_tried_is_trained_from_the_start() -> None:
    study = study_of(strategy=Elsewhere(fidelity="epochs"))
    trial = study.verify(train, executor="inline")
    assert (trial.params, trial.resume_from, trial.cost) == ({"x": 0.123}, None, 27)


@dataclass(frozen=True)
class Elsewhere(Predicting):
    """Recommends what nobody has tried."""

    def recommend(self, history: History) -> Recommendation | None:
        found = super().recommend(history)
        return found and Recommendation({"x": 0.123}, found.trial, found.predicted)


def noisy_best(**settings: Any) -> ft.Study:
    """A study whose trial 0 was lucky: it measured 0.01, while the "model" expects its x, 0.5."""
    study = study_of(trials=0, **settings)
    study.add({"x": 0.5}, 0.01, tags=["lucky"])
    study.add({"x": 0.25}, 0.3)
    return study


def test_a_better_measurement_that_is_passed_over_is_explained_in_one_sentence() -> None:
    study = noisy_best()
    best = study.best
    assert (best.params, best.measured and best.measured.number) == ({"x": 0.25}, 0)
    assert best.explanation is not None
    assert best.explanation.startswith("Trial 0 measured 0.01, but similar configurations suggest")
    assert best.explanation in repr(best)
    assert best.explanation in str(study)
    assert best.explanation in study._repr_html_()
    assert best.to_json()["explanation"] == best.explanation


def test_a_model_of_curves_says_what_it_expects_of_the_lucky_trial() -> None:
    study = ft.Study(CURVES, minimize="error", seed=0)
    for number in range(24):
        x = number / 23
        study.add({"x": x}, 0.5 + (x - 0.3) ** 2 + 0.01 * (-1) ** number - (0.35 if number == 16 else 0.0))
    best = study.best
    assert (best.ranking[0].params, len(best.ranking)) == (best.params, 24)
    assert best.explanation is not None
    assert "Trial 16 measured 0.3" in best.explanation
    assert re.search(
        r"measured 0\.\d+, but similar configurations suggest 0\.\d+ ± [\d.e-]+; the difference is probably noise\.",
        best.explanation,
    )


def test_a_measurement_as_good_as_expected_needs_no_explanation() -> None:
    study = ft.Study(CURVES, minimize="error", seed=0)
    for number in range(12):
        study.add({"x": number / 11}, 0.2 + (number / 11 - 0.3) ** 2)
    assert study.best.explanation is None


def test_without_noise_a_measured_best_is_never_passed_over(tmp_path: Path) -> None:
    study = noisy_best(noise=False, storage=tmp_path / "a.db")
    best = study.best
    assert (best.params, best.value, best.predicted, best.explanation) == ({"x": 0.5}, 0.01, None, None)
    again = ft.Study.load("study", tmp_path / "a.db", strategy=Predicting(fidelity="epochs"))
    assert again.best.params == {"x": 0.5}, "the study remembers it"


def test_without_noise_a_better_prediction_still_counts() -> None:
    study = noisy_best(noise=False)
    study.add({"x": 0.001}, 0.9, fidelity={"epochs": 1})
    assert study.best.params == {"x": 0.001}


def rough(x: float) -> float:
    """A function that looks noisy, so that a model which may assume noise does."""
    return x + 0.3 * math.sin(1e4 * x)


@pytest.mark.parametrize("strategy", [ft.LogEI(initial=4), ft.EIPerCost(initial=4)], ids=repr)
def test_a_model_of_a_study_without_noise_has_none(strategy: Strategy) -> None:
    noises = {}
    for is_noisy in (True, False):
        study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="loss", strategy=strategy, noise=is_noisy, seed=0)
        for number, luck in enumerate(np.random.default_rng(0).standard_normal(40).tolist()):
            study.add({"x": number / 39}, number / 39 + 0.1 * luck)
        noises[is_noisy] = fit_history(study.history).gp.noise
        assert len(study.ask(count=1)) == 1
    assert noises[True] > 1e-2
    assert noises[False] == pytest.approx(1e-6)


def test_noise_is_declared_from_a_trial_on_and_earlier_ones_replay_without_it(tmp_path: Path) -> None:
    space = ft.Space({"x": ft.Float(0, 1)})

    def work(trial: ft.RunningTrial) -> float:
        return rough(trial.params["x"])

    for noise, most in ((None, 10), (False, 14)):
        study = ft.Study(space, minimize="loss", strategy=ft.LogEI(), noise=noise, seed=0, storage=tmp_path / "a.db")
        study.run(work, budget=ft.Budget(trials=most), executor="inline")
    for number, is_noisy in ((9, True), (12, False)):
        before = study.history.before(number)
        assert before.is_noisy is is_noisy
        [again] = study.strategy.suggest(before, Remaining(), 1, Randomness(0))
        assert again.params == study.trials[number].params


def test_noise_is_true_or_false() -> None:
    with pytest.raises(InvalidArgument, match="noise= must be true or false"):
        study_of(trials=0, noise="no")


def test_the_best_is_readable() -> None:
    best = study_of(trials=9).best
    lines = repr(best).splitlines()
    assert lines[0].startswith("Best error: predicted ")
    assert lines[-1].split() == ["x", f"{best.params['x']:.4g}"]
    assert f"<td>x</td><td>{best.params['x']:.4g}</td>" in best._repr_html_()


def test_the_measured_best_is_returned_without_training() -> None:
    study = noisy_best()
    assert study.verify(train, measured=True, executor="inline").number == 0
    assert len(study.trials) == 2


def test_several_are_trained_several_times_each_and_ranked_by_their_mean() -> None:
    def noisy(trial: ft.RunningTrial) -> float:
        return trial.params["x"] + (0.1 if trial.number % 2 else -0.1)

    study = study_of(trials=0, work=noisy)
    for x in (0.1, 0.2, 0.9):
        study.add({"x": x}, x, fidelity={"epochs": 1})
    study.add({"x": 0.3}, 0.3)
    found = study.verify(noisy, top=3, repeats=2, executor="inline")
    assert isinstance(found, ft.Verification)
    assert sorted(one.params["x"] for one in found) == [0.1, 0.2, 0.3]
    assert [len(one.values) for one in found] == [2, 2, 2]
    assert [one.mean for one in found] == sorted(one.mean for one in found)
    assert found[0].spread is not None
    first = next(one for one in found if one.params["x"] == 0.1)
    assert [trial.resume_from for trial in first.trials] == [0, None], "one continues, the other has its own luck"
    assert sum(one.params["x"] == 0.3 for one in study.trials) == 2, "a full training that there was counts"
    assert "mean error" in repr(found)
    assert "<th>mean error</th>" in found._repr_html_()
    assert [form["mean"] for form in found.to_json()] == [one.mean for one in found]


def test_a_second_call_trains_nothing_again() -> None:
    study = study_of(trials=9)
    study.verify(train, top=2, repeats=2, executor="inline")
    count = len(study.trials)
    study.verify(train, top=2, repeats=2, executor="inline")
    assert len(study.trials) == count


def test_several_must_fit_the_budget_together() -> None:
    study = study_of(trials=9)
    with pytest.raises(InvalidArgument, match="must fit the rest of the budget"):
        study.verify(train, top=3, budget=ft.Budget(cost=study.ledger.total + 30), executor="inline")


@pytest.mark.parametrize("wrong", [{"top": 0}, {"repeats": 0}, {"measured": "yes"}])
def test_wrong_counts_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        study_of(trials=3).verify(train, **wrong)


def threads(trial: ft.RunningTrial) -> dict[str, float]:
    return {"error": trial.params["x"], "threads": float(os.environ["OMP_NUM_THREADS"])}


def test_a_worker_has_as_many_threads_in_verifying_as_in_tuning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
    study = ft.Study(space, minimize="error", strategy=ft.ASHA(), seed=0)
    workers = 1 + usable_cores() // 2  # so that one of one would have more
    study.run(threads, budget=ft.Budget(trials=2), workers=workers, progress=False)
    study.verify(threads, progress=False)
    assert {trial.points[-1].metrics["threads"] for trial in study.trials} == {usable_cores() // workers or 1.0}


@pytest.mark.parametrize("strategy", [ft.ASHA(), ft.TraceKG(), FreezeThawEI()])
def test_a_run_that_ends_with_a_verification_sets_its_cost_aside(strategy: Strategy) -> None:
    def train(trial: ft.RunningTrial) -> None:
        done = int((trial.resume_dir / "epochs").read_text()) if trial.resume_dir else 0
        for epoch in range(done + 1, 1 + int(trial.fidelity["epochs"])):
            trial.charge(1.0)
            trial.report(trial.params["x"] + 1.0 / epoch, epochs=epoch)
        (trial.checkpoint_dir / "epochs").write_text(str(int(trial.fidelity["epochs"])))

    study = ft.Study(CURVES, minimize="error", strategy=strategy, cost_unit="epochs", seed=0)
    stopped = study.run(train, budget=ft.Budget(cost=60), executor="inline", progress=False, verify=True)
    assert stopped.reason in (ft.StopReason.BUDGET_SPENT, ft.StopReason.TOO_EXPENSIVE)
    assert study.history.is_full(study.best.trial)
    assert 50.0 < study.ledger.total <= 60.0


def test_a_verification_after_a_run_that_fails_leaves_the_result(caplog: pytest.LogCaptureFixture) -> None:
    def fragile(trial: ft.RunningTrial) -> float:
        trial.charge(trial.fidelity["epochs"])
        if trial.fidelity["epochs"] == 27:
            raise ValueError("out of memory")
        return trial.params["x"]

    study = ft.Study(CURVES, minimize="error", strategy=ft.ASHA(), cost_unit="epochs", seed=0)
    study.run(fragile, budget=ft.Budget(trials=4), executor="inline", progress=False, verify=True)
    assert study.trials[-1].failure is not None
    assert "not trained to the end" in caplog.text
    assert study.best.value < 1.0


def test_a_run_that_is_stopped_verifies_nothing() -> None:
    study = study_of(trials=0)
    study.run(
        train,
        budget=ft.Budget(trials=9),
        executor="inline",
        progress=False,
        verify=True,
        callbacks=[lambda study, trial: study.stop()],
    )
    assert [trial.tags for trial in study.trials] == [()]
