"""Agents: the server of `farthing mcp` in a process of its own, and the SDK's own client."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from needing import need

need("mcp")

import httpx2  # noqa: E402
from mcp import Client, StdioServerParameters, stdio_client  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402

import farthing as ft  # noqa: E402

RATE = {"lr": {"float": [1e-4, 1.0], "log": True}}
TOKEN = "a-token-of-sixteen-and-more"


class Refused(Exception):
    """What a tool said instead of doing it."""


class Agent:
    """An agent that knows the tools by name."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(tool, arguments)
        text = "".join(part.text for part in result.content)
        if result.is_error:
            raise Refused(text)
        return json.loads(text)

    async def create(self, **arguments: Any) -> Any:
        given = {"name": "prompts", "space": RATE, "minimize": "loss", "max_cost": 5.0, "cost_unit": "dollars"}
        return await self.call("create_study", **{**given, **arguments})

    async def read(self, address: str) -> Any:
        return json.loads((await self.client.read_resource(address)).contents[0].text)


def command(*arguments: str) -> list[str]:
    return ["-c", "from farthing.cli import main; main()", "mcp", *arguments]


@asynccontextmanager
async def serving(folder: Path, *arguments: str) -> AsyncIterator[Agent]:
    started = StdioServerParameters(
        command=sys.executable,
        args=command("--storage", str(folder / "agents.db"), *arguments),
        env=dict(os.environ),
        cwd=folder,
    )
    async with Client(stdio_client(started)) as client:
        yield Agent(client)


def kill_servers(folder: Path) -> None:
    servers = subprocess.run(["pgrep", "--full", str(folder / "agents.db")], capture_output=True, text=True, check=True)
    for process in servers.stdout.split():
        os.kill(int(process), signal.SIGKILL)


def stored(folder: Path, name: str = "prompts") -> ft.Study:
    return ft.Study.load(name, f"sqlite:///{folder / 'agents.db'}")


def test_an_agent_runs_a_study_until_its_budget_is_spent(tmp_path: Path) -> None:
    async def spend() -> tuple[list[float], str]:
        paid = []
        async with serving(tmp_path) as agent:
            await agent.create()
            while True:
                try:
                    asked = await agent.call("ask", study="prompts")
                except Refused as refused:
                    return paid, str(refused)
                trial = asked["trials"][0]
                value = abs(trial["params"]["lr"] - 0.1)
                told = await agent.call("tell", study="prompts", trial=trial["trial"], value=value, cost=0.7)
                paid.append(told["spent_in_all"])

    paid, sentence = asyncio.run(spend())
    with closing(stored(tmp_path)) as study:
        assert [trial.cost for trial in study.trials] == [0.7] * len(paid)
        assert 7 * 0.7 <= study.ledger.total <= 5.0, "seven fit, and an eighth is expected not to"
        assert "Spent: 4.9 of 5 dollars." in sentence
        assert study.budget == ft.Budget(cost=5, hard=True)
        assert study.best.params in [trial.params for trial in study.trials]


def test_a_report_beyond_the_budget_is_stored_and_ends_the_trial(tmp_path: Path) -> None:
    async def overspend() -> tuple[Any, Any, str]:
        async with serving(tmp_path) as agent:
            await agent.create(fidelities={"epochs": {"int": [1, 9], "trace": True}}, strategy="ASHA")
            await agent.call("enqueue", study="prompts", params={"lr": 0.1}, fidelity={"epochs": 9})
            trial = (await agent.call("ask", study="prompts"))["trials"][0]["trial"]
            first = await agent.call("report", study="prompts", trial=trial, value=0.5, at={"epochs": 1}, cost=2.0)
            with pytest.raises(Refused, match="epochs"):
                await agent.call("report", study="prompts", trial=trial, value=0.4, at={"epoch": 2}, cost=2.0)
            second = await agent.call("report", study="prompts", trial=trial, value=0.4, at={"epochs": 2}, cost=4.5)
            with pytest.raises(Refused, match=r"Spent: 6\.5 of 5 dollars"):
                await agent.call("ask", study="prompts")
            with pytest.raises(Refused) as refused:
                await agent.call("report", study="prompts", trial=trial, value=0.3, at={"epochs": 3}, cost=1.0)
        return first, second, str(refused.value)

    first, second, refused = asyncio.run(overspend())
    assert (first["go_on"], second["go_on"]) == (True, False)
    assert "Ask again" in refused
    with closing(stored(tmp_path)) as study:
        trial = study.trials[0]
        assert (trial.state, trial.value, trial.cost) == (ft.State.PRUNED, 0.4, 6.5), "what was refused cost nothing"


