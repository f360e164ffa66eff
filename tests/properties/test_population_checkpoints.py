"""In whatever order members finish or fail: a source is there when its copy starts, and disk use is bounded."""

from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from farthing.extending import Strategy

SPACE = ft.Space({"lr": ft.Float(0.0, 1.0)})
INTERVALS = 4


@st.composite
def populations(draw: st.DrawFn) -> Strategy:
    kind = draw(st.sampled_from([ft.PBT, ft.Clone, ft.PB2]))
    return kind(
        population=draw(st.integers(2, 5)), interval=1, steps=INTERVALS, mode=draw(st.sampled_from(["sync", "async"]))
    )


@settings(max_examples=40)
@given(strategy=populations(), data=st.data())
def test_no_source_is_gone_before_its_copy_has_ended(strategy: ft.PBT, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        study = ft.Study(SPACE, maximize="reward", strategy=strategy, folder=folder, cost_unit="steps")
        running: list[ft.RunningTrial] = []
        while True:
            running += study.ask(count=data.draw(st.integers(1, strategy.population)))
            if not running:
                break
            for trial in running:
                assert (trial.resume_from is None) == (trial.resume_dir is None)
                assert trial.resume_dir is None or (trial.resume_dir / "member").is_file(), "its source was deleted"
            trial = running.pop(data.draw(st.integers(0, len(running) - 1)))
            if data.draw(st.integers(0, 9)) == 0:
                study.tell(trial, failure="diverged", cost=1.0)
                continue
            (trial.checkpoint_dir / "member").write_text(str(trial.number))
            study.tell(trial, trial.params["lr"] * trial.fidelity["steps"], cost=1.0)
            assert kept(study) <= strategy.population * (2 if strategy.mode == "sync" else INTERVALS) + 1
        assert kept(study) <= 1 + (0 if any(map(study.history.is_full, study.history.done)) else strategy.population)


def kept(study: ft.Study) -> int:
    return len(list(study.checkpoints.root.glob("*/*.checkpoint-*")))
