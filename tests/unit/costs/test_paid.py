"""What trials paid: rates by the increments between reports, set-ups by what is beyond them."""

import math

import numpy as np
import pytest

import farthing as ft
from farthing.costs.expected import has_paid, rate_of, work_of
from farthing.costs.learned import Paid, Setup, learn_cost
from farthing.models.kernels import Constant, Matern52
from farthing.strategies.shared.cost_model import PastErrors, predicted_cost
from farthing.trials import Event, History, Measurement, Prediction, Problem, State, Suggestion, Trial
from farthing.trials.events import WORKER_BEGAN, worker_event

SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 20, integer=True, trace=True)})


def trained(
    number: int,
    costs: list[float],
    *,
    x: float = 0.5,
    begun: int = 0,
    source: int | None = None,
    predicted: float | None = None,
    checkpoint: bool = True,
) -> Trial:
    """A trial that reports after every epoch what it has cost since the last."""
    points = [
        Measurement(1.0, cost={"training": cost}, fidelity={"epochs": begun + at}, sequence=at)
        for at, cost in enumerate(costs, start=1)
    ]
    suggestion = Suggestion(
        {"x": x},
        {"epochs": begun + len(costs)},
        resume_from=source,
        predicted_cost=None if predicted is None else Prediction(predicted),
    )
    return Trial(
        number,
        suggestion,
        State.DONE,
        measurements=points,
        value=1.0,
        checkpoint=str(number) if checkpoint else None,
        resume_checkpoint=str(source) if source is not None and checkpoint else None,
    )


def history(*trials: Trial, first: tuple[int, ...] = ()) -> History:
    return History(Problem(SPACE), trials, events=[Event(WORKER_BEGAN, worker_event(number, 1)) for number in first])


def test_the_rate_is_the_median_of_the_increments_and_the_rest_is_set_up() -> None:
    known = history(trained(0, [5.0, 1.0, 1.0, 9.0, 1.0]))
    assert rate_of(known, known[0]) == pytest.approx(20.0), "an epoch is a twentieth; the long one is an accident"
    paid = Paid.by(known, list(known))
    assert paid.work.tolist() == [0.25]
    assert paid.setup == pytest.approx(17.0 - 5.0)


@pytest.mark.parametrize("costs", [[3.0], [0.0, 3.0], [1.0, 0.0, 1.0]])
def test_a_single_report_or_one_that_costs_nothing_tells_no_rate(costs: list[float]) -> None:
    """Amounts that are charged at the end are not the price of the last epoch."""
    known = history(trained(0, costs))
    assert math.isnan(rate_of(known, known[0]))


def test_a_continued_run_has_the_work_that_it_adds_if_it_began_from_a_checkpoint() -> None:
    known = history(trained(0, [1.0] * 4), trained(1, [1.0] * 6, begun=4, source=0))
    assert work_of(known, known[1]) == pytest.approx(0.3)
    lost = history(trained(0, [1.0] * 4, checkpoint=False), trained(1, [1.0] * 6, begun=4, source=0, checkpoint=False))
    assert work_of(lost, lost[1]) == pytest.approx(0.5), "without one it starts from nothing"
    assert work_of(lost, lost[1], saves=True) == pytest.approx(0.3), "unless the program keeps its own"


def test_trials_without_a_result_a_cost_or_work_tell_nothing() -> None:
    failed = Trial(0, Suggestion({"x": 0.5}, {"epochs": 3}), State.FAILED)
    free = Trial(1, Suggestion({"x": 0.5}, {"epochs": 3}), State.DONE, value=1.0)
    known = history(failed, free, trained(2, [1.0]))
    assert [has_paid(known, trial) for trial in known] == [False, False, True]


def test_the_first_trial_of_a_worker_says_nothing_about_the_set_up_of_later_ones() -> None:
    known = history(trained(0, [9.0, 1.0, 1.0]), trained(1, [2.0, 1.0, 1.0]), trained(2, [2.2, 1.0, 1.0]), first=(0,))
    setup = Setup.seen(Paid.by(known, list(known)))
    assert setup.new == pytest.approx(1.1)
    assert setup.continued == setup.new, "as that of new runs, until one was continued"
    assert Setup.seen(Paid.by(known, [known[0]])).new == pytest.approx(8.0), "it is all there is to go by"


def test_new_and_continued_runs_have_set_ups_of_their_own() -> None:
    known = history(trained(0, [4.0, 1.0, 1.0]), trained(1, [1.5, 1.0, 1.0], begun=3, source=0))
    setup = Setup.seen(Paid.by(known, list(known)))
    assert (setup.new, setup.continued) == pytest.approx((3.0, 0.5))


