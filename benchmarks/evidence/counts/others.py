"""What pages on smaller subjects count: a second study, several objectives, other programs, many workers."""

import json
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from benchmarks.evidence.counts.counting import (
    Said,
    Table,
    ends,
    gaps,
    of,
    percent,
    wtl,
)
from benchmarks.evidence.papers import records, regret_at, runs
from benchmarks.records import results_path
from benchmarks.tuning import guess_parts, noisy_fronts

STOPPING = {
    "functions: worth": ("sequential", "worth"),
    "patience of 25 % of the budget": ("sequential", "patience"),
    "Optuna's EMMREvaluator": ("sequential", "optuna-emmr"),
    "Optuna's RegretBoundEvaluator": ("sequential", "optuna-regret-bound"),
    "curves: worth": ("curves", "worth"),
    "patience of 25 % of the budget, curves": ("curves", "patience"),
    "Optuna's evaluators": ("curves", "optuna-emmr"),
}


def second_study() -> Said:
    def later(contest: str, one: str, other: str, at: float, theirs_at: float) -> list[float]:
        mine, theirs = runs("guesses", contest, one), runs("guesses", contest, other)
        return [regret_at(mine[key], at) - regret_at(theirs[key], theirs_at) for key in mine.keys() & theirs.keys()]

    def no_worse(found: Sequence[float]) -> int:
        return sum(gap <= 0 for gap in found)

    def inside(family: str, problem: str = "") -> tuple[int, int]:
        own = [bool(row["inside"]) for row in records("stopping-outlook")
               if row["family"] == family and row["problem"].startswith(problem)]  # fmt: skip
        return sum(own), len(own)

    lcbench, functions = (f"{kind}, with a guess for every parameter" for kind in ("learning curves", "functions"))
    good = [no_worse(later(lcbench, "TraceKG-guess-good", "TraceKG", at / 2, at)) for at in (1, 2, 5)]
    early = [no_worse(later(functions, "log-ei-guess-good", "log-ei", at, 2 * at)) for at in (5, 10, 15)]
    bad = no_worse(later(functions, "log-ei-guess-bad", "log-ei", 30, 20))
    saved = [(label.removesuffix(", curves"), [percent(fmean(row["saved"] for row in records("stopping")
              if (row["family"], row["rule"]) == own))]) for label, own in STOPPING.items()]  # fmt: skip
    sequential, curved, ackley = inside("sequential"), inside("curves"), inside("sequential", "ackley")

    def parts(alone: str, method: str, *budgets: str) -> list[tuple[int, int, int]]:
        rows = records(guess_parts.SUITE)
        return [guess_parts.beaten(rows, alone, f"{method}-guess-good", budget) for budget in budgets]

    alone = {part: parts(part, "log-ei", "10", "20") for part in guess_parts.PARTS[1:]}
    with_curves = {part: parts(part, "TraceKG", "2")[0] for part in guess_parts.PARTS[1:]}
    return Said(
        [Table("must bring 0.01.", saved)],
        [
            f"and in {good[0]}, {good[1]} and {good[2]} of 100 pairs",
            f"after 10 in {early[0]} of 50 pairs, and after 10 no worse than none after 20 in {early[1]}.",
            f"After 15 it is no worse than none after 30 in {early[2]} only",
            f"none after 20 in {bad} of 50 pairs",
            *(
                f"{one[0][0]} and {one[1][0]} of {sum(one[0])}{rest}"
                for one, rest in zip(alone.values(), (" studies, than", ", and than", ". For"), strict=True)
            ),
            "after two trainings, {}–{}–{},".format(*with_curves["first start"]),
            "better than starts without the factor, {}–{}–{}.".format(*with_curves["starts"]),
            f"We checked {sequential[1] + curved[1]} outlooks",
            f"in {sequential[0]} of {sequential[1]} on functions and in {curved[0]} of {curved[1]} on curves: "
            f"{percent(sequential[0] / sequential[1])} and {percent(curved[0] / curved[1])}.",
            f"on Ackley again: {ackley[0]} of {ackley[1]},",
        ],
    )  # fmt: skip


LIMITED = {
    "c2-dtlz2-6": "beyond a limit",
    "osy": "beyond a limit",
    "mw7-6": "beyond a limit",
    "hartmann-6-in-ball": "beyond a limit",
    "gramacy": "beyond a limit",
}
DTLZ = ("dtlz2-6", "dtlz2-6-of-3")
OF_SEVERAL = ("log-ehvi", "optuna-tpe", "optuna-nsga2", "random")


