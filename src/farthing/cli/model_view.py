"""The diagnosis of a study, in words and bars for a terminal."""

import json
from math import sqrt
from typing import TYPE_CHECKING

from farthing.analysis.one_value import by_value
from farthing.analysis.text import short_number
from farthing.cli.storages import StorageAddress
from farthing.study import Study

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from farthing.analysis.diagnosis import Diagnosis, Slice

GRADES = ((0.9, "very good"), (0.7, "good"), (0.4, "fair"), (0.1, "weak"))
"""From which share of explained differences on predictions are called what."""

PLAUSIBLE = 2.0
"""Standard deviations by which a share of values may miss its level by chance."""

BAR_WIDTH = 20


def model_text(study: Study, of: str | None = None, *, address: StorageAddress) -> str:
    """The text of `farthing show --model`, in colour if it goes to a terminal."""
    from rich.console import Console

    diagnosis = study.diagnose(of)
    title, verdicts, parameters = _title(study, diagnosis), _verdicts(study, diagnosis), _parameters(study, diagnosis)
    named = "" if study.problem.is_simple else f" --of {diagnosis.value}"
    following = f"Next: farthing plot {study.name}{address.option} --kind model{named}"
    console = Console(highlight=False, markup=False)
    with console.capture() as captured:
        console.print(title, "", verdicts, "", parameters, "", following, sep="\n", soft_wrap=True)
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


def model_json(study: Study, of: str | None = None) -> str:
    return json.dumps({"study": study.name, **study.diagnose(of).to_json()})


def prediction_verdict(diagnosis: "Diagnosis") -> str:
    """How well the model predicts a trial that it has not seen."""
    if diagnosis.explained is None:
        return f"nothing to predict: all trials have the same {diagnosis.value}"
    grade = next((word for least, word in GRADES if round(diagnosis.explained, 2) >= least), None)
    half = f"half of its predictions are off by less than {diagnosis.median_error:.2g}"
    if grade is None:
        return f"poor: from the other trials it guesses a trial no better than their average; {half}"
    share = f"{diagnosis.explained:.0%}"
    return f"{grade}: from the other trials it explains {share} of the differences in {diagnosis.value}; {half}"


def confidence_verdict(diagnosis: "Diagnosis") -> str:
    """Whether the model knows how wrong it may be."""
    if diagnosis.explained is None:
        return "nothing to judge"
    (level, inside), *others = diagnosis.calibration.items()
    shares = [f"{inside:.0%} of the values lie in its {level:.0%} interval"]
    shares += [f"{inside:.0%} in the {level:.0%} one" for level, inside in others]
    return f"{_confidence(diagnosis)}: {', '.join(shares)}"


def _confidence(diagnosis: "Diagnosis") -> str:
    n = len(diagnosis.trials)
    misses = [(inside - level) / sqrt(level * (1 - level) / n) for level, inside in diagnosis.calibration.items()]
    worst = max(misses, key=abs)
    return "about right" if abs(worst) <= PLAUSIBLE else "too high" if worst < 0 else "too low"


def _title(study: Study, diagnosis: "Diagnosis") -> "Text":
    from rich.text import Text

    failed = f" and {diagnosis.failed} that failed" if diagnosis.failed else ""
    what = "learning curves, at full fidelity" if diagnosis.is_by_curves else "trials with a value"
    said = f": a model of {len(diagnosis.trials)} {what}{failed}"
    value = "" if study.problem.is_simple else f" ({diagnosis.value})"
    return Text.assemble((study.name, "bold"), f"{value}{said}")


def _verdicts(study: Study, diagnosis: "Diagnosis") -> "Table":
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_row("prediction", prediction_verdict(diagnosis))
    table.add_row("confidence", confidence_verdict(diagnosis))
    table.add_row("noise", f"a repeated trial would change its {diagnosis.value} by about {diagnosis.noise:.2g}")
    if study.history.cost and study.problem.is_simple:
        table.add_row("outlook", str(study.outlook()))
    return table


def _parameters(study: Study, diagnosis: "Diagnosis") -> "Table":
    """A row for each parameter: its importance, its value in the best trial, and what the model expects along it."""
    from rich.bar import Bar
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in ("parameter", "importance", "", f"trial {diagnosis.best}", f"{diagnosis.value} along it", "best at"):
        table.add_column(header, justify="right" if header == "" else "left")
    history = by_value(study.history, diagnosis.value, example="")
    params, minimize = history[diagnosis.best].params, history.problem.minimize
    slices = {part.parameter: part for part in diagnosis.slices}
    for name, share in diagnosis.importance.items():
        chosen = short_number(params[name]) if name in params else "inactive"
        bar = Bar(1.0, 0.0, share, width=BAR_WIDTH, color="cyan")
        spread = diagnosis.importance_deviation[name]
        table.add_row(name, bar, f"{share:.0%} ± {spread:.0%}", chosen, *_along(slices.get(name), minimize=minimize))
    return table


def _along(part: "Slice | None", *, minimize: bool) -> tuple[str, str]:
    """The range of the expected value, and where it is best."""
    if part is None:
        return "", ""
    best = (min if minimize else max)(zip(part.expected, part.values, strict=True), key=lambda point: point[0])
    return f"{min(part.expected):.3g} to {max(part.expected):.3g}", short_number(best[1])
