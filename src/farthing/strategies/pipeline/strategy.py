"""Common to strategies for pipelines: a design that keeps stages, a model of the loss, and prices."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np

from farthing.acquisition.maximize import Effort
from farthing.costs import EFFORT_LEVELS, EffortLevel, Remaining
from farthing.fields import whole
from farthing.models.kernels import Kernel
from farthing.models.linalg import Array, one_thread
from farthing.strategies.pipeline.context import ChosenRow, PipelineContext, PipelineState
from farthing.strategies.pipeline.purchases import Layout, due_class, purchases_of
from farthing.strategies.pipeline.stage_costs import DeclaredCosts, price_stages
from farthing.strategies.shared.effort import effort_level
from farthing.strategies.shared.guessing import NEAR, NOTE, RANDOM, guided_units, has_guesses, is_near
from farthing.strategies.shared.modelling import Observations, kernel_over, observe
from farthing.strategies.shared.starts import next_starts, sobol_unit
from farthing.strategies.shared.strategy import Randomness, Strategy
from farthing.strategies.shared.surrogate import Compression, Surrogate, fit_surrogate
from farthing.trials import History, Json, Params, Suggestion

# ------------------------------------------------------------
# The first evaluations of a pipeline: points that fill the space evenly, most of them with the stages of the last.


RENT = 0.1
"""New stages are bought once this share of their price went into cheaper trials. 0.3 was tried before; no record."""


def next_of_design(pipeline: PipelineState, unit: Array, tried: Sequence[Params]) -> ChosenRow | None:
    """The point of the unit cube (d,), with as many of the latest configuration's stages as are not due for a change.

    Fewer are kept where that configuration was tried; None where even the point itself was.
    """
    latent = pipeline.domain.from_unit(unit[None, :])[0]
    last = pipeline.purchases.made[-1].params if pipeline.purchases.made else None
    for kept in range(_kept(pipeline, last), -1, -1):
        choice = ChosenRow(_row(pipeline, latent, last, kept), kept, last, {})
        if params_of(pipeline, choice) not in tried:
            return choice
    return None


def params_of(pipeline: PipelineState, choice: ChosenRow) -> Params:
    """The configuration of a choice; the stages that it keeps are those of its source to the bit."""
    [params] = pipeline.layout.space.encoder.decode(choice.row[None, :])
    return pipeline.layout.with_prefix(params, choice.source, choice.kept) if choice.source and choice.kept else params


def _kept(pipeline: PipelineState, last: Params | None) -> int:
    if last is None:
        return 0
    row = pipeline.encode([last])[0]
    prices = [pipeline.price(row, m) for m in range(pipeline.layout.count)]
    due = due_class(pipeline.meters, prices, RENT)
    return pipeline.last_class if due is None else due


def _row(pipeline: PipelineState, latent: Array, last: Params | None, kept: int) -> Array:
    if last is None:
        return np.asarray(pipeline.domain.snap(latent[None, :])[0])
    before = pipeline.encode([last])[0]
    held = pipeline.layout.columns(kept) & ~np.isnan(before)
    return np.asarray(pipeline.domain.snap(np.where(held, before, latent)[None, :])[0])


INITIAL = 4
"""A design of up to six was tried before and spent what the model spends better; not recorded."""
ORDINARY = Effort(screened=256, restarts=4, rounds=8, most_calls=12)
FRUGAL = Effort(screened=128, restarts=2, rounds=4, most_calls=10)
SCREEN = Effort(screened=64, restarts=1, rounds=2, most_calls=6)
HASTE = Effort(screened=64, restarts=1, rounds=0)
EFFORTS: dict[EffortLevel, Effort] = {"ordinary": ORDINARY, "frugal": FRUGAL, "screen": SCREEN, "several": HASTE}
"""Less than a plain search has, because every class is searched; a limit on time, not tuned. With the least of it
nothing climbs."""


@dataclass(frozen=True)
class StagedStrategy(Strategy):
    """Base of the strategies for staged spaces. A space without stages is a pipeline of one stage.

    `costs` is "learn", or the cost of each stage. The first `initial` configurations (None: four) fill the space
    evenly, but change an expensive stage only once a tenth of its price has gone into cheaper ones.
    """

    costs: DeclaredCosts = "learn"
    _: KW_ONLY
    initial: int | None = whole(None, least=1)

    takes_starts: ClassVar[bool] = True
    thinking: ClassVar[float] = 0.08
    haste: ClassVar[float] = 0.2
    """`PrefixEI` took 90 ms on average in studies of 60 trials, and 18 with the least effort, and `LaMBO` 37 and 14
    (`benchmarks.tuning.pipeline_haste` and its record, n = 3)."""

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        with one_thread():
            return _Session(self, history, budget, rng).suggestions(count)

    @abstractmethod
    def choose(self, context: PipelineContext) -> ChosenRow:
        """The next evaluation."""

    def kernel(self, history: History) -> Kernel:
        """The covariance of the loss."""
        return kernel_over(history.problem.space.encoder)

    @property
    def design_size(self) -> int:
        return self.initial or INITIAL

    @property
    def designs_at_random(self) -> bool:
        """Whether the first configurations are drawn at random with new stages, not evenly with most stages kept."""
        return False

    @property
    def compresses(self) -> bool:
        """Whether losses far above the median are drawn together before they are modelled."""
        return True

    def refits(self, notes: Sequence[dict[str, Json]]) -> bool | None:
        """Whether hyperparameters are fitted again; None as the number of observations grows."""
        return None


class _Session:
    """One call of `suggest`: each suggestion sees those before it as purchases and as pending."""

    def __init__(self, strategy: StagedStrategy, history: History, budget: Remaining, rng: Randomness) -> None:
        self._strategy, self._history, self._budget, self._rng = strategy, history, budget, rng
        layout = Layout(history.problem.space)
        purchases = purchases_of(history, layout)
        self._effort: EffortLevel = effort_level(strategy, history, budget)
        prices = price_stages(history, layout, purchases, strategy.costs, is_frugal=self._is_frugal)
        self._pipeline = PipelineState(history, layout, purchases, prices)
        self._seen: Observations = observe(history)
        self._surrogate: Surrogate | None = None
        self._pending: Array = self._seen.pending
        self._found: list[Suggestion] = []

    def suggestions(self, count: int) -> list[Suggestion]:
        for first in next_starts(self._history)[:count]:
            self._open(first.params, first.note)
        unit = self._design(count) if self._is_designing(0) else np.zeros((count, 0))
        for i in range(len(self._found), count):
            choice = self._designed(unit[i], place=self._history.configurations + i) if self._is_designing(i) else None
            self._take(choice or self._chosen())
        return self._found

    def _design(self, count: int) -> Array:
        """The next points of the design in the unit cube (count, d)."""
        if not self._strategy.designs_at_random:
            return sobol_unit(self._history, count, self._rng)
        first, width = self._history.configurations, self._pipeline.domain.width
        return np.stack([self._rng.at("design", first + i).random(width) for i in range(count)])

    def _is_designing(self, ahead: int) -> bool:
        size = self._strategy.design_size
        return self._seen.count == 0 or self._history.configurations + ahead < size

    def _designed(self, unit: Array, *, place: int) -> ChosenRow | None:
        if not has_guesses(self._history.problem.space):
            return self._evenly(unit)
        [near] = guided_units(self._history, [unit.tolist()], self._rng, first=place)
        found = self._evenly(np.array(near))
        kind = NEAR if is_near(self._history, place, self._rng) else RANDOM
        return found and replace(found, note={**found.note, NOTE: kind})

    def _evenly(self, unit: Array) -> ChosenRow | None:
        if self._strategy.designs_at_random:
            return ChosenRow(self._pipeline.domain.snap(self._pipeline.domain.from_unit(unit[None, :]))[0], 0, None, {})
        tried = [*(trial.params for trial in self._history), *(found.params for found in self._found)]
        choice = next_of_design(self._pipeline, unit, tried)
        return next_of_design(self._pipeline, unit, ()) if choice is None and self._seen.count == 0 else choice

    def _chosen(self) -> ChosenRow:
        surrogate = self._fitted()
        gp = surrogate.gp.kriging_believer(self._pending) if self._pending.shape[0] else surrogate.gp
        context = PipelineContext(
            self._pipeline,
            self._seen,
            gp,
            self._budget,
            EFFORTS[self._effort],
            self._rng.at("pipeline", len(self._history) + len(self._found)),
            self._notes(),
        )
        choice = self._strategy.choose(context)
        return ChosenRow(
            choice.row, choice.kept, choice.source, surrogate.note() | self._pipeline.prices.note | choice.note
        )

    def _fitted(self) -> Surrogate:
        if self._surrogate is None:
            seen = self._seen
            self._surrogate = fit_surrogate(
                seen.X,
                seen.loss,
                self._strategy.kernel(self._history),
                self._history,
                compression=Compression.of(seen.loss) if self._strategy.compresses else None,
                is_frugal=self._is_frugal,
                refits=self._strategy.refits(self._notes()),
            )
        return self._surrogate

    @property
    def _is_frugal(self) -> bool:
        return self._effort != EFFORT_LEVELS[0]

    def _notes(self) -> list[dict[str, Json]]:
        notes = [*(trial.note for trial in self._history), *(found.note for found in self._found)]
        return [note for note in notes if isinstance(note, dict)]

    def _take(self, choice: ChosenRow) -> None:
        self._open(params_of(self._pipeline, choice), choice.note)

    def _open(self, params: Params, note: Mapping[str, Json]) -> None:
        row = self._pipeline.encode([params])[0]
        kept = self._pipeline.purchases.kept(self._pipeline.layout, params)
        surrogate = self._surrogate
        self._found.append(
            Suggestion(
                params,
                self._history.problem.space.full_fidelity,
                predicted_value=surrogate.predicted(row, sign=self._history.problem.sign) if surrogate else None,
                predicted_cost=self._pipeline.predicted_cost(row, kept),
                note={"kept": kept, **note},
            )
        )
        self._pending = np.concatenate([self._pending, row[None, :]])
        self._pipeline = self._pipeline.after(params, kept, note.get("forced"))
