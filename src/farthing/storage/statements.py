"""The SQL, written once: SQLAlchemy compiles each statement the first time and reuses it."""

from sqlalchemy import (
    BindParameter,
    Double,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    union,
    update,
)
from sqlalchemy.sql import literal

from farthing.storage.engines import database_now
from farthing.storage.rows import MEASUREMENT_COLUMNS, RUN_COLUMNS, STUDY_COLUMNS, TRIAL_COLUMNS
from farthing.storage.tables import event, in_flight, measurement, run, study, trial

_this_study: BindParameter[int] = bindparam("this_study")
_of_study = trial.c.study_id == _this_study
_in_flight = and_(_of_study, in_flight)
"""Always written out, however much of it a state implies: it is what the small index of trials in flight goes by."""

_now = func.coalesce(bindparam("clock", type_=Double), database_now()).label("now")
"""The time of an injected clock, or the database's own if there is none."""

_is_running = trial.c.state == "running"
_is_pending = trial.c.state == "pending"
_has_ended = and_(
    _is_running,
    tuple_(trial.c.number, trial.c.attempt, trial.c.renewed_at).in_(bindparam("ended", expanding=True)),
)
"""Not renewed since it was seen for too long: only who has watched it can name the renewal that was its last."""

_is_of_dead = and_(_is_running, trial.c.owner.in_(bindparam("dead", expanding=True)))
_one_trial = and_(_of_study, trial.c.number == bindparam("this_trial"))
_in_order = (measurement.c.trial, measurement.c.attempt, measurement.c.sequence)

NOW = select(_now)

# Studies -----------------------------------------------------------------------------------------------------------

CREATE_STUDY = insert(study).values(version=0, trials=0)
LOAD_STUDY = select(*STUDY_COLUMNS).where(study.c.name == bindparam("name"))
UPDATE_STUDY = update(study).where(study.c.name == bindparam("this_name"))
DELETE_STUDY = delete(study).where(study.c.name == bindparam("name"))
STUDY_NAMES = select(study.c.name)
ALL_STUDIES = select(study.c.id, *STUDY_COLUMNS)

SUGGESTER = select(study.c.suggester, study.c.suggester_renewed_at, study.c.suggester_lease).where(
    study.c.name == bindparam("this_name")
)

_standing = (study.c.id, study.c.version, study.c.trials, study.c.measures_cost, _now)
STUDY_STANDING = select(*_standing).where(study.c.name == bindparam("this_name"))
LOCK_STUDY = STUDY_STANDING.with_for_update()
CHANGE_STUDY = (
    update(study)
    .where(study.c.name == bindparam("this_name"))
    .values(version=study.c.version + 1, trials=study.c.trials + bindparam("opened"))
    .returning(*_standing)
)
"""Locks the study, first of all and for the whole transaction, so that versions become visible in their order."""

# Trials ------------------------------------------------------------------------------------------------------------

INSERT_TRIAL = insert(trial)
LOAD_TRIAL = select(*TRIAL_COLUMNS).where(_one_trial)
UPDATE_TRIAL = update(trial).where(_one_trial)
UPDATE_RUNNING = update(trial).where(_one_trial, _is_running, trial.c.attempt == bindparam("this_attempt"))
RENEW_TRIALS = (
    update(trial)
    .where(
        _in_flight,
        _is_running,
        tuple_(trial.c.number, trial.c.attempt).in_(bindparam("attempts", expanding=True)),
    )
    .returning(trial.c.number, trial.c.attempt)
)
CHECKPOINTS = select(trial.c.number, trial.c.checkpoint).where(
    _of_study, trial.c.number.in_(bindparam("numbers", expanding=True))
)
ENDED_TRIALS = select(*TRIAL_COLUMNS).where(_in_flight, or_(_has_ended, _is_of_dead)).order_by(trial.c.number)
OLDEST_PENDING = (
    select(*TRIAL_COLUMNS)
    .where(_in_flight, _is_pending)
    .order_by(trial.c.number)
    .limit(1)
    .with_for_update(skip_locked=True)
)
THIS_PENDING = OLDEST_PENDING.where(trial.c.number == bindparam("this_trial"))
"""The locked study keeps other claims out already; skipping locked rows keeps this one from waiting for anything."""

_named_study = study.c.name == bindparam("this_name")
_trial_of_it = and_(trial.c.study_id == study.c.id, in_flight)
HAS_CLAIMABLE = select(exists().where(_trial_of_it, or_(_is_pending, _has_ended))).where(_named_study)
HOLDERS = (
    select(literal(1))
    .where(
        _in_flight,
        or_(trial.c.number == bindparam("this_trial"), trial.c.resume_from == bindparam("this_trial")),
    )
    .limit(1)
)

