"""`python -m benchmarks.tuning.streams`: whether weights should be taken back where the data change under them.

The stream of `online-training` as it is, turning faster and slower, and in jumps; its two starts, twenty seeds that
nothing was chosen on, and the default with and without `save=` and `restore=`, with `initial=` and with `guess=`. A row
has the accuracy over the run, beside that of keeping the start. No record of it is kept: run it before citing it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean, median

from benchmarks.markdown import table
from benchmarks.online.training_suite import PRICE, Session
from benchmarks.online.trainings import STREAM_TURN, TASKS, Stream
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, append_record, key_of, read_records, results_path
from farthing.online import PairedProbes

PATH = results_path("tuning-streams")
SEEDS = range(2000, 2020)
JUMP_EVERY = 25
"""Rounds between two jumps, of one radian each."""


def turning(angle: Callable[[int], float]) -> Callable[[int], Stream]:
    """A stream whose border stands at that angle in a round."""

    class Turning(Stream):
        def angle(self, round: int) -> float:
            return angle(round)

    return Turning


STREAMS: Mapping[str, Callable[[int], Stream]] = {
    "as it is": Stream,
    "faster": turning(lambda round: 2.5 * round / STREAM_TURN),
    "slower": turning(lambda round: 0.4 * round / STREAM_TURN),
    "in jumps": turning(lambda round: float(round // JUMP_EVERY)),
}
STREAM = next(task for task in TASKS if task.name == "stream")


def gain(stream: str, start: str, seed: int, *, is_guess: bool, can_undo: bool) -> Record:
    task = replace(STREAM, begin=STREAMS[stream])
    session = Session(task, task.starts[start], seed, PRICE)
    tuned = session.tuned(PairedProbes(), can_undo=can_undo, is_guess=is_guess)
    kept = session.played(lambda round: task.starts[start])
    return {"accuracy": tuned.accuracy, "kept": kept.accuracy, "undone": tuned.undone}


def main(path: Path = PATH) -> None:
    present = {key_of(record) for record in read_records(path)}
    for seed, stream, start in product(SEEDS, STREAMS, STREAM.starts):
        for is_guess, can_undo in product((False, True), (False, True)):
            identity = {
                "problem": f"{stream}, {start} start",
                "method": f"{'guess' if is_guess else 'initial'}{', with save and restore' * can_undo}",
                "seed": seed,
                "settings": {"rounds": STREAM.rounds},
            }
            if key_of(identity) not in present:
                row = identity | gain(stream, start, seed, is_guess=is_guess, can_undo=can_undo)
                append_record(path, row | {"versions": versions(("numpy", "scipy"))} | commit())
    sys.stdout.write(summary(read_records(path)) + "\n")


def summary(records: Sequence[Record]) -> str:
    """Gains over keeping the start, over all four streams and by stream, and what taking back does to them in pairs."""
    rows = [["", "runs", "mean gain", "median", "worst", "below keeping", "taking back is better, worse"]]
    for start, method in product(STREAM.starts, dict.fromkeys(record["method"] for record in records)):
        for stream in ("", *STREAMS):
            own = [one for one in records if one["method"] == method and _is_of(one, stream, start)]
            if not own:
                continue
            gains = [one["accuracy"] - one["kept"] for one in own]
            rows.append(
                [
                    f"{stream or 'all'}, {start}, {method}",
                    str(len(gains)),
                    *(f"{found:+.3f}" for found in (fmean(gains), median(gains), min(gains))),
                    str(sum(found < 0.0 for found in gains)),
                    _pairs(records, own) if "restore" in method else "",
                ]
            )
    return table(rows)


def _is_of(record: Record, stream: str, start: str) -> bool:
    return str(record["problem"]).endswith(f", {start} start") and str(record["problem"]).startswith(stream)


def _pairs(records: Sequence[Record], own: Sequence[Record]) -> str:
    found = {(one["problem"], one["method"], one["seed"]): one["accuracy"] for one in records}
    without = own[0]["method"].partition(",")[0]
    pairs = [(one["accuracy"], found[one["problem"], without, one["seed"]]) for one in own]
    return f"{sum(a > b for a, b in pairs)}, {sum(a < b for a, b in pairs)}"


if __name__ == "__main__":
    main()