def test_the_bill_the_outlook_and_the_best_are_those_of_the_study(tmp_path: Path) -> None:
    async def look() -> dict[str, Any]:
        async with serving(tmp_path) as agent:
            await agent.create(max_cost=50.0, seed=3)
            for number in range(8):
                trial = (await agent.call("ask", study="prompts"))["trials"][0]
                assert trial["trial"] == number
                value = (trial["params"]["lr"] - 0.1) ** 2
                await agent.call("tell", study="prompts", trial=number, value=value, cost=1.0)
            failed = (await agent.call("ask", study="prompts"))["trials"][0]["trial"]
            await agent.call("tell", study="prompts", trial=failed, failure="no memory", cost=0.5)
            tools = {name: await agent.call(name, study="prompts") for name in ("bill", "best", "outlook")}
            resources = {
                "studies": await agent.read("farthing://studies"),
                "study": await agent.read("farthing://studies/prompts"),
                "trials": await agent.read("farthing://studies/prompts/trials"),
                "trial": await agent.read("farthing://studies/prompts/trials/8"),
            }
            with pytest.raises(MCPError, match="got 'others'"):
                await agent.read("farthing://studies/others")
        return {**tools, **resources}

    seen = asyncio.run(look())
    with closing(stored(tmp_path)) as study:
        assert seen["bill"]["total"] == study.ledger.total == 8.5
        assert seen["best"]["params"] == study.best.params
        assert seen["outlook"]["text"] == str(study.outlook())
        assert seen["studies"]["studies"] == [
            {"study": "prompts", "aim": "minimize loss", "spent": 8.5, "unit": "dollars"}
        ]
        assert seen["study"]["best"] == seen["best"]
        assert [one["value"] for one in seen["trials"]] == [trial.value for trial in study.trials]
        assert (seen["trial"]["state"], seen["trial"]["failure"]) == ("failed", "no memory")


def test_the_best_of_several_values_has_their_front(tmp_path: Path) -> None:
    async def look() -> Any:
        async with serving(tmp_path) as agent:
            await agent.create(minimize=["error", "latency"])
            for error, latency in ((0.1, 9.0), (0.9, 1.0), (0.95, 9.5)):
                trial = (await agent.call("ask", study="prompts"))["trials"][0]["trial"]
                value = {"error": error, "latency": latency}
                await agent.call("tell", study="prompts", trial=trial, value=value, cost=0.5)
            return await agent.call("best", study="prompts")

    best = asyncio.run(look())
    with closing(stored(tmp_path)) as study:
        assert best["front"] == study.front.to_json()
        assert {point["trial"] for point in best["front"]["points"]} == {one.trial.number for one in study.front}


def test_a_server_that_was_killed_goes_on_with_the_trial_it_had_handed_out(tmp_path: Path) -> None:
    async def ask(kill: bool) -> Any:
        async with serving(tmp_path) as agent:
            await agent.create()
            asked = (await agent.call("ask", study="prompts"))["trials"][0]
            if kill:
                kill_servers(tmp_path)
            else:
                await agent.call("tell", study="prompts", trial=asked["trial"], value=0.5, cost=1.0)
        return asked

    before, after = asyncio.run(ask(kill=True)), asyncio.run(ask(kill=False))
    assert before == after
    with closing(stored(tmp_path)) as study:
        assert [(trial.attempt, trial.cost) for trial in study.trials] == [(2, 1.0)]


