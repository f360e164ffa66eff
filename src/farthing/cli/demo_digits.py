"""`farthing demo`: tunes the network of `digits` and shows the results."""

import shlex
from contextlib import closing
from pathlib import Path

import click

from farthing.analysis.best import Best
from farthing.analysis.text import short_params
from farthing.cli.digits import SPACE, Network, load_examples, save_examples
from farthing.cli.file_work import FileWork
from farthing.cli.files import make_folder, save_figure
from farthing.cli.run_plan import RunPlan, store_plan
from farthing.cli.running import EXIT_CODE_INTERRUPTED, best_text, ending_cleanly_on_sigterm
from farthing.cli.storages import StorageAddress, address_of, opened_storage
from farthing.plots import require_matplotlib
from farthing.running.stopping import Stopped, StopReason
from farthing.session import session_of
from farthing.study import Study
from farthing.trials import Trial

WORKERS = 2
FINISHED = "demo_finished"
"""The setting of a demo's study that has run to its end."""


def run_demo(folder: Path, *, seconds: float) -> int:
    """Runs the demo in that folder; returns the exit code."""
    require_matplotlib()
    make_folder(folder)
    save_examples(folder)
    address = address_of(folder / "demo.db")
    with closing(begin_or_continue(address)) as study:
        plan = _plan(folder, seconds=seconds)
        if _tune(study, plan).reason is StopReason.INTERRUPTED:
            click.echo(f"Go on with: farthing demo --seconds {seconds:g} --output {folder}", err=True)
            return EXIT_CODE_INTERRUPTED
        best = study.best
        save_figure(study.plot(), _picture(study, folder))
        trained = study.verify(plan.work)
        session_of(study).remember(**{FINISHED: True})
        click.echo(_ending(study, best, trained, folder, address=address))
    return 0


def begin_or_continue(address: StorageAddress) -> Study:
    """The last demo where it was interrupted, otherwise a new one with a seed of its own."""
    with opened_storage(address) as storage:
        demos = [summary.record for summary in storage.list_studies()]
    unfinished = [record for record in demos if not record.settings.get(FINISHED)]
    if unfinished:
        record = unfinished[-1]
        click.echo(f"Continuing {record.name} in {address}, which was interrupted.")
        return Study.load(record.name, address.place)
    number = len(demos) + 1
    kept = f"; {demos[-1].name} is kept beside it" if demos else ""
    click.echo(f"Starting a fresh study, digits-{number}, in {address}{kept}.")
    return Study(SPACE, minimize="error", storage=address.place, name=f"digits-{number}", seed=number)


def _plan(folder: Path, *, seconds: float) -> RunPlan:
    work = FileWork(folder.absolute(), python="farthing.cli.digits:train")
    return RunPlan(work, {"seconds": seconds}, workers=WORKERS)


def _tune(study: Study, plan: RunPlan) -> Stopped:
    length, workers = f"{plan.limits['seconds']:g} seconds", f"{plan.workers} workers"
    click.echo(
        f"Tuning a neural network on 1797 handwritten digits for {length} with {workers}.\n"
        "Each trial promises the most for its cost: some epochs of a new network, or more of one that was paused.\n"
    )
    store_plan(study, plan)
    with ending_cleanly_on_sigterm():
        return study.run(plan.work, budget=plan.budget, workers=plan.workers, on_interrupt="return")


def _picture(study: Study, folder: Path) -> Path:
    return folder / f"{study.name}.png"


def _ending(study: Study, best: Best, trained: Trial, folder: Path, *, address: StorageAddress) -> str:
    named = f"{shlex.quote(study.name)}{address.option}"
    return "\n\n".join(
        [
            best_text(study, best),
            _test_text(study, trained, folder=folder),
            str(study.ledger),
            _savings_text(study),
            f"A picture of it: {_picture(study, folder)}",
            "Next:\n"
            f"  farthing show {named}\n"
            f"  farthing resume {named} --seconds 60\n"
            "  farthing run --help   to tune a program of your own",
        ]
    )


def _test_text(study: Study, trained: Trial, *, folder: Path) -> str:
    """The accuracy of the fully trained network on digits that no choice was based on."""
    assert trained.checkpoint is not None, "the checkpoint of what was recommended is kept"
    _, _, test = load_examples(folder)
    network = Network.load(study.checkpoints.path(trained.checkpoint))
    accuracy = 1.0 - network.error(test, activation=trained.params["activation"])
    return (
        f"Trained to the end ({short_params(trained.fidelity)}, trial {trained.number}): error {trained.value:.4g}.\n"
        f"Test accuracy: {accuracy:.1%} of {len(test.digits)} digits that tuning never saw."
    )


def _savings_text(study: Study) -> str:
    ledger = study.ledger
    saved = sum(ledger.saved.values())
    if not saved:
        return "Nothing was saved yet: no run was continued."
    return (
        f"Continued runs started from their checkpoints: {saved:.3g} {ledger.unit} of training were not paid again, "
        f"{saved / (saved + ledger.total):.0%} of what starting over would have cost."
    )
