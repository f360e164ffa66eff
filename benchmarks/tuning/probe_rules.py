"""`python -m benchmarks.tuning.probe_rules`: other rules for `PairedProbes`, each beside the one it had before.

How long a gain must last, longer for what regularises; whether what was left is tried again; how far probes go and how
long they wait where the start is a guess; and whether other settings are tried first there. On `TO_CHOOSE`, whose tasks
are not reported, with seeds below 1000. The rows are in `benchmarks/results/tuning-probe-rules.jsonl.xz`: accuracies,
which the summary compares with keeping the start.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.markdown import table
from benchmarks.online.training_suite import PRICE, Session
from benchmarks.online.trainings import TO_CHOOSE, Task
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, append_record, key_of, read_records, results_path
from farthing.online import OnlineProblem, PairedProbes
from farthing.online.probes import (
    BOLD,
    FROM_GUESS,
    HARMFUL,
    LARGEST_UNCLEAR_STEP,
    PATIENCE,
    SURE,
    UNCLEAR,
    WORSE,
    Plan,
    ProbingPlayer,
)
from farthing.online.strategy import Observation
from farthing.trials import Json

PATH = results_path("tuning-probe-rules")
SEEDS = range(6)
KEPT, TODAY = "keep the start", "today"
SITUATIONS = (("plausible", "initial"), ("plausible", "guess"), ("poor", "guess"))
ALWAYS, WHERE_URGENT, NEVER = 2.0, 1.0, 0.0
REGULARIZING = ("dropout", "decay", "shift", "noise")
"""Parts of names."""


@dataclass(frozen=True)
class Rule(PairedProbes):
    """The probes as they were before, with other constants, and with what they lacked."""

    lasting: float = 0.0
    """The share of the run over which a gain is confirmed; one decision at least, as today."""
    regularizing: float = 1.0
    """Gains by what regularises are confirmed this many times as long."""
    again: float | None = None
    """After this share of the run what was left is tried again."""
    drawn: int = 0
    """From a guess, so many random settings are probed first."""
    spread: bool = False
    """Whether these are one in each of as many parts of every range, in random order, and no probe waits for them."""
    guess_lasts: float = SURE
    """From a guess a gain is confirmed by this many deviations."""
    any_gain: bool = False
    """Whether from a guess every probe above the forecast is confirmed."""
    theirs: bool = False
    """Whether both are so for the settings that are tried first alone."""
    guess_step: float = FROM_GUESS
    guess_patience: float = PATIENCE
    trusted_bold: float = ALWAYS
    guess_bold: float = ALWAYS
    """Whether steps are twice as long where nothing was gained or staying loses, only where staying loses, or never."""
    guess_unclear: float = LARGEST_UNCLEAR_STEP[False]
    """How long steps may become after probes that tell nothing, as a multiple of the first one."""

    def begin(self, problem: OnlineProblem) -> "RulePlayer":
        return RulePlayer(self if problem.trusted else replace(self, step=self.guess_step), problem)


class RulePlayer(ProbingPlayer):
    def __init__(self, rule: Rule, problem: OnlineProblem) -> None:
        self._rule, self._lasted = rule, 0
        super().__init__(rule, problem)
        self._of_staying: list[float] = []
        self._left: Json = None
        self._again_at = problem.rounds + 1

    def _first_settings(self) -> list[Json]:
        given, count = self._problem, 0 if self._problem.trusted else self._rule.drawn
        rng, encoder = given.randomness.at("race", 0), given.encoder
        cube = rng.random((count, encoder.dimension))
        if self._rule.spread and count:
            order = rng.permuted(np.tile(np.arange(count)[:, None], encoder.dimension), axis=0)
            cube = (order + cube) / count
        return [self._form(given.place(params)) for params in [*given.initial, *encoder.decode_unit(cube)]]

    def _plan(self, decision: int) -> Plan:
        now = self._now
        if now.kind == "confirm" and self._lasted and now.decided == decision - 1:
            return self._plan_confirmation(decision)
        self._lasted = 0
        if decision >= self._again_at:
            now.wait = 1.0
        return super()._plan(decision)

    def _plan_probe(self, decision: int) -> Plan:
        self._decision = decision
        return super()._plan_probe(decision)

    def _next_probe(self) -> Json:
        now, is_due = self._now, self._decision >= self._again_at
        if is_due and self._left not in (None, now.incumbent):
            self._again_at = self._problem.rounds + 1
            return self._left
        step, is_bold = now.step, self._is_bold()
        now.step = min(step * (BOLD if is_bold else 1.0) / (BOLD if self._is_urgent() else 1.0), 1.0)
        place = super()._next_probe()
        now.step = step
        return place

    def _is_bold(self) -> bool:
        """Before, steps were longer too where nothing was above the first value, if that could be paid for."""
        bold = self._rule.trusted_bold if self._problem.trusted else self._rule.guess_bold
        if bold == NEVER or self._is_urgent():
            return bold != NEVER
        of, lost = self._of_staying, float(self._problem.can_undo)
        has_gained = len(of) < 3 or max(of) - of[0] > HARMFUL * self._now.forecast.deviation
        affordable = self._covers(self._now.allowance.validation_cost + lost, self._decision)
        return bold == ALWAYS and not has_gained and affordable

    def _stayed(self, observation: Observation) -> None:
        self._of_staying.append(observation.reward)
        super()._stayed(observation)

    def _judge(self, observation: Observation) -> None:
        self._bar = 0.0 if self._rule.any_gain and self._has_low_bar() else SURE
        super()._judge(observation)

    def _least_gain(self) -> float:
        return self._bar

    def _confirm(self, observation: Observation) -> None:
        now, before = self._now, self._now.previous
        lasted = self._lasted + 1
        self._bar = self._rule.guess_lasts if self._has_low_bar() else SURE
        if self._deviations(observation) >= self._bar and lasted < self._must_last():
            self._lasted = lasted
            self._stayed(observation)
            return
        self._lasted = 0
        super()._confirm(observation)
        if now.failures == 0 and self._rule.again is not None:
            self._left, self._again_at = before, observation.round + self._decisions(self._rule.again)

    def _has_low_bar(self) -> bool:
        is_first = self._now.probes < len(self._first)
        return not self._problem.trusted and (is_first or not self._rule.theirs)

    def _must_last(self) -> int:
        least = max(1, self._decisions(self._rule.lasting))
        return ceil(self._rule.regularizing * least) if self._changes_what_regularizes() else least

    def _changes_what_regularizes(self) -> bool:
        now = self._now
        changed = [name for name, value in now.incumbent.items() if now.previous and now.previous.get(name) != value]
        return any(part in name for name in changed for part in REGULARIZING)

    def _decisions(self, share: float) -> int:
        return round(share * self._problem.rounds)

    def _go_back(self, *, is_worse: bool) -> None:
        now, rule, step = self._now, self._rule, self._now.step
        super()._go_back(is_worse=is_worse)
        self._lasted = 0
        is_drawing = rule.spread and self._has_untried()
        now.wait = 1.0 if is_drawing else (PATIENCE if self._problem.trusted else rule.guess_patience) ** now.failures
        usual = LARGEST_UNCLEAR_STEP[self._problem.can_undo]
        longest = usual if self._problem.trusted else min(usual, rule.guess_unclear)
        now.step = step
        self._rescale_step(WORSE if is_worse else UNCLEAR, most=max(step, longest * self._first_step))


RULES: Mapping[str, Rule] = {
    TODAY: Rule(),
    "trusted: never bold": Rule(trusted_bold=NEVER),
    "trusted: bold only where staying loses": Rule(trusted_bold=WHERE_URGENT),
    "guess: patience 1": Rule(guess_patience=1.0),
    "guess: 7 drawn first": Rule(drawn=7),
    "guess: unclear steps no longer": Rule(guess_unclear=1.0),
    "guess: bold only where staying loses": Rule(guess_bold=WHERE_URGENT),
    **{
        f"guess: short and rarely bold, {name}": replace(rule, guess_unclear=1.0, guess_bold=WHERE_URGENT)
        for name, rule in {
            "3 spread": Rule(drawn=3, spread=True),
            "5 spread": Rule(drawn=5, spread=True),
            "5 spread, lasting by 0": Rule(drawn=5, spread=True, guess_lasts=0.0),
            "5 spread, any gain": Rule(drawn=5, spread=True, guess_lasts=0.0, any_gain=True),
            "5 spread, any gain of theirs": Rule(drawn=5, spread=True, guess_lasts=0.0, any_gain=True, theirs=True),
            "7 spread, lasting by 0": Rule(drawn=7, spread=True, guess_lasts=0.0),
            "7 spread, any gain": Rule(drawn=7, spread=True, guess_lasts=0.0, any_gain=True),
            "7 spread, any gain of theirs": Rule(drawn=7, spread=True, guess_lasts=0.0, any_gain=True, theirs=True),
        }.items()
    },
    "regularising confirmed twice": Rule(regularizing=2.0),
    "confirmed over a tenth": Rule(lasting=0.1),
    "left tried again after a tenth": Rule(again=0.1),
    "guess: never bold": Rule(guess_bold=NEVER),
    "guess: step 0.4": Rule(guess_step=0.4),
    "guess: step 0.2": Rule(guess_step=0.2),
}
ADOPTED = ("trusted: bold only where staying loses", "guess: short and rarely bold, 5 spread, any gain of theirs")
UNDOING = (TODAY, *ADOPTED)
"""Rules that are played with `save=` and `restore=` too."""


@dataclass(frozen=True)
class Game:
    task: Task
    start: str
    told: str
    can_undo: bool
    rule: str
    seed: int

    @property
    def identity(self) -> Record:
        told = "" if self.rule == KEPT else f", {self.told}{', with save and restore' * self.can_undo}"
        return {
            "problem": f"{self.task.name}, {self.start} start{told}",
            "method": self.rule,
            "seed": self.seed,
            "settings": {"rounds": self.task.rounds},
        }

    def result(self) -> Record:
        session = Session(self.task, self.task.starts[self.start], self.seed, PRICE)
        if self.rule == KEPT:
            outcome = session.played(lambda round: self.task.starts[self.start])
        else:
            outcome = session.tuned(RULES[self.rule], can_undo=self.can_undo, is_guess=self.told == "guess")
        return {**self.identity, "accuracy": outcome.accuracy, "undone": outcome.undone}


def games(seeds: Sequence[int]) -> Iterator[Game]:
    for seed, task in product(seeds, TO_CHOOSE):
        yield from (Game(task, start, "", False, KEPT, seed) for start in task.starts)
    for rule, seed, task in product(RULES, seeds, TO_CHOOSE):
        for (start, told), can_undo in product(SITUATIONS, (False, True)):
            if rule.startswith({"initial": "guess", "guess": "trusted"}[told]) or (can_undo and rule not in UNDOING):
                continue
            yield Game(task, start, told, can_undo, rule, seed)


def main(path: Path = PATH) -> None:
    present = {key_of(record) for record in read_records(path)}
    for game in games(SEEDS):
        if key_of(game.identity) not in present:
            append_record(path, {**game.result(), "versions": versions(("numpy", "scipy")), **commit()})
    sys.stdout.write(summary(read_records(path)) + "\n")


def summary(records: Sequence[Record]) -> str:
    """Of each rule and situation the gain over keeping the start: mean, worst, how many are more than .02 below it, and
    how often the rule is better and worse than before with the same seed.
    """
    found = {(one["problem"], one["method"], one["seed"]): one["accuracy"] for one in records}
    rows = [["rule", *(f"{start}, `{told}=`" for start, told in SITUATIONS)]]
    for rule, undo in product(RULES, ("", ", with save and restore")):
        cells = [_cell(found, rule, f", {start} start, {told}{undo}") for start, told in SITUATIONS]
        if any(cells):
            rows.append([f"{rule}{undo}", *cells])
    return table(rows)


def _cell(found: Mapping[tuple[str, str, int], float], rule: str, situation: str) -> str:
    own = [key for key in found if key[1] == rule and key[0].endswith(situation)]
    if not own:
        return ""
    start = situation.split(",")[1]
    gains = [found[key] - found[f"{key[0].removesuffix(situation)},{start}", KEPT, key[2]] for key in own]
    over = [found[key] - found[key[0], TODAY, key[2]] for key in own]
    figures = f"{fmean(gains):+.3f} ({min(gains):+.3f})".replace("-", "−")
    pairs = f", {sum(one > 0 for one in over)}–{sum(one < 0 for one in over)}" * (rule != TODAY)
    return f"{figures}, {sum(gain < -0.02 for gain in gains)} of {len(gains)}{pairs}"


if __name__ == "__main__":
    main()
