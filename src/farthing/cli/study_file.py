"""Reads a study file: a whole study in TOML."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple

from farthing.cli.file_work import FileWork, declared_cost, make_importable
from farthing.cli.run_plan import RunPlan
from farthing.costs import WorthRule
from farthing.errors import InvalidArgument, InvalidFile
from farthing.fields import Flag, Number, Rule, Several, Text, Whole
from farthing.fields.rules import Either
from farthing.names import TRACKER, find_class
from farthing.running.ask_tell import enqueue_once
from farthing.running.tracking import Tracker, read_trackers
from farthing.session import session_of
from farthing.session.creation import unit_of_cost
from farthing.space import Space
from farthing.space.space import space_from_tables
from farthing.strategies import Strategy, strategy_from_json
from farthing.study import Study
from farthing.trials import Problem
from farthing.trials.objectives import limit_from_json, objectives_given, read_constraints
from farthing.validation import did_you_mean, refuse_unknown, shown

LINE = re.compile(r"\(at line (\d+), column \d+\)")


class Key(NamedTuple):
    """The values allowed for a key: its rule, and an example in TOML."""

    rule: Rule
    example: str


TEXT, COUNT, AMOUNT = Text(), Whole(least=1), Number(above=0.0)
TEXTS = Either((TEXT, Several(TEXT, fewest=1)))
STUDY_KEYS = {
    "name": Key(TEXT, '"digits"'),
    "minimize": Key(TEXTS, '"error"'),
    "maximize": Key(TEXTS, '"accuracy"'),
    "storage": Key(TEXT, '"sqlite:///digits.db"'),
    "seed": Key(Whole(least=0), "0"),
    "workers": Key(COUNT, "2"),
    "time_limit": Key(AMOUNT, "600"),
    "retries": Key(Whole(least=0), "1"),
    "cost": Key(TEXT, '"train.py:cost"'),
    "cost_unit": Key(TEXT, '"gpu-hours"'),
    "folder": Key(TEXT, '"checkpoints"'),
    "noise": Key(Flag(), "false"),
    "learn_from": Key(TEXTS, '["digits-may"]'),
}
BUDGET_KEYS = {"seconds": Key(AMOUNT, "600"), "cost": Key(AMOUNT, "100.0"), "trials": Key(COUNT, "50")}
BUDGET_KEYS |= {"hard": Key(Flag(), "true")}
BUDGET_KEYS |= {"patience": Key(AMOUNT, "100.0"), "worth": Key(WorthRule(), "{value = 0.001, per = 3600}")}
WORK_KEYS = {
    "command": Key(TEXT, '"python train.py --lr {lr}"'),
    "python": Key(TEXT, '"train.py:train"'),
    "pattern": Key(TEXTS, "'loss=(?P<value>[0-9.e+-]+)'"),
}
STRATEGY_NAME = {"name": Key(TEXT, '"ASHA"')}
TABLES = (
    *("study", "budget", "space", "fidelities", "stages", "strategy", "work"),
    *("enqueue", "trackers", "prices", "resources", "constraints"),
)
ENQUEUED = "enqueued"
"""The setting of a study whose file's configurations are in line already."""


Wish = tuple[Mapping[str, Any], Mapping[str, float]]
"""Params, some or all of them, and a fidelity to begin with."""


@dataclass(frozen=True)
class StudyFile:
    """A study as its file declares it. `storage` and `folder` are relative to where one is, the work to the file."""

    name: str
    problem: Problem
    strategy: Strategy | None
    storage: str | None
    folder: str | None
    plan: RunPlan
    wishes: tuple[Wish, ...] = ()
    prices: Mapping[str, Any] | None = None
    learn_from: str | Sequence[str] | None = None
    noise: bool | None = None

    def learning_from(self, named: Sequence[str]) -> "StudyFile":
        """The same with the earlier studies that the command line names, if it names any."""
        if not named:
            return self
        return replace(self, learn_from="all" if list(named) == ["all"] else tuple(named))

    def create_or_continue(self, storage: str | Path) -> Study:
        """The study in that storage, once it is certain that its work could be started."""
        self.plan.work.check(self.problem)
        study = self._study(storage)
        if self.wishes and not session_of(study).settings.get(ENQUEUED):
            for place, (params, fidelity) in enumerate(self.wishes):
                enqueue_once(session_of(study), place, params, fidelity=fidelity)
            session_of(study).remember(**{ENQUEUED: True})
        return study

    def _study(self, storage: str | Path) -> Study:
        return Study(
            self.problem.space,
            minimize=[one.name for one in self.problem.objectives if one.minimize] or None,
            maximize=[one.name for one in self.problem.objectives if not one.minimize] or None,
            constraints=self.problem.constraints,
            strategy=self.strategy,
            storage=storage,
            name=self.name,
            seed=self.problem.seed,
            cost=self.problem.declared_cost,
            cost_unit=self.problem.cost_unit,
            prices=self.prices,
            folder=self.folder,
            learn_from=self.learn_from,
            noise=self.noise,
        )


