from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing import Fidelity, Float, Ledger, Space, State, Trial
from farthing.extending import History, Measurement, Suggestion
from farthing.trials import Problem

PROBLEM = Problem(Space({"x": Float(0, 1)}), cost_unit="dollars")


def trial(
    number: int, cost: dict[str, float], *, state: State = State.DONE, source: int | None = None, warm: bool = True
) -> Trial:
    return Trial(
        number,
        Suggestion({"x": 0.5}, resume_from=source),
        state,
        measurements=(Measurement(cost=cost, charged=True),),
        resume_checkpoint="a checkpoint" if source is not None and warm else None,
        overhead=0.25,
    )


def test_spending_is_summed_by_kind_and_the_total_leaves_the_tuners_own_time_out() -> None:
    ledger = Ledger.of(
        History(
            PROBLEM,
            [
                trial(0, {"training": 3.0, "validation": 1.0}),
                trial(1, {"training": 2.0}),
                trial(2, {"training": 7.0}, state=State.FAILED),
            ],
        )
    )
    assert ledger.spent == {"training": 5.0, "validation": 1.0, "failed": 7.0}
    assert ledger.total == 13.0
    assert ledger.overhead == 0.75
    assert ledger.trials == {"done": 2, "failed": 1}


def test_a_warm_start_saves_all_the_work_behind_its_checkpoint() -> None:
    history = History(
        PROBLEM,
        [trial(0, {"training": 3.0}), trial(1, {"training": 5.0}, source=0), trial(2, {"training": 9.0}, source=1)],
    )
    assert Ledger.of(history).saved == {"warm starts": 3.0 + (3.0 + 5.0)}


def test_in_a_population_copies_save_and_going_on_does_not() -> None:
    def of_member(number: int, member: int, source: int | None) -> Trial:
        made = trial(number, {"training": 2.0}, source=source)
        return replace(made, suggestion=replace(made.suggestion, note={"member": member}))

    history = History(PROBLEM, [of_member(0, 0, None), of_member(1, 0, 0), of_member(2, 1, 1), of_member(3, 1, 2)])
    assert Ledger.of(history).saved == {"warm starts": 4.0}


def test_a_continuation_that_found_no_checkpoint_saves_nothing() -> None:
    history = History(PROBLEM, [trial(0, {"training": 3.0}), trial(1, {"training": 5.0}, source=0, warm=False)])
    assert Ledger.of(history).saved == {}


def test_an_unfinished_continuation_has_saved_nothing_yet() -> None:
    history = History(PROBLEM, [trial(0, {"training": 3.0}), trial(1, {}, source=0, state=State.RUNNING)])
    assert Ledger.of(history).saved == {}


def test_the_bill_names_its_unit_in_text_and_html() -> None:
    ledger = Ledger.of(History(PROBLEM, [trial(0, {"training": 3.0})]))
    assert str(ledger).splitlines() == [
        "spent    training    3 dollars",
        "spent    total       3 dollars",
        "overhead suggesting  0.25 seconds",
        "trials   done        1",
    ]
    assert "<td>3 dollars</td>" in ledger._repr_html_()
    assert ledger.to_json()["total"] == 3.0


def test_suggesting_is_shown_as_a_share_of_a_cost_in_seconds() -> None:
    ledger = Ledger.of(History(replace(PROBLEM, cost_unit="seconds"), [trial(0, {"training": 2.0})]))
    assert ("overhead", "suggesting", "0.25 seconds, 12% of the cost") in ledger.rows()
    assert ledger.to_json()["overhead_share"] == 0.125
    in_dollars = Ledger.of(History(PROBLEM, [trial(0, {"training": 2.0})]))
    assert in_dollars.overhead_share is None


STAGED = Problem(Space(stages={"denoise": {"x": Float(0, 1)}, "score": {}}))


def stage(step: int, seconds: float, *, saved: float | None = None, attempt: int = 1) -> Measurement:
    savings = {} if saved is None else {"cache": saved}
    return Measurement(step=step, cost={"stage": seconds}, saved=savings, attempt=attempt)


