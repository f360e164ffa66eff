"""The strategy of a study: the one given, else the one stored, else one chosen by the shape of the problem."""

import logging
from typing import Any

from farthing.session.records import Records
from farthing.storage import StudyRecord
from farthing.strategies import Strategy, as_strategy, strategy_from_json
from farthing.study.stored_strategy import is_at_hand, name_of, shown_form, strategy_at_hand
from farthing.trials import Json, Problem

log = logging.getLogger("farthing")


class ChosenStrategy:
    """Makes the strategy when it is first needed: a study that is only read imports none."""

    def __init__(self, given: Strategy | str | None, record: StudyRecord) -> None:
        self._strategy = None if given is None else as_strategy(given)
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
            if not _is_older_form(self._stored, form):
                now, before = shown_form(form), shown_form(self._stored)
                log.warning("From now on %s suggests for the study %r, which had %s.", now, self._record.name, before)
            records.store_strategy(form)
            self._stored = form
        return self.get()

    def to_json(self) -> dict[str, Json]:
        """Its name and arguments; nothing is imported for them."""
        return self.get().to_json() if self.is_at_hand else dict(self._stored)


def _is_older_form(stored: Json, form: dict[str, Any]) -> bool:
    """Whether an earlier version may have stored this very strategy: nothing, or without arguments that came later."""
    if not isinstance(stored, dict):
        return True
    arguments: Any = stored.get("arguments") or {}
    return name_of(stored) == name_of(form) and arguments.items() <= form["arguments"].items()


def default_strategy(problem: Problem) -> Strategy:
    """By what there is to choose: stages, fidelities, or neither."""
    if problem.space.stages:
        from farthing.strategies.pipeline.prefix_ei import PrefixEI

        return PrefixEI()
    if problem.space.fidelities:
        from farthing.strategies.multifidelity import TraceKG

        return TraceKG()
    from farthing.strategies.plain.bayesian import EIPerCost

    return EIPerCost()
