"""Pipelines that are killed inside their stages, over many kinds of code that users write, chosen by `PrefixEI`."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from stage_kinds import HELPER, HELPER_TEXT, KINDS, PACKAGE

DRIVER = Path(__file__).parents[1] / "stage_deaths.py"
PLACES = {kind: f"kind_{place:02}" for place, kind in enumerate(KINDS)}
TRIALS = 10
DEATHS = (1, 2, 5, 4)
"""At the first call of a stage, in the second stage of a trial whose first one is kept, and where the model decides."""
A_FEW = list(KINDS)[::12]


def studies(kinds: list[str]) -> tuple[dict, dict, int]:
    """The studies that were killed in a stage again and again, those that were not, and how many deaths there were."""
    with TemporaryDirectory() as parent:
        folder = Path(parent) / "code"
        (folder / PACKAGE).mkdir(parents=True)
        (folder / PACKAGE / "__init__.py").write_text("")
        (folder / PACKAGE / f"{HELPER}.py").write_text(HELPER_TEXT)
        for kind in kinds:
            (folder / f"{PLACES[kind]}.py").write_text(KINDS[kind].text)

        def told(name: str, dies_at: int, hash_seed: int) -> dict:
            command = [sys.executable, str(DRIVER), str(folder), f"sqlite:///{parent}/{name}.db", str(TRIALS)]
            environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
            ended = subprocess.run(
                [*command, str(dies_at)], env=environment, capture_output=True, text=True, check=False
            )
            assert ended.returncode == 0, ended.stderr
            return dict(json.loads(line) for line in ended.stdout.splitlines())

        ends = [told("resumed", dies_at, hash_seed) for hash_seed, dies_at in enumerate(DEATHS)]
        deaths = sum(len(kinds) - len(end) for end in ends)
        return told("resumed", 0, len(DEATHS)), told("unbroken", 0, len(DEATHS) + 1), deaths


@cache
def of_all() -> tuple[dict, dict, int]:
    return studies(list(KINDS))


@cache
def of_a_few() -> tuple[dict, dict, int]:
    return studies(A_FEW)


def assert_same(kind: str, found: tuple[dict, dict, int]) -> None:
    resumed, unbroken = (studies[PLACES[kind]] for studies in found[:2])
    assert resumed["trials"] == unbroken["trials"]
    assert (resumed["changes"], resumed["evictions"]) == (0, 0)
    assert unbroken["attempts"] == TRIALS


@pytest.mark.parametrize("kind", A_FEW)
def test_a_pipeline_that_is_killed_inside_its_stages_goes_on_as_if_it_had_not_been(kind: str) -> None:
    assert_same(kind, of_a_few())


def test_the_pipelines_really_died() -> None:
    assert of_a_few()[2] == len(DEATHS) * len(A_FEW)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_code_goes_on_as_if_it_had_not_been_killed_inside_its_stages(kind: str) -> None:
    assert_same(kind, of_all())
    assert of_all()[2] == len(DEATHS) * len(KINDS)