def read_study_file(path: Path) -> StudyFile:
    """The study that the file declares; InvalidFile says where it is wrong."""
    tables = _read_tables(path)
    with _in_file(path):
        refuse_unknown(tables, TABLES, what="Tables of a study file", error=InvalidArgument)
        return _study_file(tables, path=path)


def _study_file(tables: Mapping[str, Any], *, path: Path) -> StudyFile:
    folder = path.absolute().parent
    study = _table(tables, "study", keys=STUDY_KEYS)
    limits = _table(tables, "budget", keys=BUDGET_KEYS)
    strategy = _strategy(tables, folder=folder)
    space = space_from_tables(*(tables.get(name) for name in ("space", "fidelities", "stages")))
    prices = _mapping(tables, "prices") or None
    run = {name: study[name] for name in ("workers", "time_limit", "retries", "cost") if name in study}
    return StudyFile(
        name=study.get("name", path.stem),
        problem=_problem(
            study,
            space if strategy is None else strategy.shaped(space),
            folder=folder,
            prices=prices,
            constraints=_mapping(tables, "constraints"),
        ),
        strategy=strategy,
        storage=study.get("storage"),
        folder=study.get("folder"),
        plan=RunPlan(
            _work(tables, folder=folder),
            limits,
            resources=_resources(tables),
            trackers=read_tracker_tables(tables, folder=folder),
            **run,
        ),
        wishes=tuple(_wish(table, space) for table in _wish_tables(tables)),
        prices=prices,
        learn_from=study.get("learn_from"),
        noise=study.get("noise"),
    )


