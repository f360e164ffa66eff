import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

import farthing as ft
from farthing.costs import Budget, EffortLevel, Remaining
from farthing.strategies import Randomness
from farthing.strategies.multifidelity.handover import TracedRungs, suggest_in_haste
from farthing.strategies.multifidelity.runs import runs_of
from farthing.strategies.multifidelity.skill import (
    HALVING,
    JUDGED,
    ModelSkill,
    skill_of,
    something_is_learnt,
)
from farthing.trials import Failure, History, Measurement, Params, Problem, State, Suggestion, Trial
from farthing.trials.events import BUDGET, DURATION, budget_event
from farthing.trials.history import Event
from farthing.trials.trial import is_by_model

EPOCHS = ft.Fidelity(1, 27, integer=True, trace=True)
PARAMS = {"x": ft.Float(0, 1), "y": ft.Float(0, 1)}
SPACE = ft.Space(PARAMS, fidelities={"epochs": EPOCHS})
Loss = Callable[[Params, float], float]


def chance(params: Params, epochs: float) -> float:
    """Says nothing of its neighbours, so no model can learn it; its values hardly differ, and no training helps."""
    return 1.0 + 0.04 * math.sin(1e7 * params["x"]) * math.cos(1e7 * params["y"]) + 0.01 / epochs


def bowl(params: Params, epochs: float) -> float:
    return float(0.1 + (params["x"] - 0.3) ** 2 + (params["y"] - 0.7) ** 2 + 0.1 / epochs)


def told(number: int, suggestion: Suggestion, loss: Loss, begun: float = 0) -> Trial:
    """A trial that reported every epoch; an epoch costs 1."""
    [(name, end)] = suggestion.fidelity.items()
    points = [
        Measurement(value=loss(suggestion.params, epoch), fidelity={name: epoch})
        for epoch in range(int(begun) + 1, int(end) + 1)
    ]
    last = replace(points[-1], cost={"training": float(end - begun)}, charged=True)
    return Trial(number, suggestion, State.DONE, measurements=(*points[:-1], last), value=last.value)


def run(
    loss: Loss, *, trials: int, space: ft.Space = SPACE, strategy: ft.TraceKG | None = None, cost: float | None = None
) -> History:
    history = History(Problem(space))
    for _ in range(trials):
        left = Remaining() if cost is None else Budget(cost=cost).remaining(history, seconds=0.0)
        found = (strategy or ft.TraceKG()).suggest(history, left, 1, Randomness(0))
        if not found:
            break
        source = found[0].resume_from
        begun = 0 if source is None else history[source].fidelity["epochs"]
        history = history.updated([told(len(history), found[0], loss, begun)], version=len(history))
    return history


def is_missing(history: History) -> bool:
    skill = skill_of(history)
    return skill is not None and skill.is_missing


def is_halved(trial: Trial) -> bool:
    return isinstance(trial.note, dict) and HALVING in trial.note


@pytest.fixture(scope="module")
def by_chance() -> History:
    return run(chance, trials=60)


# ----------------------------------------------------------------------------------------------------- handing over


def test_a_study_in_which_the_model_cannot_have_skill_is_handed_to_halving(by_chance: History) -> None:
    halved = [trial for trial in by_chance if is_halved(trial)]
    assert len(halved) > 30
    assert {trial.fidelity["epochs"] for trial in halved} <= {1, 3, 9, 27}
    assert any(trial.resume_from is not None for trial in halved)
    starts = [trial for trial in halved if trial.resume_from is None]
    assert {trial.fidelity["epochs"] for trial in starts} == {1}


def test_halving_leaves_every_fourth_new_configuration_to_the_model(by_chance: History) -> None:
    new = [trial for trial in by_chance if trial.resume_from is None]
    halved = [place for place, trial in enumerate(new) if is_halved(trial)]
    assert len(halved) > 12
    assert [place for place in halved if is_by_model(new[place])] == [place for place in halved if place % 4 == 0]
    assert not any(is_by_model(trial) for trial in by_chance if is_halved(trial) and trial.resume_from is not None)


def test_the_note_says_in_words_why_halving_decides(by_chance: History) -> None:
    notes = [trial.note["why"] for trial in by_chance if is_halved(trial)]
    assert all("random starts have learnt nothing" in why for why in notes)
    assert "so there is little for a model to go by" in notes[0]
    assert any("carried on by successive halving" in why for why in notes)
    assert any("a random configuration, by successive halving" in why for why in notes)


