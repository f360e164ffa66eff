"""The types that extensions need: `from farthing.extending import Strategy, Suggestion`.

- A *strategy* inherits from `Strategy`. Its `suggest` is given the `History`, whose trials have `Measurement`s, the
  `Remaining` budget and `Randomness`. It returns `Suggestion`s, each with a `Prediction` of cost or value if there is
  one. Its `recommend` returns a `Recommendation`. The page *Writing a strategy* builds one;
  `farthing.testing.StrategyContract` tests it.
- A *storage* has the methods of `Storage`, whose docstring says what each must keep;
  `farthing.testing.StorageContract` tests it.
- An *executor* has the members of `Executor`: `study.run(work, executor=mine)`. `farthing.testing.ExecutorContract`
  tests it.
- A *query rule* has the method of `QueryRule`: `ft.CEGPUCB(rule=mine)`. `ft.rules` has nine of them.
- An *online strategy* has the method of `OnlineStrategy`: `ft.OnlineTuner(strategy=mine)`.
- A *tracker* inherits from `ft.trackers.Tracker`; `farthing.testing.TrackerContract` tests it. The page *Writing a
  storage, an executor, a tracker* shows one of each.
"""

from typing import TYPE_CHECKING, Any

from farthing.costs import Remaining
from farthing.execution import Executor
from farthing.storage import Storage
from farthing.strategies import Randomness, Recommendation, Strategy
from farthing.trials import History, Measurement, Prediction, Suggestion

if TYPE_CHECKING:
    from farthing.online import OnlineStrategy, QueryRule

__all__ = [
    "Executor",
    "History",
    "Measurement",
    "OnlineStrategy",
    "Prediction",
    "QueryRule",
    "Randomness",
    "Recommendation",
    "Remaining",
    "Storage",
    "Strategy",
    "Suggestion",
]

if not TYPE_CHECKING:  # a checker that sees it takes every misspelt name for an attribute

    def __getattr__(name: str) -> Any:
        """The two that import NumPy and SciPy, which a strategy may do without."""
        if name not in ("OnlineStrategy", "QueryRule"):
            raise AttributeError(f"Farthing.extending has no {name!r}.", name=name)
        from farthing import online

        return getattr(online, name)
