"""A study as text: its trials, curves and bill, the lanes of a population, and the rounds of an online run."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from farthing.analysis.best import MeasuredBest
from farthing.analysis.one_value import by_value
from farthing.analysis.runs import Schedule, curve_axis, learning_curves, ranked_runs
from farthing.analysis.text import (
    found_best,
    front_text,
    paid_column,
    short_number,
    short_params,
    short_point,
    value_cells,
)
from farthing.cli.large_view import (
    best_runs,
    bill,
    chart_of,
    count_by_model,
    history_of_none,
    next_steps,
    reader_if_large,
    trials_in_flight,
)
from farthing.cli.run_plan import SETTING
from farthing.cli.running import best_text, is_verified, nothing_text
from farthing.cli.storages import StorageAddress
from farthing.cli.terminal import aligned, chart
from farthing.dashboard.reading import StudyReader
from farthing.errors import NoResult
from farthing.files.durable import short_bytes
from farthing.session import session_of
from farthing.session.strategy import class_name
from farthing.strategies.shared.starts import is_misled
from farthing.study import Study
from farthing.trials import History, Measurement, Problem, State, Trial
from farthing.trials.measurement import BAD, played_rounds
from farthing.trials.trial import is_by_model

ROWS_SHOWN = 10
MOST_COLUMNS = 10
"""Of parameters and fidelities; more than that stand in one column."""


def study_text(study: Study, *, address: StorageAddress, all_trials: bool, follows: bool) -> str:
    """All that `farthing show` says, a paragraph for each part that has something to say, of one moment."""
    reader = None if all_trials else reader_if_large(study)
    if reader is not None:
        return _large_text(study, reader, address=address)
    with session_of(study).records.still() as history:
        return _study_text(study, history, address=address, all_trials=all_trials, follows=follows)


def _study_text(study: Study, history: History, *, address: StorageAddress, all_trials: bool, follows: bool) -> str:
    best = found_best(session_of(study))
    paragraphs = [
        _title(study, study.ledger.trials, address=address),
        learned_text(history),
        _best(study, best),
        front_text(best),
        _running(study, history.in_flight),
        _runs(history, all_trials=all_trials),
        population_text(study, best),
        online_text(study),
        _chart(history, best),
        str(study.ledger),
        _chosen(study, sum(map(is_by_model, history)), trials=len(history)),
        outlook_text(study),
        _disk_use(study, follows=follows),
        _next_steps(study, history, best, address=address),
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def outlook_text(study: Study) -> str:
    """The gain expected of going on, for a study that is run until it is not worth its price."""
    if study.budget is None or study.budget.worth is None:
        return ""
    try:
        return f"Outlook: {study.outlook()}."
    except NoResult:
        return ""


def learned_text(history: History) -> str:
    """Which earlier studies it began with, and whether they were left off."""
    learned = history.learned
    if learned is None:
        return ""
    left = " The first two were worse than random ones of before, so the rest is random." if is_misled(history) else ""
    return f"It learnt {learned.summary()}.{left}"


def _best(study: Study, best: MeasuredBest | None) -> str:
    if best is None:
        return nothing_text(study)
    return best_run_text(study, best) if is_online(study) else best_text(study, best)


def study_json(study: Study) -> str:
    """The contents of `farthing export --format json`, with the strategy, the best and the bill, of one moment."""
    with session_of(study).records.still():
        return _study_json(study)


def _study_json(study: Study) -> str:
    best = found_best(session_of(study))
    summary = {
        "study": study.name,
        "strategy": session_of(study).strategy.to_json(),
        "best": best.to_json() if best else None,
        "learned": None if study.history.learned is None else study.history.learned.to_json(),
        "ledger": study.ledger.to_json(),
    }
    return json.dumps(summary | json.loads(study.export(format="json")))


def _large_text(study: Study, reader: StudyReader, *, address: StorageAddress) -> str:
    """The same of a large study, at the price of its lines: without what takes the measurements of all trials."""
    lines, nothing = reader.lines(), history_of_none(reader)
    best, (running, in_flight) = found_best(session_of(study)), trials_in_flight(reader, lines)
    runs, count = best_runs(reader, lines, most=ROWS_SHOWN)
    paragraphs = [
        _title(study, lines.counts, address=address),
        "" if nothing.learned is None else f"It learnt {nothing.learned.summary()}.",
        "No trial is done, so there is no best yet." if best is None else best_text(study, best),
        _running(study, running, hidden=in_flight - len(running)),
        _ranked(nothing, runs, hidden=count - len(runs)),
        chart_of(reader, runs),
        bill(lines, reader.problem),
        _chosen(study, count_by_model(reader), trials=len(lines)),
        next_steps(study, lines, address=address),
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _title(study: Study, counts: Mapping[str, int], *, address: StorageAddress) -> str:
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    trials = f"{sum(counts.values())} trials ({states})" if states else "no trials yet"
    strategy = class_name(session_of(study).strategy.to_json())
    return f"{study.name}: {study.problem.aim} with {strategy}, {trials}, in {address}"


def _running(study: Study, trials: Sequence[Trial], *, hidden: int = 0) -> str:
    lines = [f"  trial {trial.number}: {short_params(trial.params)}  {_progress(study, trial)}" for trial in trials]
    more = [f"  … and {hidden} more"] if hidden > 0 else []
    return "\n".join(["Running or waiting:", *lines, *more]) if lines else ""


def _progress(study: Study, trial: Trial) -> str:
    if trial.state is State.PENDING:
        return "waiting for a worker"
    return short_point(trial, trial.points[-1] if trial.points else None, study.problem)


def _runs(history: History, *, all_trials: bool) -> str:
    ranked, most = (list(history), len(history)) if all_trials else (ranked_runs(history), ROWS_SHOWN)
    return _ranked(history, ranked[:most], hidden=len(ranked) - most)


def _ranked(history: History, ranked: Sequence[Trial], *, hidden: int) -> str:
    more = [f"… and {hidden} more: --all shows every trial by number."] if hidden > 0 else []
    return "\n".join([_table(history, ranked), *more]) if ranked else ""


def _table(history: History, trials: Sequence[Trial]) -> str:
    problem = history.problem
    names = [*problem.space.fidelities, *problem.space.parameters]
    is_narrow = len(names) <= MOST_COLUMNS
    header = ["trial", "state", *problem.named, paid_column(problem), "from", *(names if is_narrow else ["params"])]
    rows = []
    for trial in trials:
        chosen = {**trial.fidelity, **trial.params}
        cells = [short_number(chosen[name]) if name in chosen else "" for name in names]
        rows.append([*_result(history, trial), *(cells if is_narrow else [short_params(chosen)])])
    return aligned(header, rows)


def _result(history: History, trial: Trial) -> list[str]:
    source = "" if trial.resume_from is None else str(trial.resume_from)
    state = f"{trial.state.value}, old code" if history.is_outdated(trial) else trial.state.value
    return [str(trial.number), state, *value_cells(trial, history.problem), f"{trial.cost:.4g}", source]


def _chart(history: History, best: MeasuredBest | None) -> str:
    """The learning curves; of several objectives a chart for each."""
    if not history.problem.further:
        return _chart_of(history, best)
    named = [one.name for one in history.problem.objectives]
    charts = [_chart_of(by_value(history, name, example=""), best) for name in named]
    return "\n\n".join(chart for chart in charts if chart)


def _chart_of(history: History, best: MeasuredBest | None) -> str:
    curves = learning_curves(history)
    if not any(len(curve.points) > 1 for curve in curves):
        return ""
    problem = history.problem
    of_best = next((curve for curve in curves if best and curve.includes(best.trial)), None)
    return chart(curves, of_best, axis=curve_axis(problem.space), value=problem.value)


def _chosen(study: Study, by_model: int, *, trials: int) -> str:
    """How many the model chose, where there is one: the others are starts, enqueued, or of what decides in haste."""
    strategy = session_of(study).strategy.get_if_at_hand()
    has_model = strategy is not None and strategy.thinking > 0.0 and type(strategy).__module__.startswith("farthing.")
    return f"The model chose {by_model} of {trials} trials." if by_model or (has_model and trials) else ""


def _disk_use(study: Study, *, follows: bool) -> str:
    kept = sum(trial.checkpoint is not None for trial in study.history)
    if not kept:
        return ""
    if (url := session_of(study).files.url) and not follows:
        return f"checkpoints: {kept} kept at {url} (--follow asks it for their size)"
    return f"checkpoints: {kept} kept, {short_bytes(study.checkpoints.disk_use())} on disk with the logs"


def _next_steps(study: Study, history: History, best: MeasuredBest | None, *, address: StorageAddress) -> str:
    named = f"{shlex.quote(study.name)}{address.option}"
    failed = [trial.number for trial in history if trial.failure]
    why = [f"farthing show {named} --trial {failed[-1]} --log  (why it failed)"] if failed else []
    picture = [f"farthing plot {named}"] if history.done else []
    model = [f"farthing verify {named}  (train the best to the end)"] if best and not is_verified(study, best) else []
    steps = [*why, *picture, *(model if SETTING in session_of(study).settings else [])]
    return "Next: " + ", ".join(steps) if steps else ""


# ------------------------------------------------------------
# Studies whose params change while they train: the lanes of a population, and online runs.

MOST_INTERVALS = 60
"""Of a lane; of longer ones the last are shown."""


def population_text(study: Study, best: MeasuredBest | None) -> str:
    """The lanes and the winner's schedule; nothing for a study that is no population."""
    if not study.lineage.is_population:
        return ""
    schedule = [schedule_text(best.schedule)] if best and best.schedule else []
    return "\n\n".join([lanes_text(study, best), *schedule])


