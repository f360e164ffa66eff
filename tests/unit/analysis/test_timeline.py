"""Bars of trials: from when a worker took each, and in as many lanes as ran at once."""

import farthing as ft
from farthing.analysis.charts import timeline
from farthing.analysis.lines import Lines
from farthing.storage import MemoryStorage

SPACE = ft.Space({"x": ft.Float(0, 1)})


def test_queueing_is_not_drawn_as_work() -> None:
    """Six trials wait in line for one worker: each bar has the second that it ran, and all are in one lane."""
    clock = ft.FakeClock(1_000.0)
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), storage=MemoryStorage(clock), clock=clock)
    for place in range(6):
        study.enqueue({"x": place / 6})
    clock.advance(240.0)
    for _ in range(5):
        trial = study.ask()
        clock.advance(1.0)
        study.tell(trial, 0.5)

    drawn = timeline(Lines.of(study.history), now=clock.now(), most=100)

    assert [(bar["start"], bar["end"]) for bar in drawn["bars"]] == [(1_240.0 + s, 1_241.0 + s) for s in range(5)]
    assert (len(drawn["lanes"]), drawn["of"]) == (1, 5)


def test_what_was_measured_elsewhere_has_no_bar() -> None:
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random())
    study.add({"x": 0.5}, 0.25, cost=1.0)
    assert timeline(Lines.of(study.history), now=1.0, most=100)["bars"] == []
