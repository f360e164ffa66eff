"""Trackers are told how a study goes: `study.run(…, trackers=[ft.trackers.MLflow()])`.

Each imports its library when it is made. A tracker of your own inherits from `Tracker`.
"""

from farthing.running.tracking import SoFar, StudyFacts, Tracker
from farthing.trackers.mlflow import MLflow
from farthing.trackers.tensorboard import TensorBoard
from farthing.trackers.wandb import WandB

__all__ = ["MLflow", "SoFar", "StudyFacts", "TensorBoard", "Tracker", "WandB"]
