"""The record: suggestions, measurements, trials and the history they make up."""

from farthing.trials.history import Event, History
from farthing.trials.measurement import KINDS, Kind, Measurement
from farthing.trials.problem import DeclaredCost, Problem, Rate, rate_of
from farthing.trials.suggestion import Json, Params, Prediction, Suggestion
from farthing.trials.trial import Attempt, Failure, Outcome, State, Trial, noted

__all__ = [
    "KINDS",
    "Attempt",
    "DeclaredCost",
    "Event",
    "Failure",
    "History",
    "Json",
    "Kind",
    "Measurement",
    "Outcome",
    "Params",
    "Prediction",
    "Problem",
    "Rate",
    "State",
    "Suggestion",
    "Trial",
    "noted",
    "rate_of",
]
