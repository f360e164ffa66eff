"""Lazy modular Bayesian optimisation (Lin, Miano and Dyer, 2021): a bandit that moves the early stages seldom."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, log2
from typing import Any, ClassVar, Literal

import numpy as np

from farthing.acquisition.confidence_bound import ConfidenceBound, lambo_beta
from farthing.acquisition.maximize import BOX_EFFORT, BoxMaxima, maximize_in_boxes
from farthing.errors import InvalidArgument
from farthing.fields import number, positive, whole
from farthing.models.kernels import SE, Kernel
from farthing.models.linalg import Array, IntArray
from farthing.strategies.pipeline.arm_tree import ArmTree, Grids, Region, refined, uncut_tree
from farthing.strategies.pipeline.context import ChosenRow, PipelineContext
from farthing.strategies.pipeline.strategy import StagedStrategy
from farthing.strategies.shared.modelling import kernel_over
from farthing.trials import History, Json, Params

# ------------------------------------------------------------
# The slowly moving bandit (Koren et al., 2017): arms are drawn near the last one, but as often as if they were not.
#
# Probabilities are kept as logarithms; subtrees are given by labels, one array of them for each level of the tree.


def draw_signs(height: int, *, rng: np.random.Generator) -> IntArray:
    """σ_h ∈ {−1, 1} for h = 0 … H − 1, and σ_H = −1 (Algorithm 1, lines 7–8)."""
    return np.append(rng.integers(0, 2, height) * 2 - 1, -1)


def level_of(signs: IntArray) -> int:
    """h = min{h : σ_h = −1}: the next arm is drawn from the subtree of this level."""
    return int(np.argmax(signs == -1))


def draw_arm(log_p: Array, subtree: IntArray, last: int, *, rng: np.random.Generator) -> int:
    """i ~ p(· | A(last)), where A are the arms with the same label (line 5)."""
    near = np.flatnonzero(subtree == subtree[last])
    weights = np.exp(log_p[near] - np.max(log_p[near]))
    return int(rng.choice(near, p=weights / np.sum(weights)))


def relative_losses(losses: Array) -> Array:
    """ℓ̄_0 ∈ [0, 1]: how much worse than the best arm, at most 1.

    p does not change when a constant is added to all losses, so subtracting the least one is free; a bound that was
    clipped before, or scaled to the worst arm, would say something else.
    """
    return np.minimum(losses - np.min(losses), 1.0)


def loss_estimate(
    log_p: Array, loss: Array, signs: IntArray, subtrees: Sequence[IntArray], *, eta: float = 1.0
) -> Array:
    """ℓ̃ = ℓ̄_0 + Σ_{h<H} σ_h ℓ̄_h (Eq. 4), where (Eq. 5, whose exponent −1/η belongs before the logarithm)

        ℓ̄_h(i) = −(1/η) log Σ_{j ∈ A_h(i)} p(j) exp(−η (1 + σ_{h−1}) ℓ̄_{h−1}(j)) / p(A_h(i))

    From the first σ_h = −1 on, all further ℓ̄ vanish.
    """
    level = loss
    estimate = loss.copy()
    for h in range(len(signs) - 1):
        if h > 0:
            level = -_log_mean(log_p, -eta * (1.0 + signs[h - 1]) * level, subtrees[h]) / eta
        estimate = estimate + signs[h] * level
        if signs[h] == -1:
            break
    return np.asarray(estimate)


def updated(log_p: Array, estimate: Array, *, eta: float = 1.0) -> Array:
    """log p_{t+1}, p_{t+1} ∝ p_t exp(−η ℓ̃) (line 10)."""
    moved = log_p - eta * estimate
    return np.asarray(moved - _log_sum(moved))


def _log_mean(log_p: Array, exponent: Array, labels: IntArray) -> Array:
    """log Σ_{j ∈ A(i)} p(j) e^{exponent(j)} / p(A(i)) for every i."""
    result = np.empty_like(log_p)
    for label in np.unique(labels):
        own = labels == label
        result[own] = _log_sum(log_p[own] + exponent[own]) - _log_sum(log_p[own])
    return result


def _log_sum(values: Array) -> float:
    highest = float(np.max(values))
    return highest + float(np.log(np.sum(np.exp(values - highest))))


WINDOW, MOST_MOVES = 20, 5
"""d_1 grows when the first stage moved more than five times in twenty steps, as in the paper."""
UNLIKELY, PATIENCE = 0.1, 10
"""An arm whose probability stays below 0.1/|K| for ten steps is dropped when regions are cut, as in the paper."""
WEIGHT, DEEPEST = 0.1, 5
"""λ, which weighs movement against loss, and the greatest depth that was tried, as in the paper."""
OFFERED = 4
"""Number of the best rows seen that every arm's search may start from; a guess, not tuned."""