def test_stages_have_bills_of_their_own_that_add_up_to_what_stages_cost() -> None:
    trials = [
        Trial(0, Suggestion({"x": 0.5}), State.DONE, measurements=(stage(0, 8.0), stage(1, 1.0))),
        Trial(1, Suggestion({"x": 0.5}), State.DONE, measurements=(stage(0, 0.5, saved=8.0), stage(1, 2.0))),
        Trial(2, Suggestion({"x": 0.9}), State.FAILED, measurements=(stage(0, 8.0),)),
        Trial(3, Suggestion({"x": 0.7}), State.DONE, attempt=2, measurements=(stage(0, 4.0), stage(0, 8.0, attempt=2))),
    ]
    ledger = Ledger.of(History(STAGED, trials))
    assert ledger.to_json()["stages"] == {
        "denoise": {"computed": 2, "loaded": 1, "spent": 16.5, "saved": 8.0, "repeated": 0.0},
        "score": {"computed": 2, "loaded": 0, "spent": 3.0, "saved": 0.0, "repeated": 0.0},
    }
    assert ledger.spent == {"stage": 19.5, "failed": 12.0}
    assert ledger.saved == {"cache": 8.0}
    assert ("stage", "denoise", "16.5 seconds, computed 2×, loaded 1×, saved 8 seconds") in ledger.rows()


def test_an_output_that_two_trials_computed_is_on_the_bill_as_repeated() -> None:
    trials = [
        Trial(0, Suggestion({"x": 0.5}), State.DONE, measurements=(stage(0, 8.0), stage(1, 1.0))),
        Trial(1, Suggestion({"x": 0.5}), State.DONE, measurements=(stage(0, 7.0), stage(1, 1.0))),
        Trial(2, Suggestion({"x": 0.7}), State.DONE, measurements=(stage(0, 6.0), stage(1, 1.0))),
    ]
    ledger = Ledger.of(History(STAGED, trials))
    assert (ledger.stages["denoise"].repeated, ledger.stages["score"].repeated) == (7.0, 0.0)
    assert ("stage", "denoise", "21 seconds, computed 3× (7 seconds of it again)") in ledger.rows()


def test_an_output_that_an_earlier_trial_waited_for_is_not_repeated() -> None:
    """Two workers: the second trial was at the stage first, and the first loaded what that one computed."""
    trials = [
        Trial(0, Suggestion({"x": 0.5}), State.DONE, measurements=(stage(0, 0.5, saved=8.0), stage(1, 1.0))),
        Trial(1, Suggestion({"x": 0.5}), State.DONE, measurements=(stage(0, 8.0), stage(1, 1.0))),
    ]
    assert Ledger.of(History(STAGED, trials)).stages["denoise"].repeated == 0.0


def test_what_comes_after_the_last_stage_is_on_its_bill() -> None:
    problem = Problem(Space(stages={"load": {"x": Float(0, 1)}, "denoise": {}, "score": {}}))
    after = Measurement(0.5, {"validation": 0.25})
    earlier = Measurement(cost={"validation": 9.0}, attempt=1)
    points = (stage(0, 8.0), stage(1, 4.0), stage(2, 1.0), after)
    again = (earlier, *(replace(point, attempt=2) for point in points))
    trials = [
        Trial(0, Suggestion({"x": 0.5}), State.DONE, measurements=points),
        Trial(1, Suggestion({"x": 0.5}), State.DONE, attempt=2, measurements=again),
        Trial(2, Suggestion({"x": 0.5}), State.LOST, measurements=points),
    ]
    bills = Ledger.of(History(problem, trials)).stages
    assert {name: bill.spent for name, bill in bills.items()} == {"load": 16.0, "denoise": 8.0, "score": 2.5}


def test_a_stage_that_was_not_reached_yet_has_no_bill() -> None:
    problem = Problem(Space(stages={"load": {"x": Float(0, 1)}, "denoise": {}, "score": {}}))
    running = Trial(0, Suggestion({"x": 0.5}), State.RUNNING, measurements=(stage(0, 8.0), stage(1, 4.0)))
    bills = Ledger.of(History(problem, [running])).stages
    assert {name: bill.spent for name, bill in bills.items()} == {"load": 8.0, "denoise": 4.0}


def test_a_study_without_stages_has_no_bills_for_them() -> None:
    assert Ledger.of(History(PROBLEM, [trial(0, {"training": 3.0})])).stages == {}


SECONDS = Problem(
    Space({"x": Float(0, 1)}, fidelities={"epochs": Fidelity(1, 9, integer=True, trace=True)}), cost_unit="seconds"
)


def reported(number: int, costs: list[float], *, first: int, source: int | None = None, charged: bool = False) -> Trial:
    """A trial that reported every epoch from `first` on; `costs` are what each report cost."""
    return Trial(
        number,
        Suggestion({"x": 0.5}, fidelity={"epochs": first + len(costs) - 1}, resume_from=source),
        State.DONE,
        measurements=tuple(
            Measurement(0.5, {"training": cost}, charged=charged, fidelity={"epochs": first + index}, sequence=index)
            for index, cost in enumerate(costs)
        ),
        resume_checkpoint=None if source is None else "a checkpoint",
    )


