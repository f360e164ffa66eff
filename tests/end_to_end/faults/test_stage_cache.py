"""Pipelines with real workers: no prefix is computed twice, none is served wrong, whatever is killed or full."""

import logging
import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cached_study import SPACE, TRIALS, pipeline, study_in, value_of

import farthing as ft
from farthing.caching.stage_cache import CacheKey, StageCache
from farthing.session import session_of
from farthing.session.stage_outputs import StageOutputs
from farthing.trials.prefixes import EVICTED, cached_prefixes

PROGRAM = Path(__file__).with_name("cached_study.py")


def computed(folder):
    path = folder / "computed"
    return path.read_text().splitlines() if path.exists() else []


def evictions(study):
    return [event for event in study.history.events if event.kind == EVICTED]


def test_workers_never_compute_the_same_prefix_twice(tmp_path):
    study = study_in(None)
    study.run(pipeline(tmp_path), budget=ft.Budget(trials=TRIALS), workers=4)
    assert [trial.value for trial in study.trials] == [value_of(trial.params) for trial in study.trials]
    lines = computed(tmp_path)
    assert len(lines) == len(set(lines)) == len(cached_prefixes(study.history))
    ledger = study.ledger
    assert ledger.saved["cache"] > 0


def test_a_resumed_study_finds_what_was_computed_before(tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = study_in(storage)
    study.run(pipeline(tmp_path), budget=ft.Budget(trials=TRIALS), workers=2)
    study.close()
    before = computed(tmp_path)
    again = study_in(storage)
    for size, factor in {(trial.params["size"], trial.params["factor"]) for trial in again.trials}:
        again.enqueue({"size": size, "factor": factor, "shift": 50})
    again.run(pipeline(tmp_path), budget=ft.Budget(trials=len(again.trials)), workers=2)
    assert computed(tmp_path) == before
    assert all(trial.value == value_of(trial.params) for trial in again.trials)


def test_outputs_of_another_version_are_not_used_and_the_history_says_so(tmp_path):
    study = study_in(None)
    work = pipeline(tmp_path)
    study.run(work, budget=ft.Budget(trials=6), workers=2)
    known = cached_prefixes(study.history)
    stages = {name: replace(stage, version=2 if name == "scale" else 1) for name, stage in work.stages.items()}
    study.enqueue(study.trials[0].params)
    study.run(ft.Pipeline(source=7, **stages), budget=ft.Budget(trials=7))
    gone = {event.payload["prefix"] for event in evictions(study)}
    assert gone == {prefix for prefix, length in known.items() if length == 2}
    params = study.trials[0].params
    assert computed(tmp_path).count(f"scale {params['size']} {params['factor']}") == 2
    assert computed(tmp_path).count(f"load {params['size']}") == 1


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 12))])
def test_a_study_that_is_killed_again_and_again_loses_nothing_and_serves_nothing_wrong(tmp_path, seed):
    storage, rng = f"sqlite:///{tmp_path / 'study.db'}", random.Random(seed)
    kills = 0
    while "finished" not in _lines(tmp_path):
        program = subprocess.Popen([sys.executable, str(PROGRAM), storage, str(tmp_path)], start_new_session=True)
        if kills < 5:
            kills += _kill_after_some_news(program, tmp_path, rng)
        assert program.wait() in (0, -signal.SIGKILL)
    study = study_in(storage)
    ended = [line.split() for line in _lines(tmp_path) if " done " in line]
    assert len(study.history.done) == TRIALS
    assert all(study.trials[int(number)].value == float(value) for _, number, _, value in ended)
    assert all(trial.value == value_of(trial.params) for trial in study.trials)
    study.run(pipeline(tmp_path), budget=ft.Budget(trials=TRIALS))
    assert not list(study.checkpoints.root.glob("stages/*.staging"))


def _lines(folder):
    path = folder / "acknowledged"
    return path.read_text().splitlines() if path.exists() else []


def _kill_after_some_news(program, folder, rng):
    """Kills a worker or the whole study a moment after some more stages began; returns how many were killed."""
    seen = len(computed(folder)) + len(_lines(folder)) + rng.randint(2, 6)
    while program.poll() is None and len(computed(folder)) + len(_lines(folder)) < seen:
        time.sleep(0.002)
    time.sleep(rng.random() * 0.01)
    children = Path(f"/proc/{program.pid}/task/{program.pid}/children")
    try:
        workers = [int(child) for child in children.read_text().split()]
        os.kill(rng.choice([program.pid, *workers]), signal.SIGKILL)
    except (OSError, IndexError):
        return 0
    return 1


