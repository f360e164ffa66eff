"""Joining them: the study, its loop and its results."""

from farthing.analysis.best import Best
from farthing.analysis.runs import Lineage, Schedule
from farthing.session.studies import Deleted, delete_study, studies
from farthing.study.limits import Stopped, StopReason
from farthing.study.replaying import Replay, replay
from farthing.study.study import Study, maximize, minimize
from farthing.study.verification import Checked, Verification

__all__ = [
    "Best",
    "Checked",
    "Deleted",
    "Lineage",
    "Replay",
    "Schedule",
    "StopReason",
    "Stopped",
    "Study",
    "Verification",
    "delete_study",
    "maximize",
    "minimize",
    "replay",
    "studies",
]