@dataclass(frozen=True)
class LaMBO(StagedStrategy):
    """Lazy modular Bayesian optimisation: stays in the regions of the early stages, and moves as a bandit would.

    The space of every stage but the last is cut into regions; an arm is a region for each. The slowly moving bandit
    draws an arm, mostly near the last one. The stages before the first whose region changed keep their parameters,
    and the lower confidence bound μ − √β σ is minimised over the rest (Eq. 8), for all arms in one batched problem.
    `depths` are d_m of the tree, "auto" for those of the declared `costs`, or ones, and a d_1 that grows when the first
    stage moves too often. Every `restart` steps the probabilities start again; the first `refine` times unlikely arms
    go and regions are cut in two. `eta` is η, the rate at which the probabilities learn. `beta` is β, None for
    0.2 D log 2t. `loss` judges an arm by the bound that Eq. 8 reaches with the stages kept ("lazy"), or over all of its
    regions ("full"). `design` draws the first configurations "evenly", with most stages kept, or "at random". `refit`
    fits hyperparameters again as observations "grow", or at a "restart". `compress` draws bad losses together.
    """

    depths: Literal["auto"] | Sequence[int] = whole("auto", least=1)
    restart: int = whole(25, least=1)
    refine: int = whole(2, least=0)
    beta: float | None = number(None, least=0.0)
    loss: Literal["lazy", "full"] = "lazy"
    linear_beta: bool = False
    eta: float = positive(1.0)
    design: Literal["evenly", "at random"] = "evenly"
    refit: Literal["grow", "restart"] = "grow"
    compress: bool = True

    thinking: ClassVar[float] = 0.03
    haste: ClassVar[float] = 0.4

    @classmethod
    def paper(cls, **changes: Any) -> "LaMBO":
        """As printed: 15 configurations drawn at random (Section 5), hyperparameters fitted at restarts (Section 3.3),
        losses as they are, and μ − β_t σ with β_t itself, not its root, which explores far too much.

        Bounds are divided by the range of the losses seen, because Eq. 4 needs losses in [0, 1]; the paper divides its
        functions by their largest value, which is known for test functions only.
        """
        printed = {"initial": 15, "design": "at random", "refit": "restart", "compress": False, "linear_beta": True}
        return cls(**{**printed, **changes})

    @property
    def designs_at_random(self) -> bool:
        return self.design == "at random"

    @property
    def compresses(self) -> bool:
        return self.compress

    def refits(self, notes: Sequence[dict[str, Json]]) -> bool | None:
        if self.refit == "grow":
            return None
        state = _latest_state(notes)
        return state is None or state.epoch_steps >= self.restart

    def kernel(self, history: History) -> Kernel:
        return kernel_over(history.problem.space.encoder, radial=SE)

    def choose(self, context: PipelineContext) -> ChosenRow:
        before = _latest_state(context.notes)
        state = self._begun(context, before)
        last = context.pipeline.purchases.made[-1].params if state.arm is not None else None
        lazy = self._solve(context, state, last)
        judged = lazy if self.loss == "lazy" or last is None else self._solve(context, state, None)
        step = _play(state, -judged.value / _range(context), eta=self.eta, rng=context.rng)
        arm = step.arm if step.arm is not None else 0
        kept = 0 if state.arm is None else state.tree.first_change(arm, state.arm)
        return ChosenRow(lazy.x[arm], kept, last, {"why": _reason(state, kept), "lambo": step.to_json()})

    def _begun(self, context: PipelineContext, before: "BanditState | None") -> "BanditState":
        """The state in which the next step is taken: the last one, a deeper tree, or the beginning of an epoch."""
        grids = _grids(context)
        if before is None:
            start = uncut_tree(grids, self._first_depths(context.pipeline.layout.stage_names))
            return _epoch(refined(start, np.ones(1, dtype=bool), grids, rng=context.rng), steps=0, refinements=0)
        state = _deepened(before) if self.depths == "auto" and before.steps % WINDOW == 0 else before
        if state.epoch_steps < self.restart:
            return state
        if state.refinements >= self.refine:
            return _epoch(state.tree, state.steps, state.refinements, moves=state.moves)
        tree = refined(state.tree, _likely(state), grids, rng=context.rng)
        return _epoch(tree, state.steps, state.refinements + 1, moves=state.moves)

    def _first_depths(self, stages: Sequence[str]) -> tuple[int, ...]:
        count = len(stages) - 1
        if self.depths == "auto":
            return (1,) * count if self.costs == "learn" else depths_of([self.costs[name] for name in stages])
        if len(self.depths) != count:
            raise InvalidArgument(
                f"Depths must be given for each stage but the last, {count} of them, got {self.depths!r}. "
                "Leave them out for depths that adapt."
            )
        return tuple(int(depth) for depth in self.depths)

    def _solve(self, context: PipelineContext, state: "BanditState", last: Params | None) -> BoxMaxima:
        """Eq. 8 for all arms; without a last configuration nothing is kept."""
        lower, upper = _boxes(context, state, last)
        D = lower.shape[1]
        beta = lambo_beta(state.steps + 1, D) if self.beta is None else self.beta
        bound = ConfidenceBound(context.gp, beta * beta if self.linear_beta else beta)
        offered = context.best_rows[:OFFERED]
        effort = replace(BOX_EFFORT, rounds=min(BOX_EFFORT.rounds, context.effort.rounds))
        domain = context.pipeline.domain
        return maximize_in_boxes(bound, domain, lower, upper, rng=context.rng, offered=offered, effort=effort)


