"""Joining them: the study, its loop and its results."""

from farthing.study.one_line import maximize, minimize
from farthing.study.replaying import Replay, replay
from farthing.study.results import Best
from farthing.study.schedule import Schedule
from farthing.study.study import Study

__all__ = ["Best", "Replay", "Schedule", "Study", "maximize", "minimize", "replay"]
