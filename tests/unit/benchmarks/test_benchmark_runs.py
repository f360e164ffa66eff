"""Runs that can be killed and continued, and what is said about what they leave out."""

import json
import lzma
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import run
from benchmarks.plan import make_plan
from benchmarks.records import (
    COMMANDS,
    MANIFEST,
    RESULTS,
    append_record,
    command_of,
    key_of,
    pack,
    read_records,
    summary,
    unpack,
)
from benchmarks.report import Report
from benchmarks.suites import SUITES, Contest, Suite
from benchmarks.trajectory import Standing

ARGUMENTS = ["foundation", "--quick", "--problems", "branin", "--methods", "random", "sobol", "--output"]


def finished(path: Path) -> list[dict]:
    assert run.main([*ARGUMENTS, str(path)]) == 0
    return read_records(path)


def test_a_run_has_a_line_for_each_problem_seed_and_method_in_turns(tmp_path: Path) -> None:
    records = finished(tmp_path / "results.jsonl")
    order = [(record["problem"], record["seed"], record["method"]) for record in records]
    assert order == [("branin", seed, method) for seed in (0, 1) for method in ("random", "sobol")]


def test_a_line_says_where_it_comes_from(tmp_path: Path) -> None:
    record = finished(tmp_path / "results.jsonl")[0]
    assert {"farthing", "python", "numpy", "scipy"} <= record["versions"].keys()
    assert {"commit", "dirty", "seed", "settings", "suggest_cpu_seconds"} <= record.keys()
    assert record["settings"] == {
        "method": {"name": "Random", "arguments": {}},
        "allowance": {"amount": 30, "unit": "evaluations"},
    }
    assert record["evaluations"] == record["cost"] == 30
    assert record["steps"][0]["evaluations"] == 1


