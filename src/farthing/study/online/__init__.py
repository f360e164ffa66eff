"""Tuning inside one training run, which is one trial of a study and its rounds that trial's measurements."""

from farthing.study.online.decision import Decision
from farthing.study.online.stored import Online
from farthing.study.online.tuner import OnlineTuner

__all__ = ["Decision", "Online", "OnlineTuner"]
