"""Rent or buy: the cost of cheaper classes since a more expensive one was last bought.

Class m keeps the first m stages. Renting, that is buying only cheap evaluations, would never change the early stages;
buying new ones at once wastes the information of cheap evaluations. Buying when the rent reaches the price costs at
most twice as much as the best choice in hindsight.
"""

from collections.abc import Sequence

from farthing.strategies.pipeline.purchases import Purchase


def meters(made: Sequence[Purchase], costs: Sequence[float], count: int) -> list[float]:
    """For each of `count` classes the cost of cheaper ones since it was last bought.

    A purchase resets the meters of its class and of all cheaper ones; a forced one at least that of the class it was
    forced for, even if it turned out cheaper.
    """
    running = [0.0] * count
    for purchase, cost in zip(made, costs, strict=True):
        bought = purchase.kept if purchase.forced is None else min(purchase.kept, purchase.forced)
        running = [amount + cost if m < bought else 0.0 for m, amount in enumerate(running)]
    return running


def due_class(running: Sequence[float], prices: Sequence[float | None], factor: float) -> int | None:
    """The most expensive class whose meter has reached `factor` times its price; one without a price cannot be bought.

    The last class is the cheapest and has no meter.
    """
    for m, price in enumerate(prices[:-1]):
        if price is not None and running[m] >= factor * price:
            return m
    return None
