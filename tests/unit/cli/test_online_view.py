"""`farthing show` of an online run: its params change, and those that count are shown."""

import farthing as ft
from benchmarks.baselines.bandits import EpsilonGreedy
from farthing.cli.study_view import online_text
from farthing.rules import Every
from farthing.storage import MemoryStorage

ARMS = ft.Space({"arm": ft.Choice("a", "b", "c")})
LOSS = {"a": 0.3, "b": 0.1, "c": 0.2}


def test_the_params_in_force_at_the_best_value_and_at_the_end_are_shown() -> None:
    storage = MemoryStorage()
    strategy = EpsilonGreedy(rule=Every(1), explore=1.0)
    settings = {"strategy": strategy, "minimize": "loss", "storage": storage, "name": "run", "overhead": None}
    tuner = ft.OnlineTuner(ARMS, rounds=12, seed=3, **settings)
    played = []
    for decision in tuner:
        played.append(arm := decision.params["arm"])
        decision.observe(LOSS[arm])
    best, end = online_text(ft.Study.load("run", storage)).splitlines()[-2:]
    best_arm = min(played, key=lambda arm: LOSS[arm])
    assert best.split() == ["0", "its", "best", str(played.index(best_arm) + 1), str(LOSS[best_arm]), best_arm]
    assert end.split() == ["0", "its", "end", "12", str(LOSS[played[-1]]), played[-1]]


def test_a_bad_end_is_shown_as_one() -> None:
    storage = MemoryStorage()
    strategy = EpsilonGreedy(rule=Every(1))
    settings = {"strategy": strategy, "minimize": "loss", "storage": storage, "name": "run", "overhead": None}
    for decision in ft.OnlineTuner(ARMS, rounds=5, **settings):
        decision.observe(float("inf") if decision.round == 5 else 0.3)
    *_, end = online_text(ft.Study.load("run", storage)).splitlines()
    assert end.split()[:5] == ["0", "its", "end", "5", "bad"]


def test_other_studies_have_no_such_part() -> None:
    study = ft.Study(ARMS, name="plain", minimize="loss", strategy=ft.Random(), storage=MemoryStorage())
    assert online_text(study) == ""
