"""A study in a real Jupyter kernel, as a notebook runs it: the progress bar is one output that is updated."""

from pathlib import Path
from typing import Any

import pytest
from needing import need

need("ipykernel")

WAIT = 300.0
"""Seconds for one message of a kernel; hundreds of times what it takes."""

SETUP = """
import farthing as ft
import farthing.running.display as display

display.SECONDS_BETWEEN_PICTURES = 0.0
study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", name="cells", seed=0)
"""


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from jupyter_client.manager import start_new_kernel

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    manager, client = start_new_kernel(cwd=str(tmp_path), startup_timeout=WAIT)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client: Any, cell: str) -> list[dict[str, Any]]:
    """The messages that a cell puts below it, in their order."""
    asked, messages = client.execute(cell), []
    while True:
        message = client.get_iopub_msg(timeout=WAIT)
        if message["parent_header"].get("msg_id") != asked:
            continue
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return messages
        assert message["msg_type"] != "error", message["content"]
        messages.append(message)


def test_a_run_shows_one_bar_that_is_updated_and_a_cell_ends_with_a_table(kernel: Any) -> None:
    run(kernel, SETUP)
    cell = "study.run(lambda trial: trial.params['x'], budget=ft.Budget(trials=3), executor='inline');"
    messages = run(kernel, cell)
    first = [message["content"] for message in messages if message["msg_type"] == "display_data"]
    later = [message["content"] for message in messages if message["msg_type"] == "update_display_data"]
    assert len(first) == 1
    assert "no result yet" in first[0]["data"]["text/html"]
    assert {content["transient"]["display_id"] for content in later} == {first[0]["transient"]["display_id"]}
    assert "<progress value='3' max='3'></progress> 3 of 3" in later[-1]["data"]["text/html"]
    [shown] = [message["content"] for message in run(kernel, "study.best") if message["msg_type"] == "execute_result"]
    assert "<table>" in shown["data"]["text/html"]
    assert shown["data"]["text/plain"].startswith("Best error: ")