def test_the_start_up_that_a_continued_run_pays_again_is_not_saved() -> None:
    """A run takes 10 seconds to start and 2 an epoch: starting over takes 10 + 2·9, continuing took 10 + 2·6."""
    history = History(SECONDS, [reported(0, [12, 2, 2], first=1), reported(1, [12, 2, 2, 2, 2, 2], first=4, source=0)])
    assert Ledger.of(history).saved == {"warm starts": pytest.approx(6.0)}


def test_the_rate_is_that_of_all_later_reports() -> None:
    """An epoch took 2 and 6 seconds, 4 in the mean: 8 of the first 12 were the start."""
    history = History(SECONDS, [reported(0, [12, 2, 6], first=1), reported(1, [12], first=4, source=0)])
    assert Ledger.of(history).saved == {"warm starts": pytest.approx(20.0 - 8.0)}


def test_a_first_report_after_several_epochs_has_their_training_in_it() -> None:
    """Three epochs of 2 seconds are in the first 16: 10 were the start."""
    history = History(SECONDS, [reported(0, [16, 2, 2], first=3), reported(1, [12], first=6, source=0)])
    assert Ledger.of(history).saved == {"warm starts": pytest.approx(20.0 - 10.0)}


def test_what_stands_behind_a_second_continuation_has_no_start_up_in_it_either() -> None:
    runs = [
        reported(0, [12, 2, 2], first=1),
        reported(1, [12, 2, 2], first=4, source=0),
        reported(2, [12, 2], first=7, source=1),
    ]
    assert Ledger.of(History(SECONDS, runs)).saved == {"warm starts": pytest.approx(6.0 + 12.0)}


def test_charged_amounts_are_saved_whole() -> None:
    """The difference of two charges is what continuing costs, fixed part or not."""
    runs = [reported(0, [12, 2], first=1, charged=True), reported(1, [2], first=3, source=0, charged=True)]
    assert Ledger.of(History(SECONDS, runs)).saved == {"warm starts": pytest.approx(14.0)}


def test_one_charge_stands_for_the_whole_attempt_and_has_no_start_up() -> None:
    measured = reported(0, [12, 2, 2], first=1)
    charged = tuple(replace(point, charged=index == 1) for index, point in enumerate(measured.measurements))
    runs = [replace(measured, measurements=charged), reported(1, [2], first=4, source=0)]
    assert Ledger.of(History(SECONDS, runs)).saved == {"warm starts": pytest.approx(2.0)}


def test_what_failed_attempts_cost_is_no_work_behind_a_checkpoint() -> None:
    measured = reported(0, [2, 2, 2], first=1)
    failed = Measurement(cost={"failed": 30.0})
    again = tuple(replace(point, attempt=2) for point in measured.measurements)
    runs = [replace(measured, attempt=2, measurements=(failed, *again)), reported(1, [2], first=4, source=0)]
    assert Ledger.of(History(SECONDS, runs)).saved == {"warm starts": pytest.approx(6.0)}


def test_reports_that_stay_at_one_epoch_tell_no_start_up() -> None:
    first = reported(0, [12, 2], first=1)
    same = tuple(replace(point, fidelity={"epochs": 2}) for point in first.measurements)
    runs = [replace(first, measurements=same), reported(1, [2], first=3, source=0)]
    assert Ledger.of(History(SECONDS, runs)).saved == {"warm starts": pytest.approx(14.0)}


def test_of_a_single_report_no_start_up_can_be_told() -> None:
    runs = [reported(0, [12], first=3), reported(1, [14, 2], first=4, source=0)]
    assert Ledger.of(History(SECONDS, runs)).saved == {"warm starts": pytest.approx(12.0)}


@given(
    start_up=st.floats(0, 1e3),
    rate=st.floats(1e-3, 1e3),
    lengths=st.lists(st.integers(2, 5), min_size=2, max_size=4),
)
def test_steady_runs_save_exactly_what_starting_over_would_add(
    start_up: float, rate: float, lengths: list[int]
) -> None:
    runs, done, expected = [], 0, 0.0
    for number, length in enumerate(lengths):
        costs = [start_up + rate, *[rate] * (length - 1)]
        runs.append(reported(number, costs, first=done + 1, source=number - 1 if number else None))
        expected += rate * done
        done += length
    assert Ledger.of(History(SECONDS, runs)).saved["warm starts"] == pytest.approx(expected, rel=1e-6, abs=1e-6)
