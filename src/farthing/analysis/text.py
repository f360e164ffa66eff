"""How studies and trials look in a terminal and in a notebook."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, overload

from farthing.analysis.runs import ranked_runs
from farthing.costs import Ledger
from farthing.errors import NoResult
from farthing.fields import Whole
from farthing.session.strategy import name_of
from farthing.trials import History, Measurement, Params, Prediction, Problem, Trial
from farthing.trials.objectives import COST, latest_metrics

if TYPE_CHECKING:
    from farthing.analysis.best import Best, MeasuredBest
    from farthing.session import Session


ROWS_SHOWN = 10


def short_number(number: Any) -> str:
    return f"{number:.4g}" if isinstance(number, float) else str(number)


def short_params(params: Params) -> str:
    return " ".join(f"{name}={short_number(value)}" for name, value in params.items())


def short_point(trial: Trial, point: Measurement | None, problem: Problem) -> str:
    """Progress of a running trial: `epochs=4/27 0.213`, or `epochs=4/27 error=0.213 latency=3.2`."""
    if point is None or point.value is None:
        return " ".join(f"{name}=…/{short_number(value)}" for name, value in trial.fidelity.items())
    places = [
        f"{name}={short_number(at)}/{short_number(trial.fidelity.get(name, at))}" for name, at in point.fidelity.items()
    ]
    if problem.is_simple:
        return " ".join([*places, f"{point.value:.5g}"])
    values = {problem.value: point.value, **{name: point.metrics.get(name) for name in problem.needed}}
    return " ".join([*places, *(f"{name}={value:.5g}" for name, value in values.items() if value is not None)])


def found_best(session: "Session") -> "MeasuredBest | None":
    """The recommendation so far, if any."""
    from farthing.analysis.best import find_best, kept_recommendation

    try:
        return kept_recommendation(session.records) or find_best(session)
    except NoResult:
        return None


def best_lines(session: "Session", best: "Best") -> list[str]:
    """The recommendation in words, and whether the strategy was asked."""
    return [*best.lines(), *_fallback(session, best)]


def _fallback(session: "Session", best: "Best") -> list[str]:
    if not best.is_fallback:
        return []
    name = name_of(session.strategy.to_json())
    return [f"It is the best measured: {name} is not imported to read a study. --import asks what it recommends."]


def short_prediction(predicted: Prediction) -> str:
    """`0.0812 ± 0.004`: the expected value and one standard deviation."""
    deviation = "" if not predicted.deviation else f" ± {predicted.deviation:.2g}"
    return f"{predicted.mean:.4g}{deviation}"


def value_cells(trial: Trial, problem: Problem) -> list[str]:
    """Every objective, and every quantity under a limit, as text: a cell for each of `problem.named`."""
    metrics = latest_metrics(trial) if problem.needed and trial.value is not None else {}
    values = [trial.value, *(metrics.get(name) for name in problem.needed)]
    return ["" if value is None else f"{value:.6g}" for value in values]


def trial_row(trial: Trial, problem: Problem) -> list[str]:
    """Number, values, cost, fidelity and params as text."""
    found = [str(trial.number), *value_cells(trial, problem), f"{trial.cost:.4g}"]
    return [*found, short_params(trial.fidelity), short_params(trial.params)]


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


def trials_html(trials: Sequence[Trial], problem: Problem) -> str:
    """A table with a column for each fidelity and each param that one of the trials has."""
    fidelities = dict.fromkeys(name for trial in trials for name in trial.fidelity)
    params = dict.fromkeys(name for trial in trials for name in trial.params)
    rows = [
        [
            *trial_row(trial, problem)[:-2],
            *(short_number(trial.fidelity.get(name, "")) for name in fidelities),
            *(short_number(trial.params.get(name, "")) for name in params),
        ]
        for trial in trials
    ]
    return html_table([["trial", *problem.named, paid_column(problem), *fidelities, *params], *rows])


def front_rows(best: "Best | None") -> list[list[str]]:
    """The front that a recommendation was chosen from, as a table; empty where there is one objective."""
    if best is None or best.choice is None or not best.problem.further:
        return []
    return best.choice.front.table()[: ROWS_SHOWN + 1] if len(best.choice.front) else []


def front_text(best: "Best | None") -> str:
    """The same for a terminal, with how large the front is."""
    rows = front_rows(best)
    if best is None or best.choice is None or not rows:
        return ""
    front = best.choice.front
    sums, hidden = front.sums_table(), len(front) - ROWS_SHOWN
    more = [f"… and {hidden} more: study.front has all."] if hidden > 0 else []
    at = ", ".join(f"{name} {short_number(number)}" for name, number in front.reference.items())
    volume = [f"hypervolume {short_number(front.hypervolume)}, measured from {at}"] if front.problem.further else []
    return "\n".join([front.title, *volume, *([text_table(sums), ""] if sums else []), text_table(rows), *more])


def _best_table(history: History) -> list[list[str]]:
    return trials_rows(ranked_runs(history)[:ROWS_SHOWN], history.problem)


def trials_rows(trials: Sequence[Trial], problem: Problem) -> list[list[str]]:
    """A header and a row for each trial."""
    header = ["trial", *problem.named, paid_column(problem), "fidelity", "params"]
    return [header, *(trial_row(trial, problem) for trial in trials)]


def paid_column(problem: Problem) -> str:
    """The heading of what a trial itself cost, beside the price of a full run where that is an objective."""
    return "paid" if COST in problem.named else "cost"


def study_text(session: "Session") -> str:
    with session.records.still():
        history = session.records.refresh()
        best = found_best(session)
        table = text_table(front_rows(best) or _best_table(history))
        title, words = _title(session, history), _recommendation(session, best)
        return "\n".join([title, *words, "", table, "", str(Ledger.of(history))])


def study_html(session: "Session") -> str:
    with session.records.still():
        history = session.records.refresh()
        best = found_best(session)
        words = "".join(f"<br>{escape(line)}" for line in _recommendation(session, best))
        title = f"<p><b>{escape(_title(session, history))}</b>{words}</p>"
        front = front_rows(best)
        table = html_table(front) if front else trials_html(ranked_runs(history)[:ROWS_SHOWN], history.problem)
        return f"{title}{table}{Ledger.of(history)._repr_html_()}"


def _recommendation(session: "Session", best: "Best | None") -> list[str]:
    """The recommendation of a model, which the table of measurements does not show."""
    return [*best_lines(session, best), short_params(best.params)] if best and best.predicted else []


def _title(session: "Session", history: History) -> str:
    return f"{session.name}: {history.problem.aim}, {len(history)} trials"


# ------------------------------------------------------------
# The best trials of a study, as a list that prints as a table.


@dataclass(frozen=True, repr=False)
class Top(Sequence[Trial]):
    """The last trial of each run, what went furthest first, and among those the best."""

    problem: Problem
    trials: tuple[Trial, ...]

    @classmethod
    def of(cls, history: History, count: int) -> "Top":
        most = Whole(least=1).checked(count, what="The number of trials", advice="Write study.top(10).")
        return cls(history.problem, tuple(ranked_runs(history)[:most]))

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        return self.trials[index]

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __repr__(self) -> str:
        return text_table(trials_rows(self.trials, self.problem))

    def _repr_html_(self) -> str:
        return trials_html(self.trials, self.problem)


# ------------------------------------------------------------
# Who runs a trial, in words.


def where(owner: str) -> str:
    """The machine and the number of the process that runs a trial."""
    machine, process, _ = (["", "", "", *owner.rsplit(":", 2)])[-3:]
    return f"{re.split('[:/]', machine)[0]} {process}".strip()
