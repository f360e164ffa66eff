"""Changes, which only a server that was started with --allow-changes answers.

Each is one step that any program could take with `ft.Study`: an event, a waiting trial, a note. What runs takes it up
by itself. None of them imports a strategy or work that a database names.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from farthing.analysis.rows import trial_row
from farthing.costs import Budget
from farthing.dashboard.endpoints import LONGEST_TEXT, STUDY, TRIAL, Body, Endpoint, name_of
from farthing.dashboard.reading import ShownStudies
from farthing.errors import InvalidArgument, NoResult, TrialFinished
from farthing.running.verification import Chosen
from farthing.session import session_of
from farthing.study import Study
from farthing.trials import Attempt, Json, Outcome, State

TEXT = {"type": "string", "maxLength": LONGEST_TEXT}
TAGS = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 100}, "maxItems": 20}
LIMIT = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e15}


@contextmanager
def _study(studies: ShownStudies, key: str) -> Iterator[Study]:
    """The study, for one change. The storage stays open: it is the server's."""
    with closing(Study.load(name_of(key), studies.storage)) as study:
        yield study


def stop_study(studies: ShownStudies, study: str, body: dict[str, Json]) -> dict[str, Json]:
    with _study(studies, study) as found:
        found.request_stop()
        return {"running": sum(trial.state is State.RUNNING for trial in found.history.in_flight)}


def raise_budget(studies: ShownStudies, study: str, body: dict[str, Json]) -> dict[str, Json]:
    if not body:
        raise InvalidArgument("A budget needs a limit, got none. Give cost, seconds or trials.")
    with _study(studies, study) as found:
        before = {} if found.budget is None else found.budget.to_json()
        found.set_budget(Budget(**{**before, **body}))
        return {"budget": found.budget.to_json() if found.budget else None}


def enqueue_trial(studies: ShownStudies, study: str, body: dict[str, Json]) -> dict[str, Json]:
    """All active params must be given: to complete some would take the strategy, which is not imported here."""
    with _study(studies, study) as found:
        params = {name: _as_option(found, name, value) for name, value in body["params"].items()}
        missing = [name for name in found.space.active_names(params) if name not in params]
        if missing:
            raise InvalidArgument(f"A configuration needs all its params, got none for {missing[0]!r}. Give its value.")
        return trial_row(found.enqueue(params, fidelity=body.get("fidelity"), tags=body.get("tags", ())))


def _as_option(study: Study, name: str, value: Json) -> Json:
    """JSON has no tuples, which options may be."""
    options = getattr(study.space.parameters.get(name), "options", ())
    return tuple(value) if isinstance(value, list) and tuple(value) in options else value


def annotate_trial(studies: ShownStudies, study: str, number: int, body: dict[str, Json]) -> dict[str, Json]:
    if not body:
        raise InvalidArgument("A note needs tags or a comment, got neither. Give one of them.")
    with _study(studies, study) as found:
        found.annotate(number, tags=body.get("tags"), comment=body.get("comment"))
        return trial_row(found.history[number])


def prune_trial(studies: ShownStudies, study: str, number: int, body: dict[str, Json]) -> dict[str, Json]:
    """Ends a trial without a result. The program that runs it notices at its next report or renewal, and kills it."""
    with _study(studies, study) as found:
        trial = found.history[number]
        if trial.is_finished:
            raise TrialFinished(f"A trial that is pruned must be going, got trial {number}, which is {trial.state}.")
        storage, outcome = studies.storage, Outcome(State.PRUNED)
        if trial.state is State.PENDING:
            claimed = storage.claim_trial(found.name, owner="dashboard", lease=60.0, number=number)
            if claimed is None:
                raise TrialFinished(f"A trial that waits must still wait, got trial {number}, which began. Try again.")
            trial = claimed
        return trial_row(storage.close_trial(found.name, Attempt(number, trial.attempt), outcome))


def verify_best(studies: ShownStudies, study: str, body: dict[str, Json]) -> dict[str, Json]:
    """Like `study.verify`, but for running it: the full training of the recommendation is put in line.

    A run that is alive carries it out, or the next one, or `study.verify`, which runs what waits. What was trained to
    the end already is not trained again.
    """
    with _study(studies, study) as found:
        if found.problem.space.stages or not found.problem.space.fidelities:
            raise NoResult("Only short runs are verified, got a study whose trials are all full ones.")
        history = found.history
        chosen = Chosen.of(found.best, history, measured=False, top=None, repeats=None)
        waiting = chosen.waiting(history)
        missing = [] if waiting else chosen.missing(history)
        opened = [session_of(found).records.enqueue(one, tags=["verification"]) for one in missing]
        done = None if waiting or opened else chosen.checked(history, ran=()).checked[0].trials[0]
        return {
            "enqueued": [trial.number for trial in opened],
            "waiting": waiting,
            "verified": None if done is None else trial_row(done),
            "runs": studies.storage.runs_going(found.name),
        }


TRIAL_ROW = {"type": "object", "required": ["number", "state"]}
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST", "/api/studies/{study}/stop", stop_study, "Ask every run of the study to end.", (STUDY,), body=Body({})
    ),
    Endpoint(
        "POST",
        "/api/studies/{study}/budget",
        raise_budget,
        "Change the limits of the study in all.",
        (STUDY,),
        body=Body(
            {
                "cost": LIMIT,
                "seconds": LIMIT,
                "trials": {"type": "integer", "minimum": 1, "maximum": 10**12},
                "hard": {"type": "boolean"},
            }
        ),
    ),
    Endpoint(
        "POST",
        "/api/studies/{study}/queue",
        enqueue_trial,
        "Put a configuration in line, to be run next.",
        (STUDY,),
        body=Body({"params": {"type": "object"}, "fidelity": {"type": "object"}, "tags": TAGS}, required=["params"]),
        answer=TRIAL_ROW,
    ),
    Endpoint(
        "POST", "/api/studies/{study}/verify", verify_best, "Put the full training of the best in line.", (STUDY,),
        body=Body({}),
    ),
    Endpoint(
        "PATCH",
        "/api/studies/{study}/trials/{number}",
        annotate_trial,
        "Replace a trial's tags or comment.",
        (STUDY, TRIAL),
        body=Body({"tags": TAGS, "comment": {"type": "string", "maxLength": LONGEST_TEXT}}),
        answer=TRIAL_ROW,
    ),
    Endpoint(
        "POST", "/api/studies/{study}/trials/{number}/prune", prune_trial, "End a trial without a result.",
        (STUDY, TRIAL), body=Body({}), answer=TRIAL_ROW,
    ),
)  # fmt: skip