def lanes_text(study: Study, best: MeasuredBest | None) -> str:
    lineage = study.lineage
    path = {trial.number for trial in lineage.run_of(best.trial)} if best else set()
    donors = {copy.trial.number: copy.donor for copy in lineage.copies}
    width = max(2, *(len(str(member)) for member in lineage.members)) + 1
    hidden = max(len(own) for own in lineage.members.values()) > MOST_INTERVALS
    rows = [
        [
            str(member),
            "".join(_cell(trial, donors, path, width=width) for trial in own[-MOST_INTERVALS:]),
            _last_value(own),
        ]
        for member, own in lineage.members.items()
    ]
    meaning = (
        f"Along the {curve_axis(study.space)}, an interval a piece; ━ the way of the winner, 2▸ a copy of member 2"
    )
    cut = f", the last {MOST_INTERVALS} intervals" if hidden else ""
    return "\n".join([f"{meaning}{cut}", aligned(["member", "trained", study.problem.value], rows)])


def _cell(trial: Trial, donors: dict[int, int], path: set[int], *, width: int) -> str:
    line = "━" if trial.number in path else "─"
    if trial.state in (State.FAILED, State.LOST, State.PRUNED):
        return "×".rjust(width, line)
    if not trial.is_finished:
        return "…".rjust(width, line)
    begun = f"{donors[trial.number]}▸" if trial.number in donors else ""
    return begun.ljust(width, line)