def test_a_run_killed_in_the_middle_of_a_line_is_continued_without_duplicates(tmp_path: Path) -> None:
    unbroken, killed = tmp_path / "unbroken.jsonl", tmp_path / "killed.jsonl"
    expected = finished(unbroken)
    first, second = unbroken.read_bytes().splitlines(keepends=True)[:2]
    killed.write_bytes(first + second[: len(second) // 2])
    records = finished(killed)
    assert [key_of(record) for record in records] == [key_of(record) for record in expected]
    assert [_decided(record) for record in records] == [_decided(record) for record in expected]
    assert killed.read_bytes().startswith(first)


def test_an_interrupted_run_keeps_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, make = tmp_path / "results.jsonl", run.result_of

    def interrupted(job, *, suite):
        if job.method.name == "sobol":
            raise KeyboardInterrupt
        return make(job, suite=suite)

    monkeypatch.setattr(run, "result_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        finished(path)
    assert len(read_records(path)) == 1
    monkeypatch.setattr(run, "result_of", make)
    assert len(finished(path)) == 4


def test_a_finished_run_adds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    finished(path)
    before = path.read_bytes()
    finished(path)
    assert path.read_bytes() == before


def test_results_under_other_settings_are_not_reused(tmp_path: Path) -> None:
    contest = Contest("short", ("branin",), ("random",), judged_at=(2,), unit="evaluations")
    longer = Contest("short", ("branin",), ("random",), judged_at=(3,), unit="evaluations")
    for one in (contest, longer, contest):
        run.carry_out(make_plan(Suite("made-up", (one,)), seeds=1), tmp_path / "results.jsonl")
    assert [record["evaluations"] for record in read_records(tmp_path / "results.jsonl")] == [2, 3]


def test_a_missing_peer_is_named_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.problems.data.find_spec", lambda name: None)
    path = tmp_path / "results.jsonl"
    code = run.main(["foundation", "--quick", "--problems", "branin", "--json", "--output", str(path)])
    printed = capsys.readouterr()
    expected = "left out: optuna-random, optuna-tpe: optuna is not installed; make bench-setup"
    assert code == 0
    assert expected in printed.err
    assert expected in json.loads(printed.out)["left_out"]
    assert {record["method"] for record in read_records(path)} == {"random", "sobol"}


def test_absent_data_is_named_problem_by_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARTHING_DATA", str(tmp_path))
    plan = make_plan(SUITES["foundation"], seeds=1, problems=["fcnet/*", "branin"], methods=["random"])
    [line] = plan.left_out_lines()
    assert "fcnet/naval_propulsion, fcnet/parkinsons_telemonitoring, fcnet/protein_structure" in line
    assert "fcnet/space.json is not there; set FARTHING_DATA" in line
    assert [job.problem.name for job in plan.runs] == ["branin"]


def test_nothing_to_run_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["foundation", "--problems", "no-such-problem"]) == 1
    assert "match nothing" in capsys.readouterr().err


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_every_suite_names_problems_and_methods_that_exist(suite: Suite) -> None:
    make_plan(suite, seeds=1)


def test_a_method_may_have_fewer_seeds_than_the_others() -> None:
    contest = replace(SUITES["foundation"].contests[0], problems=("branin",), methods=("random", "sobol"))
    limited = Suite("made-up", (replace(contest, most_seeds={"sobol": 2}),))
    made = [(job.method.name, job.seed) for job in make_plan(limited, seeds=3).runs]
    assert made == [("random", 0), ("sobol", 0), ("random", 1), ("sobol", 1), ("random", 2)]


def test_seeds_count_from_the_first_one_of_the_suite() -> None:
    contest = replace(SUITES["foundation"].contests[0], problems=("branin",), methods=("random", "sobol"))
    later = Suite("made-up", (replace(contest, most_seeds={"sobol": 1}),), first_seed=7)
    made = [(job.method.name, job.seed) for job in make_plan(later, seeds=2).runs]
    assert made == [("random", 7), ("sobol", 7), ("random", 8)]
    assert later.quick().first_seed == 7


def test_a_record_is_one_line_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "results.jsonl"
    append_record(path, {"text": "two\nlines"})
    append_record(path, {"number": 2})
    assert read_records(path) == [{"text": "two\nlines"}, {"number": 2}]
    assert len(path.read_text().splitlines()) == 2


def test_packed_records_and_those_that_came_later_are_read_together(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    append_record(path, {"number": 1})
    plain = path.read_text()
    pack(path)
    assert not path.exists()
    assert read_records(path) == [{"number": 1}]
    append_record(path, {"number": 2})
    assert read_records(path) == [{"number": 1}, {"number": 2}]
    path.write_text(plain + path.read_text())  # as if a kill had come between packing and deleting
    pack(path)
    assert read_records(path) == [{"number": 1}, {"number": 2}]
    unpack(path)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"number": 1}, {"number": 2}]
    assert [file.name for file in tmp_path.iterdir()] == ["results.jsonl"]


def test_the_records_of_this_repository_are_at_most_five_megabytes() -> None:
    assert sum(path.stat().st_size for path in RESULTS.iterdir()) <= 5_000_000


def test_trajectories_on_record_hold_what_is_written_today() -> None:
    written = Standing(1, 1.0, 1.0, 0.0, {}, value=0.0, loss=0.0, regret=None).to_json().keys() | {"right"}
    for name in json.loads((RESULTS / MANIFEST).read_text()):
        steps = [step for record in packed_records(name) for step in record.get("steps", []) if isinstance(step, dict)]
        assert {key for step in steps for key in step} <= written, name


def test_the_manifest_says_what_is_in_the_packed_records() -> None:
    manifest = json.loads((RESULTS / MANIFEST).read_text())
    assert manifest, "the records of this repository are packed"
    for name, said in manifest.items():
        expected = {"command": command_of(name), **summary(packed_records(name))}
        if not expected["commits"]:
            expected["came with"] = said["came with"]
            assert said["came with"], f"{name}: a commit has brought these"
        assert said == expected, f"{name}: python -m benchmarks.records"
    assert {path.name for path in RESULTS.glob("*.jsonl.xz")} == {f"{name}.jsonl.xz" for name in manifest}


ORPHANS = {"pipeline-nuclei", "pipeline-sklearn", "pipeline-synthetic-again"}
"""Records whose programs were not kept: they become fewer, and whoever cites them says so."""


def test_no_record_is_added_that_no_program_here_makes() -> None:
    manifest = json.loads((RESULTS / MANIFEST).read_text())
    assert {name for name, said in manifest.items() if said["command"] is None} == ORPHANS


@pytest.mark.parametrize("name", sorted(ORPHANS))
def test_whoever_cites_a_record_without_a_program_says_so(name: str) -> None:
    root = RESULTS.parents[1]
    texts = [path for path in root.glob("docs/*/*.md") if path.parent.name != "benchmarks"]  # those are made
    for path in [*texts, *root.glob("src/**/*.py")]:
        words = " ".join(path.read_text(encoding="utf-8").split())
        cited = re.findall(rf"[/`]{name}\.jsonl.{{0,40}}", words)
        assert all("whose program was not kept" in one for one in cited), f"{path}: {cited}"


@pytest.mark.parametrize("command", sorted(set(COMMANDS.values())))
def test_a_command_that_makes_records_names_a_program_that_exists(command: str) -> None:
    program = command.split()[1 if command.startswith("python examples") else 2]
    assert (RESULTS.parents[1] / program).is_file() or find_spec(program)


CITED = re.compile(r"benchmarks/results/([a-z0-9*_-]+(?:\.\w+)+)|(?<![\w/-])([a-z0-9_-]+\.jsonl\.xz)")
SOURCES = ("src/**/*.py", "benchmarks/**/*.py", "docs/**/*.md", "examples/**/*.py", "*.md")


def test_every_record_that_is_cited_is_in_the_repository() -> None:
    root, absent = RESULTS.parents[1], {}
    for path in {path for pattern in SOURCES for path in root.glob(pattern)}:
        where = str(path.relative_to(root))
        cited = {first or second for first, second in CITED.findall(path.read_text(encoding="utf-8"))}
        gone = [name for name in cited if not any(RESULTS.glob(name))]
        absent.update({where: gone} if gone else {})
    assert absent == {}


def packed_records(name: str) -> list[dict]:
    text = lzma.decompress((RESULTS / f"{name}.jsonl.xz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def _decided(record: dict) -> list:
    return [(step["evaluations"], step["cost"], step["regret"]) for step in record["steps"]]


def test_a_run_that_two_contests_share_is_made_once_and_reported_in_both(tmp_path: Path) -> None:
    first = Contest("first", ("branin",), ("random", "sobol"), judged_at=(2,), unit="evaluations")
    second = Contest("second", ("branin",), ("random",), judged_at=(2,), unit="evaluations")
    suite = Suite("made-up", (first, second), seeds=2)
    plan = make_plan(suite, seeds=2)
    assert [(job.method.name, job.seed) for job in plan.runs] == [
        ("random", 0),
        ("sobol", 0),
        ("random", 1),
        ("sobol", 1),
    ]
    run.carry_out(plan, tmp_path / "results.jsonl")
    report = Report.of(suite, read_records(tmp_path / "results.jsonl"))
    assert [contest.methods for contest in report.contests] == [("random", "sobol"), ("random",)]