KILLED_WRITER = """
import sys, time
from pathlib import Path
from farthing.caching.stage_cache import CacheKey, StageCache

def save(output, folder):
    (folder / "half").write_bytes(b"x" * 100_000)
    print("writing", flush=True)
    time.sleep(3600)

cache, address = StageCache(Path(sys.argv[1]), limit=None), CacheKey("source", (("one", "1"),), "a")
with cache.computing(address):
    cache.put([address], "output", seconds=[1.0], save=save)
"""


def test_whoever_waits_takes_over_when_the_first_is_killed_while_it_writes(tmp_path):
    address, cache = CacheKey("source", (("one", "1"),), "a"), StageCache(tmp_path, limit=None)
    writer = subprocess.Popen([sys.executable, "-c", KILLED_WRITER, str(tmp_path)], stdout=subprocess.PIPE)
    assert writer.stdout.readline() == b"writing\n"
    assert not cache.has(address)
    writer.kill()
    with cache.computing(address):
        assert cache.get_held(address, lambda folder: "wrong") is None
        cache.put([address], "right", seconds=[1.0], save=lambda text, folder: (folder / "text").write_text(text))
    assert cache.get(address, lambda folder: (folder / "text").read_text()).output == "right"
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == [address.key]
    writer.wait()
    writer.stdout.close()


def test_a_study_whose_disk_is_full_goes_on_without_the_cache_and_says_so_once(caplog):
    def load(source, size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
        return np.full(100_000 * size, source, dtype=float)

    work = ft.Pipeline(
        source=7,
        load=load,
        scale=lambda image, factor: image[:10] * factor,
        score=lambda image, shift: float(image.sum()) + shift,
    )
    study = study_in(None)
    with caplog.at_level(logging.WARNING, logger="farthing"):
        study.run(work, budget=ft.Budget(trials=6), workers=2)
    expected = [70.0 * trial.params["factor"] + trial.params["shift"] for trial in study.trials]
    assert [trial.value for trial in study.trials] == expected
    (warning,) = [record.getMessage() for record in caplog.records if "without the cache" in record.getMessage()]
    assert "stage 1's output is unwritable: " in warning
    assert "is the disk full?" in warning
    lengths = [event.payload["length"] for event in evictions(study) if event.payload["why"] == "unwritable"]
    assert lengths
    assert set(lengths) == {1}
    assert set(cached_prefixes(study.history).values()) == {2}


def test_a_small_limit_changes_what_is_paid_and_nothing_else(tmp_path):
    study = study_in(None)
    small = pipeline(tmp_path)
    small.cache_limit = 5_000_000
    study.run(small, budget=ft.Budget(trials=TRIALS), workers=3)
    assert [trial.value for trial in study.trials] == [value_of(trial.params) for trial in study.trials]
    assert {event.payload["why"] for event in evictions(study)} <= {"limit", "unwritable"}
    entries = study.checkpoints.root.glob("stages/*/output/**/*")
    assert sum(path.stat().st_size for path in entries if path.is_file()) <= 5_000_000


def test_a_cache_may_be_listed_verified_and_pruned_while_its_study_runs(tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study_in(storage).close()
    program = subprocess.Popen([sys.executable, str(PROGRAM), storage, str(tmp_path)])
    pruned = 0
    while program.poll() is None:
        with closing(ft.Study.load("study", storage)) as study:
            outputs = StageOutputs(session_of(study))
            assert [fault for _, fault in outputs.faults() if fault] == []
            pruned += len(outputs.prune(outputs.all()[:2]))
    assert program.returncode == 0
    assert pruned
    study = study_in(storage)
    assert [trial.value for trial in study.trials] == [value_of(trial.params) for trial in study.trials]
    assert [event.payload["why"] for event in evictions(study)] == ["pruned"] * pruned


def test_the_default_strategy_lives_with_a_cache_that_forgets(tmp_path):
    study = ft.Study(SPACE, minimize="error", seed=1)
    small = pipeline(tmp_path)
    small.cache_limit = 5_000_000
    study.run(small, budget=ft.Budget(trials=12), workers=2)
    assert [trial.value for trial in study.trials] == [value_of(trial.params) for trial in study.trials]
    assert isinstance(study.strategy, ft.PrefixEI)
