"""How much the strategies for pipelines think: in proportion to what a run takes, from what the study stored."""

from pathlib import Path

import pytest

import farthing as ft
from farthing.costs import FakeClock, Remaining
from farthing.execution import InlineExecutor, as_work
from farthing.extending import Strategy
from farthing.session.questions import suggested_again
from farthing.strategies import Randomness
from farthing.strategies.shared.effort import allowed_effort
from farthing.testing import check_replay
from farthing.trials import Params

STAGED = ft.Space(stages={"first": {"x": ft.Float(0, 1)}, "last": {"y": ft.Float(0, 1), "z": ft.Float(0, 1)}})
TRIALS = 14
STRATEGIES = [ft.PrefixEI(), ft.LaMBO()]


def of(strategy: Strategy) -> str:
    return type(strategy).__name__


def ran(strategy: Strategy, *, seconds: float, storage: str | None = None) -> ft.Study:
    """A run whose two stages take that long together, by a clock of their own, with one worker."""
    clock = FakeClock()

    def first(source: float, x: float) -> float:
        clock.advance(0.8 * seconds)
        return source + (x - 0.3) ** 2

    def last(before: float, y: float, z: float) -> float:
        clock.advance(0.2 * seconds)
        return before + (y - 0.6) ** 2 + (z - 0.1) ** 2

    pipeline = ft.Pipeline(source=0.0, first=ft.Stage(first, version="1"), last=ft.Stage(last, version="1"))
    study = ft.Study(STAGED, minimize="error", strategy=strategy, seed=3, storage=storage, name="haste")
    work = as_work(pipeline)
    executor = InlineExecutor(work, study.problem, checkpoints=study.checkpoints, clock=clock)
    study.run(work, budget=ft.Budget(trials=TRIALS), executor=executor, progress=False)
    return study


def efforts(study: ft.Study) -> list[str]:
    return [allowed_effort(study.strategy, study.history.before(number), workers=1) for number in range(TRIALS)]


def suggested_with_all_effort(study: ft.Study, number: int) -> Params:
    before = study.history.before(number)
    budget = Remaining(trials=TRIALS - number, effort="ordinary")
    [suggestion] = study.strategy.suggest(before, budget, 1, Randomness(study.history.problem.seed))
    return suggestion.params


@pytest.mark.parametrize("strategy", STRATEGIES, ids=of)
def test_a_cheap_run_gets_the_least_thinking_once_its_length_is_known_and_a_dear_one_all_of_it(
    strategy: Strategy,
) -> None:
    cheap, dear = ran(strategy, seconds=0.01), ran(strategy, seconds=100.0)
    assert efforts(cheap) == ["ordinary"] * 5 + ["several"] * (TRIALS - 5)
    assert efforts(dear) == ["ordinary"] * TRIALS
    again = [suggested_with_all_effort(dear, number) == dear.trials[number].params for number in range(5, TRIALS)]
    less = [suggested_with_all_effort(cheap, number) == cheap.trials[number].params for number in range(5, TRIALS)]
    assert all(again)
    assert not any(less)


@pytest.mark.parametrize("seconds", [0.01, 100.0])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=of)
def test_a_hasty_suggestion_is_made_again_exactly_from_what_is_stored(
    strategy: Strategy, seconds: float, tmp_path: Path
) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    ran(strategy, seconds=seconds, storage=storage).close()
    with ft.Study.load("haste", storage) as loaded:
        assert efforts(loaded)[-1] == ("several" if seconds < 1.0 else "ordinary")
        assert check_replay(loaded) == []


def test_no_clock_decides_a_suggestion_that_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    study = ran(ft.PrefixEI(), seconds=0.01)
    history = study.history

    def read() -> float:
        raise AssertionError("a clock was read")

    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        monkeypatch.setattr(f"time.{name}", read)
    for number in range(TRIALS):
        again = suggested_again(study.strategy, history, number)
        assert again is not None
        assert again.params == history[number].params
