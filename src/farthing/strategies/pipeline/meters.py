"""Rent or buy: how much has gone into cheaper classes since a dearer one was bought last.

Class m keeps the first m stages. Whoever rents cheap evaluations for ever never buys; whoever buys at once wastes what
renting would have told. Buying when the rent paid reaches the price costs at most twice what hindsight would have.
"""

from collections.abc import Sequence

from farthing.strategies.pipeline.purchases import Purchase


def meters(made: Sequence[Purchase], costs: Sequence[float], count: int) -> list[float]:
    """For each of `count` classes what was spent on cheaper ones since it was bought.

    A purchase sets back the meters of its class and of all cheaper ones; a forced one at least that of the class it was
    forced for, whatever it came to.
    """
    running = [0.0] * count
    for purchase, cost in zip(made, costs, strict=True):
        bought = purchase.kept if purchase.forced is None else min(purchase.kept, purchase.forced)
        running = [amount + cost if m < bought else 0.0 for m, amount in enumerate(running)]
    return running


def due_class(running: Sequence[float], prices: Sequence[float | None], factor: float) -> int | None:
    """The dearest class whose meter has reached `factor` times its price; no price means that it cannot be bought.

    The cheapest class, the last, has nothing cheaper to be measured by.
    """
    for m, price in enumerate(prices[:-1]):
        if price is not None and running[m] >= factor * price:
            return m
    return None
