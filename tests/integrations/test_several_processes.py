"""One training on several processes: what torchrun starts trains as one, and what cannot work is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from needing import is_there, need

need("lightning")

from continuing import run_along  # noqa: E402

import farthing as ft  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = EXAMPLES / "train_several.py"
SPACE = ft.Space(
    {"lr": ft.Float(1e-3, 0.5, log=True)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)}
)


def command(ranks: int) -> ft.Command:
    start = f"torchrun --standalone --nproc-per-node {ranks} {PROGRAM}"
    return ft.Command(f"{start} --lr {{lr}} --epochs {{epochs}} --resume {{resume_dir}} --save {{checkpoint_dir}}")


def curve(study: ft.Study) -> list[float]:
    return [point.value for trial in study.trials for point in trial.points if point.value is not None]


def test_two_ranks_train_as_one_and_are_paused_and_continued_under_other_params() -> None:
    params = [{"lr": 0.05}, {"lr": 0.01}]
    study = run_along(SPACE, command(2), [1, 3], params)
    points = [point for trial in study.trials for point in trial.points]
    assert [(point.fidelity["epochs"], point.metrics["ranks"]) for point in points] == [(1, 2), (2, 2), (3, 2)]
    assert [point.metrics["apart"] for point in points] == [0.0] * 3, "both ranks have the same gradients"
    alone = run_along(SPACE, command(1), [1, 3], params)
    assert curve(study) == pytest.approx(curve(alone), rel=1e-4), "those of the whole batch; sums differ by rounding"
    unchanged = run_along(SPACE, command(1), [3], params[:1])
    assert curve(study)[:1] == pytest.approx(curve(unchanged)[:1], rel=1e-4)
    assert curve(study)[1] != pytest.approx(curve(unchanged)[1], rel=1e-2), "the new rate takes effect"


def run_python(*arguments: str, folder: Path, **variables: str) -> None:
    source = os.pathsep.join([str(Path(ft.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": source, **variables}
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=False)


@pytest.mark.skipif(not (is_there("lightning") and is_there("ray")), reason="lightning or ray is absent")
def test_lightning_trains_as_one_in_two_bundles_of_ray_and_is_paused_and_continued(tmp_path: Path) -> None:
    """The program itself fails where the gradients of the ranks differ."""
    import ray

    cluster = ray.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False
    )
    try:
        for ranks in ("1", "2"):
            program = [str(EXAMPLES / "lightning_on_ray.py"), "--ranks", ranks, "--storage", f"{ranks}.db"]
            run_python(*program, folder=tmp_path, RAY_ADDRESS=cluster.address_info["gcs_address"])
    finally:
        ray.shutdown()
    alone, together = (ft.Study.load("study", tmp_path / f"{ranks}.db") for ranks in (1, 2))
    assert not [trial.failure for trial in together.trials if trial.failure]
    assert any(trial.resume_from is not None for trial in together.trials)
    assert [trial.params for trial in together.trials] == [trial.params for trial in alone.trials]
    assert curve(together) == pytest.approx(curve(alone), rel=1e-4), "that of the whole batch; sums differ by rounding"


SCRIPT = """
import logging, sys, warnings

import lightning.pytorch as L
import torch

import farthing as ft
from farthing.integrations.lightning import TrialCallback

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
X = torch.randn(32, 3)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, X.sum(1, keepdim=True)), batch_size=8)


class Net(L.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.layer, self.lr = torch.nn.Linear(3, 1), lr

    def training_step(self, batch, index):
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def validation_step(self, batch, index):
        self.log("val_loss", torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1]), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


def work(trial):
    callback = TrialCallback(trial, monitor="val_loss")
    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer = L.Trainer(
        max_epochs=callback.epochs, callbacks=[callback], accelerator="cpu", devices=2, strategy=sys.argv[1], **quiet
    )
    trainer.fit(Net(trial.params["lr"]), data, data, ckpt_path=callback.resume_path)


space = ft.Space(
    {"lr": ft.Float(1e-3, 0.1, log=True)}, fidelities={"epochs": ft.Fidelity(1, 2, integer=True, trace=True)}
)
study = ft.Study(space, minimize="loss", strategy=ft.Random(), seed=0, storage="study.db")
study.run(work, budget=ft.Budget(trials=2), retries=0, progress=False)
"""


@pytest.mark.parametrize(
    ("strategy", "said"),
    [("ddp", "run by one process, got rank 1 of 2"), ("ddp_spawn", "got DDPStrategy"), ("ddp_fork", "got DDPStrategy")],
)
def test_what_lightning_would_start_by_itself_is_refused(tmp_path: Path, strategy: str, said: str) -> None:
    """With `ddp` the program ran again as rank 1 and took another trial, which trained in step with the first."""
    if not is_there("lightning"):
        pytest.skip("lightning is absent; see make test-integrations")
    (tmp_path / "program.py").write_text(SCRIPT)
    run_python("program.py", strategy, folder=tmp_path)
    failures = [trial.failure for trial in ft.Study.load("study", tmp_path / "study.db").trials]
    assert failures
    assert all(failure and said in failure.reason and "torchrun" in failure.reason for failure in failures)
