"""Pictures: that they are drawn, and of what. Warnings are errors, so a layout that does not fit fails."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import farthing as ft
from farthing.analysis.lines import progress_of
from farthing.cli.files import save_figure
from farthing.errors import InvalidArgument, MissingExtra, NoResult
from farthing.extending import History, Suggestion
from farthing.plots import PlotKind
from farthing.plots.look import STYLE, merit, plain_number, set_value_axis
from farthing.plots.panels import draw_curves, draw_spending
from farthing.session import session_of
from farthing.strategies import Recommendation
from farthing.trials import Measurement, Outcome, Prediction

PNG = b"\x89PNG"


@pytest.mark.parametrize("kind", ["all", "progress", "curves", "fidelities", "params"])
def test_a_picture_of_each_kind_is_drawn(farthing, folder: Path, digits: ft.Study, kind: str) -> None:
    result = farthing("--debug", "plot", "--kind", kind)

    assert result.output == "Wrote digits.png\n"
    assert (folder / "digits.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("kind", ["all", "progress", "curves", "fidelities", "params"])
def test_a_study_draws_itself_and_returns_the_figure(digits: ft.Study, kind: PlotKind) -> None:
    figure = digits.plot(kind)

    assert isinstance(figure, Figure)
    assert figure.axes


def test_the_figure_has_only_the_panels_of_its_kind(digits: ft.Study) -> None:
    assert [axes.get_title(loc="left") for axes in digits.plot("curves").axes] == ["Learning curves (dark: better)"]


def test_the_value_axis_has_all_values_but_outliers() -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error")
    axes = Figure().subplots()
    set_value_axis(axes, [*(10.0 + 0.1 * i for i in range(100)), 40.0], study.history)
    low, high = axes.get_ylim()
    assert low < 10.0
    assert 18.0 < high < 25.0


def test_a_figure_looks_the_same_whenever_it_is_saved(digits: ft.Study) -> None:
    axes = digits.plot("curves").axes[0]

    sizes = {label.get_fontsize() for label in axes.get_xticklabels()}
    assert sizes == {STYLE["xtick.labelsize"]}


def test_an_unknown_kind_of_picture_names_those_there_are(digits: ft.Study) -> None:
    with pytest.raises(InvalidArgument, match=r"must be among 'all', .*, got 'curve'. Did you mean 'curves'\?"):
        digits.plot("curve")  # type: ignore[arg-type]


def test_a_study_without_matplotlib_names_the_extra(digits: ft.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(MissingExtra, match=r"pip install 'farthing\[plot\]'"):
        digits.plot()


def test_a_study_without_fidelities_with_conditions_and_failures_is_drawn(farthing, folder: Path) -> None:
    space = ft.Space(
        {
            "optimizer": ft.Choice("sgd", "adam"),
            "momentum": ft.Float(0, 1, when={"optimizer": "sgd"}),
            "lr": ft.Float(1e-5, 1e-1, log=True),
            "layers": ft.Int(1, 4),
            "width": ft.Int(16, 4096, log=True),
            "dropout": ft.Float(0, 0.5),
        }
    )
    study = ft.Study(space, maximize="f1", storage="study.db", name="a/b", strategy=ft.Random(), cost_unit="dollars")
    for value in (0.1, 0.9, -1e9, 0.5):
        study.tell(study.ask(), value, cost=1.0)
    study.tell(study.ask(), failure="broken", cost=1.0)

    result = farthing("--debug", "plot")

    assert result.output == "Wrote a-b.png\n"
    assert (folder / "a-b.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("kind", ["all", "stages"])
def test_a_pipelines_picture_has_its_stages(farthing, folder: Path, kind: str) -> None:
    space = ft.Space(stages={"clean": {"cut": ft.Int(1, 2)}, "fit": {"shrink": ft.Float(0, 1)}})
    pipeline = ft.Pipeline(source=[1.0, 2.0], clean=lambda numbers, cut: numbers, fit=lambda numbers, shrink: shrink)
    study = ft.Study(space, minimize="error", storage="sqlite:///farthing.db", name="staged", strategy=ft.Random())
    study.run(pipeline, budget=ft.Budget(trials=6), executor="inline")
    assert farthing("--debug", "plot", "--kind", kind).exit_code == 0
    assert (folder / "staged.png").read_bytes().startswith(PNG)


def test_a_pipeline_has_no_curves_and_the_refusal_names_its_stages(folder: Path) -> None:
    space = ft.Space(stages={"clean": {"cut": ft.Int(1, 2)}, "fit": {"shrink": ft.Float(0, 1)}})
    pipeline = ft.Pipeline(source=[1.0, 2.0], clean=lambda numbers, cut: numbers, fit=lambda numbers, shrink: shrink)
    study = ft.Study(space, minimize="error", name="staged", strategy=ft.Random())
    study.run(pipeline, budget=ft.Budget(trials=3), executor="inline")
    with pytest.raises(NoResult, match=r"needs trials that report on their way, got none of 'staged'.*'stages'"):
        study.plot("curves")


@pytest.mark.parametrize("kind", ["progress", "curves"])
def test_legends_lie_beside_the_data_and_epochs_are_whole(digits: ft.Study, kind: str) -> None:
    figure = digits.plot(kind)  # type: ignore[arg-type]
    figure.draw_without_rendering()
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is not None:
            assert legend.get_window_extent().y1 <= axes.get_window_extent().y0, "below the axes"
            label = axes.xaxis.label.get_window_extent()
            assert not legend.get_window_extent().overlaps(label)
        if axes.get_xlabel() == "epochs":
            assert all(tick == round(tick) for tick in axes.get_xticks())


def test_a_picture_of_stages_needs_some(farthing, digits: ft.Study) -> None:
    result = farthing("plot", "--kind", "stages")
    assert result.exit_code == 1
    assert "A picture of stages needs a pipeline's trials, got none of 'digits'" in result.stderr


def test_a_picture_needs_a_result(farthing) -> None:
    ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="empty.db").close()

    result = farthing("plot")

    assert result.exit_code == 1
    assert "Run the study first" in result.stderr


def test_a_missing_matplotlib_names_the_extra(farthing, digits: ft.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    result = farthing("plot")

    assert result.exit_code == 1
    assert "pip install 'farthing[plot]'" in result.stderr


def test_progress_counts_every_cost_and_keeps_the_best(digits: ft.Study) -> None:
    steps = progress_of(digits.history)

    assert [step.trial.number for step in steps] == [0, 1, 2, 3, 4]
    assert [step.spent for step in steps] == pytest.approx([2, 4, 6, 11, 12])
    assert [step.best for step in steps] == [0.4, 0.4, 0.4, 0.25, 0.25]


@pytest.mark.parametrize(
    ("number", "text"), [(0.02, "0.02"), (500, "500"), (1e-5, "1e-5"), (1e6, "1e6"), (0.0, "0e0"), (1e-12, "1e-12")]
)
def test_labels_are_plain_numbers(number: float, text: str) -> None:
    assert plain_number(number) == text


def test_a_study_without_fidelities_has_no_picture_of_them(farthing) -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="plain.db", strategy=ft.Random())
    study.tell(study.ask(), 0.5)

    result = farthing("plot", "--kind", "fidelities")

    assert result.exit_code == 1
    assert "A picture of fidelities needs a space that has some" in result.stderr


@dataclass(frozen=True)
class Predicting(ft.ASHA):
    """Recommends the first trial by a prediction."""

    def recommend(self, history: History) -> Recommendation:
        return Recommendation(history[0].params, history[0], Prediction(0.2, 0.05))


def drawn(draw: Callable[[Any], None]) -> Any:
    """The axes after drawing on them."""
    axes = Figure().add_subplot()
    draw(axes)
    return axes


def two_fidelities() -> ft.Study:
    """Two runs on a quarter of the data, one of which was continued from 3 to 9 epochs, and one on all of them."""
    fidelities = {"epochs": ft.Fidelity(1, 9, integer=True, trace=True), "data": ft.Fidelity(0.25, 1.0)}
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities=fidelities)
    study = ft.Study(space, minimize="error", storage="two.db", name="two", strategy=Predicting(fidelity="epochs"))
    runs = [(3, 0.25, 0.5, None), (3, 1.0, 0.4, None), (9, 0.25, 0.3, 0)]
    for epochs, data, value, source in runs:
        fidelity = {"epochs": epochs, "data": data}
        measured = [
            Measurement(value + 1 / n, fidelity={"epochs": n, "data": data}, sequence=n) for n in (epochs - 1, epochs)
        ]
        suggestion = Suggestion({"x": value}, fidelity, resume_from=source)
        session_of(study).records.add(suggestion, Outcome(ft.State.DONE, value=value, measurements=measured), tags=())
    return study


def test_bars_are_as_high_as_runs_came_and_as_wide_as_their_other_fidelities() -> None:
    history = two_fidelities().history
    axes = drawn(lambda axes: draw_spending(axes, history, merit(history), best=history[2]))

    assert [bar.get_height() for bar in axes.patches] == [9, 3]
    widths = [bar.get_width() for bar in axes.patches]
    assert widths[0] / widths[1] == pytest.approx(0.25)
    pauses = [line.get_segments()[0][0][1] for line in axes.collections if len(line.get_segments())]
    assert pauses == [3]


def test_the_best_run_is_the_darkest() -> None:
    history = two_fidelities().history
    colours = merit(history)

    assert colours.keys() == {1, 2}
    assert sum(colours[2][:3]) < sum(colours[1][:3])


def test_a_prediction_is_drawn_at_full_fidelity_and_a_ring_where_a_run_was_continued() -> None:
    study = two_fidelities()
    axes = drawn(lambda axes: draw_curves(axes, study.history, merit(study.history), best=study.best))

    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
    assert ([9.0], [0.2]) in lines, "what is expected of trial 0 at all of the 9 epochs"
    assert ([3.0], [pytest.approx(0.5 + 1 / 3)]) in lines


def test_a_picture_of_several_fidelities_and_a_prediction_is_drawn(farthing, folder: Path) -> None:
    two_fidelities().close()
    study = ft.Study.load("two", "two.db", strategy=Predicting(fidelity="epochs"))
    save_figure(study.plot(), folder / "two.png")

    assert (folder / "two.png").read_bytes().startswith(PNG)