def _wish_tables(tables: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = tables.get("enqueue", [])
    if not isinstance(given, list) or not all(isinstance(table, Mapping) for table in given):
        raise InvalidArgument(
            f"enqueue must be a list of tables, got {shown(given)}. Write [[enqueue]] before the params of each."
        )
    return given


def _wish(table: Mapping[str, Any], space: Space) -> Wish:
    """The trials that a table [[enqueue]] asks for, once it is certain that the space has it."""
    fidelity = {name: table[name] for name in space.fidelities if name in table}
    params = {name: value for name, value in table.items() if name not in fidelity}
    refuse_unknown(params, [*space.parameters, *space.fidelities], what="Params of [[enqueue]]", error=InvalidArgument)
    for name, value in params.items():
        space.parameters[name].check(value, name=f"{name} in [[enqueue]]")
    return params, space.check_fidelity(fidelity)


def _problem(
    study: Mapping[str, Any],
    space: Space,
    *,
    folder: Path,
    prices: Mapping[str, Any] | None,
    constraints: Mapping[str, Any],
) -> Problem:
    if "minimize" not in study and "maximize" not in study:
        raise InvalidArgument(
            "[study] must say minimize or maximize, got neither. "
            'Name the value in one of the two: minimize = "error", or several: minimize = ["error", "latency"].'
        )
    first, *further = objectives_given(study.get("minimize"), study.get("maximize"))
    unit = unit_of_cost(study.get("cost_unit"), prices, cost=study.get("cost"))
    return Problem(
        space,
        value=first.name,
        minimize=first.minimize,
        seed=study.get("seed", 0),
        cost_unit=unit,
        measures_cost=(unit == "seconds" or prices is not None) and "cost" not in study,
        declared_cost=declared_cost(study["cost"], folder=folder) if "cost" in study else None,
        further=tuple(further),
        constraints=read_constraints({name: limit_from_json(limit) for name, limit in constraints.items()}),
    )


def _resources(tables: Mapping[str, Any]) -> dict[str, float]:
    """The resources that each trial holds; empty where the file does not say."""
    table = dict(_mapping(tables, "resources"))
    for name, amount in table.items():
        AMOUNT.checked(amount, what=f"{name} in [resources]", advice=f"Write {name} = 1.")
    return table


def _strategy(tables: Mapping[str, Any], *, folder: Path) -> Strategy | None:
    if "strategy" not in tables:
        return None
    arguments = dict(_mapping(tables, "strategy"))
    _check_keys({"name": arguments.get("name")}, name="strategy", keys=STRATEGY_NAME)
    make_importable(folder)
    return strategy_from_json({"name": arguments.pop("name"), "arguments": arguments})


def _work(tables: Mapping[str, Any], *, folder: Path) -> FileWork:
    work = _table(tables, "work", keys=WORK_KEYS)
    pattern = work.pop("pattern", ())
    if len(work) != 1:
        raise InvalidArgument(
            f"[work] must have a command or a python function, got {' and '.join(work) or 'neither'}. "
            'Write command = "python train.py --lr {lr}" or python = "train.py:train".'
        )
    if pattern and "command" not in work:
        raise InvalidArgument(
            "A pattern in [work] reads what a command prints, got one beside python. Return the value instead."
        )
    return FileWork(folder, **work, pattern=(pattern,) if isinstance(pattern, str) else tuple(pattern))


def _table(tables: Mapping[str, Any], name: str, *, keys: Mapping[str, Key]) -> dict[str, Any]:
    table = _mapping(tables, name)
    refuse_unknown(table, keys, what=f"Keys of [{name}]", error=InvalidArgument)
    _check_keys(table, name=name, keys=keys)
    return dict(table)


def _mapping(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, Mapping):
        raise InvalidArgument(f"{name} must be a table, got {shown(table)}. Write [{name}] on a line of its own.")
    return table


def _check_keys(table: Mapping[str, Any], *, name: str, keys: Mapping[str, Key]) -> None:
    for key, value in table.items():
        wanted = keys[key]
        wanted.rule.checked(value, what=f"{key} in [{name}]", advice=f"Write {key} = {wanted.example}.")


def _read_tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidFile(_syntax_error(path, str(error))) from None
    except UnicodeDecodeError as error:
        raise InvalidFile(
            f"A study file must be UTF-8 text, got {str(path)!r} ({error.reason}). Save it as UTF-8."
        ) from None
    except OSError as error:
        raise InvalidFile(_unreadable(path, error)) from None


def _syntax_error(path: Path, complaint: str) -> str:
    place = LINE.search(complaint)
    text = path.read_text(encoding="utf-8").splitlines()[int(place[1]) - 1].strip() if place else ""
    what = LINE.sub("", complaint).strip()
    where = f"line {place[1]} of {path} ({shown(text)})" if place else str(path)
    return f"A study file must be valid TOML, got {what[:1].lower()}{what[1:]} in {where}. Correct it there."


def _unreadable(path: Path, error: OSError) -> str:
    nearby = sorted(other.name for other in path.parent.glob("*.toml"))
    remedy = did_you_mean(path.name, nearby, otherwise="Check the path and its permissions.")
    return f"A study file must be readable, got {str(path)!r}: {error.strerror}. {remedy}"


@contextmanager
def _in_file(path: Path) -> Iterator[None]:
    """Says in which file an error is."""
    try:
        yield
    except InvalidArgument as error:
        raise InvalidFile(f"In {path}: {error}") from None


# ------------------------------------------------------------
# The trackers of a study file: its tables [[trackers]], checked when it is read and made when it is run.


def read_tracker_tables(tables: Mapping[str, Any], *, folder: Path) -> tuple[dict[str, Any], ...]:
    """The tables, once it is certain that they name trackers and arguments of theirs; their libraries may be absent."""
    given = tables.get("trackers", [])
    if not isinstance(given, list) or not all(isinstance(table, Mapping) for table in given):
        raise InvalidArgument(
            f"trackers must be a list of tables, got {shown(given)}. Write [[trackers]] above the name of each."
        )
    for table in given:
        _check_tracker(table, folder=folder)
    return tuple(dict(table) for table in given)


def make_trackers(tables: Sequence[Mapping[str, Any]], *, folder: Path) -> tuple[Tracker, ...]:
    made = []
    for table in tables:
        kind = _tracker_class(table, folder=folder)
        made.append(kind(**{key: one for key, one in table.items() if key != "name"}))
    return read_trackers(made)


def _check_tracker(table: Mapping[str, Any], *, folder: Path) -> None:
    kind = _tracker_class(table, folder=folder)
    takes = {
        name
        for name, one in signature(kind).parameters.items()
        if one.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    }
    refuse_unknown(table, ["name", *sorted(takes)], what=f"Keys of a tracker {table['name']}", error=InvalidArgument)


def _tracker_class(table: Mapping[str, Any], *, folder: Path) -> type[Any]:
    name = table.get("name")
    if not isinstance(name, str):
        raise InvalidArgument(f'A tracker must have a name, got {shown(dict(table))}. Write name = "MLflow".')
    if ":" in name:
        make_importable(folder)
    return find_class(name, TRACKER)
