"""Studies for agents: tools and resources of the Model Context Protocol, as `farthing mcp` serves them.

An agent runs its experiments itself; it asks what to try, tells what came out and what it cost, and reads the bill. The
budget of its study is hard and set once: an agent cannot raise it. Nothing that it sends is executed or opened: no
strategy of a module, no path, no address.
"""

import asyncio
import hmac
import math
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Annotated, Any, TypeAlias, TypeVar

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ResourceError, ToolError
    from pydantic import Field
except ImportError as error:
    from farthing.errors import MissingExtra

    raise MissingExtra(
        "`farthing mcp` needs the official SDK of MCP, which is absent. Install it: pip install 'farthing[mcp]'."
    ) from error

from farthing import __version__
from farthing.analysis.export import trial_form
from farthing.costs import Budget
from farthing.dashboard.security import App, Receive, Scope, Send
from farthing.errors import FarthingError, InvalidArgument, NoSuggestion, Pruned, StudyExists, StudyNotFound
from farthing.execution import RunningTrial
from farthing.execution.results import fidelity_of_report, next_step, read_report
from farthing.fields import Number, Whole
from farthing.running.ask_tell import may_begin, number_of, report_paid
from farthing.session import Session, session_of
from farthing.space.space import space_from_tables
from farthing.storage import Storage, StudyRecord, StudySummary
from farthing.storage.storage import CreatesInTurn
from farthing.study import Study, ask_within
from farthing.trials import Json, State, Trial
from farthing.trials.events import BUDGET, budget_event
from farthing.trials.objectives import limit_from_json

Form: TypeAlias = dict[str, Json]
Value: TypeAlias = float | dict[str, float]
Answer = TypeVar("Answer")

AGENTS = "agents"
"""The setting of a study that an agent created: others are opened by those who know their name."""

MOST_AT_ONCE = 100
"""Trials that one call hands out; a guess at what no agent runs at the same time."""

MOST_OPTIONS = 1000
"""Of all choices of an agent's space together. With 200 000, one suggestion took minutes."""

INSTRUCTIONS = """\
Farthing chooses the next experiment by what it is expected to bring for its cost, and keeps the bill.
1. create_study once: the parameters, the value to minimize or maximize, and a budget that ends it for good.
2. ask for a trial and run it yourself. Where it has resume_from, continue that trial from your own checkpoint.
3. tell its value and what it cost; report on the way, if it takes long, so that a trial beyond the budget ends.
4. Repeat until ask says that the budget is spent; best names the configuration to use, bill what was paid."""


