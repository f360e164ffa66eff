"""The bill of a study: costs and savings, by kind."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from farthing.costs.expected import cost_to_come, expected_cost, rate_of, work_of
from farthing.space.stages import prefix_key
from farthing.trials import KINDS, History, Json, Measurement, State, Suggestion, Trial
from farthing.trials.events import idle_seconds
from farthing.trials.measurement import total
from farthing.trials.prefixes import is_stage, was_cached

# ------------------------------------------------------------
# The cost that trials avoid by starting from a checkpoint.


def saved_by_warm_starts(history: History) -> float:
    """The cost of the work in the checkpoints that finished trials began with.

    The next interval of a member of a population continues its own run, which saves nothing; a copy does.
    """
    sources = [
        source
        for trial in history
        if trial.state is State.DONE
        and (source := _source(trial)) is not None
        and (trial.member is None or trial.member != history[source].member)
    ]
    behind = work_behind(history, sources)
    return math.fsum(behind[source] for source in sources)


def work_behind(history: History, numbers: Iterable[int]) -> dict[int, float]:
    """By number what it would cost to come as far as these trials again, without the start-up that every run pays.

    Includes the work in the checkpoint that a trial began with, but not failed attempts.
    """
    behind: dict[int, float] = {}
    for number in _with_sources(history, numbers):
        trial = history[number]
        source = _source(trial)
        own = trial.cost - trial.costs.get("failed", 0.0) - _start_up(history, trial)
        behind[number] = own if source is None else behind[source] + own
    return behind


def _with_sources(history: History, numbers: Iterable[int]) -> list[int]:
    """These trials and all that led to the checkpoints they began with, the oldest first."""
    found: set[int] = set()
    for number in numbers:
        at: int | None = number
        while at is not None and at not in found:
            found.add(at)
            at = _source(history[at])
    return sorted(found)


def _source(trial: Trial) -> int | None:
    return trial.resume_from if trial.resume_checkpoint else None


def _start_up(history: History, trial: Trial) -> float:
    """The seconds that a run took besides its training, as far as its reports tell: beyond the rate between them.

    Charged or declared amounts have no start-up: the difference between two of them is the cost of continuing.
    """
    rate = rate_of(history, trial)
    if math.isnan(rate) or any(point.charged for point in trial.measurements):
        return 0.0
    return max(0.0, trial.cost - trial.costs.get("failed", 0.0) - rate * work_of(history, trial))


@dataclass(frozen=True)
class StageBill:
    """The bill of one stage of a pipeline: how often it was computed and loaded, its cost and its savings.

    `spent` includes loading. It does not include failed work, which is in the ledger's `failed`. `repeated` is the part
    of it that went into outputs which another trial computed too: on a machine that shares no disk with this one at the
    same time, or before its output was evicted.
    """

    computed: int
    loaded: int
    spent: float
    saved: float
    repeated: float

    def to_json(self) -> dict[str, Json]:
        return asdict(self)


@dataclass(frozen=True)
class ToCome:
    """The trials that a strategy with a known end will still make, and their cost if it can be told."""

    trials: int
    cost: float | None

    @classmethod
    def of(cls, history: History, suggestions: Sequence[Suggestion]) -> "ToCome":
        declared = history.problem.declared_cost
        if declared is not None:
            costs: list[float | None] = [declared(one.params, one.fidelity) for one in suggestions]
        else:
            found = [expected_cost(history, one) for one in suggestions]
            costs = [None if one is None else one.mean for one in found]
        known = [cost for cost in costs if cost is not None]
        whole = math.fsum([*known, cost_to_come(history)]) if len(known) == len(costs) else None
        return cls(len(costs) + len(history.numbers_in_flight), whole)


@dataclass(frozen=True)
class Ledger:
    """The bill of a study.

    `spent` is by kind, in the study's cost unit; `saved` is by reason, in the same unit. `overhead` is the seconds
    spent on suggesting, which are no part of `total`: they are the tuner's time, not the work's. `waiting` is the
    seconds for which workers had nothing to do, because a suggestion was not there yet; `processes` is how many
    processes ran trials. `stages` has the bill of each stage, where the work reported any.

    Where seconds have a price, `seconds` has the measured ones by kind, and `price` is what one of them cost in the
    mean. There, and on Ray, `idle` is the seconds for which workers had nothing to do for another reason: they were
    held all the same.

    `labels` has the total by the label of the worker, where workers have labels.

    `to_come` is what a strategy with a known end, such as `Grid`, will still spend.
    """

    unit: str
    spent: Mapping[str, float] = field(default_factory=dict)
    saved: Mapping[str, float] = field(default_factory=dict)
    overhead: float = 0.0
    waiting: float = 0.0
    processes: int = 1
    trials: Mapping[str, int] = field(default_factory=dict)
    stages: Mapping[str, StageBill] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    idle: float = 0.0
    price: float | None = None
    labels: Mapping[str, float] = field(default_factory=dict)
    to_come: ToCome | None = None

    @classmethod
    def of(cls, history: History, *, to_come: Sequence[Suggestion] | None = None) -> "Ledger":
        spent = total(trial.costs for trial in history)
        savings = total([*(trial.saved for trial in history), {"warm starts": saved_by_warm_starts(history)}])
        states = [trial.state.value for trial in history]
        seconds, paid = _priced_seconds(history) if history.problem.has_prices else ({}, 0.0)
        measured = math.fsum(seconds.values())
        return cls(
            unit=history.problem.cost_unit,
            spent={kind: spent[kind] for kind in KINDS if kind in spent},
            saved={reason: amount for reason, amount in savings.items() if amount},
            overhead=math.fsum(trial.overhead for trial in history),
            waiting=math.fsum(trial.waited for trial in history),
            processes=len({trial.owner for trial in history if trial.owner}),
            trials={state.value: states.count(state.value) for state in State if state.value in states},
            stages=_stages(history),
            seconds=seconds,
            idle=idle_seconds(history.events),
            price=paid / measured if measured else None,
            labels=total(trial.costs_by_label for trial in history) if any(trial.labels for trial in history) else {},
            to_come=None if to_come is None else ToCome.of(history, to_come),
        )

    @property
    def total(self) -> float:
        return math.fsum(self.spent.values())

    @property
    def overhead_share(self) -> float | None:
        """Suggesting as a share of the work, if its cost is in seconds or they have a price."""
        return self._share(self.overhead)

    def _share(self, seconds: float) -> float | None:
        price = 1.0 if self.unit == "seconds" else self.price
        return None if price is None or self.total <= 0 else seconds * price / self.total

    def to_json(self) -> dict[str, Json]:
        return {
            "unit": self.unit,
            "spent": dict(self.spent),
            "total": self.total,
            **({"labels": dict(self.labels)} if self.labels else {}),
            "saved": dict(self.saved),
            "overhead_seconds": self.overhead,
            "overhead_share": self.overhead_share,
            "waiting_seconds": self.waiting,
            "idle_seconds": self.idle,
            **({} if self.price is None else {"price_of_a_second": self.price}),
            "trials": dict(self.trials),
            "stages": {name: bill.to_json() for name, bill in self.stages.items()},
            **({"seconds": dict(self.seconds)} if self.seconds else {}),
            **({} if self.to_come is None else {"to_come": asdict(self.to_come)}),
        }

    def rows(self) -> list[tuple[str, str, str]]:
        """The bill as (part, item, amount), the way every view of it shows them."""
        spent = [
            ("spent", kind, self._spent_text(amount, self.seconds.get(kind))) for kind, amount in self.spent.items()
        ]
        labels = [("on", label, f"{amount:.4g} {self.unit}") for label, amount in self.labels.items()]
        saved = [("saved", reason, f"{amount:.4g} {self.unit}") for reason, amount in self.saved.items()]
        stages = [("stage", name, self._stage_text(bill)) for name, bill in self.stages.items()]
        trials = [("trials", state, str(count)) for state, count in self.trials.items()]
        seconds = math.fsum(self.seconds.values()) if self.seconds else None
        total_row = ("spent", "total", self._spent_text(self.total, seconds))
        overhead = [("overhead", "suggesting", self._overhead_text(self.overhead))]
        if self.processes > 1 or self.price is not None:
            overhead.append(("overhead", "waiting for suggestions", self._overhead_text(self.waiting)))
        if self.price is not None or self.idle:
            overhead.append(("overhead", "idle workers", self._overhead_text(self.idle)))
        if self.to_come is not None:
            trials.append(("to come", f"{self.to_come.trials} trials", self._to_come_text(self.to_come.cost)))
        return [*spent, total_row, *labels, *saved, *stages, *overhead, *trials]

    def _to_come_text(self, cost: float | None) -> str:
        if cost is None:
            return f"unknown {self.unit}, before the first result"
        return f"about {cost:.4g} {self.unit}, {self.total + cost:.4g} in all"

    def _overhead_text(self, seconds: float) -> str:
        price = "" if self.price is None else f", {seconds * self.price:.3g} {self.unit}"
        share = self._share(seconds)
        return f"{seconds:.3g} seconds{price}" + ("" if share is None else f", {share:.0%} of the cost")

    def _spent_text(self, amount: float, seconds: float | None) -> str:
        return f"{amount:.4g} {self.unit}" + ("" if seconds is None else f", {seconds:.4g} seconds")

    def _stage_text(self, bill: StageBill) -> str:
        repeated = f" ({bill.repeated:.4g} {self.unit} of it again)" if bill.repeated else ""
        spent = f"{bill.spent:.4g} {self.unit}, computed {bill.computed}×{repeated}"
        return f"{spent}, loaded {bill.loaded}×, saved {bill.saved:.4g} {self.unit}" if bill.loaded else spent

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(item) for _, item, _ in rows)
        return "\n".join(f"{part:<9}{item:<{width + 2}}{amount}" for part, item, amount in rows)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{part}</td><td>{item}</td><td>{amount}</td></tr>" for part, item, amount in self.rows()
        )
        return f"<table>{cells}</table>"


def _priced_seconds(history: History) -> tuple[dict[str, float], float]:
    """The measured seconds behind the costs, by kind, and what they cost: each measurement has the rate of its time."""
    seconds: dict[str, float] = {}
    paid: list[float] = []
    for trial in history:
        is_wasted = trial.state in (State.FAILED, State.LOST)
        for point in trial.measurements:
            if not point.rate or point.charged:
                continue
            for kind, amount in point.cost.items():
                billed = "failed" if is_wasted or point.attempt != trial.attempt else kind
                seconds[billed] = seconds.get(billed, 0.0) + amount / point.rate
                paid.append(amount)
    return {kind: seconds[kind] for kind in KINDS if kind in seconds}, math.fsum(paid)


def _stages(history: History) -> dict[str, StageBill]:
    """By the same rules as `Trial.costs`: the cost of an attempt without a result is failed work.

    The cost of a trial after its last stage is on the bill of that stage, so that the bills add up.
    """
    names = list(history.problem.space.stages)
    if not names:
        return {}
    ends: dict[int, list[tuple[Trial, Measurement]]] = {}
    rest = 0.0
    for trial in history:
        if trial.state in (State.FAILED, State.LOST):
            continue
        for point in trial.measurements:
            if is_stage(point) and point.attempt == trial.attempt:
                ends.setdefault(point.step or 0, []).append((trial, point))
            elif point.attempt == trial.attempt:
                rest += sum(point.cost.values())
    bills = {name: _bill(history, step, ends[step]) for step, name in enumerate(names) if step in ends}
    if names[-1] in bills:
        bills[names[-1]] = replace(bills[names[-1]], spent=bills[names[-1]].spent + rest)
    return bills


def _bill(history: History, step: int, ends: Sequence[tuple[Trial, Measurement]]) -> StageBill:
    points = [point for _, point in ends]
    loaded = sum(was_cached(point) for point in points)
    return StageBill(
        computed=len(points) - loaded,
        loaded=loaded,
        spent=math.fsum(sum(point.cost.values()) for point in points),
        saved=math.fsum(point.saved.get("cache", 0.0) for point in points),
        repeated=math.fsum(_repeated(history, step, ends)),
    )


def _repeated(history: History, step: int, ends: Sequence[tuple[Trial, Measurement]]) -> Iterator[float]:
    """The costs of outputs that another trial had computed. The last stage gives the value, which is never kept."""
    space, known = history.problem.space, set[str]()
    if step == len(space.stages) - 1:
        return
    for trial, point in (end for end in ends if not was_cached(end[1])):
        key = prefix_key(space, trial.params, step + 1)
        if key in known:
            yield math.fsum(point.cost.values())
        known.add(key)