def test_what_an_agent_may_not_do_is_refused_with_a_reason(tmp_path: Path) -> None:
    async def try_all() -> None:
        async with serving(tmp_path, "--most", "8") as agent:
            await agent.create()
            for wrong, sentence in {
                "has no budget": ({"name": "a", "max_cost": None, "max_trials": 3}, "needs max_cost"),
                "is more than all may cost": ({"name": "a", "max_cost": 4.0}, "At most 3 is left to grant"),
                "names a module": ({"strategy": "os:system"}, "one of Farthing's"),
                "has no limit": ({"name": "b", "max_cost": -1}, "cost must be"),
                "has another space": ({"space": {"lr": {"float": [0, 1]}}}, "space"),
            }.values():
                with pytest.raises(Refused, match=sentence):
                    await agent.create(**wrong)
            await agent.create(max_cost=7.0)  # a study that exists keeps its budget
            assert (await agent.call("ask", study="prompts"))["left"] == {"cost": 5.0}
            with pytest.raises(Refused, match="got none"):
                await agent.call("tell", study="prompts", trial=0, value=0.5)
            await agent.call("stop", study="prompts")
            with pytest.raises(Refused, match="stopped"):
                await agent.call("ask", study="prompts")

    asyncio.run(try_all())
    with closing(stored(tmp_path)) as study:
        assert study.budget == ft.Budget(cost=5, hard=True)


def test_a_study_of_somebody_else_needs_its_name(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'agents.db'}"
    with closing(ft.Study(ft.Space({"lr": ft.Float(0, 1)}), minimize="loss", storage=place, name="mine")) as study:
        study.add({"lr": 0.5}, 0.25, cost=1.0)

    async def look() -> tuple[Any, Any]:
        async with serving(tmp_path) as agent:
            return await agent.call("list_studies"), await agent.call("best", study="mine")

    listed, best = asyncio.run(look())
    assert listed == {"studies": []}
    assert best["value"] == 0.25


def test_a_configuration_in_line_does_not_pass_a_spent_budget(tmp_path: Path) -> None:
    async def spend() -> None:
        async with serving(tmp_path) as agent:
            await agent.create()
            trial = (await agent.call("ask", study="prompts"))["trials"][0]["trial"]
            await agent.call("tell", study="prompts", trial=trial, value=0.5, cost=6.0)
            await agent.call("enqueue", study="prompts", params={"lr": 0.2})
            with pytest.raises(Refused, match=r"Spent: 6 of 5 dollars"):
                await agent.call("ask", study="prompts")

    asyncio.run(spend())
    with closing(stored(tmp_path)) as study:
        assert [trial.state for trial in study.trials] == [ft.State.DONE, ft.State.PENDING]


def test_configurations_in_line_are_part_of_the_number_of_trials(tmp_path: Path) -> None:
    async def ask() -> Any:
        async with serving(tmp_path) as agent:
            await agent.create(max_cost=None, max_trials=2)
            for lr in (0.1, 0.2, 0.3):
                await agent.call("enqueue", study="prompts", params={"lr": lr})
            asked = await agent.call("ask", study="prompts", count=3)
            with pytest.raises(Refused, match="in flight"):
                await agent.call("ask", study="prompts")
        return asked

    assert [one["params"]["lr"] for one in asyncio.run(ask())["trials"]] == [0.1, 0.2]


def test_a_lost_trial_is_not_handed_out_again_once_the_budget_is_spent(tmp_path: Path) -> None:
    async def lose() -> None:
        async with serving(tmp_path) as agent:
            await agent.create()
            await agent.call("ask", study="prompts")
            await agent.call("tell", study="prompts", trial=0, value=0.5, cost=1.0)
            assert len((await agent.call("ask", study="prompts", count=2))["trials"]) == 2
            await agent.call("tell", study="prompts", trial=1, value=0.5, cost=5.0)
            kill_servers(tmp_path)

    async def ask_again() -> None:
        async with serving(tmp_path) as agent:
            with pytest.raises(Refused, match=r"Spent: 6 of 5 dollars"):
                await agent.call("ask", study="prompts")

    asyncio.run(lose())
    asyncio.run(ask_again())


