"""The attack suite in one command: faults by seed, and a record of what they broke, which docs/reliability.md shows.

    python tests/end_to_end/faults/campaign.py [SECONDS]

It goes on where the record ends, until each kind has its number of faults or the seconds are over, and prints the table
for the page. A record is of one version: delete it to begin again.
"""

import json
import os
import random
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from datetime import date
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from tampering import after_changes, after_changes_on_a_server, make_original
from test_hostile_databases import flip_bytes, make_small
from test_kills import SETUPS, Target, harm_to, kill_repeatedly
from test_power_cuts import goes_on, images, lost, record

from farthing.errors import FarthingError
from farthing.storage import open_storage

sys.path.append(str(Path(__file__).parents[3]))  # it is a program: the folder of `tests` is not on its path
from tests.postgres import PostgresServer

RECORD = Path(__file__).with_name("campaign.json")
KILLS_A_STUDY = 10
FIRST_SEED = 100_000
"""The short forms have the seeds from 0 on."""


@dataclass(frozen=True)
class Found:
    """The number of faults, and of what each column of the table counts."""

    faults: int = 0
    lost: int = 0
    orphans: int = 0
    stuck: int = 0
    unhandled: int = 0

    def plus(self, other: "Found") -> "Found":
        return Found(*(mine + its for mine, its in zip(asdict(self).values(), asdict(other).values(), strict=True)))


def kills(folder: Path, first: int) -> Generator[Found, None, None]:
    for seed in count(first):
        strategy, workers = SETUPS[seed % len(SETUPS)]
        target = Target(
            f"sqlite:///{folder}/{seed}.db", strategy, seed=seed, workers=workers, folder=folder / str(seed)
        )
        try:
            done = kill_repeatedly(target, random.Random(seed), most=KILLS_A_STUDY)
        except AssertionError as error:  # it ended by itself, with an error
            yield _told(Found(1, unhandled=1), error)
            continue
        harm = harm_to(target)
        found = Found(done, len(harm.lost), len(harm.orphans), len(harm.stuck), len(harm.wrong))
        yield _told(found, harm)


def power_cuts(folder: Path, first: int) -> Generator[Found, None, None]:
    recording = record(folder / "recorded", "study")
    for number in count(first):
        ((path, acknowledged),) = images(recording, folder, cuts=1, seed=f"campaign {number}")
        try:
            with closing(open_storage(path)) as storage:
                faults = storage.check()
            missing = lost(path, acknowledged)
            goes_on(path)
            yield _told(Found(1, lost=len(missing), unhandled=len(faults)), (faults, missing))
        except (AssertionError, FarthingError) as error:
            yield _told(Found(1, unhandled=1), error)
        shutil.rmtree(path.parent)


def changed_values(folder: Path, first: int) -> Generator[Found, None, None]:
    make_original(folder / "original.db")
    for faults in after_changes(folder / "original.db", folder, range(FIRST_SEED + first, sys.maxsize)):
        yield _told(Found(1, unhandled=bool(faults)), faults)


def changed_values_on_a_server(folder: Path, first: int) -> Generator[Found, None, None]:
    make_original(folder / "original.db")
    with PostgresServer(durable=False) as server:
        seeds = range(2 * FIRST_SEED + first, sys.maxsize)
        for faults in after_changes_on_a_server(folder / "original.db", server.new_schema(), seeds):
            yield _told(Found(1, unhandled=bool(faults)), faults)


def changed_bytes(folder: Path, first: int) -> Generator[Found, None, None]:
    make_small(folder / "original.db")
    for seed in count(FIRST_SEED + first):
        try:
            flip_bytes(folder / "original.db", folder, seeds=range(seed, seed + 1))
            yield Found(1)
        except AssertionError as error:
            yield _told(Found(1, unhandled=1), error)


def _told(found: Found, what: object) -> Found:
    """Says what was found, if anything was."""
    if any((found.lost, found.orphans, found.stuck, found.unhandled)):
        print(what, file=sys.stderr, flush=True)
    return found


Attack = Callable[[Path, int], Generator[Found, None, None]]
"""Goes on from a number of faults that were done before, in a folder of its own, and never ends."""

KINDS: Mapping[str, tuple[int, Attack]] = {
    "`kill -9` of the program or a worker": (300, kills),
    "power cut": (600, power_cuts),
    "changed value in a SQLite file, all commands and endpoints": (2_000, changed_values),
    "the same in PostgreSQL": (300, changed_values_on_a_server),
    "changed bytes in a SQLite file, seven commands": (300, changed_bytes),
}


def recorded() -> dict[str, Found]:
    known = json.loads(RECORD.read_text())["found"] if RECORD.exists() else {}
    return {kind: Found(**known.get(kind, {})) for kind in KINDS}


def keep(found: Mapping[str, Found]) -> None:
    record = {"ended": date.today().isoformat(), "found": {kind: asdict(one) for kind, one in found.items()}}
    RECORD.with_suffix(".new").write_text(json.dumps(record, indent=2) + "\n")
    RECORD.with_suffix(".new").replace(RECORD)


def table(found: Mapping[str, Found]) -> str:
    """In Markdown."""
    total = Found()
    for one in found.values():
        total = total.plus(one)
    rows = [(kind, one) for kind, one in found.items() if one.faults] + [("all", total)]
    lines = [
        "| fault | number | lost acknowledgements | orphans | stuck trials | unhandled errors, wrong results |",
        "|---|---|---|---|---|---|",
        *(
            "| " + " | ".join([kind, *(f"{n:,}".replace(",", " ") for n in asdict(one).values())]) + " |"
            for kind, one in rows
        ),
    ]
    return "\n".join(lines)


def main(seconds: float) -> None:
    """Next is always the kind that is furthest from its number."""
    found, end = recorded(), time.monotonic() + seconds
    with TemporaryDirectory() as folder, ExitStack() as ends:
        os.chdir(folder)  # commands write their pictures and reports here
        attacks = {}
        for place, (kind, (_, attack)) in enumerate(KINDS.items()):
            Path(f"{folder}/{place}").mkdir()
            attacks[kind] = attack(Path(f"{folder}/{place}"), found[kind].faults)
            ends.callback(attacks[kind].close)
        share = {kind: found[kind].faults / goal for kind, (goal, _) in KINDS.items()}
        while (kind := min(share, key=lambda one: share[one])) and share[kind] < 1.0 and time.monotonic() < end:
            found[kind] = found[kind].plus(next(attacks[kind]))
            share[kind] = found[kind].faults / KINDS[kind][0]
            keep(found)
    print(table(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of numbers that are too large to add
    os.environ["MPLBACKEND"] = "agg"
    main(float(sys.argv[1]) if len(sys.argv) > 1 else float("inf"))
