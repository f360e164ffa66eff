"""The error family: each says the rule, what came, and what to do."""


class FarthingError(Exception):
    """Anything Farthing raises on purpose. The command line prints it in one line, without a traceback."""


class InvalidArgument(FarthingError, ValueError):
    """An argument breaks a rule that is stated in the message."""


class InvalidSpace(InvalidArgument):
    """A parameter, fidelity, stage or condition of a space cannot be meant."""


class InvalidParams(InvalidArgument):
    """Params or a fidelity do not belong to the space."""


class InvalidValue(InvalidArgument):
    """A value or a cost is not a finite number of the right sign."""


class InvalidFile(FarthingError):
    """A study file is malformed."""


class MissingExtra(FarthingError, ImportError):
    """An optional dependency is absent; the message names the extra to install."""


class StudyExists(FarthingError):
    """A study of that name is in the storage already."""


class StudyMismatch(FarthingError):
    """A study of that name exists with another space, value or direction."""


class StudyNotFound(FarthingError, LookupError):
    """The storage has no study of that name."""


class TrialNotFound(FarthingError, LookupError):
    """The study has no trial of that number."""


class TrialFinished(FarthingError):
    """The trial has its result already: one result per trial."""


class StaleAttempt(FarthingError):
    """A later attempt at the trial has taken over; what an older one writes is refused."""


class HistoryMoved(FarthingError):
    """Another process opened a trial since the history was read; suggest again."""


class NoSuggestion(FarthingError):
    """There is no trial to ask for: the strategy waits for a result, or has finished."""


class NoResult(FarthingError, LookupError):
    """No trial is done, so there is no best one."""


class StorageError(FarthingError):
    """The database is unreachable, read-only, full, corrupt or of another version."""


class WorkError(FarthingError):
    """The work cannot be started: not importable, not sendable to a worker, or no such command."""


class Pruned(FarthingError):
    """Raised by the work to end a trial that is not worth finishing: `raise ft.Pruned`."""