def test_until_a_cost_is_known_one_trial_is_in_flight(tmp_path: Path) -> None:
    async def ask() -> tuple[Any, Any, str]:
        async with serving(tmp_path) as agent:
            await agent.create()
            with pytest.raises(Refused, match="from 1 to 100, got 20000"):
                await agent.call("ask", study="prompts", count=20_000)
            for lr in (0.1, 0.2):
                await agent.call("enqueue", study="prompts", params={"lr": lr})
            first = await agent.call("ask", study="prompts", count=50)
            with pytest.raises(Refused) as refused:
                await agent.call("ask", study="prompts")
            await agent.call("tell", study="prompts", trial=0, value=0.5, cost=1.0)
            return first, await agent.call("ask", study="prompts", count=50), str(refused.value)

    first, second, refused = asyncio.run(ask())
    assert [one["trial"] for one in first["trials"]] == [0]
    assert "what one costs, so one is in flight: tell trial 0 first" in refused
    assert len(second["trials"]) == 4, "four dollars are left"


def test_a_study_of_somebody_else_is_not_taken_over(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'agents.db'}"
    space = ft.Space({"lr": ft.Float(1e-4, 1.0, log=True)})
    with closing(ft.Study(space, minimize="loss", storage=place, name="mine", cost_unit="dollars")) as study:
        study.add({"lr": 0.5}, 0.25, cost=1.0)

    async def try_all() -> Any:
        async with serving(tmp_path, "--most", "20") as agent:
            for taken in (RATE, {"other": {"float": [0, 1]}}):
                with pytest.raises(Refused, match="not created by an agent") as refused:
                    await agent.create(name="mine", space=taken)
                assert "lr" not in str(refused.value)
            with pytest.raises(Refused, match="farthing budget"):
                await agent.call("ask", study="mine")
            with closing(stored(tmp_path, "mine")) as study:
                assert study.budget is None
                study.set_budget(ft.Budget(cost=3.0))
            asked = await agent.call("ask", study="mine", count=5)
            return len(asked["trials"]), await agent.call("list_studies")

    assert asyncio.run(try_all()) == (2, {"studies": []})


def test_servers_that_grant_at_the_same_moment_grant_no_more_than_all_may_cost(tmp_path: Path) -> None:
    with closing(ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="l", storage=tmp_path / "agents.db")):
        pass

    async def grant() -> list[str]:
        async with AsyncExitStack() as opened:
            agents = [await opened.enter_async_context(serving(tmp_path, "--most", "20")) for _ in range(4)]
            names = [[f"s{place}-{number}" for number in range(5)] for place in range(4)]

            async def create_all(agent: Agent, own: list[str]) -> list[str]:
                granted = []
                for name in own:
                    with suppress(Refused):
                        await agent.create(name=name, max_cost=10.0)
                        granted.append(name)
                return granted

            found = await asyncio.gather(*map(create_all, agents, names))
        return [name for some in found for name in some]

    granted = asyncio.run(grant())
    assert len(granted) == 2
    assert {stored(tmp_path, name).budget for name in granted} == {ft.Budget(cost=10.0, hard=True)}


def test_trials_that_were_never_told_are_named_and_handed_out_again(tmp_path: Path) -> None:
    async def lose() -> tuple[Any, Any, Any, str]:
        async with serving(tmp_path) as agent:
            await agent.create()
            with pytest.raises(Refused, match="None is in flight"):
                await agent.call("ask", study="prompts", again=True)
            await agent.call("ask", study="prompts")
            await agent.call("tell", study="prompts", trial=0, value=0.5, cost=1.0)
            asked = await agent.call("ask", study="prompts", count=4)
            with pytest.raises(Refused) as refused:
                await agent.call("ask", study="prompts")
            again = await agent.call("ask", study="prompts", again=True)
            for one in again["trials"]:
                await agent.call("tell", study="prompts", trial=one["trial"], value=0.5, cost=0.5)
            return asked, again, await agent.call("bill", study="prompts"), str(refused.value)

    asked, again, bill, refused = asyncio.run(lose())
    assert again["trials"] == asked["trials"]
    assert "Tell trials 1, 2, 3, 4 first" in refused
    assert bill["spent_in_all"] == 3.0


