"""Outputs of stages on the disk, under names that say what they are the outputs of."""

import errno
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from farthing.caching.identity import checksum
from farthing.errors import InvalidArgument
from farthing.files.durable import flush, flush_tree, names_in, remove, size_of
from farthing.files.file_lock import exclusive, exclusive_if_free, shared, shared_if_free
from farthing.scalars import as_int
from farthing.trials.prefixes import Eviction
from farthing.validation import shown

FOLDER = "stages"
"""The folder of the cache, beside a study's checkpoints."""
MANIFEST, OUTPUT = "entry.json", "output"
"""In the folder of an entry: what it says of itself, and the folder of what was saved."""
_KEY = re.compile(r"[0-9a-f]{64}")
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

Save = Callable[[object, Path], None]
Load = Callable[[Path], Any]


class _Unreadable(Exception):
    """An entry is not as it was written, or cannot be loaded."""


@dataclass(frozen=True)
class CacheKey:
    """The name of an output: that of the first `length` stages, whose params are `prefix`, for a source.

    `versions` are the names and versions of these stages.
    """

    source: str
    versions: tuple[tuple[str, str], ...]
    prefix: str

    @property
    def length(self) -> int:
        return len(self.versions)

    @cached_property
    def key(self) -> str:
        """The name of the entry: equal addresses have equal keys, in any process."""
        return hashlib.sha256(json.dumps([1, self.source, self.versions, self.prefix]).encode()).hexdigest()


@dataclass(frozen=True)
class Kept:
    """An output out of the cache, and what each stage had cost that led to it."""

    output: Any
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Manifest:
    """The description of an entry. `lineage` are the keys of its shorter prefixes and its own.

    `seconds` are those of each stage that led to it, its own last.
    """

    lineage: tuple[str, ...]
    prefix: str
    seconds: tuple[float, ...]
    size: int
    checksums: dict[str, str]

    @property
    def key(self) -> str:
        return self.lineage[-1]

    @property
    def length(self) -> int:
        return len(self.lineage)

    def write(self, path: Path) -> None:
        content = json.dumps(asdict(self))
        path.write_text(f"{hashlib.sha256(content.encode()).hexdigest()}\n{content}")

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """None for one that is not as it was written, or of another format."""
        try:
            return cls.of((folder / MANIFEST).read_bytes(), key=folder.name)
        except OSError:
            return None

    @classmethod
    def of(cls, text: bytes, *, key: str) -> "Manifest | None":
        """As `read`, from what the file holds."""
        try:
            digest, _, content = text.partition(b"\n")
            if hashlib.sha256(content).hexdigest().encode() != digest:
                return None
            form = json.loads(content)
            manifest = cls(**{**form, "lineage": tuple(form["lineage"]), "seconds": tuple(form["seconds"])})
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return manifest if manifest._is_as_written() and manifest.key == key else None

    def _is_as_written(self) -> bool:
        """Others may write to a store: a key that is none would name another folder, which is then removed."""
        return (
            isinstance(self.checksums, dict)
            and all(isinstance(text, str) for text in (self.prefix, *self.lineage, *self.checksums.values()))
            and all(_KEY.fullmatch(key) for key in self.lineage)
            and len(self.lineage) == len(self.seconds) > 0
            and all(type(seconds) in (int, float) for seconds in self.seconds)
            and type(self.size) is int
            and self.size >= 0
        )