def objectives() -> Said:
    def won(contest: str, other: str, at: float, one: str = "log-ehvi") -> str:
        return wtl(gaps("objectives", contest, one, other, at))

    def gaps_on(problem: str, contest: str, other: str, at: float) -> list[float]:
        mine, theirs = (runs("objectives", contest, method) for method in ("log-ehvi", other))
        return [regret_at(mine[key], at) - regret_at(theirs[key], at)
                for key in mine.keys() & theirs.keys() if key[0] == problem]  # fmt: skip

    def beside(other: str, one: str = "log-ehvi") -> str:
        """In all contests that count evaluations, after 30, 60 and 100."""
        mine, theirs = (
            {
                (row["problem"], row["seed"]): row
                for row in records("objectives")
                if row["method"] == method and row["settings"]["allowance"]["unit"] == "evaluations"
            }
            for method in (one, other)
        )
        found = [wtl(regret_at(mine[key], at) - regret_at(theirs[key], at) for key in mine.keys() & theirs.keys())
                 for at in (30, 60, 100)]  # fmt: skip
        return f"{found[0]}, {found[1]} and {found[2]}"

    def beyond(problem: str, method: str) -> str:
        tallies = [row["tallies"]["100"] for row in runs("objectives", limits, method).values()
                   if row["problem"] == problem]  # fmt: skip
        return f"{sum(one['infeasible'] for one in tallies) / sum(one['evaluations'] for one in tallies):.0%}"

    functions, limits, tables = "functions of two and three objectives", "under constraints", "tables, at equal cost"
    along, halving = "learning curves, error and time", "pareto-halving"
    standings = {other: [won(functions, other, at) for at in (30, 60, 100)] for other in OF_SEVERAL[1:]}
    round_ones = [gap for problem in DTLZ for gap in gaps_on(problem, functions, "optuna-tpe", 30)]
    losses = sum(int(one.split("–")[2]) for found in standings.values() for one in found)
    assert losses == sum(
        gap > 0
        for problem in DTLZ
        for other in OF_SEVERAL[1:]
        for at in (30, 60, 100)
        for gap in gaps_on(problem, functions, other, at)
    ), "all losses are on DTLZ2"
    limited = {at: wtl(gaps("objectives", limits, "log-ehvi", "optuna-tpe", at)) for at in (30, 60, 100)}
    on_tables = [won(tables, "optuna-tpe", at) for at in (30, 60, 100)]
    small = [won("tables under a limit, at equal cost", other, 100) for other in OF_SEVERAL[1:]]
    noisy = {
        (noise, at): wtl(noisy_fronts.pairs(records(noisy_fronts.SUITE), noise, at))
        for noise in noisy_fronts.NOISES
        for at in noisy_fronts.EVALUATIONS
    }
    botorch, within = "botorch-qlognehvi", "learning curves under a limit"
    ended = {other: [won(within, other, at, halving) for at in (5, 10, 20)]
             for other in ("asha", "bohb", "random", "log-ehvi")}  # fmt: skip
    pairs = {sum(map(int, won(along, other, 20, halving).split("–"))) for other in ("asha", "random", "log-ehvi")}
    return Said(
        [
            Table("| after 100 evaluations | LogEHVI |",
                  [(label, [beyond(problem, method) for method in OF_SEVERAL]) for problem, label in LIMITED.items()]),
        ],
        [
            *(f"against {name} {found[0]}, {found[1]} and {found[2]}" for name, found in
              zip(("TPE", "NSGA-II", "random search"), standings.values(), strict=True)),
            f"at 30 it wins {of(round_ones)} pairs against TPE there",
            f"Against TPE it has {limited[30]}, {limited[60]} and {limited[100]}.",
            f"most of what is measured next to it is beyond: {beyond('gramacy', 'log-ehvi').replace('%', ' %')} of 100 "
            f"evaluations, where random search has {beyond('gramacy', 'random').replace('%', ' %')}.",
            f"wins, ties and losses against TPE are {on_tables[0]} after 30 full runs, {on_tables[1]} after 60 and "
            f"{on_tables[2]} after 100.",
            f"are {small[0]} against TPE, {small[1]} against NSGA-II and {small[2]} against random",
            f"wins, ties and losses are {won(along, 'asha', 10, halving)} after 10 full runs and "
            f"{won(along, 'asha', 20, halving)} after 20, over {pairs.pop()} pairs. After 20 they are "
            f"{won(along, 'bohb', 20, halving)} against BOHB and {won(along, 'random', 20, halving)} against random",
            f"are {won(along, 'log-ehvi', 10, halving)} after 10 and {won(along, 'log-ehvi', 20, halving)} after 20.",
            f"to that of means are {noisy[0.05, 30]} and {noisy[0.05, 60]} after 30 and 60 evaluations with the "
            f"smaller noise, {noisy[0.2, 30]} and {noisy[0.2, 60]} with the larger.",
            f"against ASHA {ended['asha'][0]}, {ended['asha'][1]} and {ended['asha'][2]}, against BOHB "
            f"{ended['bohb'][0]}, {ended['bohb'][1]} and {ended['bohb'][2]}, against random search "
            f"{ended['random'][0]}, {ended['random'][1]} and {ended['random'][2]}.",
            f"is ahead of it after 5, {ended['log-ehvi'][0]}, and behind after 10 and 20, {ended['log-ehvi'][1]} and "
            f"{ended['log-ehvi'][2]}.",
            f"wins, ties and losses against it are {beside('optuna-gp')} after 30, 60 and 100",
            f"which is not, is level with it: {beside(botorch)}.",
            f"as a limit of each objective, it has {beside(botorch, 'log-ehvi-reference')}.",
        ],
    )  # fmt: skip


