"""The position of a report on its trial's curve."""

from collections.abc import Mapping

from farthing.errors import InvalidParams
from farthing.scalars import as_float, as_whole
from farthing.space import Fidelity, Space
from farthing.trials.measurement import LARGEST_WHOLE
from farthing.validation import refuse_unknown, shown


def fidelity_of_report(space: Space, own: Mapping[str, float], named: Mapping[str, object]) -> dict[str, float]:
    """The fidelity a value was measured at: as the report names it, the trial's own where it does not.

    On a trace the amount may be anything up to the trial's own, also below the least that a trial may be asked for:
    a run of ten epochs passes through the first.
    """
    refuse_unknown(named, space.fidelities, what="Fidelities", error=InvalidParams)
    _check_trace_is_named(space, named)
    return {
        name: _amount(fidelity, named[name], name=name, own=own[name]) if name in named else own[name]
        for name, fidelity in space.fidelities.items()
    }


def next_step(given: object, last: int) -> int:
    """The step of a report in a space without fidelities: as given, otherwise one more than the last."""
    if given is None:
        return last + 1
    step = as_whole(given)
    if step is None or not 0 <= step <= LARGEST_WHOLE:
        raise InvalidParams(
            f"A step must be a whole number from 0 to 2**63 - 1, got {shown(given)}. Leave it out to count 1, 2, 3, …"
        )
    return step


def _check_trace_is_named(space: Space, named: Mapping[str, object]) -> None:
    traces = [name for name, fidelity in space.fidelities.items() if fidelity.trace]
    if traces and not any(name in named for name in traces):
        raise InvalidParams(
            f"A report must say how far along {traces[0]!r} it was measured, got none of {', '.join(traces)}. "
            f"Write trial.report(value, {traces[0]}=...)."
        )


def _amount(fidelity: Fidelity, given: object, *, name: str, own: float) -> float:
    if not fidelity.trace:
        return fidelity.check(given, name=name)
    amount = as_whole(given) if fidelity.integer else as_float(given)
    if amount is None:
        kind = "a whole number" if fidelity.integer else "a finite number"
        raise InvalidParams(f"{name} must be {kind}, got {shown(given)}. Count the work done from the very start.")
    if not 0 < amount <= own:
        advice = f"Stop at trial.fidelity[{name!r}]." if amount > 0 else "Count from 1: report what is done."
        raise InvalidParams(f"{name} must be above 0 and at most the trial's own {own:g}, got {shown(given)}. {advice}")
    return amount