# Measurements, events, runs ----------------------------------------------------------------------------------------

INSERT_MEASUREMENT = insert(measurement)
LOAD_MEASUREMENTS = (
    select(*MEASUREMENT_COLUMNS)
    .where(measurement.c.study_id == _this_study, measurement.c.trial == bindparam("this_trial"))
    .order_by(*_in_order)
)
INSERT_EVENT = insert(event)
THIS_EVENT = select(literal(1)).where(
    event.c.study_id == _this_study,
    event.c.kind == bindparam("this_kind"),
    event.c.payload == bindparam("this_payload"),
    event.c.time == bindparam("this_time"),
)
INSERT_RUN = insert(run)
LAST_RUN = select(func.coalesce(func.max(run.c.number), 0)).where(run.c.study_id == _this_study)
UPDATE_RUN = update(run).where(run.c.study_id == _this_study, run.c.number == bindparam("this_run"))
RUNS = select(*RUN_COLUMNS).where(run.c.study_id == _this_study)

RUNS_GOING = (
    select(func.count())
    .select_from(run)
    .where(run.c.study_id == _this_study, run.c.lease > 0.0, run.c.touched_at + run.c.lease >= bindparam("this_moment"))
)

# The history -------------------------------------------------------------------------------------------------------

_id_of_named = select(study.c.id).where(_named_study).scalar_subquery()
_of_named = trial.c.study_id == _id_of_named
_changed = select(trial.c.number).where(_of_named, trial.c.version > bindparam("since"))
_running = select(trial.c.number).where(_of_named, in_flight, _is_running)
_last_event = select(func.max(event.c.version)).where(event.c.study_id == study.c.id).scalar_subquery()

_whole_state = select(study.c.id, study.c.version, study.c.measures_cost, _now, _last_event, *TRIAL_COLUMNS)
HISTORY = (
    _whole_state.join_from(study, trial, and_(_of_named, trial.c.number.in_(union(_changed, _running))), isouter=True)
    .where(_named_study)
    .order_by(trial.c.number)
)
"""The state of a study, and with each row one of its trials that changed or runs; a row without a trial if none does.

Two searches, each in an index: one condition with `or` would make SQLite go through the whole study.
"""

CHANGED_HISTORY = (
    _whole_state.join_from(study, trial, and_(_of_named, trial.c.number.in_(_changed)), isouter=True)
    .where(_named_study)
    .order_by(trial.c.number)
)
"""The same without the trials that run and did not change."""

WHOLE_HISTORY = (
    _whole_state.join_from(study, trial, trial.c.study_id == study.c.id, isouter=True)
    .where(_named_study)
    .order_by(trial.c.number)
)
"""The same for a reader who has seen nothing, to whom every trial is new."""

_measured = and_(measurement.c.study_id == _this_study, measurement.c.version <= bindparam("until"))
_touched = select(trial.c.number).where(_of_study, trial.c.version > bindparam("since"))
_in_flight_now = select(trial.c.number).where(_in_flight)
ALL_MEASUREMENTS = select(*MEASUREMENT_COLUMNS).where(_measured).order_by(*_in_order)
CHANGED_MEASUREMENTS = (
    select(*MEASUREMENT_COLUMNS)
    .where(_measured, measurement.c.trial.in_(union(_touched, _in_flight_now)))
    .order_by(*_in_order)
)
NEW_MEASUREMENTS = (
    select(*MEASUREMENT_COLUMNS)
    .where(
        _measured,
        measurement.c.trial.in_(_touched),
        or_(
            measurement.c.version > bindparam("since"),
            measurement.c.trial.not_in(bindparam("seen", expanding=True)),
        ),
    )
    .order_by(*_in_order)
)
"""For a reader who has the measurements that the trials in `seen` had before."""

BLOCK_OF_MEASUREMENTS = (
    select(*MEASUREMENT_COLUMNS)
    .where(_measured, measurement.c.trial.between(bindparam("first"), bindparam("last")))
    .order_by(*_in_order)
)
"""Those of the trials from `first` to `last`."""

UP_TO_MANY = select(func.count()).select_from(select(literal(1)).where(_measured).limit(bindparam("many")).subquery())
"""The number of measurements, counted no further than to `many`."""

MEASUREMENT_COUNTS = (
    select(measurement.c.trial, func.count(), func.count(measurement.c.metrics))
    .where(_measured)
    .group_by(measurement.c.trial)
)
"""By trial how many measurements there are, and how many of them have metrics."""

ALL_PAYMENTS_MADE = (
    select(*(measurement.c[name] for name in ("trial", "attempt", "charged", "saved", "cost")))
    .where(_measured)
    .order_by(*_in_order)
)