def test_the_note_has_the_skill_of_a_model_that_was_judged() -> None:
    history = History(Problem(SPACE), _judged(16, wins=4))
    [found] = ft.TraceKG().suggest(history, Remaining(), 1, Randomness(0))
    assert "the model's choices win 25% of pairs with them, too few" in found.note["why"]
    assert found.note[HALVING] == 0.25


def test_while_halving_decides_the_run_that_measured_least_is_recommended(by_chance: History) -> None:
    """However far others came: one that has learnt nothing after half of a training is no better for that."""
    assert is_missing(by_chance)
    learnt = told(len(by_chance), Suggestion({"x": 0.5, "y": 0.5}, {"epochs": 2}), lambda params, epochs: 0.3)
    history = History(by_chance.problem, [*by_chance, learnt])
    assert is_missing(history)
    found = ft.TraceKG().recommend(history)
    assert found is not None
    assert max(trial.fidelity["epochs"] for trial in by_chance) > 2
    assert found.trial is learnt
    assert len(found.ranking) == history.configurations


def test_a_study_in_which_the_model_has_skill_stays_with_it() -> None:
    history = run(bowl, trials=25)
    assert not any(map(is_halved, history))
    assert not is_missing(history)


@pytest.mark.parametrize("strategy", [ft.TraceKG.paper(), ft.TraceKG(halving=False)])
def test_other_searches_are_never_handed_over_nor_where_it_is_turned_off(
    strategy: ft.TraceKG, by_chance: History
) -> None:
    [suggestion] = strategy.suggest(by_chance, Remaining(), 1, Randomness(0))
    assert HALVING not in suggestion.note


def test_a_space_with_a_fidelity_that_is_no_trace_is_never_handed_over() -> None:
    both = ft.Space(PARAMS, fidelities={"epochs": EPOCHS, "data": ft.Fidelity(0.1, 1.0)})
    data = ft.Space(PARAMS, fidelities={"data": ft.Fidelity(0.1, 1.0)})
    assert skill_of(History(Problem(both), _judged(8, wins=0))) is None
    assert skill_of(History(Problem(data), _judged(8, wins=0))) is None
    assert skill_of(History(Problem(SPACE), _judged(8, wins=0))) is not None


# ---------------------------------------------------------------------------------------------------- when and when not


def _judged(chosen: int, *, wins: int, drawn: int = 5, note: Mapping[str, object] | None = None) -> list[Trial]:
    """Random runs of loss 1, then choices of the model, of which the first `wins` are better."""
    losses = [1.0] * drawn + [0.5] * wins + [1.5] * (chosen - wins)
    notes = [None] * drawn + [{"theta": [0.0], "form": "taKG", **(note or {})}] * chosen
    return [
        told(i, Suggestion({"x": i / 50, "y": 0.5}, {"epochs": 3}, note=said), lambda *_, loss=loss: loss)
        for i, (loss, said) in enumerate(zip(losses, notes, strict=True))
    ]


def _skill(trials: list[Trial]) -> ModelSkill | None:
    return skill_of(History(Problem(SPACE), trials))


def _is_missing(trials: list[Trial]) -> bool:
    return is_missing(History(Problem(SPACE), trials))


def test_skill_is_the_share_of_pairs_and_missing_below_the_least() -> None:
    assert _skill(_judged(16, wins=13)) == ModelSkill(13 / 16, 16)
    assert _is_missing(_judged(16, wins=13))
    assert not _is_missing(_judged(16, wins=14))


def test_the_latest_choices_are_judged() -> None:
    assert _is_missing(_judged(40, wins=30)), "the first were good, the last ten bad"


