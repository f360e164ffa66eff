"""How studies and trials look in a terminal and in a notebook."""

from html import escape
from typing import TYPE_CHECKING, Any

from farthing.trials import History, Measurement, Params, Trial

if TYPE_CHECKING:
    from farthing.study.study import Study

ROWS_SHOWN = 10


def short_number(number: Any) -> str:
    return f"{number:.4g}" if isinstance(number, float) else str(number)


def short_bytes(count: int) -> str:
    """12.3 MB"""
    number, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1000, larger
    return f"{number:.3g} {unit}"


def short_params(params: Params) -> str:
    return " ".join(f"{name}={short_number(value)}" for name, value in params.items())


def short_point(trial: Trial, point: Measurement | None) -> str:
    """Where a running trial stands: `epochs=4/27 0.213`."""
    if point is None or point.value is None:
        return " ".join(f"{name}=…/{short_number(value)}" for name, value in trial.fidelity.items())
    places = [
        f"{name}={short_number(at)}/{short_number(trial.fidelity.get(name, at))}" for name, at in point.fidelity.items()
    ]
    return " ".join([*places, f"{point.value:.5g}"])


def best_rows(history: History) -> list[list[str]]:
    """The best trials as rows of text: number, value, cost, fidelity, params."""
    done = [trial for trial in history.done if trial.value is not None]
    ranked = sorted(done, key=lambda trial: (not history.is_full(trial), history.loss(trial.value or 0.0)))
    return [
        [
            str(trial.number),
            f"{trial.value:.6g}",
            f"{trial.cost:.4g}",
            short_params(trial.fidelity),
            short_params(trial.params),
        ]
        for trial in ranked[:ROWS_SHOWN]
    ]


def study_text(study: "Study") -> str:
    history = study.history
    rows = [_header(study), *best_rows(history)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([_title(study, history), "", *lines, "", str(study.ledger)])


def study_html(study: "Study") -> str:
    history = study.history
    header = "".join(
        f"<th>{escape(name)}</th>" for name in ["trial", study.problem.value, "cost", "fidelity", "params"]
    )
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in best_rows(history))
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<p><b>{escape(_title(study, history))}</b></p>{table}{study.ledger._repr_html_()}"


def _header(study: "Study") -> list[str]:
    return ["trial", study.problem.value, "cost", "fidelity", "params"]


def _title(study: "Study", history: History) -> str:
    return f"{study.name}: {study.problem.direction} {study.problem.value}, {len(history)} trials"
