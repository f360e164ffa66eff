"""Prices of resources: what a measured second of a trial costs, in the study's unit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from farthing.errors import InvalidArgument
from farthing.fields import Number
from farthing.trials import Params, Rate
from farthing.validation import listed, shown

PricesGiven: TypeAlias = Mapping[str, float | str]
"""The price of each resource, and under `per` the time that it is for: `{"gpu": 2.5, "cpu": 0.05, "per": "hour"}`."""

ResourcesGiven: TypeAlias = Mapping[str, float] | Sequence[Mapping[str, float]]
"""The resources that a trial holds, `{"cpu": 4, "gpu": 1}`, or a list of such bundles."""

ResourcesLike: TypeAlias = ResourcesGiven | Callable[[Params], ResourcesGiven]
"""The same for all trials, or by their params."""

PER = "per"
SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
ONE_CPU: Mapping[str, float] = {"cpu": 1.0}


@dataclass(frozen=True)
class ResourcePrices:
    """Prices as they were given. A resource that is not named is free; names are free to choose, as labels of machines
    that cost less are: `{"gpu": 2.5, "spot-gpu": 0.8, "per": "hour"}`.
    """

    given: PricesGiven

    def __post_init__(self) -> None:
        per = self.given.get(PER) if isinstance(self.given, Mapping) else None
        if not isinstance(per, str) or per not in SECONDS or len(self.given) < 2:
            raise InvalidArgument(
                f"Prices must name resources, and under 'per' one of {listed(SECONDS)}, got {shown(self.given)}. "
                "Write prices={'gpu': 2.5, 'cpu': 0.05, 'per': 'hour'}."
            )
        for name, price in self.given.items():
            if name != PER:
                Number(least=0.0).checked(price, what=f"The price of {name}", advice="Leave out what is free.")

    def of_a_second(self, resources: ResourcesGiven | None) -> float:
        """The price of a second of a trial that holds these resources; without any, one CPU."""
        bundles = [ONE_CPU] if resources is None else [resources] if isinstance(resources, Mapping) else resources
        amounts = (self._price(name) * amount for bundle in bundles for name, amount in bundle.items())
        return sum(amounts) / SECONDS[str(self.given[PER])]

    def rate(self, resources: ResourcesLike | None, *, must_cost: bool) -> Rate:
        """The price of a second of a trial: by its params, if its resources are."""
        price = self.require_priced if must_cost else self.of_a_second
        if not callable(resources):
            return price(resources)
        return lambda params: price(held_with(resources, params))

    def require_priced(self, resources: ResourcesGiven | None) -> float:
        """The same, where it must cost something."""
        rate = self.of_a_second(resources)
        if rate <= 0.0:
            priced = listed(name for name in self.given if name != PER)
            raise InvalidArgument(
                f"A run of a study with prices must hold a resource that has one ({priced}), got "
                f"resources={shown(resources)}. Write for example resources={{'gpu': 1}}."
            )
        return rate

    def _price(self, name: str) -> float:
        return float(self.given.get(name, 0.0)) if name != PER else 0.0


def held_with(resources: ResourcesLike | None, params: Params) -> ResourcesGiven | None:
    """The resources of a trial with these params."""
    if not callable(resources):
        return resources
    found = resources(params)
    if not isinstance(found, (Mapping, list, tuple)) or not found:
        raise InvalidArgument(
            f"resources= must return what a trial holds, got {shown(found)} for {dict(params)}. Return for example "
            "{'gpu': 1}, for all params."
        )
    return found