@dataclass
class Desk:
    """The tools of agents for the studies of one storage. All are called from one thread.

    `most` is what all studies that agents create may cost together.
    """

    storage: Storage
    most: float | None = None
    _open: dict[str, Study] = field(default_factory=dict)
    _running: dict[tuple[str, int], RunningTrial] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.most is not None:
            Number(above=0.0).checked(self.most, what="What agents may spend", advice="Write for example --most 20.")

    # ---- tools ---------------------------------------------------------------------------------------------------

    def create_study(
        self,
        name: Annotated[str, Field(description="A name of your own choice, to be given at every later call.")],
        space: Annotated[
            dict[str, Any],
            Field(
                description="Parameters by name, for example "
                '{"lr": {"float": [1e-4, 1.0], "log": true}, "act": {"choice": ["relu", "gelu"]}}'
            ),
        ],
        minimize: Annotated[
            str | list[str] | None, Field(description="The value that should be low, or several.")
        ] = None,
        maximize: Annotated[
            str | list[str] | None, Field(description="The value that should be high, or several.")
        ] = None,
        max_cost: Annotated[
            float | None, Field(description="The budget in the unit of cost. It cannot be raised.")
        ] = None,
        max_trials: Annotated[int | None, Field(description="The number of configurations at most.")] = None,
        cost_unit: Annotated[
            str | None, Field(description="Of what tell has as cost, such as dollars. By default seconds, measured.")
        ] = None,
        fidelities: Annotated[
            dict[str, Any] | None,
            Field(
                description="How far a trial may go, where short ones tell something: "
                '{"epochs": {"int": [1, 27], "trace": true}}. A trace is continued from your checkpoint.'
            ),
        ] = None,
        constraints: Annotated[
            dict[str, Any] | None, Field(description='Limits of other values: {"memory": {"at_most": 8e9}}')
        ] = None,
        strategy: Annotated[
            str | None, Field(description="One of Farthing's by name, such as ASHA. By default one that suits.")
        ] = None,
        seed: int | None = None,
    ) -> Form:
        """Create a study with a budget; an existing one of the same name and space is continued.

        The budget is hard: a trial that reports beyond it is ended. It needs max_cost, max_trials or both.
        """
        if strategy is not None and ":" in strategy:
            raise InvalidArgument(
                f"An agent's strategy is one of Farthing's, got {strategy!r}. Leave it out for one that suits."
            )
        given = {"cost": max_cost, "trials": max_trials}
        budget = Budget(**{one: limit for one, limit in given.items() if limit is not None}, hard=True)  # type: ignore[arg-type]
        _refuse_large(space)
        session = Session.created(
            space_from_tables(space, fidelities),
            minimize=minimize,
            maximize=maximize,
            constraints={one: limit_from_json(limit) for one, limit in (constraints or {}).items()} or None,
            strategy=strategy,
            storage=self.storage,
            name=name,
            seed=seed,
            cost=None,
            cost_unit=cost_unit,
            create=partial(self._granted, budget=budget),
        )
        self._open[name] = study = Study(session)
        return self._standing(study)

    def list_studies(self) -> Form:
        """The studies that agents created here, with what they spent. Others are opened by their name."""
        found = (one for one in self.storage.list_studies() if one.record.settings.get(AGENTS))
        return {"studies": [_line(one) for one in found]}

    def ask(
        self,
        study: str,
        count: Annotated[int, Field(description="More than one only if you run them at the same time.")] = 1,
        again: Annotated[
            bool, Field(description="Those that were asked for and never told, once more: if you lost them.")
        ] = False,
    ) -> Form:
        """The next trials to run: their params, and the fidelity to train to. Refused once the budget is spent.

        Until a trial has told what one costs, you get one at a time.
        """
        Whole(least=1, most=MOST_AT_ONCE).checked(
            count, what="The count of trials to ask for", advice="Ask for as many as you run at the same time."
        )
        found = self._study(study)
        self._refuse_stopped(found)
        self._require_budget(found)
        trials = self._never_told(found) if again else ask_within(found, count)
        if not trials:
            raise NoSuggestion(self._why_none(found))
        self._running |= {(study, one.number): one for one in trials}
        return {"trials": [_to_run(found, one) for one in trials], **self._standing(found)}

    def report(
        self,
        study: str,
        trial: int,
        value: Annotated[Value, Field(description="The value now; a mapping if the study has several.")],
        at: Annotated[
            dict[str, float] | None,
            Field(
                description='The fidelity that it was measured at: {"epochs": 3}; without fidelities {"step": 3}. '
                "The same value at the same place is counted once, however often you send it."
            ),
        ] = None,
        cost: Annotated[float | None, Field(description="What was paid since the last report of this trial.")] = None,
    ) -> Form:
        """Report a value of a trial that goes on. If the budget is spent with it, the trial ends: stop its work."""
        found = self._study(study)
        running = self._running.get((study, trial))
        if running is None:
            raise InvalidArgument(
                f"A report is of a trial that runs and was asked for here, got {trial}. Ask again: what this server "
                "had handed out before it was started anew comes first."
            )
        self._require_cost(found, cost)
        reached: dict[str, Any] = dict(at or {})
        step = None if found.space.fidelities else reached.pop("step", None)
        if self._is_known(found, running, value, reached, step):
            return {"go_on": True, **self._standing(found)}
        try:  # what goes beyond the budget is stored all the same
            report_paid(running, value, cost=cost, step=step, place=reached)
        except Pruned:
            self._close(found, running, pruned=True)
            return {"go_on": False, "why": "The budget is spent, and the trial has ended.", **self._standing(found)}
        return {"go_on": True, **self._standing(found)}

    def tell(
        self,
        study: str,
        trial: int,
        value: Annotated[
            Value | None, Field(description="The value that the trial ended with; a mapping if there are several.")
        ] = None,
        cost: Annotated[float | None, Field(description="What was paid since the last report, or since ask.")] = None,
        failure: Annotated[str | None, Field(description="In place of a value: why there is none.")] = None,
    ) -> Form:
        """End a trial with its one result: a value, or the reason of its failure. Failures cost too."""
        found = self._study(study)
        self._require_cost(found, cost)
        told = self._close(found, self._running.get((study, trial), trial), value, cost=cost, failure=failure)
        return {"trial": told.number, "state": told.state.value, "cost": told.cost, **self._standing(found)}

    def bill(self, study: str) -> Form:
        """The costs by kind, and what is left of the budget."""
        found = self._study(study)
        return {**found.ledger.to_json(), **self._standing(found)}

    def best(self, study: str) -> Form:
        """The configuration to use, by all results so far, with the value that is expected of it.

        Where a study has several values it is the knee of their front, and `front` has all the points.
        """
        found = self._study(study).best
        return {**found.to_json(), "text": str(found)}

    def outlook(
        self,
        study: str,
        cost: Annotated[float | None, Field(description="By default that of ten configurations.")] = None,
    ) -> Form:
        """The improvement to expect from spending more, before you spend it."""
        found = self._study(study).outlook(cost)
        return {**found.to_json(), "text": str(found)}

    def enqueue(
        self,
        study: str,
        params: Annotated[dict[str, Any], Field(description="Some or all; the strategy proposes the others.")],
        fidelity: dict[str, float] | None = None,
    ) -> Form:
        """Put a configuration of your own in line; the next ask returns it."""
        found = self._study(study)
        waiting = found.enqueue(params, fidelity=fidelity)
        return {"trial": waiting.number, "params": dict(waiting.params), "fidelity": dict(waiting.fidelity)}

    def stop(self, study: str) -> Form:
        """End a study before its budget is spent: ask is refused from then on, here and for other programs."""
        found = self._study(study)
        found.request_stop()
        return self._standing(found)

    # ---- resources -----------------------------------------------------------------------------------------------

    def describe(self, study: str) -> Form:
        """Its space, its budget, its bill and its best."""
        found = self._study(study)
        best = {"best": self.best(study)} if found.history.done else {}
        return {**found.problem.to_json(), **self.bill(study), **best}

    def trials(self, study: str) -> list[Form]:
        found = self._study(study)
        return [_brief(one) for one in found.history]

    def trial(self, study: str, number: int) -> Form:
        found = self._study(study)
        return trial_form(found.space, found.history[number_of(number)])

    # ---- in common -----------------------------------------------------------------------------------------------

    def _study(self, name: str) -> Study:
        if name not in self._open:
            try:
                self._open[name] = Study.load(name, self.storage)
            except StudyNotFound:
                raise StudyNotFound(
                    f"A study must be created before it is used, got {name!r}. Call create_study, or list_studies."
                ) from None
        return self._open[name]

    def _is_known(
        self, study: Study, running: RunningTrial, value: Value, reached: dict[str, Any], step: object
    ) -> bool:
        """Whether the same was reported before. Raises for any mistake in it: what is refused costs nothing."""
        place = fidelity_of_report(study.space, running.fidelity, reached)
        said = read_report(value, None, study.problem)
        number = None if step is None else next_step(step, 0)
        return (bool(reached) or step is not None) and any(
            (point.fidelity, point.step, point.value) == (place, number, said.value)
            and said.metrics.items() <= point.metrics.items()  # which may have the price of a full run too
            for point in study.history[running.number].points
            if point.attempt == running.attempt
        )

    def _never_told(self, study: Study) -> list[RunningTrial]:
        """The trials that this server handed out and that run still."""
        own = [one for (name, _), one in self._running.items() if name == study.name]
        trials = [one for one in own if study.history[one.number].state is State.RUNNING]
        if not trials:
            raise NoSuggestion(
                f"None is in flight that was asked for here, so there is none to hand out again. "
                f"Ask without again. {self._sentence(study)}"
            )
        return trials

    def _close(self, study: Study, trial: RunningTrial | int, value: Value | None = None, **result: Any) -> Trial:
        told = study.tell(trial, value, **result)
        self._running.pop((study.name, told.number), None)
        return told

    def _granted(self, storage: Storage, record: StudyRecord, *, budget: Budget) -> StudyRecord:
        """A new study with its budget: both, or none, and after all others that were granted one."""
        if not isinstance(storage, CreatesInTurn):
            raise InvalidArgument(
                f"Agents need a storage that creates studies in turn, got {type(storage).__name__}. Use SQLite or "
                "PostgreSQL."
            )
        marked = replace(record, settings={**record.settings, AGENTS: True})
        payload = budget_event(budget.to_json(), trials=0, given=False)
        try:
            return storage.create_in_turn(marked, BUDGET, payload, admit=partial(self._check_most, record.name, budget))
        except StudyExists:
            if storage.load_study(record.name).settings.get(AGENTS):
                raise
            raise InvalidArgument(
                f"An agent continues studies of agents, got {record.name!r}, which was not created by an agent. "
                "Choose another name, or ask for its trials without creating it, if it has a budget."
            ) from None

    def _require_budget(self, study: Study) -> None:
        """Refuses trials of a study that a person began and gave no limit."""
        if study.budget is None or not {"cost", "trials"} & study.budget.amounts.keys():
            raise InvalidArgument(
                f"An agent's trials need a budget of cost or of trials, got none for {study.name!r}. "
                f"The owner of the study sets one: farthing budget {study.name} --cost AMOUNT."
            )

    def _check_most(self, name: str, budget: Budget) -> None:
        """Refuses budgets that are more together than the person who serves the studies allows."""
        if self.most is None:
            return
        if budget.cost is None:
            raise InvalidArgument(
                f"A budget here needs max_cost, got none. All studies may cost {self.most:g} together."
            )
        others = [one.record.name for one in self.storage.list_studies() if one.record.settings.get(AGENTS)]
        granted = math.fsum(_budget_of(self._study(one)) for one in others if one != name)
        if granted + budget.cost > self.most:
            raise InvalidArgument(
                f"All studies of agents may cost {self.most:g} together, got {granted:g} for others and "
                f"{budget.cost:g} for {name!r}. At most {max(self.most - granted, 0.0):g} is left to grant."
            )

    def _refuse_stopped(self, study: Study) -> None:
        if study.history.is_to_stop:
            raise NoSuggestion(f"The study was stopped, so there is no trial to run. {self._sentence(study)}")

    def _require_cost(self, study: Study, cost: float | None) -> None:
        """Refuses a result that costs nothing because nobody said its cost."""
        problem = study.problem
        if cost is None and not problem.measures_cost and problem.declared_cost is None:
            raise InvalidArgument(
                f"A result must have its cost, got none. Nothing measures {problem.cost_unit}: "
                "give cost, 0 if it was free."
            )

    def _why_none(self, study: Study) -> str:
        history, budget = study.history, study.budget
        running = [str(one.number) for one in history.in_flight if one.state is State.RUNNING]
        spent = self._sentence(study)
        if not running or (budget is not None and budget.is_reached(history, seconds=0.0)):
            return f"The budget has no further trial. {spent}"
        named = f"trial {running[0]}" if len(running) == 1 else f"trials {', '.join(running)}"
        lost = "If you do not know them any more, ask with again: true."
        if not may_begin(history, len(running)):
            return f"No trial has told yet what one costs, so one is in flight: tell {named} first. {lost} {spent}"
        return f"Tell {named} first: they are in flight, and what they will cost is set aside. {lost} {spent}"

    def _sentence(self, study: Study) -> str:
        """The bill in a line: how much of each limit was spent."""
        budget, history = study.budget, study.history
        paid = Budget.spent(history, seconds=session_of(study).records.seconds_run())
        units = {"cost": study.problem.cost_unit, "seconds": "seconds of runs", "trials": "configurations"}
        limits = {} if budget is None else budget.amounts
        spent = [f"{paid[one]:.4g} of {most:g} {units[one]}" for one, most in limits.items()]
        return f"Spent: {', '.join(spent) or f'{history.cost:.4g} {study.problem.cost_unit}, without a budget'}."

    def _standing(self, study: Study) -> Form:
        budget = study.budget
        left = {}
        if budget is not None:
            remaining = budget.remaining(study.history, seconds=0.0)
            left = {one: max(getattr(remaining, one), 0.0) for one in budget.amounts if one != "seconds"}
        return {
            "study": study.name,
            "unit": study.problem.cost_unit,
            "spent_in_all": study.history.cost,
            "left": left,
            "sentence": self._sentence(study),
        }


