"""LaMBO's tree of arms: regions of the first stages, and how far apart they are (the MSET, Section 3.3).

An arm names one region for each stage but the last. From the root down, the tree forks by the regions of the first
stage, then by those of the second, and so on; below the fork of stage m it goes straight on for d_m − 1 more steps. The
*level* of a node is its height above the leaves: A_0(i) = {i}, A_H(i) = all arms, H = Σ d_m. (The text counts from the
root, but the algorithm and its Lemma 7 need it this way round.)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from farthing.models.linalg import Array, BoolArray, IntArray

MOST_ARMS = 64
"""Regions are not cut further if that would make more arms than this. A limit on time, measured up to it."""

Grids = Sequence[Array | None]
"""Of each column the values that it may have, None where it is continuous."""


@dataclass(frozen=True)
class Region:
    """A box over the columns of one stage; on a grid its bounds are values of it."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]


@dataclass(frozen=True)
class ArmTree:
    """`regions[m]` are those of stage m, `arms[i][m]` says which of them arm i has, `depths[m]` is d_m ≥ 1."""

    regions: tuple[tuple[Region, ...], ...]
    arms: tuple[tuple[int, ...], ...]
    depths: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.arms)

    @property
    def height(self) -> int:
        """H."""
        return sum(self.depths)

    def region(self, arm: int, stage: int) -> Region:
        return self.regions[stage][self.arms[arm][stage]]

    def shared_stages(self, level: int) -> int:
        """In how many stages, from the first on, the arms below a node of that level agree."""
        reached = 0
        for stage in reversed(range(len(self.depths))):
            reached += self.depths[stage]
            if level < reached:
                return stage + 1
        return 0

    def subtrees(self, level: int) -> IntArray:
        """For each arm i a label that it has in common with the other arms of A_level(i)."""
        shared = self.shared_stages(level)
        labels: dict[tuple[int, ...], int] = {}
        return np.array([labels.setdefault(arm[:shared], len(labels)) for arm in self.arms], dtype=np.int64)

    def first_change(self, arm: int, other: int) -> int:
        """The first stage in which two arms have different regions; the last one, which has none, if they are equal."""
        pairs = enumerate(zip(self.arms[arm], self.arms[other], strict=True))
        return next((stage for stage, (one, two) in pairs if one != two), len(self.depths))

    def deeper(self) -> "ArmTree":
        """With d_1 + 1: the first stage may then move on half as many steps."""
        return replace(self, depths=(self.depths[0] + 1, *self.depths[1:]))


def uncut_tree(grids: Sequence[Grids], depths: Sequence[int]) -> ArmTree:
    """One arm: every stage is one region."""
    regions = tuple((_whole_region(columns),) for columns in grids)
    return ArmTree(regions, ((0,) * len(regions),), tuple(depths))


def refined(tree: ArmTree, kept: BoolArray, grids: Sequence[Grids], *, rng: np.random.Generator) -> ArmTree:
    """Without the arms that are not kept, and with every region of the others cut in two along a random column.

    Arms that shared a region share both halves. The arms are then tuples of regions, not all combinations of them.
    """
    arms = [arm for arm, is_kept in zip(tree.arms, kept, strict=True) if is_kept]
    regions: list[tuple[Region, ...]] = []
    children: list[dict[int, list[int]]] = []
    for stage, columns in enumerate(grids):
        used = sorted({arm[stage] for arm in arms})
        halves = {index: _halves(tree.regions[stage][index], columns, rng) for index in used}
        regions.append(tuple(half for pair in halves.values() for half in pair))
        numbers = iter(range(len(regions[-1])))
        children.append({index: [next(numbers) for _ in pair] for index, pair in halves.items()})
    new_arms = [
        child for arm in arms for child in product(*(children[stage][index] for stage, index in enumerate(arm)))
    ]
    if len(new_arms) > MOST_ARMS:
        return replace(tree, arms=tuple(arms))
    return ArmTree(tuple(regions), tuple(new_arms), tree.depths)


def _whole_region(columns: Grids) -> Region:
    ends = [(0.0, 1.0) if grid is None else (float(grid[0]), float(grid[-1])) for grid in columns]
    return Region(tuple(low for low, _ in ends), tuple(high for _, high in ends))


def _halves(region: Region, columns: Grids, rng: np.random.Generator) -> list[Region]:
    """Two halves of a region along a column drawn for it; the region itself where no column can be cut."""
    cuts = [_cut(low, high, grid) for low, high, grid in zip(region.lower, region.upper, columns, strict=True)]
    possible = [column for column, cut in enumerate(cuts) if cut is not None]
    if not possible:
        return [region]
    column = possible[int(rng.integers(len(possible)))]
    below, above = cuts[column] or (0.0, 0.0)
    return [
        replace(region, upper=_with(region.upper, column, below)),
        replace(region, lower=_with(region.lower, column, above)),
    ]


def _cut(low: float, high: float, grid: Array | None) -> tuple[float, float] | None:
    """The last value of the lower half and the first of the upper one."""
    if grid is None:
        middle = 0.5 * (low + high)
        return (middle, middle) if low < middle < high else None
    inside = grid[(grid >= low) & (grid <= high)]
    half = inside.size // 2
    return (float(inside[half - 1]), float(inside[half])) if half else None


def _with(bounds: tuple[float, ...], column: int, value: float) -> tuple[float, ...]:
    return (*bounds[:column], value, *bounds[column + 1 :])