def depths_of(costs: Sequence[float]) -> tuple[int, ...]:
    """d_m ∝ log λ c_m, at least 1, of the costs of all stages (Section 3.3).

    The factor and the unit are not in the paper. A further level halves the steps on which a stage may move, so the
    logarithm is that to the base of 2; c_m is in units of the last stage's cost, which every step pays.
    """
    *early, last = costs
    return tuple(min(DEEPEST, max(1, ceil(log2(WEIGHT * cost / last)))) for cost in early)


# ------------------------------------------------------------------------------------------------------- state


@dataclass(frozen=True)
class BanditState:
    """The bandit's memory after a step, as plain values: it is stored in the note of the step's suggestion.

    `arm` and `level` are those of the latest step, None at the beginning of an epoch; `low` counts for each arm how
    long it has been unlikely; `moves` counts how often the first stage moved in the present window.
    """

    tree: ArmTree
    log_p: tuple[float, ...]
    arm: int | None
    level: int
    low: tuple[int, ...]
    steps: int
    epoch_steps: int
    moves: int
    refinements: int

    def to_json(self) -> Json:
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, form: Any) -> "BanditState":
        tree = form["tree"]
        regions = tuple(
            tuple(Region(tuple(region["lower"]), tuple(region["upper"])) for region in own) for own in tree["regions"]
        )
        arms = tuple(tuple(arm) for arm in tree["arms"])
        plain = {**form, "log_p": tuple(form["log_p"]), "low": tuple(form["low"])}
        return cls(**{**plain, "tree": ArmTree(regions, arms, tuple(tree["depths"]))})