def _to_run(study: Study, trial: RunningTrial) -> Form:
    predicted = study.history[trial.number].suggestion.predicted_cost
    return {
        "trial": trial.number,
        "params": dict(trial.params),
        "fidelity": dict(trial.fidelity),
        **({} if trial.resume_from is None else {"resume_from": trial.resume_from}),
        **({} if predicted is None else {"expected_cost": predicted.mean}),
    }


def _line(summary: StudySummary) -> Form:
    problem = summary.record.problem
    return {"study": summary.record.name, "aim": problem.aim, "spent": summary.cost, "unit": problem.cost_unit}


def _brief(trial: Trial) -> Form:
    return {
        "trial": trial.number,
        "state": trial.state.value,
        "params": dict(trial.params),
        "fidelity": dict(trial.fidelity),
        "value": trial.value,
        "cost": trial.cost,
    }


def _refuse_large(space: dict[str, Any]) -> None:
    """Refuses a space that the strategies would search for minutes."""
    options = [one.get("choice") if isinstance(one, dict) else None for one in space.values()]
    size = sum(len(one) if isinstance(one, list) else 1 for one in options)
    if size > MOST_OPTIONS:
        raise InvalidArgument(
            f"A space of an agent has at most {MOST_OPTIONS} options, with a parameter of numbers as one, got {size}. "
            "Group the options, or number them and search an int."
        )


