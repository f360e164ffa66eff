"""The scripts of the guide to many machines: they parse, and start workers that this version has."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from farthing.cli.commands.runs import worker

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "cluster.md"
SBATCH = re.compile(r"#SBATCH --(?P<name>[a-z-]+)(?:=(?P<value>\S+))?$")
OPTIONS = {
    "job-name": r"\w+",
    "array": r"\d+-\d+",
    "ntasks": r"\d+",
    "cpus-per-task": r"\d+",
    "gres": r"gpu:\d+",
    "time": r"\d\d:\d\d:\d\d",
    "signal": r"B:TERM@\d+",
    "requeue": r"",
    "output": r"\S+%A_%a\S*",
}
"""As the manual of sbatch has them."""


def block(title: str) -> str:
    found = re.search(rf'```\w+ title="{title}"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, title
    return found[1]


def parsed(words: list[str]) -> dict[str, object]:
    assert words[:2] == ["farthing", "worker"]
    return worker.make_context("worker", words[2:]).params


def test_the_slurm_script_is_bash_with_options_that_sbatch_has(tmp_path: Path) -> None:
    script = tmp_path / "workers.sh"
    script.write_text(block("workers.sh"))
    assert script.read_text().startswith("#!/bin/bash\n#SBATCH ")
    subprocess.run(["bash", "-n", script], check=True)
    for line in script.read_text().splitlines():
        if line.startswith("#SBATCH"):
            option = SBATCH.match(line)
            assert option, line
            assert re.fullmatch(OPTIONS[option["name"]], option["value"] or ""), line


def test_the_slurm_script_starts_a_worker() -> None:
    last = block("workers.sh").splitlines()[-1]
    assert last.startswith("exec farthing"), "the worker must be the process that gets SIGTERM"
    options = parsed(shlex.split(last)[1:])
    assert (options["study"], options["until_idle"], options["hours"]) == ("study.toml", True, 3.5)


def test_the_kubernetes_manifest_is_a_job_of_workers() -> None:
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load(block("workers.yaml"))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    spec = job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert spec["parallelism"] > 1
    assert "completions" not in spec, "a queue of work: the job is complete when a worker ends with success"
    assert pod["restartPolicy"] == "Never"
    assert pod["terminationGracePeriodSeconds"] >= 30
    assert spec["podFailurePolicy"]["rules"][0]["action"] == "Ignore"
    assert parsed(container["command"])["until_idle"] is True
    assert container["env"][0]["name"] == "FARTHING_STORAGE"
    assert {mount["name"] for mount in container["volumeMounts"]} <= {volume["name"] for volume in pod["volumes"]}
