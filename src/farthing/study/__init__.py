"""Joining them: the study, its loop and its results."""

from farthing.session.studies import Deleted, delete_study, studies
from farthing.study.best import Best
from farthing.study.limits import Stopped, StopReason
from farthing.study.lineage import Lineage
from farthing.study.replaying import Replay, replay
from farthing.study.schedule import Schedule
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