def test_a_model_must_show_its_skill_where_no_start_stands_out() -> None:
    assert _skill(_judged(0, wins=0)) == ModelSkill(0.0, 0)
    assert _is_missing(_judged(0, wins=0))
    assert _is_missing(_judged(JUDGED // 2 - 1, wins=JUDGED // 2 - 1)), "too few to tell"
    assert not _is_missing(_judged(JUDGED // 2, wins=JUDGED // 2))


def test_where_one_of_the_first_random_runs_stands_out_the_model_is_trusted() -> None:
    """There is something to learn then, and a model that explores at first loses most pairs."""
    trials = _judged(8, wins=0, drawn=8)
    assert _is_missing(trials)
    best = told(1, trials[1].suggestion, lambda *_: 0.85)
    assert _skill([trials[0], best, *trials[2:]]) is None
    later = told(16, Suggestion({"x": 0.9, "y": 0.5}, {"epochs": 3}), lambda *_: 0.85)
    assert _is_missing([*trials, later]), "of the first runs, not of many: the best of many always stands out"


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([1.0, 1.0, 1.0, 0.95, 1.3], False),
        ([1.0, 1.0, 1.0, 0.85, 1.3], True),
        ([-0.51, -0.5, -0.5], False),  # accuracies: errors of .49, .5 and .5
        ([-0.95, -0.9, -0.9], True),
        ([-51.0, -50.0, -50.0], False),
        ([-0.12, -0.1, -0.1, -0.1, -0.1], False),  # accuracies near those of chance
        ([-3.0, -1.2, -1.1, -0.5], True),  # no percentages: the best is more than twice the median
        ([-3.0, 2.0, 2.0], True),  # no zero to measure errors from
        ([1.0, 1.0], True),  # too few to tell
        ([0.0, 0.0, 0.0], True),  # nothing is left to learn
    ],
)
def test_a_run_stands_out_by_a_tenth_of_the_median_error(losses: list[float], expected: bool) -> None:
    assert something_is_learnt([{1.0: loss, 3.0: loss} for loss in losses]) is expected


def test_where_most_runs_improve_there_is_something_to_learn() -> None:
    """As with the losses of language models, which differ by little and fall by much."""
    falling, flat = {1.0: 9.0, 3.0: 3.3}, {1.0: 3.3, 3.0: 3.29}
    assert something_is_learnt([falling] * 3 + [flat] * 2)
    assert not something_is_learnt([falling] * 2 + [flat] * 3)
    assert not something_is_learnt([{3.0: 3.3}] * 5), "after one report only a run that stands out tells"
    assert something_is_learnt([*[{3.0: 3.3}] * 4, {3.0: 2.9}])


def test_runs_are_compared_where_all_of_them_were() -> None:
    shared = [{1.0: 1.0, 3.0: 0.99}, {1.0: 1.0, 3.0: 1.0}, {1.0: 0.99, 3.0: 1.0, 9.0: 0.2}]
    assert not something_is_learnt(shared)
    assert not something_is_learnt([*shared, {}]), "one that diverged says nothing"
    assert something_is_learnt([*shared, {2.0: 1.0}]), "they have nothing in common"


def test_without_random_runs_to_compare_with_the_model_is_trusted() -> None:
    assert _skill(_judged(8, wins=0, drawn=2)) is None
    assert _is_missing(_judged(8, wins=0, drawn=3))


def test_choices_that_cannot_be_compared_do_not_count() -> None:
    """The model's choices report ends alone, which no random run has reached; what remains is a failure or two."""
    drawn = _judged(0, wins=0)
    chosen = [Suggestion({"x": 0.5 + i / 50, "y": 0.5}, {"epochs": 27}, note={"theta": [0.0]}) for i in range(8)]
    done = [Trial(5 + i, one, State.DONE, value=0.5) for i, one in enumerate(chosen[:6])]
    failed = [Trial(11 + i, one, State.FAILED, failure=Failure("nan")) for i, one in enumerate(chosen[6:])]
    assert _skill([*drawn, *done, *failed]) == ModelSkill(0.0, 2)


def test_results_from_elsewhere_and_learnt_starts_are_no_random_ones() -> None:
    trials = _judged(8, wins=0)
    notes = [{"added": True}, {"learned": [0, "earlier"]}, {"guess": "near"}]
    known = [
        replace(one, suggestion=replace(one.suggestion, note=note)) for one, note in zip(trials, notes, strict=False)
    ]
    assert _skill([*known, *trials[3:]]) is None


# -------------------------------------------------------------------------------------------------------------- rungs


def test_a_run_stands_on_every_rung_that_it_passed_with_its_loss_there() -> None:
    history = History(Problem(SPACE), [told(0, Suggestion({"x": 0.3, "y": 0.7}, {"epochs": 11}), bowl)])
    rungs = TracedRungs(history, 3, "epochs")
    assert rungs.standings.by_rung == [[(bowl({"x": 0.3, "y": 0.7}, epoch), 0)] for epoch in (1, 3, 9)] + [[]]
    stops = [rungs.stopped(history[0], rung) for rung in range(3)]
    assert [rungs.may_go_on(trial) and not rungs.has_twin_above(trial) for trial in stops] == [False, False, True]
    assert rungs.promotion(stops[2]).fidelity == {"epochs": 27}


def test_a_run_that_failed_counts_as_the_worst_of_the_rung_that_it_was_to_reach() -> None:
    start = Suggestion({"x": 0.3, "y": 0.7}, {"epochs": 4})
    failed = Trial(1, replace(start, fidelity={"epochs": 9}, resume_from=0), State.FAILED, failure=Failure("nan"))
    other = told(2, Suggestion({"x": 0.9, "y": 0.1}, {"epochs": 9}), bowl)
    rungs = TracedRungs(History(Problem(SPACE), [told(0, start, bowl), failed, other]), 3, "epochs")
    assert [number for _, number in rungs.standings.by_rung[2]] == [2, 1]


def test_nothing_is_promoted_that_costs_more_than_is_left() -> None:
    history = run(chance, trials=400, cost=150.0)
    assert any(map(is_halved, history))
    assert history.cost <= 150.0


# --------------------------------------------------------------------------------------------------------------- replay


def test_replaying_a_history_repeats_every_suggestion(by_chance: History) -> None:
    for number in (12, 20, 33, 41, 59):
        [again] = ft.TraceKG().suggest(by_chance.before(number), Remaining(), 1, Randomness(0))
        assert again == by_chance[number].suggestion


def test_halving_suggests_several_at_once_and_all_of_them_differ(by_chance: History) -> None:
    found = ft.TraceKG().suggest(by_chance, Remaining(), 8, Randomness(0))
    assert len(found) == 8
    assert len({tuple(one.params.values()) for one in found}) == 8


# ------------------------------------------------------------------------------------------------------- in haste


def in_a_hurry(history: History, *, decade: int, cost: float) -> History:
    """The same once the study knows that a training takes about ten to the `decade` seconds, with a budget of some."""
    decided = Event(DURATION, {"decade": decade, "results": 5, "trials": 5})
    limits = Event(BUDGET, budget_event(Budget(cost=cost).to_json(), trials=0, given=True))
    return history.updated([], events=[decided, limits], version=99)


@pytest.mark.parametrize(("decade", "cost", "is_asked"), [(3, 1e6, True), (-2, 1e-3, False), (-1, 1.0, False)])
@pytest.mark.parametrize("effort", ["ordinary", "several"])
def test_the_model_is_asked_as_often_as_its_share_of_the_budget_allows(
    decade: int, cost: float, is_asked: bool, effort: EffortLevel
) -> None:
    """Whatever the effort is: the first two seconds are free for one worker, and a budget may not last longer."""
    history = in_a_hurry(run(bowl, trials=15), decade=decade, cost=cost)
    found = ft.TraceKG().suggest(history, Remaining(effort=effort), 3, Randomness(0))
    together = 1 if effort == "several" else 3
    assert [("theta" in one.note) for one in found] == ([True] * together if is_asked else [False] * 3)
    assert all("by successive halving" in one.note["why"] for one in found if not is_asked)
    assert all(HALVING not in one.note for one in found), "the model was not found wanting"
    forced = ft.TraceKG(halving=False).suggest(history, Remaining(), 3, Randomness(0))
    assert all("theta" in one.note for one in forced)


@pytest.mark.parametrize(("left", "is_ending"), [(2.0, False), (0.1, True)])
def test_in_haste_the_end_of_a_budget_goes_to_the_runs_that_measured_best(left: float, is_ending: bool) -> None:
    """The best of all is recommended, and a low loss early in a training may be chance."""
    history = run(bowl, trials=60, cost=200.0)
    paused = [one for one in runs_of(history) if one.is_paused and one.reached[0] < 1.0]
    best = sorted(paused, key=lambda one: one.results[-1].loss)
    found = suggest_in_haste(history, Remaining(cost=left * history.cost), 3, Randomness(0))
    ending = [one for one in found if "the budget ends" in one.note["why"]]
    assert [one.resume_from for one in ending] == ([one.trials[-1].number for one in best[:3]] if is_ending else [])
    assert len(found) == 3


def test_in_haste_no_run_is_continued_twice_at_once() -> None:
    history = run(bowl, trials=20, cost=200.0)
    found = suggest_in_haste(history, Remaining(cost=history.cost / 4), 40, Randomness(0))
    continued = [one.resume_from for one in found if one.resume_from is not None]
    assert len(continued) == len(set(continued)) < len(found)


def test_in_haste_each_run_reaches_the_next_rung_and_the_last_is_the_whole_training() -> None:
    history, reached = run(bowl, trials=20), list[float]()
    while found := suggest_in_haste(history, Remaining(trials=0.0), 1, Randomness(0)):
        assert found[0].resume_from is not None
        begun = history[found[0].resume_from].fidelity["epochs"]
        reached.append(found[0].fidelity["epochs"])
        assert reached[-1] > begun
        history = history.updated([told(len(history), found[0], bowl, begun)], version=len(history))
    assert set(reached) <= {3, 9, 27}
    assert all(one.reached[0] == 1.0 for one in runs_of(history))