def boosting() -> Said:
    def against(other: str, *problems: str) -> str:
        return of(gap for one in problems for gap in ends("lightgbm-rounds", "TraceKG", other, one, "-test_loss"))

    tpe, both = "Optuna TPE, pruning", ("magic", "adult")
    return Said(sentences=[
        f"is better than TPE in {against(tpe, *both)} pairs ({against(tpe, 'magic')} on magic) and than FLAML in "
        f"{against('FLAML', *both)}.",
    ])  # fmt: skip


def optuna() -> Said:
    contest = ("optuna-sampler", "the same strategy as Optuna's sampler", "log-ei-in-optuna", "log-ei")
    early, late = (wtl(gaps(*contest, at)).split("–") for at in (15, 30))
    assert early[1] == "0"
    return Said(sentences=[
        f"in {early[0]} of {sum(map(int, early))} pairs after 15 evaluations and worse in {early[2]}; after 30 it is "
        f"better in {late[0]} and worse in {late[2]}, with {late[1]} ties",
    ])  # fmt: skip


def cluster() -> Said:
    def idle(workers: int) -> str:
        return percent(
            median(
                row["idle share after the start"]
                for row in records("simulated-cluster")
                if (row["strategy"], row["workers"]) == ("TraceKG", workers)
            ),
            2 if workers == 64 else 1,
        )

    return Said(
        sentences=[
            f"workers were idle for {idle(64)} of their time (three seeds)",
            f"workers waited for {idle(256)} of their time",
            f"they waited for {idle(1000)} while the queue",
        ]
    )


def strategies() -> Said:
    """Of workers that wait while the next suggestion is prepared, or is not, and of what preparing it costs."""
    rows = _speed("idle")["shares"]
    own = {row["trials"]: row for row in rows if row["strategy"] == "LogEI"}
    ahead = _speed("ahead")["all with several workers"]
    better, worse = map(int, ahead["better–worse"].split("–"))

    def idle(trials: int, form: str) -> str:
        return percent(float(own[trials][form].split()[0]), 1)

    return Said(
        sentences=[
            f"wait for {idle(400, 'idle')} of their time with LogEI, and for {idle(400, 'not ahead')} if nothing",
            f"they wait for {idle(100, 'idle').removesuffix(' %')} and {idle(100, 'not ahead')}.",
            f"end better in {better} and worse in {worse}, the other {ahead['n'] - better - worse} as good: by chance "
            f"there are as many losses with p = {ahead['chance of as many losses']:.2f}.",
        ]
    )


def prompts() -> Said:
    """Of the example with five dollars: what it spends, and how sure its result is."""
    rows = records("prompt-dollars")
    spent = [row["spent"] / row["budget"] for row in rows]
    few = sum(row["questions"] < 200 for row in rows)
    return Said(
        sentences=[
            f"it ended within its five dollars in {sum(share <= 1.0 for share in spent)} of {len(rows)}, and spent "
            f"{percent(median(spent))} of them in the median, {percent(min(spent))} at least and "
            f"{percent(max(spent))} at most",
            f"in {few} of {len(rows)} by fewer than all questions",
        ]
    )


def _speed(name: str) -> dict[str, Any]:
    """The figures of a benchmark of speed."""
    text = results_path(f"speed-{name}").with_suffix(".json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)["figures"]
    return found
