"""Wrong arguments: whatever is given, the error is one of the family and says the rule, what came and what to do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing
from benchmarks.baselines.bandits import EXP3S, RestartedGPUCB
from farthing.cli.study_file import read_study_file
from farthing.errors import FarthingError, InvalidArgument, InvalidFile, InvalidSpace, StudyMismatch
from farthing.validation import OTHER_WORDS

ft: Any = farthing
"""Untyped: a type checker would refuse most of what follows."""

SPACE = ft.Space({"x": ft.Float(0.0, 1.0)})
EVERY = ft.rules.Every(3)


def study(space: Any = SPACE, **settings: Any) -> Any:
    return ft.Study(space, **{"minimize": "error", **settings})


def tuner(space: Any = SPACE, **settings: Any) -> Any:
    return ft.OnlineTuner(space, **{"rounds": 10, **settings})


def run(**settings: Any) -> Any:
    chosen = {"strategy": ft.Random(), "seed": 0}
    return study(**chosen).run(lambda trial: 0.0, **{"budget": ft.Budget(trials=1), "executor": "inline", **settings})


def finished() -> Any:
    one = study(strategy=ft.Random())
    one.add({"x": 0.5}, 1.0)
    return one


def told(value: Any, **settings: Any) -> Any:
    one = study(strategy=ft.Random())
    return one.tell(one.ask(), value, **settings)


Call = Callable[[], Any]
MISUSES: dict[str, tuple[Call, str, str, str]] = {
    # a study ------------------------------------------------------------- the rule, what came, what to do
    "a dict for a space": (lambda: study({"x": ft.Float(0, 1)}), "needs a space", "got {'x'", "Write ft.Space("),
    "no space": (lambda: study(None), "needs a space", "got None", "Write ft.Space("),
    "a class for a strategy": (
        lambda: study(strategy=ft.ASHA),
        "must be a strategy",
        "the class ASHA",
        "Make one of it: ASHA(…)",
    ),
    "an online strategy for a study": (
        lambda: study(strategy=ft.CEGPUCB()),
        "must be a strategy",
        "got an online strategy, CEGPUCB(",
        "Give it to ft.OnlineTuner",
    ),
    "a rule for a strategy": (lambda: study(strategy=EVERY), "must be a strategy", "Every(n=3)", "ft.CEGPUCB(rule=…)"),
    "a number for a strategy": (
        lambda: study(strategy=3),
        "must be a strategy",
        "got 3",
        "Write for example ft.ASHA()",
    ),
    "a name that is none": (lambda: study(strategy="ASAH"), "must be among", "got 'ASAH'", "Did you mean 'ASHA'?"),
    "a name that needs numbers": (
        lambda: study(strategy="PB2"),
        "PB2 must be given population and interval",
        "got no arguments",
        "Write for example PB2(population=8, interval=5).",
    ),
    "a name of a module that is none": (
        lambda: study(strategy="no_such:Thing"),
        "must be importable",
        "got 'no_such:Thing'",
        "Put it in an importable module",
    ),
    "a seed as text": (lambda: study(seed="1"), "seed must be a whole number ≥ 0", "got '1'", "seed=0"),
    "a seed below zero": (lambda: study(seed=-1), "seed must be a whole number ≥ 0", "got -1", "seed=0"),
    "a seed that is no whole number": (lambda: study(seed=2.5), "whole number ≥ 0", "got 2.5", "seed=0"),
    "one value twice": (lambda: study(maximize="error"), "must be named once", "got error, error", "Leave out"),
    "a number for a value's name": (lambda: study(minimize=5), "must be a text", "got 5", "minimize='error'"),
    "a lease as text": (lambda: study(lease="60"), "must be a number above 0", "got '60'", "60 suits most work"),
    "lost retries of a half": (lambda: study(lost_retries=0.5), "whole number from 0 to", "got 0.5", "Use 0 for none"),
    "a study's name that is a number": (lambda: study(name=3), "name must be a text", "got 3", "Write name='study'"),
    "a cost unit that is a number": (lambda: study(cost_unit=3), "must be a text", "got 3", "cost_unit='dollars'"),
    "a cost that is no function": (lambda: study(cost=3), "must be a function", "got 3", "Write cost=lambda"),
    "a storage that is a number": (lambda: study(storage=3), "must be", "got 3", "sqlite:///"),
    # a run
    "a number for a budget": (lambda: run(budget=60), "needs a budget", "got 60", "ft.Budget(seconds=600)"),
    "a budget that is not named": (
        lambda: ft.Budget(60),
        "must be keywords",
        "got 60",
        "Write Budget(cost=60) or Budget(seconds=60)",
    ),
    "a budget of text": (lambda: ft.Budget(seconds="60"), "a number above 0", "got '60'", "or leave it out"),
    "a budget of half a trial": (lambda: ft.Budget(trials=2.5), "a whole number ≥ 1", "got 2.5", "or leave it out"),
    "a budget of nothing": (lambda: ft.Budget(), "needs a limit", "got none", "Give cost=, seconds= or trials="),
    "a budget that is misspelt": (
        lambda: ft.Budget(second=3),
        "must be among",
        "got 'second'",
        "Did you mean 'seconds'",
    ),
    "workers as text": (lambda: run(workers="2", executor="processes"), "whole number ≥ 1", "got '2'", "Try workers=2"),
    "an executor that is a number": (lambda: run(executor=3), "An executor must be", "got 3", "Leave it out"),
    "a time limit as text": (
        lambda: run(time_limit="9", executor="processes"),
        "must be a number above 0",
        "got '9'",
        "Leave it out for none",
    ),
    "retries as text": (lambda: run(retries="1"), "must be a whole number from 0 to", "got '1'", "Use 0 for none"),
    "work that is a number": (
        lambda: study().run(3, budget=ft.Budget(trials=1)),
        "Work must be a function",
        "got 3",
        "ft.Command(",
    ),
    "a count as text": (lambda: study().ask("2"), "must be a whole number ≥ 1", "got '2'", "Leave it out"),
    "a number for a budget to ask with": (lambda: study().ask(budget=60), "needs a budget", "got 60", "ft.Budget("),
    "one callback that is in no list": (
        lambda: run(callbacks=print),
        "a list of functions",
        "got <built-in",
        "callbacks=[",
    ),
    "devices as a text": (
        lambda: run(devices="cuda:0", executor="processes"),
        "a list",
        "got 'cuda:0'",
        "devices=['cuda:0']",
    ),
    "a folder that is a number": (lambda: study(folder=3), "a text or a path", "got 3", "Write folder="),
    "a text for a trial": (
        lambda: study().tell("x", 1.0),
        "itself or by its number",
        "got 'x'",
        "Pass the trial from ask()",
    ),
    "a text for a value": (lambda: told("good"), "must be a number", "got 'good'", "Return or report a float"),
    "a number for a trace": (lambda: told(1.0, trace=3), "pairs of fidelity and value", "got 3", "Write trace=[("),
    "a number for metrics": (lambda: told(1.0, metrics=3), "must map names to values", "got 3", "Pass a dict"),
    "a number for params": (lambda: study().enqueue(5), "must map names", "got 5", "Pass a dict"),
    "a clock that is a number": (lambda: study(clock=3), "A clock must have", "got 3", "Leave it out for the system"),
    "a text for a display": (lambda: run(progress="no"), "true or false", "got 'no'", "Leave it out to see it in"),
    "a number for a display": (lambda: run(progress=1), "progress must be true or false", "got 1", "Leave it out to"),
    "a text for a display of a verification": (
        lambda: finished().verify(lambda trial: 0.0, progress="no"),
        "true or false",
        "got 'no'",
        "Leave it out to see it in",
    ),
    "a number for the budget of a verification": (
        lambda: finished().verify(lambda trial: 0.0, budget=60),
        "needs a budget",
        "got 60",
        "ft.Budget(",
    ),
    "a text for an import": (
        lambda: ft.Study.load("study", "none.db", import_strategy="no"),
        "import_strategy must be true or false",
        "got 'no'",
        "Leave it out",
    ),
    "a number for a failure": (lambda: told(None, failure=3), "must be a text", "got 3", "failure='out of memory'"),
    "a text for pruned": (lambda: told(None, pruned="no"), "must be true or false", "got 'no'", "pruned=True"),
    "a text for tags": (
        lambda: study().add({"x": 0.5}, 1.0, tags="old"),
        "a list, each a text",
        "got 'old'",
        "tags=['",
    ),
    "a number for tags": (lambda: study().enqueue({"x": 0.5}, tags=3), "a list, each a text", "got 3", "tags=['"),
    "tags that are numbers": (lambda: finished().annotate(0, tags=[1]), "a list, each a text", "got [1]", "tags=['"),
    "a number for a comment": (lambda: finished().annotate(0, comment=3), "must be a text", "got 3", "comment='"),
    "a number for a path": (lambda: study().export(3), "a path or an open file", "got 3", "study.export('trials.csv')"),
    "a list for a format": (lambda: study().export(format=[1]), "must be 'csv' or 'json'", "got [1]", "'csv'"),
    "steps as text": (
        lambda: ft.replay(lambda trial: 0.0, [(0, {"x": 1})], steps="3"),
        "a whole number ≥ 1",
        "got '3'",
        "Give steps=100",
    ),
    "a replay in a folder that is a number": (
        lambda: ft.replay(lambda trial: 0.0, [(0, {"x": 1})], steps=3, folder=3),
        "a text or a path",
        "got 3",
        "Write folder=",
    ),
    # arguments of strategies
    "a text for a whole number": (
        lambda: ft.ASHA("3"),
        "ASHA's reduction must be a whole number ≥ 2",
        "got '3'",
        "for 3",
    ),
    "a fraction for a whole number": (
        lambda: ft.TraceKG(retain=2.5),
        "whole number ≥ 1",
        "got 2.5",
        "Leave it out for 4",
    ),
    "true for a whole number": (lambda: ft.LogEI(initial=True), "whole number ≥ 1", "got True", "or leave it out"),
    "a number for a name": (lambda: ft.ASHA(fidelity=3), "must be a text or None", "got 3", "or leave it out"),
    "a percentage for a share": (lambda: ft.BOHB(random_share=30), "from 0 to 1", "got 30", "Leave it out for 0.333"),
    "an option that is none": (
        lambda: ft.LaMBO(loss="eager"),
        "'lazy' or 'full'",
        "got 'eager'",
        "Leave it out for 'lazy'",
    ),
    "a text for a flag": (
        lambda: ft.EIPerCost(cooling="no"),
        "must be true or false",
        "got 'no'",
        "Leave it out for True",
    ),
    "a number for a list": (lambda: ft.PrefixEI(bundle=4), "a list", "got 4", "Leave it out for (1, 2, 4, 8)"),
    "a list with a fraction": (
        lambda: ft.PrefixEI(bundle=[1, 2.5]),
        "each a whole number ≥ 1",
        "got [1, 2.5]",
        "Leave",
    ),
    "no cost of a stage": (
        lambda: ft.LaMBO({"a": "x"}),
        "each value a number above 0",
        "got {'a': 'x'}",
        "Leave it out",
    ),
    "infinity": (
        lambda: ft.PB2(population=4, interval=1, beta=float("inf")),
        "a number ≥ 0",
        "got inf",
        "or leave it out",
    ),
    "a population without numbers": (
        lambda: ft.PB2(population=4),
        "PB2 must be given interval",
        "got 'population'",
        "Write for example PB2(population=8, interval=5)",
    ),
    "a misspelt argument": (
        lambda: ft.LogEI(intial=3),
        "must be among 'initial'",
        "got 'intial'",
        "Did you mean 'initial'",
    ),
    "an argument too many": (lambda: ft.Random(3), "takes no arguments", "got 3", "Leave it out"),
    "an argument twice": (lambda: ft.ASHA(3, reduction=3), "takes reduction once", "got it twice", "Leave out"),
    # online
    "a dict for an online space": (lambda: tuner({"x": 1}), "needs a space", "got {'x': 1}", "Write ft.Space("),
    "a study's strategy online": (
        lambda: tuner(strategy=ft.ASHA()),
        "must be an online strategy",
        "got a strategy, ASHA(",
        "Give it to ft.Study",
    ),
    "an online class": (lambda: tuner(strategy=ft.CEGPUCB), "an online strategy", "the class CEGPUCB", "CEGPUCB(…)"),
    "rounds as text": (
        lambda: tuner(rounds="9"),
        "rounds must be a whole number ≥ 1",
        "got '9'",
        "Count the passes",
    ),
    "a reward that is none": (
        lambda: tuner(reward="loss"),
        "'value' or 'gain'",
        "got 'loss'",
        "Leave it out for 'value'",
    ),
    "an online clock that is a text": (lambda: tuner(clock="no"), "A clock must have", "got 'no'", "Leave it out"),
    "candidates that are a number": (lambda: tuner(candidates=3), "a list of params", "got 3", "Write [{"),
    "initial params that are a text": (lambda: tuner(initial="x"), "a list of params", "got 'x'", "Write [{"),
    "a rule with missing numbers": (
        lambda: ft.rules.Quota(EVERY),
        "Quota must be given sure and allowed",
        "got 'rule'",
        "Write for example Quota(",
    ),
    "a cap without a number": (lambda: ft.rules.Capped(EVERY), "must be given most", "got 'rule'", "most=100"),
    "a rule that is a number": (
        lambda: ft.rules.Capped(3, 100),
        "must be a query rule",
        "got 3",
        "Write rule=ft.rules.Every()",
    ),
    "a rule that is a class": (
        lambda: ft.rules.Capped(ft.rules.Every, 3),
        "must be a query rule",
        "Every",
        "Write rule=ft.rules.Every()",
    ),
    "quotas the wrong way round": (lambda: ft.rules.Quota(EVERY, 9, 3), "sure ≤ allowed", "got 9 and 3", "Give the"),
    "a probability above one": (
        lambda: ft.rules.Bernoulli(20),
        "a number from 0 to 1",
        "got 20",
        "Leave it out for 0.2",
    ),
    "a price as text": (lambda: ft.rules.ExpectedRegret("1"), "a number ≥ 0", "got '1'", "Leave it out for 0.1"),
    "a kernel that is none": (
        lambda: ft.CEGPUCB(kernel="rbf"),
        "'matern52' or",
        "got 'rbf'",
        "Leave it out for 'matern52'",
    ),
    "a kernel that is not square": (
        lambda: ft.CEGPUCB(kernel=[[1.0, 2.0]]),
        "a square matrix",
        "got [[1.0",
        "Leave it out",
    ),
    "a forgetting of everything": (
        lambda: ft.CEGPUCB(forgetting=1.0),
        "≥ 0 and below 1 or 'learn'",
        "got 1.0",
        "'learn'",
    ),
    # hands that know Optuna
    "a misspelt keyword of a study": (
        lambda: ft.Study(SPACE, minimise="error"),
        "Arguments of Study must be among",
        "got 'minimise'",
        "Did you mean 'minimize'?",
    ),
    "a misspelt keyword of a run": (lambda: run(worker=2), "must be among", "'worker'", "Did you mean 'workers'?"),
    "n_trials": (lambda: run(n_trials=3), "Study.run", "'n_trials'", "budget=ft.Budget(trials=100)"),
    "n_trials in one line": (lambda: ft.minimize(print, SPACE, n_trials=3), "minimize", "'n_trials'", "ft.Budget("),
    "n_jobs": (lambda: run(n_jobs=2), "Study.run has no", "'n_jobs'", "Write workers=4"),
    "timeout": (lambda: run(timeout=2), "Study.run has no", "'timeout'", "ft.Budget(seconds=600)"),
    "direction": (lambda: ft.Study(SPACE, direction="minimize"), "Study has no", "'direction'", "minimize='loss'"),
    "a sampler": (lambda: study(sampler="TPE"), "Study has no", "'sampler'", "strategy="),
    "a state": (lambda: told(1.0, state="done"), "Study.tell has no", "'state'", "pruned=True"),
    "rounds": (lambda: ft.OnlineTuner(SPACE, round=9), "Arguments of OnlineTuner", "'round'", "you mean 'rounds'?"),
    "a number of trials by place": (
        lambda: study().run(print, 9),
        "Study.run takes work and names for the rest",
        "got 9",
        "Study.run(…, budget=…)",
    ),
    "a step by place": (lambda: study().ask().report(0.5, 3), "takes value and names", "got 3", "step=…"),
    "a value of two words": (lambda: study(minimize="val loss"), "one word", "got 'val loss'", "minimize='val/loss'"),
    "a budget below nothing": (lambda: ft.Budget(trials=-1), "≥ 1", "got -1", "Write trials=1, or leave it out"),
    "a told NaN": (lambda: told(float("nan")), "must be finite", "got nan", "failure='diverged'"),
    "a declared cost with prices": (
        lambda: study(prices={"gpu": 2.5, "per": "hour"}, cost=lambda params, fidelity: 1.0),
        "Prices turn measured seconds",
        "a declared cost",
        "no cost=",
    ),
    "no block of rounds": (lambda: RestartedGPUCB(block=0), "whole number ≥ 1", "got 0", "or leave it out"),
    "a bandit's share": (lambda: EXP3S(share=2.0), "from 0 to 1", "got 2.0", "Leave it out for 0.001"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_a_wrong_argument_is_refused_with_the_rule_what_came_and_what_to_do(name: str) -> None:
    call, rule, came, remedy = MISUSES[name]
    with pytest.raises(FarthingError) as refusal:
        call()
    message = str(refusal.value)
    assert [part for part in (rule, came, remedy) if part not in message] == [], message
    assert message.index(rule) < message.index(remedy)


CALLS = {
    "Float": lambda: ft.Float(0.0, 1.0, logarithmic=True),
    "Space": lambda: ft.Space({"x": ft.Float(0, 1)}, fidelity={}),
    "Fidelity": lambda: ft.Fidelity(1, 9, whole=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_keyword_is_pythons_own_error_and_names_the_call_and_the_keyword(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}.*unexpected keyword argument '\w+'"):
        CALLS[name]()


WORDS = {
    "best_params": (finished, "Write study.best.params."),
    "best_value": (finished, "Write study.best.value."),
    "optimize": (finished, "Write study.run(work, budget=ft.Budget(trials=100))."),
    "suggest_float": (lambda: study().ask(), "read trial.params['lr']"),
    "should_prune": (lambda: study().ask(), "raises ft.Pruned"),
    "create_study": (lambda: ft, "Write ft.Study(space, minimize='loss')."),
    "TrialPruned": (lambda: ft, "Write ft.Pruned."),
}


@pytest.mark.parametrize("name", WORDS)
def test_the_words_of_another_tuner_are_answered_with_ours(name: str) -> None:
    thing, remedy = WORDS[name]
    with pytest.raises(AttributeError, match=f"has no '{name}'") as refusal:
        getattr(thing(), name)
    assert remedy in str(refusal.value)


def test_attributes_that_nobody_has_are_absent() -> None:
    assert not any(hasattr(thing, "no_such_thing") for thing in (finished(), study().ask(), ft))


def test_what_another_tuner_calls_its_things_is_none_of_ours() -> None:
    """Or the right word would never be read."""
    ours = {"a study": ft.Study, "a trial": ft.RunningTrial, "farthing": ft}
    assert [name for thing, owner in ours.items() for name in OTHER_WORDS[thing] if name in dir(owner)] == []


def test_a_study_in_the_other_direction_is_refused_in_words(tmp_path: Path) -> None:
    study(storage=tmp_path / "study.db").close()
    with pytest.raises(StudyMismatch, match="got maximize where 'study' began with minimize='error'"):
        ft.Study(SPACE, maximize="error", storage=tmp_path / "study.db")


def test_prices_alone_are_in_dollars() -> None:
    assert study(prices={"gpu": 2.5, "per": "hour"}).problem.cost_unit == "dollars"
    assert study(prices={"gpu": 2.5, "per": "hour"}, cost_unit="euros").problem.cost_unit == "euros"


def test_a_value_and_params_may_be_named_with_slashes(tmp_path: Path) -> None:
    one = study(ft.Space({"optimizer/lr": ft.Float(0, 1)}), minimize="val/loss", storage=tmp_path / "study.db")
    one.run(lambda trial: {"val/loss": trial.params["optimizer/lr"]}, budget=ft.Budget(trials=3), executor="inline")
    assert one.best.value == one.best.params["optimizer/lr"]
    assert "param.optimizer/lr" in one.export()


def test_a_study_with_a_wrong_argument_is_not_begun(tmp_path: Path) -> None:
    database = tmp_path / "study.db"
    for wrong in ({"lease": -1}, {"lost_retries": 0.5}, {"clock": 3}, {"folder": 3}):
        with pytest.raises(InvalidArgument):
            study(storage=database, **wrong)
        assert not database.exists()


def test_the_errors_are_of_the_kind_that_says_so() -> None:
    with pytest.raises(InvalidSpace):
        study({"x": 1})
    with pytest.raises(InvalidArgument):
        ft.Budget(60)


FILE = """
[study]
minimize = "error"

