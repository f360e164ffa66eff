"""What halving promotes next is kept while a history grows, and is what all its trials say."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import farthing as ft
from farthing.strategies.multifidelity.halving import Rungs
from farthing.trials import History, Problem, State, Suggestion, Trial

SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "end", "fail", "promote"]), st.integers(0, 5), st.integers(0, 8)), max_size=60
)


@given(STEPS)
def test_the_best_that_wait_are_those_of_the_whole_history(steps: list[tuple[str, int, int]]) -> None:
    history = History(Problem(SPACE, value="error"))
    for version, (step, which, value) in enumerate(steps, start=1):
        changed = stepped(history, step, which, float(value))
        history = history if changed is None else history.updated([changed], version=version)
        rungs = Rungs(history, 3, "epochs")
        for rung in range(len(rungs.levels)):
            assert [trial.number for trial in rungs.best(rung)] == best_of_all(rungs, rung)


def stepped(history: History, step: str, which: int, value: float) -> Trial | None:
    """The trial that begins, ends or goes on; None where there is none to do so."""
    if step == "start":
        return Trial(len(history), Suggestion({"x": which / 5}, {"epochs": 1}), State.RUNNING)
    if step == "promote":
        done = [trial for trial in history if trial.state is State.DONE and trial.fidelity["epochs"] < 9]
        if not done:
            return None
        source = done[which % len(done)]
        further = Suggestion(source.params, {"epochs": 3 * source.fidelity["epochs"]}, resume_from=source.number)
        return Trial(len(history), further, State.RUNNING)
    running = history.in_flight
    if not running:
        return None
    chosen = running[which % len(running)]
    return replace(chosen, state=State.DONE, value=value) if step == "end" else replace(chosen, state=State.FAILED)


def best_of_all(rungs: Rungs, rung: int) -> list[int]:
    """From all trials: the best third of those that ended there, but for what is continued or stands higher already."""
    history = rungs.history
    ended = rungs.ranked(trial for trial in history if trial.is_finished and rungs.rung_of(trial) == rung)
    continued = {trial.resume_from for trial in history}
    living = [trial for trial in history if trial.state not in (State.FAILED, State.LOST)]
    best = [trial for trial in ended[: len(ended) // 3] if trial.number not in continued]
    return [
        trial.number
        for trial in best
        if not any(twin.params == trial.params and (rungs.rung_of(twin) or 0) > rung for twin in living)
    ]