def test_a_report_that_is_sent_again_is_paid_once(tmp_path: Path) -> None:
    async def repeat() -> list[Any]:
        async with serving(tmp_path) as agent:
            epochs = {"epochs": {"int": [1, 9], "trace": True}}
            await agent.create(fidelities=epochs, strategy="ASHA", max_cost=50.0)
            await agent.create(name="plain", max_cost=50.0)
            seen = []
            for study, places in {"prompts": [{"epochs": 1}] * 2, "plain": [{"step": 4}] * 2}.items():
                trial = (await agent.call("ask", study=study))["trials"][0]["trial"]
                said = {"study": study, "trial": trial, "value": 0.5, "cost": 1.0}
                seen += [await agent.call("report", **said, at=place) for place in places]
                seen.append(await agent.call("report", **{**said, "value": 0.4}, at=places[0]))
            return seen

    assert [one["spent_in_all"] for one in asyncio.run(repeat())] == [1.0, 1.0, 2.0] * 2
    with closing(stored(tmp_path)) as study:
        assert [(point.value, point.cost) for point in study.trials[0].measurements] == [
            (0.5, {"training": 1.0}),
            (0.4, {"training": 1.0}),
        ], "a report and its cost are one"


def test_a_trial_that_is_not_there_is_refused_by_its_number(tmp_path: Path) -> None:
    async def try_all() -> None:
        async with serving(tmp_path) as agent:
            await agent.create()
            await agent.call("ask", study="prompts")
            for number in (-1, 7):
                with pytest.raises(Refused, match=str(number)):
                    await agent.call("tell", study="prompts", trial=number, value=0.5, cost=1.0)
                with pytest.raises(MCPError, match=str(number)):
                    await agent.read(f"farthing://studies/prompts/trials/{number}")

    asyncio.run(try_all())
    with closing(stored(tmp_path)) as study:
        assert [trial.state for trial in study.trials] == [ft.State.RUNNING]


def test_a_space_that_takes_too_long_to_search_is_refused(tmp_path: Path) -> None:
    async def create() -> None:
        async with serving(tmp_path) as agent:
            with pytest.raises(Refused, match="1000 options"):
                await agent.create(space={"word": {"choice": [str(one) for one in range(200_000)]}})

    asyncio.run(create())


def test_a_port_that_is_taken_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run(
            [sys.executable, *command("--storage", str(tmp_path / "agents.db"), "--http", "--port", str(port))],
            capture_output=True,
            text=True,
        )
    assert ended.returncode != 0
    assert f"A server needs a free port, got {port}" in ended.stderr


def test_http_is_for_those_who_bring_the_token(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, *command("--storage", str(tmp_path / "agents.db"), "--http", "--port", "0")],
        env={**os.environ, "FARTHING_MCP_TOKEN": TOKEN},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    try:
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", server.stderr.readline())
        assert found

        async def use(token: str) -> Any:
            async with AsyncExitStack() as opened:
                headers = {"Authorization": f"Bearer {token}"}
                http = await opened.enter_async_context(httpx2.AsyncClient(headers=headers))
                client = await opened.enter_async_context(
                    Client(streamable_http_client(found.group(), http_client=http))
                )
                await Agent(client).create()
                return await Agent(client).call("ask", study="prompts")

        assert asyncio.run(use(TOKEN))["trials"][0]["trial"] == 0
        assert httpx2.post(found.group(), json={}, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert httpx2.post(found.group(), json={}).status_code == 401
        authorized = {"Authorization": f"Bearer {TOKEN}", "Host": "attacker.example"}
        assert httpx2.post(found.group(), json={}, headers=authorized).status_code in (403, 421), "rebinding"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        server.stderr.close()
