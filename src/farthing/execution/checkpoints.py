"""The folders of checkpoints, from which other trials continue."""

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Literal
from uuid import uuid4

from farthing.errors import InvalidArgument
from farthing.execution.folder_mark import MARK, Mark, carries, claim
from farthing.files.durable import flush, flush_tree, names_in, remove, size_of
from farthing.files.file_lock import is_scratch
from farthing.trials import Attempt

LOG_PIECE = 1_000_000
"""Most bytes of a log that are read at once: a log may be larger than the memory."""

Phase = Literal["staging", "checkpoint", "deleted"]
NAME = re.compile(r"(?P<number>\d{6,})/attempt-(?P<attempt>\d+)\.(?P<phase>staging|checkpoint|deleted)-(?P<index>\d+)")


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """One folder under the root: whose it is, what it is, and which of those it is."""

    attempt: Attempt
    phase: Phase
    index: int

    @property
    def name(self) -> str:
        return f"{self.attempt.number:06d}/attempt-{self.attempt.attempt}.{self.phase}-{self.index}"


class Checkpoints:
    """Keeps checkpoints under one root, each a folder that is there wholly or not at all.

    A trial writes into a *staging* folder. `commit` puts its files on the disk and renames it, so that whatever has
    the name of a checkpoint is complete, also after a crash or a power cut; deleting takes the name away first. Under a
    root that goes with its process nothing is put on the disk. Names are relative to the root and hold in any process
    that knows it. Beside the checkpoints lie the trials' logs:

        000012/attempt-1.log
        000012/attempt-1.checkpoint-1/
        000012/attempt-2.staging-1/

    Nothing is created before it is needed. With a `mark`, the root is marked first, and refused where it is another's.
    """

    def __init__(self, root: Path, *, mark: Mark | None = None) -> None:
        self.root = root.absolute()
        self._mark = mark

    def claim(self) -> None:
        """Makes sure that the root exists and belongs to this study, before anything is written there."""
        if self._mark is not None:
            claim(self.root, self._mark)

    def stage(self, attempt: Attempt) -> Path:
        """A fresh, empty folder for that attempt to write into."""
        self.claim()
        folder = self.root / self._next(attempt, phase="staging").name
        folder.mkdir(parents=True)
        return folder

    def commit(self, staging: Path) -> str | None:
        """Makes a staged folder a checkpoint and returns its name, or None when there is nothing in it."""
        staged = self._read(staging.relative_to(self.root).as_posix(), phase="staging")
        if not any(staging.iterdir()):
            staging.rmdir()
            return None
        name = self._next(staged.attempt, phase="checkpoint").name
        if is_scratch(self.root):
            staging.rename(self.root / name)
        else:
            self._rename_durably(staging, name)
        return name

    def _rename_durably(self, staging: Path, name: str) -> None:
        flush_tree(staging)
        staging.rename(self.root / name)
        for folder in (staging.parent, self.root, self.root.parent):
            flush(folder)

    def discard(self, staging: Path) -> None:
        rmtree(staging, ignore_errors=True)

    def path(self, name: str) -> Path:
        """The path of the checkpoint of that name. A name from a database that would lead elsewhere is refused."""
        return self.root / self._read(name, phase="checkpoint").name

    def named(self, name: str) -> Path:
        """As `path`, for a process on another machine: nothing is fetched for it here."""
        return self.root / self._read(name, phase="checkpoint").name

    def log_path(self, number: int, attempt: int) -> Path:
        """The path of the output of an attempt at trial `number`."""
        return self.root / f"{number:06d}" / f"attempt-{attempt}.log"

    def delete(self, name: str) -> int:
        """Deletes a checkpoint if it is there; returns the bytes freed. In another's folder nothing is."""
        if not self.is_ours:
            return 0
        entry = self._read(name, phase="checkpoint")
        doomed = self.root / CheckpointFolder(entry.attempt, "deleted", entry.index).name
        remove(doomed)
        try:
            self.path(name).rename(doomed)
        except FileNotFoundError:
            return 0
        return remove(doomed)

    def collect(self, keep: Set[str | None], *, may_live: Callable[[Attempt], bool]) -> int:
        """Deletes checkpoints that are no longer needed and returns the bytes freed.

        Checkpoints named in `keep` stay. An attempt that may be alive also keeps what it stages, and what it committed
        after its last one in `keep`, which it may be about to announce. A folder of another study keeps everything.
        """
        if not self.is_ours:
            return 0
        entries = self._all_entries()
        announced: dict[Attempt, int] = {}
        for entry in entries:
            if entry.name in keep:
                announced[entry.attempt] = max(entry.index, announced.get(entry.attempt, 0))

        def is_in_the_making(entry: CheckpointFolder) -> bool:
            is_new = entry.phase == "checkpoint" and entry.index > announced.get(entry.attempt, 0)
            return (entry.phase == "staging" or is_new) and may_live(entry.attempt)

        return sum(self._collect(entry) for entry in entries if not (entry.name in keep or is_in_the_making(entry)))

    def disk_use(self) -> int:
        """Bytes in all files under the root, logs included."""
        return size_of(self.root)

    @property
    def place(self) -> str:
        """The address of the files, for any process on any machine: `checkpoints_at` finds them by it."""
        return str(self.root)

    def local(self, folder: Path) -> Path:
        """The same checkpoint on this machine, given its folder on the coordinator's."""
        return folder

    def prove(self) -> str:
        """Leaves a file here by which others show that they see the same place: `sees` looks for it.

        It looks like a mark in the making, so that a folder in which a killed program left it is still free.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        name = f"{MARK}.{uuid4().hex}"
        (self.root / name).touch()
        return name

    def sees(self, proof: str) -> bool:
        return (self.root / proof).exists()

    def withdraw(self, proof: str) -> None:
        (self.root / proof).unlink(missing_ok=True)

    def read_log(self, attempt: Attempt, *, since: int = 0) -> tuple[int, bytes] | None:
        """A piece of the log of an attempt from that byte on, and where the piece begins; None if there is no log."""
        try:
            with self.log_path(attempt.number, attempt.attempt).open("rb") as log:
                log.seek(since)
                return since, log.read(LOG_PIECE)
        except FileNotFoundError:
            return None

    def read_live_log(self, attempt: Attempt, *, since: int = 0) -> tuple[int, bytes] | None:
        """The same of one that grows on another machine, as far as `show_log` showed it there."""
        return None

    def keep_log(self, attempt: Attempt) -> None:
        """Puts the log of an attempt where other machines find it; here they see the same folder."""

    def show_log(self, attempt: Attempt) -> None:
        """Lets other machines see the end of a log while its attempt runs on this one, until `hide_log`."""

    def hide_log(self, attempt: Attempt) -> None:
        """The attempt has ended, and its log is kept."""

    @property
    def is_ours(self) -> bool:
        """Whether the root carries the mark, so that what is in it may be deleted."""
        return self._mark is None or carries(self.root, self._mark)

    def _all_entries(self) -> list[CheckpointFolder]:
        return [entry for number in self._numbers() for entry in self._entries(number)]

    def _collect(self, entry: CheckpointFolder) -> int:
        return self.delete(entry.name) if entry.phase == "checkpoint" else remove(self.root / entry.name)

    def _next(self, attempt: Attempt, *, phase: Phase) -> CheckpointFolder:
        """An entry that is not there yet, also when an earlier study has left its folder."""
        own = (entry for entry in self._entries(attempt.number) if entry.attempt == attempt and entry.phase == phase)
        return CheckpointFolder(attempt, phase, 1 + max((entry.index for entry in own), default=0))

    def _numbers(self) -> list[int]:
        return [int(name) for name in names_in(self.root) if name.isdecimal()]

    def _entries(self, number: int) -> Iterator[CheckpointFolder]:
        folder = f"{number:06d}"
        for name in names_in(self.root / folder):
            if entry := parsed_name(f"{folder}/{name}"):
                yield entry

    def _read(self, name: str, *, phase: Phase) -> CheckpointFolder:
        entry = parsed_name(name)
        if entry is None or entry.phase != phase or entry.name != name:
            raise InvalidArgument(
                f"A checkpoint's name must look like '000012/attempt-1.{phase}-1', got {name!r}. "
                f"Names come from Checkpoints.commit."
            )
        return entry


def parsed_name(name: str) -> CheckpointFolder | None:
    if not (match := NAME.fullmatch(name)):
        return None
    phase: Phase = match["phase"]  # type: ignore[assignment]  # the pattern has no others
    return CheckpointFolder(Attempt(int(match["number"]), int(match["attempt"])), phase, int(match["index"]))