class StageCache:
    """Keeps outputs of stages under one folder, for all processes that know it, within a limit of bytes.

    An entry is there wholly or not at all, also after a crash: it is written aside, put on the disk and renamed. It is
    read only while it is as it was written, by checksums; otherwise it is dropped. Its key says everything that the
    output depends on, so that an entry is never out of date: where a stage's version changes, other keys are asked for.

    The process that computes an output holds the lock of its key. A second process that wants it waits, then finds it;
    when the first dies, its lock is free and the second computes. `limit` None means no limit.

    `news` tells of evictions; the caller passes them on.
    """

    def __init__(self, folder: Path, *, limit: int | None) -> None:
        self._folder = folder
        self._limit = limit
        self._evicted: list[Eviction] = []

    def news(self) -> list[Eviction]:
        """The evictions since the last call."""
        evicted, self._evicted = self._evicted, []
        return evicted

    def has(self, address: CacheKey) -> bool:
        return (self._folder / address.key / MANIFEST).exists()

    def get(self, address: CacheKey, load: Load) -> Kept | None:
        """The output, or None. Waits only for a process that is just removing it."""
        if not self.has(address):
            return None
        try:
            with shared(self._lock(address.key)):
                return self._load(address, load)
        except (_Unreadable, OSError):
            with self.computing(address):
                return self.get_held(address, load)

    @contextmanager
    def computing(self, address: CacheKey) -> Iterator[None]:
        """Holds the lock of an output, to compute it. Ask `get_held` then: another process may have been faster.

        If no file can be made for a lock, there is none, and two processes may compute the same.
        """
        with ExitStack() as lock:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                lock.enter_context(exclusive(self._lock(address.key)))
            except OSError as error:
                self._tell(address, "unwritable", _reason(error))
            yield

    def get_held(self, address: CacheKey, load: Load) -> Kept | None:
        """As `get`, for the holder of the lock. An entry that cannot be read is dropped."""
        if not self.has(address):
            return None
        try:
            return self._load(address, load)
        except _Unreadable as unreadable:
            with suppress(OSError):  # in a folder that cannot be written it stays, and is never served
                self._remove(address.key)
            self._tell(address, "corrupt", str(unreadable))
            return None

    def put(
        self,
        lineage: Sequence[CacheKey],
        output: object,
        *,
        seconds: Sequence[float],
        save: Save,
    ) -> None:
        """Keeps the output at the last of `lineage`, which are the addresses of all its prefixes.

        The caller holds its lock. If there is no room for it, or no way to write it, it is not kept and `news` says
        so; what `save` itself refuses is raised.
        """
        address = lineage[-1]
        staging = self._folder / f"{address.key}.staging"
        try:
            self._write(staging, lineage, output, seconds=seconds, save=save)
        except OSError as error:
            remove(staging)
            self._tell(address, "unwritable", _reason(error))
        except BaseException:
            remove(staging)
            raise

    def shrink(self) -> None:
        """Removes entries until the limit is kept: first what takes the least time to compute again per byte."""
        if self._limit is None:
            return
        with suppress(OSError), exclusive(self._folder / "shrinking.lock"):
            entries = {entry.key: entry for entry in self.entries()}
            while sum(entry.size for entry in entries.values()) > self._limit:
                evicted = self._evict_one(entries)
                if evicted is None:
                    return
                del entries[evicted.key]

    def entries(self) -> list[Manifest]:
        """The descriptions of all outputs that are there, by key."""
        names = (name for name in names_in(self._folder) if "." not in name)
        return [manifest for name in names if (manifest := Manifest.read(self._folder / name))]

    def written_at(self, entry: Manifest) -> float:
        """When the entry was written, in seconds since 1970; 0 for one that is gone."""
        try:
            return (self._folder / entry.key).stat().st_mtime
        except OSError:
            return 0.0

    def discard(self, entries: Iterable[Manifest]) -> list[Manifest]:
        """Removes these entries but for those in use, which it does not wait for; returns the ones removed."""
        return [entry for entry in entries if self._evict(entry, "pruned")]

    def verify(self) -> Iterator[tuple[str, str]]:
        """The key of every entry with what is wrong with it: nothing for a sound one.

        It changes nothing and never waits. A process that computes, loads or removes an entry goes first: such an entry
        is left out, as is one that is removed meanwhile.
        """
        for name in names_in(self._folder):
            fault = None if "." in name else self._fault_if_free(name)
            if fault is not None:
                yield name, fault

    def tidy(self) -> None:
        """Removes what processes that were killed left half-written or half-removed, and what cannot be an entry."""
        for name in names_in(self._folder):
            key, _, ending = name.partition(".")
            with suppress(OSError), exclusive_if_free(self._lock(key)) as is_free:
                is_entry = not ending and Manifest.read(self._folder / name) is not None
                if is_free and not is_entry and ending != "lock":
                    remove(self._folder / name)

    def _fault_if_free(self, name: str) -> str | None:
        """None for an entry that another process holds alone, or that is gone."""
        with ExitStack() as lock:
            with suppress(OSError):  # where no lock can be written, no entry can be removed
                if not lock.enter_context(shared_if_free(self._lock(name))):
                    return None
            return self._fault(name) if (self._folder / name).is_dir() else None

    def _fault(self, name: str) -> str:
        manifest = Manifest.read(self._folder / name)
        if manifest is None:
            return "its description is missing or damaged"
        try:
            found = _checksums(self._folder / name / OUTPUT)
        except OSError as error:
            return f"it cannot be read: {_reason(error)}"
        wrong = [file for file in {**manifest.checksums, **found} if manifest.checksums.get(file) != found.get(file)]
        return f"{wrong[0]} is not as it was written" if wrong else ""

    def _lock(self, key: str) -> Path:
        return self._folder / f"{key}.lock"

    def _load(self, address: CacheKey, load: Load) -> Kept:
        folder = self._folder / address.key
        manifest = Manifest.read(folder)
        try:
            if manifest is None or _checksums(folder / OUTPUT) != manifest.checksums:
                raise _Unreadable("its checksum is wrong")
            return Kept(load(folder / OUTPUT), manifest.seconds)
        except (_Unreadable, MemoryError):  # for want of memory the entry is no worse
            raise
        except Exception as error:
            raise _Unreadable(f"{type(error).__name__}: {error}") from error

    def _tell(self, address: CacheKey, why: str, detail: str = "") -> None:
        self._evicted.append(Eviction(address.prefix, address.length, why, detail))

    def _write(
        self,
        staging: Path,
        lineage: Sequence[CacheKey],
        output: object,
        *,
        seconds: Sequence[float],
        save: Save,
    ) -> None:
        remove(staging)
        (staging / OUTPUT).mkdir(parents=True)
        save(output, staging / OUTPUT)
        size = size_of(staging)
        if self._limit is not None and size > self._limit:
            raise OSError(errno.EFBIG, f"its {size} bytes are more than the limit of {self._limit}")
        keys = tuple(address.key for address in lineage)
        checksums = _checksums(staging / OUTPUT)
        Manifest(keys, lineage[-1].prefix, tuple(seconds), size, checksums).write(staging / MANIFEST)
        flush_tree(staging)
        self._remove(keys[-1])
        staging.rename(self._folder / keys[-1])
        flush(self._folder)

    def _evict_one(self, entries: dict[str, Manifest]) -> Manifest | None:
        """Removes the entry that is cheapest to do without and not in use; None if all are in use."""
        cheapest_first = sorted(entries.values(), key=lambda entry: _seconds_per_byte(entry, entries))
        return next((entry for entry in cheapest_first if self._evict(entry, "limit")), None)

    def _evict(self, entry: Manifest, why: str) -> bool:
        """Removes an entry that is not in use, and tells of it."""
        with exclusive_if_free(self._lock(entry.key)) as is_free:
            if is_free:
                self._remove(entry.key)
                self._evicted.append(Eviction(entry.prefix, entry.length, why))
            return is_free

    def _remove(self, key: str) -> None:
        """Removes the name first, so that no process finds half an entry. The caller holds the lock."""
        doomed = self._folder / f"{key}.deleted"
        remove(doomed)
        with suppress(FileNotFoundError):
            (self._folder / key).rename(doomed)
        remove(doomed)


