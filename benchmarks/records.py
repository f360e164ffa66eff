"""Results as JSON lines, so that a run which was killed loses one of them at most and is continued where it stopped.

What is committed is packed: `python -m benchmarks.records` moves the lines of every file into SUITE.jsonl.xz, a tenth
as large. A run adds its lines to SUITE.jsonl as before; readers see both. `MANIFEST.json` says what is in them and
which command makes them, null where no program of this repository does. Where records name no commit of their own,
"came with" has the commits that brought them.
`python -m benchmarks.records --unpack SUITE …` makes one plain file again, to take lines out that a change made wrong.
"""

import argparse
import json
import lzma
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from benchmarks.problems.data import REPOSITORY

Record: TypeAlias = dict[str, Any]

RESULTS = REPOSITORY / "benchmarks" / "results"
MANIFEST = "MANIFEST.json"

COMMANDS = {
    "cheap-trials": "python -m benchmarks.speed cheap",
    "demo-digits": "python -m benchmarks.demo",
    "first-hour": "python -m benchmarks.first_hour",
    "lightgbm-rounds": "python -m benchmarks.boosting",
    "online-fashion-mnist": "python examples/2_online.py --compare 3",
    "pipeline-fashion-table": "python -m benchmarks.run pipeline-real",
    "pipeline-nuclei-table": "python -m benchmarks.run pipeline-real",
    "prompt-dollars": "python -m benchmarks.prompts",
    "ray-overhead": "python -m benchmarks.speed cluster",
    "real-live": "python -m benchmarks.live",
    "simulated-cluster": "python -m benchmarks.speed cluster",
    "stopping-outlook": "python -m benchmarks.run stopping",
    "suggesting-ahead": "python -m benchmarks.speed ahead",
    "tuning-arena-before": "python -m benchmarks.run real-curves --methods TraceKG",
    "tuning-categories": "python -m benchmarks.tuning.categories",
    "tuning-conditional": "python -m benchmarks.tuning.branch_rules",
    "tuning-curve-rules": "python -m benchmarks.tuning.curve_rules",
    "tuning-guess-parts": "python -m benchmarks.tuning.guess_parts",
    "tuning-limit-rules": "python -m benchmarks.tuning.limit_rules",
    "tuning-noisy-fronts": "python -m benchmarks.tuning.noisy_fronts",
    "tuning-pipeline-haste": "python -m benchmarks.tuning.pipeline_haste",
    "tuning-population-box": "python -m benchmarks.tuning.population_box",
    "tuning-probe-rules": "python -m benchmarks.tuning.probe_rules",
    "tuning-races": "python -m benchmarks.tuning.races",
    "tuning-recommending": "python -m benchmarks.run real-curves-tuning",
    "tuning-references": "python -m benchmarks.tuning.references",
    "tuning-recommended": "python -m benchmarks.recommending --keep",
    "tuning-rent-rules": "python -m benchmarks.tuning.rent_rules",
    "tuning-smooth-drift": "python -m benchmarks.tuning.smooth_drift",
    "tuning-streams": "python -m benchmarks.tuning.streams",
    "tuning-table-a2": "python -m benchmarks.tuning.table_a2",
}
"""What makes the records that `python -m benchmarks.run` does not name as it does its suites."""


OURS_BY_THE_PAPERS_NAME = re.compile(r"^CE-GP-UCB(?=$|,)")


def label_of(method: str) -> str:
    """The name that a row is shown by: some records have our settings of a strategy under the name of its paper."""
    return OURS_BY_THE_PAPERS_NAME.sub("CEGPUCB()", method).replace("CE-GP-UCB.paper()", "CEGPUCB.paper()")


def results_path(suite: str) -> Path:
    """Where the results of a suite are kept unless another file is named."""
    return RESULTS / f"{suite}.jsonl"


def packed_path(path: Path) -> Path:
    return path.with_name(path.name + ".xz")


def read_records(path: Path) -> list[Record]:
    """The records of a file that may not exist, packed ones first; a last line that was cut off by a kill is none."""
    return [json.loads(line) for line in _text(path).splitlines()]


def _text(path: Path) -> str:
    """All whole lines, packed or not; once where a kill left some in both files."""
    packed = packed_path(path)
    before = lzma.decompress(packed.read_bytes()).decode() if packed.exists() else ""
    whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n") if path.exists() else ("", "", "")
    known = set(before.splitlines()) if whole else set()
    return before + "".join(f"{line}\n" for line in whole.splitlines() if line not in known)


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Adds a line, on the disk when this returns, in place of one that was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        _drop_cut_line(file)
        file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def key_of(record: Mapping[str, Any]) -> str:
    """What makes a result the same result: problem, method, seed and settings."""
    return json.dumps([record[part] for part in ("problem", "method", "seed", "settings")], sort_keys=True)


def _drop_cut_line(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    if file.read(1) not in (b"", b"\n"):
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


# ------------------------------------------------------------
# Packing.


def pack(path: Path) -> None:
    """Moves the lines of a file to the packed one beside it; a kill in between loses none."""
    packed = packed_path(path)
    new = packed.with_name(packed.name + ".new")
    new.write_bytes(lzma.compress(_text(path).encode(), preset=9 | lzma.PRESET_EXTREME))
    new.replace(packed)
    path.unlink()


def unpack(path: Path) -> None:
    text = _text(path)
    path.write_text(text, encoding="utf-8")
    packed_path(path).unlink(missing_ok=True)


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """How many records there are, of which commits, and with which versions, the most frequent first."""
    versions = Counter(
        f"{package} {version}" for record in records for package, version in (record.get("versions") or {}).items()
    )
    commits = Counter(str(record["commit"])[:7] for record in records if record.get("commit"))
    return {
        "records": len(records),
        "commits": [name for name, _ in commits.most_common()],
        "versions": sorted(versions),
    }


def command_of(name: str) -> str | None:
    from benchmarks.run import OTHER_RUNNERS  # which reads records
    from benchmarks.suites import SUITES

    return COMMANDS.get(name, f"python -m benchmarks.run {name}" if name in {*SUITES, *OTHER_RUNNERS} else None)


def entry(name: str, records: Sequence[Record]) -> dict[str, Any]:
    said = summary(records)
    return {"command": command_of(name), **said, **({} if said["commits"] else {"came with": came_with(name)})}


def came_with(name: str) -> list[str]:
    """The commits that added to the plain file of these records, the latest first."""
    wanted = ["--diff-filter=AM", "--format=%h", "--abbrev=7", "--", str(results_path(name))]
    told = subprocess.run(["git", "log", *wanted], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return told.stdout.split()


def write_manifest(folder: Path) -> None:
    found = {packed.name.removesuffix(".jsonl.xz"): packed for packed in sorted(folder.glob("*.jsonl.xz"))}
    manifest = {name: entry(name, read_records(packed.with_suffix(""))) for name, packed in found.items()}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", help="all by default")
    parser.add_argument("--unpack", action="store_true")
    options = parser.parse_args(arguments)
    if options.unpack:
        for name in options.suites:
            unpack(results_path(name))
        return 0
    for path in [results_path(name) for name in options.suites] or sorted(RESULTS.glob("*.jsonl")):
        pack(path)
    write_manifest(RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