def test_sums_of_the_first_trials_of_workers_are_left_out() -> None:
    """Trials that report nothing on the way: those that began a worker took 8 s more."""
    rng = np.random.default_rng(0)
    X = rng.random((12, 1))
    first = np.arange(12) < 2
    cost = np.exp(X[:, 0]) + 8.0 * first
    none = np.zeros(12, dtype=bool)
    paid = Paid(np.ones(12), cost, np.full(12, np.nan), first, none)
    learnt = learn_cost(X, paid, Constant() * Matern52((0,)))
    np.testing.assert_allclose(learnt.cost(X), np.exp(X[:, 0]), rtol=0.05)  # costs have no noise


def test_the_pace_of_the_latest_trials_counts() -> None:
    """A machine that was slow at first, and is twice as fast since."""
    rng = np.random.default_rng(1)
    X = rng.random((30, 1))
    pace = np.where(np.arange(30) < 20, 2.0, 1.0)
    learnt = learn_cost(X, Paid.whole(pace * np.exp(X[:, 0])), Constant() * Matern52((0,)))
    ratio = learnt.cost(X) / np.exp(X[:, 0])
    assert 0.9 < np.median(ratio) < 1.2, "the model of all of them alone says 1.6"


def test_what_continued_runs_paid_beyond_their_rate_is_expected_of_the_next() -> None:
    """Every round of boosting takes longer than the one before: twice as long in the second half as in the first."""
    known = history(
        *(trained(i, [1.1, 0.1, 0.1, 0.1], x=0.1 + 0.05 * i) for i in range(8)),
        *(trained(8 + i, [0.4, 0.2, 0.2, 0.2], x=0.1 + 0.05 * i, begun=4, source=i) for i in range(4)),
    )
    further = Suggestion(known[6].params, {"epochs": 8}, resume_from=6)
    predicted, begun = predicted_cost(known, further), predicted_cost(known, Suggestion(known[6].params, {"epochs": 4}))
    assert predicted is not None
    assert begun is not None
    assert predicted.mean == pytest.approx(1.0, rel=0.2)  # a fifth, of few such runs
    assert begun.mean == pytest.approx(1.4, rel=0.15), "new runs cost what they did"


def test_a_continued_run_is_predicted_by_its_own_increments() -> None:
    """Of two sizes, the expensive one has been paused: what it paid as it trained decides, not what trials cost."""
    cheap = [trained(i, [8.0 if i < 2 else 0.5, 0.1, 0.1], x=0.1 + 0.02 * i) for i in range(6)]
    dear = [trained(6 + i, [1.4, 1.0, 1.0], x=0.8 + 0.02 * i) for i in range(6)]
    known = history(*cheap, *dear, first=(0, 1))
    for source, expected in ((2, 0.4 + 0.5), (8, 0.4 + 5.0)):
        further = Suggestion(known[source].params, {"epochs": 8}, resume_from=source)
        predicted = predicted_cost(known, further)
        assert predicted is not None
        assert predicted.mean == pytest.approx(expected, rel=0.1)  # a tenth of a shrunken rate
        assert predicted.deviation is not None
        assert predicted.deviation < 0.5 * predicted.mean


def test_nothing_is_predicted_while_nothing_was_paid() -> None:
    assert predicted_cost(history(), Suggestion({"x": 0.5}, {"epochs": 4})) is None


def test_the_deviation_follows_what_predictions_were_off_by() -> None:
    well = [trained(i, [1.1, 1.0], x=i / 10, predicted=2.1) for i in range(10)]
    badly = [trained(i, [1.1, 1.0], x=i / 10, predicted=(0.7, 6.3)[i % 2]) for i in range(10)]
    deviations = []
    for trials in (well, badly):
        predicted = predicted_cost(history(*trials), Suggestion({"x": 0.55}, {"epochs": 2}))
        assert predicted is not None
        assert predicted.deviation is not None
        deviations.append(predicted.deviation / predicted.mean)
    assert deviations[1] == pytest.approx(math.sqrt(10 / 14) * math.log(3.0) / 1.2816, rel=0.1)
    assert deviations[0] < 0.2 * deviations[1]


def test_past_errors_leave_out_the_first_trials_of_workers() -> None:
    known = history(trained(0, [9.0], predicted=1.0), trained(1, [2.0], predicted=1.0), first=(0,))
    assert PastErrors.of(known) == PastErrors(new=(math.log(2.0),))
