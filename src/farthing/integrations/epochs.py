"""The fidelity that counts the epochs of a training loop."""

from farthing.errors import WorkError
from farthing.execution import RunningTrial
from farthing.validation import shown


def epochs_of(trial: RunningTrial) -> str:
    """The name of the trial's one trace fidelity, in whole epochs."""
    fidelities = trial.problem.space.fidelities
    traces = [name for name, fidelity in fidelities.items() if fidelity.trace and fidelity.integer]
    if len(traces) != 1:
        raise WorkError(
            f"A training loop needs one trace fidelity, in whole epochs, got {shown(dict(fidelities))}. Declare "
            'fidelities={"epochs": ft.Fidelity(1, 20, integer=True, trace=True)}.'
        )
    return traces[0]
