"""`farthing demo`: tunes the network of `digits` and shows what came of it."""

import shlex
from contextlib import closing
from pathlib import Path

import click

from farthing.cli.digits import SPACE, Network, load_examples, save_examples
from farthing.cli.ending import EXIT_CODE_INTERRUPTED, INTERRUPTED, best_text
from farthing.cli.file_work import FileWork
from farthing.cli.files import writing
from farthing.cli.plots import draw, require_matplotlib
from farthing.cli.run_plan import RunPlan, store_plan
from farthing.cli.running import ending_cleanly_on_sigterm
from farthing.cli.storages import Address, address_of, opened_storage
from farthing.study import Best, Study
from farthing.systems.baselines.halving import ASHA

WORKERS = 2
FINISHED = "demo_finished"
"""The setting of a demo's study that has run to its end."""


def run_demo(folder: Path, *, seconds: float) -> int:
    """Runs the demo in that folder; returns the exit code."""
    require_matplotlib()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        save_examples(folder)
    address = address_of(folder / "demo.db")
    with closing(begin_or_continue(address)) as study:
        reason = _tune(study, folder, seconds=seconds)
        if reason == INTERRUPTED:
            click.echo(f"Go on with: farthing demo --seconds {seconds:g} --output {folder}", err=True)
            return EXIT_CODE_INTERRUPTED
        study.remember(**{FINISHED: True})
        draw(study, _picture(study, folder), kind="all")
        click.echo(_ending(study, folder, address=address))
    return 0


def begin_or_continue(address: Address) -> Study:
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
    return Study(SPACE, minimize="error", strategy=ASHA(), storage=address.place, name=f"digits-{number}", seed=number)


def _tune(study: Study, folder: Path, *, seconds: float) -> str:
    click.echo(
        f"Tuning a neural network on 1797 handwritten digits for {seconds:g} seconds with {WORKERS} workers.\n"
        "Networks start with 3 epochs; the best third goes on from its checkpoint to 9, then 27 and 81.\n"
    )
    plan = RunPlan(
        FileWork(folder.absolute(), python="farthing.cli.digits:train"), {"seconds": seconds}, workers=WORKERS
    )
    store_plan(study, plan)
    with ending_cleanly_on_sigterm():
        return study.run(plan.work, budget=plan.budget, workers=plan.workers)


def _picture(study: Study, folder: Path) -> Path:
    return folder / f"{study.name}.png"


def _ending(study: Study, folder: Path, *, address: Address) -> str:
    best = study.best
    named = f"{shlex.quote(study.name)}{address.option}"
    return "\n\n".join(
        [
            best_text(study, best),
            _test_text(study, best, folder=folder),
            str(study.ledger),
            _savings_text(study),
            f"A picture of it: {_picture(study, folder)}",
            "Next:\n"
            f"  farthing show {named}\n"
            f"  farthing resume {named} --seconds 60\n"
            "  farthing run --help   to tune a program of your own",
        ]
    )


def _test_text(study: Study, best: Best, *, folder: Path) -> str:
    """How well the best network does on digits that no choice was based on."""
    assert best.trial.checkpoint is not None, "the best trial's checkpoint is kept"
    _, _, test = load_examples(folder)
    network = Network.load(study.checkpoints.path(best.trial.checkpoint))
    accuracy = 1.0 - network.error(test, activation=best.params["activation"])
    return f"Test accuracy: {accuracy:.1%} of {len(test.digits)} digits that tuning never saw"


def _savings_text(study: Study) -> str:
    ledger = study.ledger
    saved = sum(ledger.saved.values())
    if not saved:
        return "Nothing was saved yet: no run was continued."
    return (
        f"Continued runs started from their checkpoints: {saved:.3g} {ledger.unit} of training were not paid again, "
        f"{saved / (saved + ledger.total):.0%} of what starting over would have cost."
    )