def beyond(entries: Iterable[Manifest], limit: int) -> list[Manifest]:
    """The entries that must go to keep within a limit of bytes, in their order: see `StageCache.shrink`."""
    kept = {entry.key: entry for entry in entries}
    gone = []
    while sum(entry.size for entry in kept.values()) > limit:
        cheapest = min(kept.values(), key=lambda entry: _seconds_per_byte(entry, kept))
        gone.append(kept.pop(cheapest.key))
    return gone


def read_limit(limit: int | str | None) -> int | None:
    """Bytes, from a number or a text such as "2 GB"."""
    if limit is None:
        return None
    if (size := as_int(limit)) is not None and size >= 0:
        return size
    parts = re.fullmatch(r"\s*(\d+|\d*\.\d+)\s*([KMGT]?B)\s*", limit, re.IGNORECASE) if isinstance(limit, str) else None
    if parts is None:
        raise InvalidArgument(
            f"A cache's limit must be a number of bytes or a text such as '2 GB', got {shown(limit)}. "
            f"Use None for no limit, 0 for no cache."
        )
    return int(float(parts[1]) * UNITS[parts[2].upper()])


def _reason(error: OSError) -> str:
    """In words; NumPy has its own for a write that was cut short."""
    return error.strerror or f"{error}; is the disk full?"


def _seconds_per_byte(entry: Manifest, entries: dict[str, Manifest]) -> float:
    """Seconds to compute the entry again, from the longest of its prefixes that is kept, per byte."""
    start = max((place + 1 for place, key in enumerate(entry.lineage[:-1]) if key in entries), default=0)
    return sum(entry.seconds[start:]) / max(1, entry.size)


def _checksums(folder: Path) -> dict[str, str]:
    """Lists all files by name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {file.relative_to(folder).as_posix(): checksum(file) for file in files}
