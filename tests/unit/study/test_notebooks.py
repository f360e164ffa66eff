"""What a real IPython shows of a study: tables of what a cell ends with. A Jupyter kernel is among the integrations."""

import json
import subprocess
import sys
from pathlib import Path

CELLS = """
import json
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
def run(cell):
    outcome = shell.run_cell(cell)
    outcome.raise_error()
    return outcome.result

run("import farthing as ft")
run("study = ft.Study(ft.Space({'x': ft.Float(0, 1)}), minimize='error', name='<cells>', seed=0)")
run("stopped = study.run(lambda trial: trial.params['x'], budget=ft.Budget(trials=6), executor='inline')")
shown = {}
verify = "study.verify(lambda trial: 0.5, top=2, executor='inline')"
for cell in ("study", "study.best", "study.top(3)", "study.ledger", verify):
    formats, _ = shell.display_formatter.format(run(cell))
    shown[cell.partition("(")[0]] = formats
from farthing.running.display import is_notebook
print(json.dumps({"shown": shown, "is_notebook": is_notebook()}))
"""


def test_ipython_shows_tables_of_what_a_cell_ends_with(tmp_path: Path) -> None:
    environment = {"PATH": "", "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", CELLS], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout.splitlines()[-1])
    assert answer["is_notebook"] is False, "a shell in a terminal is none"
    shown = answer["shown"]
    assert set(shown) == {"study", "study.best", "study.top", "study.ledger", "study.verify"}
    for cell, formats in shown.items():
        assert "<table" in formats["text/html"], cell
        assert formats["text/plain"].strip(), cell
    assert "&lt;cells&gt;" in shown["study"]["text/html"]
    assert shown["study.best"]["text/plain"].startswith("Best error: ")