def _last_value(own: Sequence[Trial]) -> str:
    values = [trial.value for trial in own if trial.value is not None]
    return f"{values[-1]:.6g}" if values else ""


def schedule_text(schedule: Schedule) -> str:
    names = list(dict.fromkeys(name for _, params in schedule for name in params))
    rows = [
        [str(start), *(short_number(params[name]) if name in params else "" for name in names)]
        for start, params in schedule
    ]
    table = aligned([f"from {schedule.fidelity}", *names], rows)
    return f"The winner's schedule, {schedule.steps} {schedule.fidelity} (ft.replay trains by it once more)\n{table}"


# ------------------------------------------------------------
# Online runs: the params in force at the best value of each and at its end.


ONLINE = "Online"
"""The class in `online/log.py`, which is not imported for its name: the models of online strategies come with it."""
MOST_RUNS = 5
"""The last runs are shown where there are more."""


def is_online(study: Study) -> bool:
    return class_name(session_of(study).strategy.to_json()) == ONLINE


def best_run_text(study: Study, best: MeasuredBest) -> str:
    """The run that ended best. Its params are those of its first round, and not shown here."""
    return f"Best {study.problem.value} at the end of a run: {best.value:.6g} (trial {best.trial.number})"


def online_text(study: Study) -> str:
    """Two lines a run; nothing for a study that is not online."""
    if not is_online(study):
        return ""
    names = list(study.space.parameters)
    rows = [row for trial in list(study.history)[-MOST_RUNS:] for row in _rows(trial, study.problem, names)]
    if not rows:
        return ""
    header = ["trial", "params at", "round", study.problem.value, *names]
    return "\n".join(["Params changed while a run went on (above are those it began with):", aligned(header, rows)])


def _rows(trial: Trial, problem: Problem, names: Sequence[str]) -> Iterator[list[str]]:
    rounds = played_rounds(trial)
    measured = [point for point in rounds if point.value is not None]
    if measured:
        best = min(measured, key=lambda point: problem.sign * (point.value or 0.0))
        yield [str(trial.number), "its best", *_values(best, names)]
        yield [str(trial.number), "its end" if trial.is_finished else "present", *_values(rounds[-1], names)]


def _values(point: Measurement, names: Sequence[str]) -> list[str]:
    params = point.params or {}
    value = "bad" if BAD in point.metrics else "" if point.value is None else f"{point.value:.6g}"
    return [str(point.step), value, *(short_number(params[name]) if name in params else "" for name in names)]
