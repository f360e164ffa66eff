"""The strategy of a study: the one given, else the one stored, else one chosen by the shape of the problem.

To read a study, nothing is imported because a database names it.
"""

import logging
import sys
from typing import Any

from farthing.errors import InvalidArgument
from farthing.fields.serialization import without_former
from farthing.names import BASELINES, FORMER_NAMES
from farthing.session.records import Records
from farthing.storage import StudyRecord
from farthing.strategies import Strategy, as_strategy, strategy_from_json
from farthing.trials import Json, Problem

log = logging.getLogger("farthing")


def require_suited(strategy: Strategy | None, problem: Problem) -> None:
    """Refuses a strategy that knows one value only for a problem that has several, or limits."""
    if strategy is None or problem.is_simple or strategy.takes_objectives:
        return
    name, several = type(strategy).__name__, ", ".join(problem.named)
    raise InvalidArgument(
        f"{name} optimises one value without limits, got {several}. Leave strategy= out, or use LogEHVI, "
        "ParetoHalving, ASHA, Hyperband, BOHB, Random, Sobol or Grid."
    )


class ChosenStrategy:
    """Makes the strategy when it is first needed: a study that is only read imports none."""

    def __init__(self, given: Strategy | str | None, record: StudyRecord) -> None:
        self.given = None if given is None else as_strategy(given)
        require_suited(self.given, record.problem)
        self._strategy = self.given
        self._stored = record.strategy
        self._record = record

    @property
    def is_at_hand(self) -> bool:
        """Whether it can be used without importing a module that only the database names."""
        return self._strategy is not None or not self._stored or is_at_hand(self._stored)

    def get(self) -> Strategy:
        if self._strategy is None:
            self._strategy = strategy_at_hand(self._stored) if self._stored else default_strategy(self._record.problem)
        return self._strategy

    def get_if_at_hand(self) -> Strategy | None:
        return self.get() if self.is_at_hand else None

    def imported(self) -> Strategy:
        """The strategy; if only the database names it, it is imported now, and the log says so."""
        if not self.is_at_hand:
            name = name_of(self._stored)
            log.info("importing the strategy %s, which the study %r names", name, self._record.name)
            self._strategy = strategy_from_json(self._stored)
        return self.get()

    def stored_in(self, records: Records) -> Strategy:
        """The strategy, stored with the study from its first decision on, unless it was when the study was created.

        One that takes the place of another is the study's from then on, and the log says so.
        """
        form = self.imported().to_json()
        if form != self._stored:
            if not _is_older_form(self._stored, form, type(self.get())):
                now, before = shown_form(form), shown_form(self._stored)
                log.warning("From now on %s suggests for the study %r, which had %s.", now, self._record.name, before)
            records.store_strategy(form)
            self._stored = form
        return self.get()

    def to_json(self) -> dict[str, Json]:
        """Its name and arguments; nothing is imported for them."""
        return self.get().to_json() if self.is_at_hand else dict(self._stored)


def _is_older_form(stored: Json, form: dict[str, Any], cls: type[Strategy]) -> bool:
    """Whether an earlier version may have stored this very strategy: nothing, or other arguments that mean the same."""
    if not isinstance(stored, dict):
        return True
    arguments: Any = without_former(cls, stored.get("arguments") or {})
    return name_of(stored) == name_of(form) and arguments.items() <= form["arguments"].items()


def default_strategy(problem: Problem) -> Strategy:
    """By what there is to choose: stages, fidelities, or neither; and by how many values there are."""
    if not problem.is_simple:
        if problem.space.fidelities:
            from farthing.strategies.multifidelity.pareto import ParetoHalving

            return ParetoHalving()
        from farthing.strategies.plain.hypervolume import LogEHVI

        return LogEHVI()
    if problem.space.stages:
        from farthing.strategies.pipeline.prefix_ei import PrefixEI

        return PrefixEI()
    if problem.space.fidelities:
        from farthing.strategies.multifidelity import TraceKG

        return TraceKG()
    from farthing.strategies.plain.bayesian import EIPerCost

    return EIPerCost()


# ---------------------------------------------------------------------------------------------- as it is stored


def is_at_hand(form: Json) -> bool:
    """Whether the strategy is Farthing's own, or of a module that this program has imported itself."""
    module, colon, qualified = FORMER_NAMES.get(name_of(form), name_of(form)).partition(":")
    if not colon or module.startswith(("farthing.strategies.", "farthing.online.")):
        return True
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):  # not getattr, which a module may answer by importing
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return isinstance(found, type) and issubclass(found, Strategy)


def strategy_at_hand(form: Json) -> Strategy:
    """The strategy, unless a module would have to be imported for it."""
    if not is_at_hand(form) and name_of(form) not in BASELINES:
        raise InvalidArgument(
            f"A strategy of your own must be imported before it is used, got {name_of(form)!r}, which is not. "
            "Import its module, or pass strategy=…, or import_strategy=True to Study.load, if you trust the database."
        )
    return strategy_from_json(form)


def class_name(form: Json) -> str:
    """Without the module of one that is not ours."""
    return name_of(form).rpartition(":")[2]


def shown_form(form: Json) -> str:
    """As it would be written in Python: `ASHA(eta=3)`."""
    arguments: Any = form.get("arguments") if isinstance(form, dict) else None
    given = arguments if isinstance(arguments, dict) else {}
    return f"{class_name(form)}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def name_of(form: Json) -> str:
    """As it is stored: `ASHA`, or `module:Class`."""
    name = form.get("name") if isinstance(form, dict) else None
    return name if isinstance(name, str) else ""
