"""How studies and trials look in a terminal and in a notebook."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from farthing.errors import NoResult
from farthing.session import session_of
from farthing.session.strategy import name_of
from farthing.study.runs import ranked_runs
from farthing.trials import History, Measurement, Params, Prediction, Trial

if TYPE_CHECKING:
    from farthing.study.best import Best
    from farthing.study.study import Study

ROWS_SHOWN = 10


def short_number(number: Any) -> str:
    return f"{number:.4g}" if isinstance(number, float) else str(number)


def short_params(params: Params) -> str:
    return " ".join(f"{name}={short_number(value)}" for name, value in params.items())


def short_point(trial: Trial, point: Measurement | None) -> str:
    """Progress of a running trial: `epochs=4/27 0.213`."""
    if point is None or point.value is None:
        return " ".join(f"{name}=…/{short_number(value)}" for name, value in trial.fidelity.items())
    places = [
        f"{name}={short_number(at)}/{short_number(trial.fidelity.get(name, at))}" for name, at in point.fidelity.items()
    ]
    return " ".join([*places, f"{point.value:.5g}"])


def found_best(study: "Study") -> "Best | None":
    """The recommendation so far, if any."""
    from farthing.study.best import find_best

    try:
        return find_best(session_of(study))
    except NoResult:
        return None


def best_lines(study: "Study", best: "Best") -> list[str]:
    """The recommendation in words, and whether the strategy was asked."""
    return [*best.lines(), *_fallback(study, best)]


def _fallback(study: "Study", best: "Best") -> list[str]:
    if not best.is_fallback:
        return []
    name = name_of(session_of(study).strategy.to_json())
    return [f"It is the best measured: {name} is not imported to read a study. --import asks what it recommends."]


def short_prediction(predicted: Prediction) -> str:
    """`0.0812 ± 0.004`: the expected value and one standard deviation."""
    deviation = "" if predicted.deviation is None else f" ± {predicted.deviation:.2g}"
    return f"{predicted.mean:.4g}{deviation}"


def trial_row(trial: Trial) -> list[str]:
    """Number, value, cost, fidelity and params as text."""
    value = "" if trial.value is None else f"{trial.value:.6g}"
    return [str(trial.number), value, f"{trial.cost:.4g}", short_params(trial.fidelity), short_params(trial.params)]


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns, the header first."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """The same for notebooks."""
    head, *body = [[escape(cell) for cell in row] for row in rows]
    header = "".join(f"<th>{cell}</th>" for cell in head)
    cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{cells}</tbody></table>"


def _best_table(study: "Study", history: History) -> list[list[str]]:
    header = ["trial", study.problem.value, "cost", "fidelity", "params"]
    return [header, *map(trial_row, ranked_runs(history)[:ROWS_SHOWN])]


def study_text(study: "Study") -> str:
    with session_of(study).records.still():
        history = study.history
        table = text_table(_best_table(study, history))
        return "\n".join([_title(study, history), *_recommendation(study), "", table, "", str(study.ledger)])


def study_html(study: "Study") -> str:
    with session_of(study).records.still():
        history = study.history
        words = "".join(f"<br>{escape(line)}" for line in _recommendation(study))
        title = f"<p><b>{escape(_title(study, history))}</b>{words}</p>"
        return f"{title}{html_table(_best_table(study, history))}{study.ledger._repr_html_()}"


def _recommendation(study: "Study") -> list[str]:
    """The recommendation of a model, which the table of measurements does not show."""
    best = found_best(study)
    return [*best_lines(study, best), short_params(best.params)] if best and best.predicted else []


def _title(study: "Study", history: History) -> str:
    return f"{study.name}: {study.problem.direction} {study.problem.value}, {len(history)} trials"