def _budget_of(study: Study) -> float:
    budget = study.budget
    return max(study.history.cost, (budget.cost or 0.0) if budget else 0.0)


# ------------------------------------------------------------
# The server: every call in one thread, and our errors as the answers that they are.


def server_of(desk: Desk) -> MCPServer:
    """The server of a desk, of which every call is made in one thread: the one that opened its studies."""
    thread = ThreadPoolExecutor(1, thread_name_prefix="farthing-mcp")
    server = MCPServer("farthing", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    tools = (desk.create_study, desk.list_studies, desk.ask, desk.report, desk.tell)
    for tool in (*tools, desk.bill, desk.best, desk.outlook, desk.enqueue, desk.stop):
        server.add_tool(_called_in(thread, tool, ToolError))
    resources: dict[str, Callable[..., Json]] = {
        "farthing://studies": desk.list_studies,
        "farthing://studies/{study}": desk.describe,
        "farthing://studies/{study}/trials": desk.trials,
        "farthing://studies/{study}/trials/{number}": desk.trial,
    }
    for address, read in resources.items():
        server.resource(address, mime_type="application/json")(_called_in(thread, read, ResourceError))
    return server


def _called_in(
    thread: ThreadPoolExecutor, called: Callable[..., Answer], refusal: type[Exception]
) -> Callable[..., Awaitable[Answer]]:
    @wraps(called)
    async def call(*args: Any, **arguments: Any) -> Answer:
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, partial(called, *args, **arguments))
        except FarthingError as error:
            raise refusal(str(error)) from error

    return call


def serve_http(server: MCPServer, *, port: int, token: str, on_ready: Callable[[str], None]) -> None:
    """Serves on this machine until it is interrupted, to those who bring the token."""
    import uvicorn

    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise InvalidArgument(
            f"A server needs a free port, got {port}, which cannot be used ({error.strerror}). "
            "Choose another with --port, or --port 0 for any."
        ) from None
    app = _with_token(server.streamable_http_app(), token)
    config = uvicorn.Config(app, log_level="warning")
    on_ready(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
    uvicorn.Server(config).run(sockets=[listening])


def _with_token(app: App, token: str) -> App:
    wanted = b"Bearer " + token.encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, wanted):
            await send({"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]})
            await send({"type": "http.response.body", "body": b"A request needs the token of the server."})
            return
        await app(scope, receive, send)

    return guarded
