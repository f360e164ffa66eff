"""The speed benchmarks as programs: what they print and save. Their bars are not tests: they depend on the machine."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.bars import at_most, none_of
from benchmarks.measuring import CpuMeter, run_program
from benchmarks.speed import __main__ as program
from benchmarks.speed import _growth, startup, suggest
from benchmarks.speed._plain_worker import HEAVY
from benchmarks.speed.loop import ours

RESULT = {
    "figures": {
        "ours": {"median": 0.5, "low_quartile": 0.25, "high_quartile": 1.0, "n": 3},
        "sizes": [{"n": 10, "seconds": 0.1}, {"n": 20, "seconds": 0.2}],
    },
    "bars": [at_most("a trial", limit=1.0, measured=2.0, unit="CPU ms")],
    "left_out": ["optuna is not installed; make bench-setup"],
}


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> str:
    module = SimpleNamespace(run=lambda *, seeds, quick: RESULT)
    monkeypatch.setitem(sys.modules, "benchmarks.speed.loop", module)
    return "loop"


def test_bars_say_whether_they_hold() -> None:
    assert at_most("x", limit=1, measured=1.0, unit="s") == {
        "what": "x",
        "bar": "≤ 1 s",
        "measured": 1.0,
        "holds": True,
    }
    assert not at_most("x", limit=1, measured=1.1, unit="s")["holds"]
    assert not at_most("x", limit=1, measured=None, unit="s")["holds"]
    assert none_of("x", unwanted=["numpy"], found=[])["holds"]
    assert not none_of("x", unwanted=["numpy"], found=["numpy"])["holds"]
    assert not none_of("x", unwanted=["numpy"], found=None)["holds"]


def test_suggesting_is_timed_on_the_same_histories() -> None:
    """Of our own strategy alone: that it can be timed. What the peers take is no matter for tests."""
    for task in suggest.TASKS:
        drawn = task.drawn(11, seed=0)
        assert drawn == task.drawn(11, seed=0)
        assert all(task.space.check(params) == params for params in drawn)
        assert suggest.ours(task, drawn) > 0.0


def test_growth_is_judged_beside_each_peer() -> None:
    seconds = {n: [{"ours": n / 100, "optuna": n / 10, "botorch": 1.0}] for n in (20, 50, 100, 200)}
    holds = {bar["what"]: bar["holds"] for bar in suggest._bars(suggest.TASKS[0], seconds)}
    assert holds == {
        **{f"6-d, n = {n}, ours / GPSampler": True for n in (20, 50, 100, 200)},
        "6-d, growth from n = 50 to 200, beside botorch": False,
        "6-d, growth from n = 50 to 200, beside optuna": True,
    }


@pytest.mark.parametrize("name", ["LogEI", "EIPerCost", "TraceKG", "PrefixEI", "PB2"])
def test_growth_is_measured_in_a_process_of_its_own(name: str) -> None:
    found = _growth._timed(name, 12, 2, seed=0)
    assert found is not None
    assert found["seconds"] > 0.0
    assert found["megabytes"] >= 0.0


def test_exponents_and_bars_come_from_the_cells() -> None:
    cells = [
        _growth.Cell(name, n, 6, first=1.0, seconds=seconds * n / 1000, megabytes=100.0)
        for n in (100, 1000, 10_000)
        for name, seconds in (("EIPerCost", 0.1), ("Optuna GPSampler", 0.15), ("TraceKG", 0.2))
    ]
    assert _growth.exponents(cells, []) == [
        {"contender": name, "time over n": "1.00 (100 to 10000)", "time over d": ""}
        for name in ("EIPerCost", "Optuna GPSampler", "TraceKG")
    ]
    holds = {(bar["what"], bar["bar"]): bar["holds"] for bar in _growth.bars(cells)}
    assert holds == {
        ("n = 100, EIPerCost / Optuna GPSampler", "≤ 0.5 CPU"): False,
        ("n = 1000, EIPerCost / Optuna GPSampler", "≤ 0.5 CPU"): False,
        ("EIPerCost, n = 10000", "≤ 0.2 CPU s"): False,
        ("TraceKG, 1000 runs", "≤ 0.3 CPU s"): True,
        ("TraceKG, 1000 runs", "≤ 200 MB"): True,
    }


@pytest.mark.parametrize(("seconds", "holds"), [(0.3, True), (0.4, False)])
def test_a_bounded_search_is_judged_in_its_longest_study(seconds: float, holds: bool) -> None:
    cells = [_growth.Cell("PrefixEI", n, 6, first=1.0, seconds=seconds, megabytes=100.0) for n in (3000, 6000)]
    assert [(bar["what"], bar["holds"]) for bar in _growth.bars(cells)] == [
        ("PrefixEI, 6000 runs", holds),
        ("PrefixEI, 6000 runs", True),
    ]


def test_json_is_one_object_with_figures_bars_and_where_they_come_from(
    made_up: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main([made_up, "--json", "--seeds", "4"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["figures"] == RESULT["figures"]
    assert (printed["n"], printed["bars"][0]["holds"]) == (4, False)
    assert {"versions", "commit", "dirty", "cpu_count"} <= printed.keys()


def test_a_table_shows_bar_by_bar_whether_it_holds(made_up: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([made_up]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "| a trial | ≤ 1 CPU ms | 2 | NO |" in lines
    assert "| ours | 0.5 [0.25, 1], n = 3 |" in lines
    assert "| 20 | 0.2 |" in lines
    assert "left out: optuna is not installed; make bench-setup" in lines


def test_output_is_saved(made_up: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "RESULTS", tmp_path)
    program.main([made_up, "--save"])
    program.main([made_up, "--output", str(tmp_path / "here.json")])
    for name in ("speed-loop.json", "here.json"):
        assert json.loads((tmp_path / name).read_text())["benchmark"] == "loop"


def test_a_package_that_is_needed_and_absent_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*, seeds: int, quick: bool) -> dict:
        raise ModuleNotFoundError("No module named 'botorch'")

    monkeypatch.setitem(sys.modules, "benchmarks.speed.loop", SimpleNamespace(run=run))
    assert program.main(["loop"]) == 1
    assert capsys.readouterr().err == "loop cannot run: No module named 'botorch'; make bench-setup\n"


def test_a_benchmark_that_returns_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(run=lambda *, seeds, quick: {"rows": []})
    monkeypatch.setitem(sys.modules, "benchmarks.speed.loop", module)
    with pytest.raises(TypeError, match="must return figures and bars, got rows"):
        program.measure("loop", seeds=1, quick=True)


def test_benchmarks_are_found_by_their_file() -> None:
    assert {"loop", "startup"} <= set(program.benchmark_names())
    assert not any(name.startswith("_") for name in program.benchmark_names())


def test_cpu_time_counts_work_and_not_waiting() -> None:
    waiting = run_program([sys.executable, "-c", "import time; time.sleep(1)"])
    working = run_program([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"])
    assert waiting.cpu_seconds < 1
    assert working.cpu_seconds >= 0.3
    meter = CpuMeter()
    with meter.running():
        sum(range(100_000))
    assert meter.seconds > 0


def test_a_program_that_fails_is_not_measured() -> None:
    assert startup.measured_seconds({"broken": ("-c", "import no_such_module")}, repeats=1) == {"broken": None}
    assert startup.heavy_imports(("-c", "import no_such_module")) is None


def test_heavy_imports_are_found() -> None:
    assert startup.heavy_imports(("-c", "import numpy")) == ["numpy"]
    assert startup.heavy_imports(("-c", "import farthing")) == []


def test_a_worker_of_a_plain_function_says_what_it_imported() -> None:
    worker = startup.plain_worker()
    assert {name: worker[name] for name in HEAVY} == dict.fromkeys(HEAVY, 0.0)


def test_the_loop_is_timed_trial_by_trial() -> None:
    marks = ours(20, seed=0)
    assert len(marks.times) == 21
    assert marks.milliseconds(0, 20) > 0
