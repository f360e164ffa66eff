"""`farthing demo population`: trains eight networks side by side and learns a schedule in one run."""

import shlex
from contextlib import closing
from pathlib import Path

import click

from farthing.cli.digits import Network, load_examples, save_examples
from farthing.cli.ending import EXIT_CODE_INTERRUPTED
from farthing.cli.file_work import FileWork
from farthing.cli.files import make_folder, save_figure
from farthing.cli.population_view import lanes_text, schedule_text
from farthing.cli.run_plan import RunPlan, store_plan
from farthing.cli.running import ending_cleanly_on_sigterm
from farthing.cli.storages import StorageAddress, address_of, opened_storage
from farthing.execution import Trainable
from farthing.plots import require_matplotlib
from farthing.running.stopping import Stopped, StopReason
from farthing.space import Fidelity, Float, Int, Space
from farthing.strategies.population import PB2
from farthing.study import Study
from farthing.trials import Params

WORKERS, UNITS = 2, 64
FIXED = {"activation": "relu"}
SPACE = Space(
    {
        "learning_rate": Float(1e-4, 1e-1, log=True),
        "batch_size": Int(8, 256, log=True),
        "weight_decay": Float(1e-5, 1.0, log=True),
    },
    fidelities={"epochs": Fidelity(1, 45, integer=True, trace=True)},
)
STRATEGY = PB2(population=8, interval=3)


class Reader(Trainable):
    """Reads handwritten digits; a step is an epoch, and the value its loss on the digits kept for validation."""

    def setup(self, params: Params) -> None:
        self.training, self.validation, _ = load_examples(Path.cwd())
        self.network = Network.fresh(UNITS)

    def apply(self, params: Params) -> None:
        self.params = {**params, **FIXED}

    def step(self) -> float:
        self.network.train_epoch(self.training, self.params)
        with self.trial.timing("validation"):
            return self.network.loss(self.validation, **FIXED)

    def save(self, folder: Path) -> None:
        self.network.save(folder)

    def load(self, folder: Path) -> None:
        self.network = Network.load(folder)


def run_population_demo(folder: Path) -> int:
    """Runs the demo in that folder; returns the exit code."""
    require_matplotlib()
    make_folder(folder)
    save_examples(folder)
    address = address_of(folder / "population.db")
    with closing(_begin_or_continue(address)) as study:
        if _train(study, folder).reason is StopReason.INTERRUPTED:
            click.echo(f"Go on with: farthing demo population --output {folder}", err=True)
            return EXIT_CODE_INTERRUPTED
        picture = folder / f"{study.name}.png"
        save_figure(study.plot(), picture)
        click.echo(_ending(study, folder, picture, address=address))
    return 0


def _begin_or_continue(address: StorageAddress) -> Study:
    """The last demo where it was interrupted, otherwise a new one with a seed of its own."""
    with opened_storage(address) as storage:
        number = len(storage.list_studies())
    if number:
        last = _study(address, number)
        if not any(last.history.is_full(trial) for trial in last.history.done):
            click.echo(f"Continuing {last.name} in {address}, which was interrupted.")
            return last
        last.close()
    return _study(address, number + 1)


def _study(address: StorageAddress, number: int) -> Study:
    name = f"readers-{number}"
    return Study(SPACE, minimize="loss", strategy=STRATEGY, storage=address.place, name=name, seed=number)


def _train(study: Study, folder: Path) -> Stopped:
    click.echo(
        f"Training {STRATEGY.population} networks on handwritten digits with {WORKERS} workers, {_epochs(study)} epochs"
        f" each.\nEvery {STRATEGY.interval} epochs the worst two become copies of the best, with other params.\n"
    )
    plan = RunPlan(FileWork(folder.absolute(), python="farthing.cli.demo_population:Reader"), {}, workers=WORKERS)
    store_plan(study, plan)
    with ending_cleanly_on_sigterm():
        return study.run(plan.work, workers=plan.workers, on_interrupt="return")


def _epochs(study: Study) -> int:
    return int(study.space.full_fidelity["epochs"])


def _ending(study: Study, folder: Path, picture: Path, *, address: StorageAddress) -> str:
    best = study.best
    assert best.schedule is not None, "a population is trained in steps"
    named = f"{shlex.quote(study.name)}{address.option}"
    return "\n\n".join(
        [
            f"Best loss: {best.value:.4g}. {_test_text(study, folder)}",
            lanes_text(study, best),
            schedule_text(best.schedule),
            str(study.ledger),
            f"A picture of it: {picture}",
            f"Next:\n  farthing show {named}\n  farthing run --help   to train a population of your own",
        ]
    )


def _test_text(study: Study, folder: Path) -> str:
    """The accuracy of the winner on digits that no choice was based on."""
    checkpoint = study.best.trial.checkpoint
    assert checkpoint is not None, "the best trial's checkpoint is kept"
    _, _, test = load_examples(folder.absolute())
    error = Network.load(study.checkpoints.path(checkpoint)).error(test, **FIXED)
    return f"Test accuracy: {1.0 - error:.1%} of {len(test.digits)} digits that tuning never saw"
