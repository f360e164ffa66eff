"""Common to all errors: how they show the wrong value and the remedy."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar, Unpack, get_args, get_origin

from farthing.errors import InvalidArgument

LONGEST_SHOWN = 80
MOST_LISTED = 8

P = ParamSpec("P")
T = TypeVar("T")

DECLARED = "Declare it in the space, ft.Space({'lr': ft.Float(1e-4, 1, log=True)}), and read trial.params['lr']."
OTHER_WORDS = {
    "a study": {
        "best_params": "Write study.best.params.",
        "best_value": "Write study.best.value.",
        "best_trial": "Write study.best.trial.",
        "best_trials": "Write study.front.",
        "directions": "Write study.problem.objectives.",
        "optimize": "Write study.run(work, budget=ft.Budget(trials=100)).",
        "trials_dataframe": "Write study.to_pandas().",
        "enqueue_trial": "Write study.enqueue(params).",
        "add_trial": "Write study.add(params, value).",
        "get_trials": "Write study.trials.",
        "direction": "Write study.problem.direction.",
        "study_name": "Write study.name.",
    },
    "a trial": {
        **dict.fromkeys(["suggest_float", "suggest_int", "suggest_categorical", "suggest_uniform"], DECLARED),
        "suggest_loguniform": DECLARED,
        "should_prune": "Leave it out and train up to trial.fidelity; work that should end early raises ft.Pruned.",
        "set_user_attr": "Write trial.report(value, metrics={'name': number}).",
    },
    "farthing": {
        "create_study": "Write ft.Study(space, minimize='loss').",
        "load_study": "Write ft.Study.load(name, storage='sqlite:///file.db').",
        "TrialPruned": "Write ft.Pruned.",
        "FloatDistribution": "Write ft.Float(0, 1).",
        "IntDistribution": "Write ft.Int(1, 9).",
        "CategoricalDistribution": "Write ft.Choice('a', 'b').",
        **dict.fromkeys(["samplers", "pruners"], "Write ft.Study(…, strategy=ft.ASHA())."),
        "visualization": "Write study.plot().",
    },
    "arguments": {
        **dict.fromkeys(["n_trials", "num_samples"], "Write budget=ft.Budget(trials=100)."),
        "timeout": "Write budget=ft.Budget(seconds=600).",
        "n_jobs": "Write workers=4.",
        **dict.fromkeys(["direction", "mode"], "Name the value: minimize='loss', or maximize='accuracy'."),
        **dict.fromkeys(["sampler", "pruner"], "Write strategy=ft.ASHA(), or leave it out."),
        "study_name": "Write name='…'.",
        "load_if_exists": "Leave it out: a study of that name is continued.",
        "show_progress_bar": "Write progress=True.",
        "catch": "Leave it out: a trial that fails does not end a run.",
        "state": "Write failure='…' or pruned=True.",
        "constraints": "Limits belong to a study of whole runs: write ft.Study(space, constraints={…}).",
    },
}
"""The names that other tuners, Optuna above all, use for the things of a study, and the names here."""


def shown(value: object) -> str:
    """The value that came, in one line of bounded length."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to write numbers of thousands of digits
        text = f"{type(value).__name__} of more digits than Python writes"
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def spelled_out(text: str) -> str:
    """The text with `\\ud83d` for half a character, a lone surrogate, which no file, terminal or database takes."""
    return text.encode(errors="backslashreplace").decode()


def listed(values: Iterable[object]) -> str:
    """The values that would be right; the first few when there are many."""
    texts = [shown(value) for value in values]
    hidden = len(texts) - MOST_LISTED
    return ", ".join(texts) if hidden <= 0 else f"{', '.join(texts[:MOST_LISTED])} and {hidden} more"


def did_you_mean(given: object, known: Iterable[object], *, otherwise: str) -> str:
    """The remedy for a wrong word: the nearest right one, if one is near."""
    words = {word.lower(): word for word in known if isinstance(word, str)}
    nearest = get_close_matches(given.lower(), words, n=1) if isinstance(given, str) else []
    return f"Did you mean {shown(words[nearest[0]])}?" if nearest else otherwise


def refuse_unknown(
    given: Iterable[object], known: Iterable[object], *, what: str, error: type[InvalidArgument]
) -> None:
    """Raise `error` for the first of the given names that is not known."""
    right = tuple(known)
    for name in given:
        if name not in right:
            rule = f"{what} must be among {listed(right)}" if right else f"There are no {what.lower()} here"
            raise error(f"{rule}, got {shown(name)}. {did_you_mean(name, right, otherwise='Remove or rename it.')}")


def no_attribute(thing: str, name: str, *, home: str | None = None) -> AttributeError:
    """The error for an attribute that `thing`, "a study" or another key of `OTHER_WORDS`, has not.

    `home` is the module that has it, where another one does.
    """
    if home is not None:
        return AttributeError(
            f"{thing.capitalize()} itself has only what studies are made of and run with, got {name!r}, which is in "
            f"{home}. Write from {home} import {name}.",
            name=name,
        )
    remedy = OTHER_WORDS[thing].get(name)
    return AttributeError(f"{thing.capitalize()} has no {name!r}.{f' {remedy}' if remedy else ''}", name=name)


def refuse_unknown_arguments(given: Iterable[str], known: Iterable[str], *, what: str) -> None:
    """As `refuse_unknown`, for the arguments of a function, which other tuners may call otherwise."""
    right = tuple(known)
    for name in given:
        if name not in right and name in OTHER_WORDS["arguments"]:
            raise InvalidArgument(f"{what} has no argument {name!r}. {OTHER_WORDS['arguments'][name]}")
    refuse_unknown(given, right, what=f"Arguments of {what}", error=InvalidArgument)


def explained(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which refuses arguments that it does not have in the words of our errors."""
    declared = list(inspect.signature(function).parameters.values())
    by_place = [each.name for each in declared if each.kind <= each.POSITIONAL_OR_KEYWORD]
    known = [each.name for each in declared if each.name not in by_place[:1] and each.kind is not each.VAR_KEYWORD]
    takes_any = declared[-1].kind is inspect.Parameter.VAR_KEYWORD
    if takes_any and get_origin(declared[-1].annotation) is Unpack:
        known += get_args(declared[-1].annotation)[0].__annotations__
        takes_any = False
    what = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*given: P.args, **named: P.kwargs) -> T:
        if not takes_any and not named.keys() <= set(known):
            refuse_unknown_arguments(named, known, what=what)
        if len(given) > len(by_place):
            first = next(each.name for each in declared if each.name not in by_place)
            raise InvalidArgument(
                f"{what} takes {', '.join(by_place[1:])} and names for the rest, got {shown(given[len(by_place)])}. "
                f"Write for example {what}(…, {first}=…)."
            )
        return function(*given, **named)

    return checked


def refuse_non_mapping(given: object, *, what: str, error: type[InvalidArgument]) -> None:
    """Raise `error` for what does not map names to anything."""
    if not isinstance(given, Mapping):
        raise error(f"{what} must map names to values, got {shown(given)}. Pass a dict.")