[space]
rate = {type = "float", low = 0.1, high = 1.0}

[work]
command = "true {rate}"
"""
WRONG_FILES = {
    "missing numbers": ('[strategy]\nname = "PB2"', "must be given population", "got no arguments", "population=8"),
    "text for a number": ('[strategy]\nname = "BOHB"\nrandom_share = "a"', "from 0 to 1", "got 'a'", "Leave it out"),
    "a fraction": ('[strategy]\nname = "ASHA"\nreduction = 2.5', "whole number ≥ 2", "got 2.5", "Leave it out for 3"),
    "a text for a flag": ('[strategy]\nname = "EIPerCost"\ncooling = "no"', "true or false", "got 'no'", "for True"),
    "a table for a number": (
        '[strategy]\nname = "LogEI"\ninitial = {a = 1}',
        "whole number",
        "got {'a': 1}",
        "or leave it out",
    ),
    "an online strategy": ('[strategy]\nname = "CEGPUCB"', "must be among", "got 'CEGPUCB'", "Remove or rename"),
    "a number for its name": ("[strategy]\nname = 3", "must be a text", "got 3", 'Write name = "ASHA"'),
    "no name": ("[strategy]\nreduction = 3", "must be a text", "got None", 'Write name = "ASHA"'),
    "a date": ('[strategy]\nname = "ASHA"\nfidelity = 2024-01-01', "must be a text", "got datetime", "or leave it out"),
    "a budget of text": ('[budget]\ntrials = "9"', "whole number ≥ 1", "got '9'", "Write trials = 50"),
    "a budget of a fraction": ("[budget]\ntrials = 2.5", "whole number ≥ 1", "got 2.5", "Write trials = 50"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_value_in_a_study_file_is_refused_likewise(name: str, tmp_path: Path) -> None:
    table, rule, came, remedy = WRONG_FILES[name]
    path = tmp_path / "study.toml"
    path.write_text(f"{FILE}\n{table}\n")
    with pytest.raises(InvalidFile) as refusal:
        read_study_file(path)
    message = str(refusal.value)
    assert [part for part in ("study.toml", rule, came, remedy) if part not in message] == [], message


def test_a_strategy_may_be_given_by_its_name() -> None:
    assert study(strategy="asha").strategy == ft.ASHA()
    assert study(strategy="cma-es").strategy == ft.CMAES()
    assert study(strategy="ASHA").strategy == ft.ASHA()
    assert tuner(strategy="CEGPUCB").strategy == ft.CEGPUCB()


def test_numbers_of_numpy_are_kept_as_plain_ones() -> None:
    strategy = ft.TraceKG(retain=np.int64(3), floor=np.float64(0.2))
    assert [type(strategy.retain), type(strategy.floor)] == [int, float]
    assert ft.PrefixEI(bundle=np.array([1, 2])).bundle == (1, 2)
