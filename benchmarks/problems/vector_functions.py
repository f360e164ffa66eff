"""Test functions with several objectives, with constraints, or both, whose fronts are known. An evaluation costs 1.

The references of ZDT are those of Yang et al. (2019), those of DTLZ2, C2-DTLZ2, OSY and MW7 those of BoTorch.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.hypervolume import Array, front_of
from benchmarks.problems.objectives import Scale, WithObjectives
from benchmarks.problems.problem import Evaluation, Params
from benchmarks.problems.synthetic import hartmann_6
from farthing.space import Float, Space
from farthing.trials.objectives import AtMost, Bound, Objective

Formula = Callable[[Array], Sequence[float]]


@dataclass(frozen=True)
class VectorFunction(WithObjectives):
    """Objectives f1 … fm of numbers x1 … xd, all to be minimised; constraints c1 … ck hold where they are at most 0.

    `whole` is the hypervolume of the true front, or the minimum of one objective where the constraints hold.
    """

    name: str
    formula: Formula
    domain: tuple[tuple[float, float], ...]
    reference: tuple[float, ...]
    whole: float
    limits: Formula | None = None
    limit_count: int = 0
    objectives: tuple[Objective, ...] = field(init=False)
    constraints: Mapping[str, Bound] = field(init=False)

    def __post_init__(self) -> None:
        names = [f"f{i}" for i in range(1, len(self.reference) + 1)]
        object.__setattr__(self, "objectives", tuple(Objective(name) for name in names))
        limits = {f"c{i}": AtMost(0.0) for i in range(1, self.limit_count + 1)}
        object.__setattr__(self, "constraints", limits)

    @property
    def scale(self) -> Scale:
        return Scale(self.reference, self.whole)

    @property
    def full_cost(self) -> float:
        return 1.0

    def missing(self) -> str | None:
        return None

    def space(self) -> Space:
        return Space({f"x{i}": Float(low, high) for i, (low, high) in enumerate(self.domain, start=1)})

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        first, *others = self.true_values(params).items()
        return Evaluation(first[1], self.full_cost, metrics=dict(others))

    def true_values(self, params: Params) -> dict[str, float]:
        x = np.array([params[f"x{i}"] for i in range(1, len(self.domain) + 1)])
        found = [*self.formula(x), *(self.limits(x) if self.limits else ())]
        names = [*(objective.name for objective in self.objectives), *self.constraints]
        return dict(zip(names, map(float, found), strict=True))


def _zdt_g(x: Array) -> float:
    return 1.0 + 9.0 * float(np.mean(x[1:]))


def zdt1(x: Array) -> Sequence[float]:
    """f1 = x1, f2 = g (1 − √(f1/g)), g = 1 + 9 mean(x2 …): convex."""
    g = _zdt_g(x)
    return x[0], g * (1.0 - math.sqrt(x[0] / g))


def zdt2(x: Array) -> Sequence[float]:
    """f1 = x1, f2 = g (1 − (f1/g)²): concave."""
    g = _zdt_g(x)
    return x[0], g * (1.0 - (x[0] / g) ** 2)


def zdt3(x: Array) -> Sequence[float]:
    """f1 = x1, f2 = g (1 − √(f1/g) − f1/g sin 10πf1): five parts."""
    g = _zdt_g(x)
    return x[0], g * (1.0 - math.sqrt(x[0] / g) - x[0] / g * math.sin(10.0 * math.pi * x[0]))


def dtlz2(x: Array, *, m: int) -> Sequence[float]:
    """(1 + g) times a point of the unit sphere at angles πx/2 of the first m − 1, g = Σ (x_i − ½)² of the others."""
    g, angles = float(np.sum((x[m - 1 :] - 0.5) ** 2)), 0.5 * math.pi * x[: m - 1]
    found = []
    for i in range(m):
        rest = m - 1 - i
        one = (1.0 + g) * float(np.prod(np.cos(angles[:rest])))
        found.append(one * math.sin(angles[rest]) if i else one)
    return found


def dtlz2_two(x: Array) -> Sequence[float]:
    return dtlz2(x, m=2)


def dtlz2_three(x: Array) -> Sequence[float]:
    return dtlz2(x, m=3)


RADIUS = 0.2
"""Of the regions of C2-DTLZ2 with two objectives, as in Jain and Deb (2014)."""


def c2_dtlz2_limit(x: Array) -> Sequence[float]:
    """The least distance of f to an end of an axis, or to the middle of the front, squared, less r²."""
    return (_c2_excess(np.array(dtlz2_two(x))),)


def _c2_excess(f: Array) -> float:
    ends = [(f[i] - 1.0) ** 2 + float(f @ f - f[i] ** 2) for i in range(f.size)]
    middle = float(np.sum((f - 1.0 / math.sqrt(f.size)) ** 2))
    return float(min(*ends, middle)) - RADIUS**2


def osy(x: Array) -> Sequence[float]:
    """Osyczka and Kundu (1995): f1 = −25 (x1 − 2)² − …, f2 = Σ x²."""
    centre = np.array([2.0, 2.0, 1.0, 4.0, 1.0])
    weights = np.array([25.0, 1.0, 1.0, 1.0, 1.0])
    return -float(weights @ (x[:5] - centre) ** 2), float(x @ x)


def osy_limits(x: Array) -> Sequence[float]:
    return (
        2.0 - x[0] - x[1],
        x[0] + x[1] - 6.0,
        x[1] - x[0] - 2.0,
        x[0] - 3.0 * x[1] - 2.0,
        (x[2] - 3.0) ** 2 + x[3] - 4.0,
        4.0 - (x[4] - 3.0) ** 2 - x[5],
    )


def mw7(x: Array) -> Sequence[float]:
    """Ma and Wang (2019): f1 = g x1, f2 = g √(1 − x1²), g = 1 + Σ 2 (x_{i+1} + (x_i − ½)² − 1)²."""
    g = 1.0 + float(np.sum(2.0 * (x[1:] + (x[:-1] - 0.5) ** 2 - 1.0) ** 2))
    return g * x[0], g * math.sqrt(1.0 - x[0] ** 2)


def mw7_limits(x: Array) -> Sequence[float]:
    """f lies in a ring: |f| ≤ 1.2 + 0.4 |sin¹⁶ 4θ| and |f| ≥ 1.15 − 0.2 sin⁸ 4θ, θ the angle of f."""
    first, second = mw7(x)
    square, wave = first**2 + second**2, math.sin(4.0 * math.atan2(second, first))
    return square - (1.2 + 0.4 * wave**16) ** 2, (1.15 - 0.2 * wave**8) ** 2 - square


def kursawe(x: Array) -> Sequence[float]:
    """Kursawe (1991): Σ −10 exp(−0.2 √(x_i² + x_{i+1}²)) and Σ |x_i|^0.8 + 5 sin x_i³: parts, and not convex."""
    first = -10.0 * np.sum(np.exp(-0.2 * np.hypot(x[:-1], x[1:])))
    return float(first), float(np.sum(np.abs(x) ** 0.8 + 5.0 * np.sin(x**3)))


def vlmop2(x: Array) -> Sequence[float]:
    """Van Veldhuizen and Lamont (1999): 1 − exp(−Σ (x_i ∓ 1/√d)²): concave, and flat where both are bad."""
    place = 1.0 / math.sqrt(x.size)
    return 1.0 - math.exp(-float(np.sum((x - place) ** 2))), 1.0 - math.exp(-float(np.sum((x + place) ** 2)))


def flat_of_three(x: Array) -> Sequence[float]:
    """The plane front of DTLZ1 with a distance like that of DTLZ2 whose middle is elsewhere."""
    g = 1.0 + 4.0 * float(np.sum((x[2:] - 0.3) ** 2))
    return 0.5 * x[0] * x[1] * g, 0.5 * x[0] * (1.0 - x[1]) * g, 0.5 * (1.0 - x[0]) * g


def round_of_three(x: Array) -> Sequence[float]:
    """The front of DTLZ2 at another place."""
    g = 1.0 + float(np.sum((x[2:] - 0.35) ** 2))
    first, second = 0.5 * math.pi * x[0], 0.5 * math.pi * x[1]
    return g * math.cos(first) * math.cos(second), g * math.cos(first) * math.sin(second), g * math.sin(first)


def bent(x: Array) -> Sequence[float]:
    """A front like that of ZDT2, concave, at a place in the middle of the other numbers."""
    g = 1.0 + 3.0 * float(np.sum((x[1:] - 0.6) ** 2))
    return x[0], g * (1.0 - (x[0] / g) ** 2)


def near_three_of_bent(x: Array) -> Sequence[float]:
    """The least distance of f to three places of the front, squared, less 0.2²."""
    f = np.array(bent(x))
    return (min(float(np.sum((f - (one, 1.0 - one**2)) ** 2)) for one in (0.0, 0.5, 1.0)) - 0.2**2,)


def srn(x: Array) -> Sequence[float]:
    """Srinivas and Deb (1994)."""
    return 2.0 + (x[0] - 2.0) ** 2 + (x[1] - 1.0) ** 2, 9.0 * x[0] - (x[1] - 1.0) ** 2


def srn_limits(x: Array) -> Sequence[float]:
    return x[0] ** 2 + x[1] ** 2 - 225.0, x[0] - 3.0 * x[1] + 10.0


def hartmann_6_alone(x: Array) -> Sequence[float]:
    return (hartmann_6(x),)


def within_unit_ball(x: Array) -> Sequence[float]:
    """Letham et al. (2019): |x| ≤ 1, which the minimum of Hartmann-6 just keeps."""
    return (float(np.linalg.norm(x)) - 1.0,)


def gramacy(x: Array) -> Sequence[float]:
    """Gramacy et al. (2016): x1 + x2."""
    return (x[0] + x[1],)


def gramacy_limits(x: Array) -> Sequence[float]:
    """3/2 − x1 − 2 x2 − ½ sin 2π(x1² − 2 x2) ≤ 0 and x1² + x2² − 3/2 ≤ 0; the first holds just so at the minimum."""
    wave = math.sin(2.0 * math.pi * (x[0] ** 2 - 2.0 * x[1]))
    return 1.5 - x[0] - 2.0 * x[1] - 0.5 * wave, x[0] ** 2 + x[1] ** 2 - 1.5


# ---------------------------------------------------------------------------------------------------- the true fronts


def zdt_front(formula: Formula, *, points: int) -> Array:
    """At g = 1."""
    return front_of(np.array([formula(np.array([first, 0.0])) for first in np.linspace(0.0, 1.0, points)]))


def c2_dtlz2_front(*, points: int) -> Array:
    """The parts of the quarter circle where the limit holds."""
    angles = np.linspace(0.0, 0.5 * math.pi, points)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return front_of(circle[[_c2_excess(f) <= 0.0 for f in circle]])


def mw7_front(*, points: int) -> Array:
    """The inner edge of the ring, or the quarter circle where that is in the ring."""
    angles = np.linspace(0.0, 0.5 * math.pi, points)
    radius = np.maximum(1.0, 1.15 - 0.2 * np.sin(4.0 * angles) ** 8)
    return front_of(radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1))


def osy_front(*, points: int) -> Array:
    """The five parts that Deb (2001) gives, with x4 = x6 = 0."""
    t = np.linspace(0.0, 1.0, points)
    zero, one = np.zeros_like(t), np.ones_like(t)
    falling, rising = 4.056 + (5.0 - 4.056) * t, t
    parts = [
        (5.0 * one, one, 1.0 + 4.0 * t, zero, 5.0 * one, zero),
        (5.0 * one, one, 1.0 + 4.0 * t, zero, one, zero),
        (falling, (falling - 2.0) / 3.0, one, zero, one, zero),
        (zero, 2.0 * one, 1.0 + 2.732 * t, zero, one, zero),
        (rising, 2.0 - rising, one, zero, one, zero),
    ]
    rows = np.concatenate([np.stack(part, axis=1) for part in parts])
    return front_of(np.array([osy(row) for row in rows]))


UNIT = (0.0, 1.0)
QUARTER_CIRCLE = math.pi / 4.0

VECTOR_FUNCTIONS = (
    VectorFunction("zdt1-10", zdt1, (UNIT,) * 10, reference=(11.0, 11.0), whole=120.0 + 2.0 / 3.0),
    VectorFunction("zdt2-8", zdt2, (UNIT,) * 8, reference=(11.0, 11.0), whole=120.0 + 1.0 / 3.0),
    VectorFunction("zdt3-6", zdt3, (UNIT,) * 6, reference=(11.0, 11.0), whole=128.778116),
    VectorFunction("dtlz2-6", dtlz2_two, (UNIT,) * 6, reference=(1.1, 1.1), whole=1.1**2 - QUARTER_CIRCLE),
    VectorFunction("dtlz2-6-of-3", dtlz2_three, (UNIT,) * 6, reference=(1.1,) * 3, whole=1.1**3 - math.pi / 6.0),
)

VECTOR_FUNCTIONS_FOR_TUNING = (
    VectorFunction("kursawe-3", kursawe, ((-5.0, 5.0),) * 3, reference=(-13.0, 2.0), whole=54.0),
    VectorFunction("vlmop2-4", vlmop2, ((-2.0, 2.0),) * 4, reference=(1.1, 1.1), whole=0.45),
    VectorFunction("flat-6-of-3", flat_of_three, (UNIT,) * 6, reference=(0.6,) * 3, whole=0.6**3 - 1.0 / 48.0),
    VectorFunction("round-6-of-3", round_of_three, (UNIT,) * 6, reference=(1.1,) * 3, whole=1.1**3 - math.pi / 6.0),
    VectorFunction("bent-6", bent, (UNIT,) * 6, reference=(1.1, 1.1), whole=1.21 - 2.0 / 3.0),
    VectorFunction(
        "bent-6-in-pieces",
        bent,
        (UNIT,) * 6,
        reference=(1.1, 1.1),
        whole=0.48301,
        limits=near_three_of_bent,
        limit_count=1,
    ),
    VectorFunction(
        "srn", srn, ((-20.0, 20.0),) * 2, reference=(250.0, 50.0), whole=32000.0, limits=srn_limits, limit_count=2
    ),
)
"""Never reported. The first two wholes and the last are about what 500 evaluations reach; that in pieces is of 20 001
points of the front."""

CONSTRAINED_FUNCTIONS = (
    VectorFunction(
        "c2-dtlz2-6", dtlz2_two, (UNIT,) * 6, (1.1, 1.1), whole=0.38233, limits=c2_dtlz2_limit, limit_count=1
    ),
    VectorFunction(
        "osy",
        osy,
        ((0.0, 10.0), (0.0, 10.0), (1.0, 5.0), (0.0, 6.0), (1.0, 5.0), (0.0, 10.0)),
        reference=(-75.0, 75.0),
        whole=10108.3,
        limits=osy_limits,
        limit_count=6,
    ),
    VectorFunction("mw7-6", mw7, (UNIT,) * 6, reference=(1.2, 1.2), whole=0.5044, limits=mw7_limits, limit_count=2),
)

LIMITED_FUNCTIONS = (
    VectorFunction(
        "hartmann-6-in-ball",
        hartmann_6_alone,
        (UNIT,) * 6,
        reference=(0.0,),
        whole=-3.3223680114155147,
        limits=within_unit_ball,
        limit_count=1,
    ),
    VectorFunction(
        "gramacy", gramacy, (UNIT,) * 2, reference=(2.0,), whole=0.599788, limits=gramacy_limits, limit_count=2
    ),
)
"""One objective under a constraint."""