_paid = case((measurement.c.charged, measurement.c.amount))
_paid_by_attempt = (
    select(measurement.c.trial, func.coalesce(func.sum(_paid), func.sum(measurement.c.amount)).label("cost"))
    .where(_measured)
    .group_by(measurement.c.trial, measurement.c.attempt)
)
CHANGED_PAYMENTS = _paid_by_attempt.where(measurement.c.trial.in_(union(_touched, _in_flight_now)))
ALL_PAYMENTS = _paid_by_attempt
"""The cost of each attempt, by the rule of `COSTS`; of a trial it is the sum of them."""

_TIMES = ("started_at", "opened_at", "finished_at")
LINE_COLUMNS = [trial.c[name] for name in ("number", "state", "value", *_TIMES, "resume_from", "owner", "fidelity")]
ALL_LINES = select(*LINE_COLUMNS).where(_of_study)
CHANGED_LINES = ALL_LINES.where(trial.c.number.in_(union(_touched, _in_flight_now)))
THESE_TRIALS = (
    select(*TRIAL_COLUMNS)
    .where(_of_study, trial.c.number.in_(bindparam("numbers", expanding=True)))
    .order_by(trial.c.number)
)
THESE_MEASUREMENTS = (
    select(*MEASUREMENT_COLUMNS)
    .where(measurement.c.study_id == _this_study, measurement.c.trial.in_(bindparam("numbers", expanding=True)))
    .order_by(*_in_order)
)

COUNT_MEASUREMENTS = select(func.count()).select_from(measurement).where(measurement.c.study_id == _id_of_named)
VERSIONS = select(study.c.name, study.c.version)
NOTES_WITH = select(trial.c.note).where(trial.c.study_id == _id_of_named, trial.c.note.contains(bindparam("word")))
RESULTS = (
    select(trial.c.value)
    .where(_of_named, trial.c.state == "done", trial.c.value.is_not(None))
    .order_by(trial.c.finished_at, trial.c.number)
)
"""Values in the order in which they were obtained."""

NEW_EVENTS = (
    select(event.c.kind, event.c.payload, event.c.time)
    .where(event.c.study_id == _this_study, event.c.version > bindparam("since"), event.c.version <= bindparam("until"))
    .order_by(event.c.version)
)
ALL_EVENTS = (
    select(event.c.kind, event.c.payload, event.c.time)
    .where(event.c.study_id == _id_of_named)
    .order_by(event.c.version)
)
RUNNING_TRIALS = select(*TRIAL_COLUMNS).join_from(study, trial, and_(_trial_of_it, _is_running)).where(_named_study)
_until: BindParameter[int] = bindparam("until")
UNVERSIONED_TRIALS = (
    select(func.count()).select_from(trial).where(_of_study, or_(trial.c.version < 1, trial.c.version > _until))
)
UNVERSIONED_MEASUREMENTS = (
    select(func.count())
    .select_from(measurement)
    .where(measurement.c.study_id == _this_study, or_(measurement.c.version < 1, measurement.c.version > _until))
)
ALL_TRIALS = select(*TRIAL_COLUMNS).where(_of_study).order_by(trial.c.number)

# The best ----------------------------------------------------------------------------------------------------------

_is_done = and_(_of_study, trial.c.state == "done", trial.c.value.is_not(None))
_fidelity_text = func.coalesce(trial.c.fidelity, "")
_best_done = (
    select(trial.c.number).where(_is_done, _fidelity_text.in_(bindparam("fidelities", expanding=True))).limit(1)
)
DONE_FIDELITIES = select(trial.c.fidelity).where(_is_done).distinct()
LOWEST_DONE = _best_done.order_by(trial.c.value, trial.c.number)
HIGHEST_DONE = _best_done.order_by(trial.c.value.desc(), trial.c.number)

# Summaries ---------------------------------------------------------------------------------------------------------

STATE_COUNTS = select(trial.c.study_id, trial.c.state, func.count()).group_by(trial.c.study_id, trial.c.state)
VALUE_RANGES = (
    select(trial.c.study_id, func.min(trial.c.value), func.max(trial.c.value))
    .where(trial.c.state == "done")
    .group_by(trial.c.study_id)
)

_charged = func.sum(case((measurement.c.charged, measurement.c.amount)))
_cost_of_attempt = (
    select(measurement.c.study_id, func.coalesce(_charged, func.sum(measurement.c.amount)).label("cost"))
    .group_by(measurement.c.study_id, measurement.c.trial, measurement.c.attempt)
    .subquery()
)
COSTS = select(_cost_of_attempt.c.study_id, func.sum(_cost_of_attempt.c.cost)).group_by(_cost_of_attempt.c.study_id)
"""As `Trial.cost` has it: what an attempt was charged, where it was, replaces what was measured."""
