"""Doing: runs the work of trials, in this process or in others."""

from farthing.execution.checkpoints import Checkpoints
from farthing.execution.command import Command
from farthing.execution.executor import Ended, Executor, Job, Listener
from farthing.execution.inline import InlineExecutor
from farthing.execution.local import ProcessExecutor
from farthing.execution.pipeline import Pipeline, Stage
from farthing.execution.running_trial import RunningTrial, Send
from farthing.execution.trainable import Trainable
from farthing.execution.work import CarriesOut, HasStages, KeepsOutputs, Work, as_work

__all__ = [
    "CarriesOut",
    "Checkpoints",
    "Command",
    "Ended",
    "Executor",
    "HasStages",
    "InlineExecutor",
    "Job",
    "KeepsOutputs",
    "Listener",
    "Pipeline",
    "ProcessExecutor",
    "RunningTrial",
    "Send",
    "Stage",
    "Trainable",
    "Work",
    "as_work",
]