def _latest_state(notes: Sequence[dict[str, Json]]) -> BanditState | None:
    found = next((note["lambo"] for note in reversed(notes) if "lambo" in note), None)
    return None if found is None else BanditState.from_json(found)


def _epoch(tree: ArmTree, steps: int, refinements: int, *, moves: int = 0) -> BanditState:
    """Uniform probabilities, h = H, and no arm to stay near."""
    K = tree.size
    return BanditState(tree, (-float(np.log(K)),) * K, None, tree.height, (0,) * K, steps, 0, moves, refinements)


def _deepened(state: BanditState) -> BanditState:
    """At the end of a window: d_1 + 1 if the first stage moved too often. The root stays the root."""
    if state.moves <= MOST_MOVES:
        return replace(state, moves=0)
    tree = state.tree.deeper()
    level = tree.height if state.level == state.tree.height else state.level
    return replace(state, tree=tree, level=level, moves=0)


def _likely(state: BanditState) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Marks the arms that were likely lately; the likeliest is always marked."""
    likely = np.array(state.low) < PATIENCE
    likely[int(np.argmax(state.log_p))] = True
    return likely


def _play(state: BanditState, losses: Array, *, eta: float, rng: np.random.Generator) -> BanditState:
    """One step of Algorithm 1: draw an arm, draw signs, and move the probabilities by the losses of all arms."""
    tree, log_p = state.tree, np.array(state.log_p)
    arm = draw_arm(log_p, tree.subtrees(state.level), state.arm or 0, rng=rng)
    signs = draw_signs(tree.height, rng=rng)
    subtrees = [tree.subtrees(level) for level in range(tree.height)]
    log_p = updated(log_p, loss_estimate(log_p, relative_losses(losses), signs, subtrees, eta=eta), eta=eta)
    is_low = np.exp(log_p) < UNLIKELY / tree.size
    moved = tree.depths != () and (state.arm is None or tree.first_change(arm, state.arm) == 0)
    return replace(
        state,
        log_p=tuple(float(value) for value in log_p),
        arm=arm,
        level=level_of(signs),
        low=tuple(count + 1 if low else 0 for count, low in zip(state.low, is_low, strict=True)),
        steps=state.steps + 1,
        epoch_steps=state.epoch_steps + 1,
        moves=state.moves + moved,
    )


# ------------------------------------------------------------------------------------------------------- boxes


def _grids(context: PipelineContext) -> list[Grids]:
    """The grids of the columns of every stage but the last."""
    layout, grids = context.pipeline.layout, context.pipeline.domain.grids
    return [
        [grid for grid, stage in zip(grids, layout.stage_of_column, strict=True) if stage == number]
        for number in range(layout.count - 1)
    ]


def _boxes(context: PipelineContext, state: BanditState, last: Params | None) -> tuple[Array, Array]:
    """U of Eq. 8 as bounds (K, D): the arm's regions, all of the last stage, and what is kept of the last row."""
    pipeline, tree = context.pipeline, state.tree
    lower, upper = (np.tile(bound, (tree.size, 1)) for bound in pipeline.domain.bounds())
    stage_of = np.array(pipeline.layout.stage_of_column)
    before = None if last is None else pipeline.encode([last])[0]
    for arm in range(tree.size):
        for stage in range(len(tree.depths)):
            region = tree.region(arm, stage)
            lower[arm, stage_of == stage], upper[arm, stage_of == stage] = region.lower, region.upper
        if before is not None and state.arm is not None:
            held = (stage_of < tree.first_change(arm, state.arm)) & ~np.isnan(before)
            lower[arm, held] = upper[arm, held] = before[held]
    return lower, upper


def _range(context: PipelineContext) -> float:
    """The spread of the losses seen, as the process has them: bounds are compared on the scale [0, 1]."""
    seen = context.gp.y[: context.seen.count]
    return float(np.ptp(seen)) or 1.0


def _reason(state: BanditState, kept: int) -> str:
    if state.arm is None:
        return "an epoch begins"
    return "no region changed" if kept == len(state.tree.depths) else f"the region of stage {kept + 1} changed"
