"""A study in a real Jupyter kernel, as a notebook runs it: the bar, tables, pictures, and the notebook in examples.

`python tests/integrations/test_jupyter.py` runs the notebook and keeps its outputs in it.
"""

import base64
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


NOTEBOOK = Path(__file__).parents[2] / "examples" / "digits.ipynb"


@contextmanager
def started_kernel(folder: Path) -> Iterator[Any]:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(cwd=str(folder), startup_timeout=WAIT)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    with started_kernel(tmp_path) as client:
        yield client


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


def result_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    [shown] = [message["content"]["data"] for message in messages if message["msg_type"] == "execute_result"]
    return shown


def is_picture(shown: dict[str, Any]) -> bool:
    return base64.b64decode(shown.get("image/png", "")).startswith(b"\x89PNG")


def test_a_fresh_kernel_shows_pictures_and_a_column_for_each_param(kernel: Any) -> None:
    need("matplotlib")
    run(kernel, SETUP)
    run(kernel, "study.run(lambda trial: trial.params['x'], budget=ft.Budget(trials=3), executor='inline');")
    assert is_picture(result_of(run(kernel, "study.plot()")))
    table = result_of(run(kernel, "study.top(3)"))["text/html"]
    assert "<th>trial</th><th>error</th><th>cost</th><th>x</th></tr>" in table
    run(kernel, "%matplotlib inline")
    assert is_picture(result_of(run(kernel, "study.plot('progress')")))


def test_a_fresh_kernel_shows_a_tuner_its_bill_and_its_picture(kernel: Any) -> None:
    need("matplotlib")
    run(kernel, "import farthing as ft\ntuner = ft.OnlineTuner(ft.Space({'rate': ft.Float(0, 1)}), rounds=30, seed=0)")
    run(kernel, "for decision in tuner:\n    decision.observe(lambda: decision.params['rate'])")
    assert result_of(run(kernel, "tuner"))["text/plain"].startswith("OnlineTuner(maximize='value', round 30 of 30")
    assert "<table>" in result_of(run(kernel, "tuner.ledger"))["text/html"]
    assert is_picture(result_of(run(kernel, "tuner.plot()")))


def executed(notebook: dict[str, Any], client: Any) -> list[list[dict[str, Any]]]:
    """What each cell of code shows, as a notebook keeps it."""
    outputs = []
    for cell in (one for one in notebook["cells"] if one["cell_type"] == "code"):
        messages = run(client, "".join(cell["source"]))
        kept = [message["content"]["data"] for message in messages if message["msg_type"] == "execute_result"]
        outputs.append([{"output_type": "execute_result", "metadata": {}, "data": data} for data in kept])
    return outputs


def test_the_notebook_of_the_repository_shows_what_it_keeps(kernel: Any) -> None:
    need("matplotlib")
    need("sklearn")
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    outputs = executed(notebook, kernel)
    kept = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [[set(one["data"]) for one in shown] for shown in kept] == [
        [set(one["data"]) for one in shown] for shown in outputs
    ]
    assert sum(is_picture(one["data"]) for shown in outputs for one in shown) == 2


def keep_outputs() -> None:
    """Runs the notebook and keeps what it shows."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, started_kernel(Path(folder)) as client:
        outputs = executed(notebook, client)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, (cell, shown) in enumerate(zip(cells, outputs, strict=True), start=1):
        cell["execution_count"] = count
        cell["outputs"] = [{**one, "execution_count": count} for one in shown]
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(keep_outputs())
