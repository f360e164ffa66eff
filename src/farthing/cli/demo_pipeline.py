"""`farthing demo pipeline`: tunes three stages that read handwritten digits, and computes none of them twice."""

import shlex
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import ndimage

from farthing.cli.ending import EXIT_CODE_INTERRUPTED, best_text
from farthing.cli.file_work import FileWork
from farthing.cli.files import make_folder, save_figure
from farthing.cli.run_plan import RunPlan, store_plan
from farthing.cli.running import ending_cleanly_on_sigterm
from farthing.cli.storages import address_of, opened_storage
from farthing.errors import MissingExtra
from farthing.execution import Pipeline
from farthing.plots import require_matplotlib
from farthing.running.stopping import Stopped, StopReason
from farthing.space import Float, Int, Space
from farthing.study import Study

try:
    from sklearn.datasets import load_digits
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeClassifier
except ImportError as error:
    raise MissingExtra("The demo needs scikit-learn, which is absent. Run: pip install 'farthing[demo]'.") from error

WORKERS = 2
TRAINING = 1200
SPACE = Space(
    stages={
        "enlarge": {"zoom": Float(1.0, 4.0), "blur": Float(0.1, 2.0)},
        "features": {"count": Int(50, 800, log=True), "gamma": Float(1e-4, 1e-1, log=True)},
        "classify": {"alpha": Float(1e-3, 1e2, log=True)},
    }
)

Array = np.ndarray


def enlarge(images: Array, *, zoom: float, blur: float) -> Array:
    """More pixels, then smoother ones; a row for each image."""
    large = [ndimage.gaussian_filter(ndimage.zoom(image, zoom, order=1), blur) for image in images]
    rows = np.stack(large).reshape(len(images), -1)
    return np.asarray((rows - rows.mean()) / rows.std())


def features(rows: Array, *, count: int, gamma: float) -> Array:
    """How near each image is, in the kernel's sense, to some of the training images."""
    near = Nystroem(n_components=count, gamma=gamma * 64 / rows.shape[1], random_state=0).fit(rows[:TRAINING])
    transformed: Array = near.transform(rows)
    return transformed


def classify(inputs: Array, *, alpha: float) -> float:
    """The share of images that a linear classifier gets wrong, of those that it did not learn from."""
    digits = load_digits().target
    fitted = RidgeClassifier(alpha=alpha).fit(inputs[:TRAINING], digits[:TRAINING])
    return 1.0 - float(fitted.score(inputs[TRAINING:], digits[TRAINING:]))


def _images() -> Any:
    return load_digits().images


pipeline = Pipeline(source=_images(), cache_limit="1 GB", enlarge=enlarge, features=features, classify=classify)


def run_pipeline_demo(folder: Path, *, seconds: float) -> int:
    """Runs the demo in that folder; returns the exit code."""
    require_matplotlib()
    make_folder(folder)
    address = address_of(folder / "pipeline.db")
    with opened_storage(address) as storage:
        name = f"pipeline-{len(storage.list_studies()) + 1}"
    with closing(Study(SPACE, minimize="error", storage=address.place, name=name)) as study:
        click.echo(f"Tuning a pipeline of three stages for {seconds:g} seconds with {WORKERS} workers.\n")
        if _tune(study, folder, seconds=seconds).reason is StopReason.INTERRUPTED:
            return EXIT_CODE_INTERRUPTED
        picture = folder / f"{name}.png"
        save_figure(study.plot(), picture)
        click.echo(_ending(study, picture, named=f"{shlex.quote(name)}{address.option}"))
    return 0


def _tune(study: Study, folder: Path, *, seconds: float) -> Stopped:
    work = FileWork(folder.absolute(), python="farthing.cli.demo_pipeline:pipeline")
    plan = RunPlan(work, {"seconds": seconds}, workers=WORKERS)
    store_plan(study, plan)
    with ending_cleanly_on_sigterm():
        return study.run(plan.work, budget=plan.budget, workers=plan.workers, on_interrupt="return")


def _ending(study: Study, picture: Path, *, named: str) -> str:
    ledger = study.ledger
    saved = ledger.saved.get("cache", 0.0)
    share = saved / (saved + ledger.total)
    return "\n\n".join(
        [
            best_text(study, study.best),
            str(ledger),
            f"Outputs of stages were used again: {saved:.3g} {ledger.unit} were not paid, {share:.0%} of what "
            "computing everything would have cost.",
            f"A picture of it: {picture}",
            f"Next:\n  farthing show {named}\n  farthing resume {named} --seconds 60",
        ]
    )
