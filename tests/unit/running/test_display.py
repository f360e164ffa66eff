"""How a run shows itself: in notebooks, and where there is no terminal."""

import sys
import types

import pytest

import farthing as ft
from farthing.running import display
from farthing.running.display import LiveProgress, NotebookProgress, ProgressLines, display_for
from farthing.session import session_of

SPACE = ft.Space({"x": ft.Float(0, 1)})


def study_of() -> ft.Study:
    return ft.Study(SPACE, minimize="error", name="<digits>", strategy=ft.Random(), seed=0)


def loss(trial: ft.RunningTrial) -> float:
    trial.report(1.0)
    return float(trial.params["x"])


def test_where_there_is_no_terminal_a_line_now_and_then_says_how_it_stands(capsys, monkeypatch) -> None:
    monkeypatch.setattr(display, "SECONDS_BETWEEN_LINES", 0.0)
    study = study_of()
    study.run(loss, budget=ft.Budget(trials=3), executor="inline")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6, "after each report and each end"
    assert lines[-1].startswith(f"<digits>: best error {study.best.value:.6g}, 3 done, ")
    assert lines[-1].endswith("3 of 3 trials")


def test_a_run_of_seconds_says_nothing_and_progress_false_never_does(capsys, monkeypatch) -> None:
    study_of().run(loss, budget=ft.Budget(trials=3), executor="inline")
    monkeypatch.setattr(display, "SECONDS_BETWEEN_LINES", 0.0)
    study_of().run(loss, budget=ft.Budget(trials=3), executor="inline", progress=False)
    assert capsys.readouterr().err == ""


def test_the_display_is_chosen_by_where_the_program_runs(monkeypatch) -> None:
    study = study_of()
    assert display_for(session_of(study), wanted=False) is None
    assert isinstance(display_for(session_of(study), wanted=None), ProgressLines)
    assert isinstance(display_for(session_of(study), wanted=True), LiveProgress)
    kernel = types.SimpleNamespace(kernel=object())
    ipython = types.SimpleNamespace(get_ipython=lambda: kernel)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert isinstance(display_for(session_of(study), wanted=None), NotebookProgress)
    monkeypatch.setattr(ipython, "get_ipython", lambda: types.SimpleNamespace(kernel=None))
    assert isinstance(display_for(session_of(study), wanted=None), ProgressLines), "IPython in a terminal"


def test_a_notebook_shows_bars_and_workers(monkeypatch) -> None:
    pytest.importorskip("IPython")
    import IPython.display

    shown: list[str] = []
    handle = types.SimpleNamespace(update=lambda html: shown.append(html.data))

    def put(html: object, *, display_id: bool) -> object:
        shown.append(html.data)  # type: ignore[attr-defined]
        return handle

    monkeypatch.setattr(IPython.display, "display", put)
    monkeypatch.setattr(display, "is_notebook", lambda: True)
    monkeypatch.setattr(display, "SECONDS_BETWEEN_PICTURES", 0.0)
    study = study_of()
    study.run(loss, budget=ft.Budget(trials=2), executor="inline")
    assert "<b>&lt;digits&gt;</b> · no result yet · starting" in shown[0]
    assert any("trial 1: x=" in html for html in shown)
    assert "<progress value='2' max='2'></progress> 2 of 2" in shown[-1]


def test_how_it_stands_names_every_objective(capsys, monkeypatch) -> None:
    monkeypatch.setattr(display, "SECONDS_BETWEEN_LINES", 0.0)
    space = ft.Space({"x": ft.Float(0.0, 1.0)})
    study = ft.Study(
        space, minimize="error", maximize="speed", constraints={"memory": ft.AtMost(5)}, strategy=ft.Random(), seed=0
    )

    def work(trial: ft.RunningTrial) -> dict[str, float]:
        return {"error": 0.5 - 0.1 * trial.number, "speed": 2.0 - trial.number, "memory": 6.0 - 2 * trial.number}

    study.run(work, budget=ft.Budget(trials=3), executor="inline")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("study: nothing keeps the limits yet, 1 done, ")
    assert lines[1].startswith("study: front of 1: error down to 0.4, speed up to 1, 2 done, ")
    assert lines[2].startswith("study: front of 2: error down to 0.3, speed up to 1, 3 done, ")


def test_how_it_stands_under_limits_is_the_best_that_keeps_them(capsys, monkeypatch) -> None:
    monkeypatch.setattr(display, "SECONDS_BETWEEN_LINES", 0.0)
    study = ft.Study(
        ft.Space({"x": ft.Float(0.0, 1.0)}),
        minimize="error",
        constraints={"memory": ft.AtMost(5)},
        strategy=ft.Random(),
    )
    study.run(
        lambda trial: {"error": 0.1 * trial.number, "memory": 6.0 - 2 * trial.number},
        budget=ft.Budget(trials=2),
        executor="inline",
    )
    assert "best error within the limits 0.1" in capsys.readouterr().err.splitlines()[-1]
