"""A disk that remembers: what SQLite writes and syncs, in order, and what a power cut would leave of it.

The recorder is a VFS of SQLite, made with ctypes around the usual one, in the library that Python's own `sqlite3` uses.
So the program that is recorded is the one that is shipped.
"""

import _sqlite3
import ctypes
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = tuple[Any, ...]
"""("write", file, offset, bytes), ("truncate", file, size), ("delete", file), ("sync", file), ("sync folder",), or
("acknowledged", text), which the program adds itself."""

CREATED = 0x4
LOGS = 0x800 | 0x4000 | 0x80000
"""Files of these kinds: with the first sync of one that was created, SQLite syncs their folder too."""

SECTOR = 512
"""What a disk writes wholly or not at all."""

_POINTER, _WHOLE, _LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_Open = ctypes.CFUNCTYPE(_WHOLE, _POINTER, _POINTER, _POINTER, _WHOLE, _POINTER)
_Delete = ctypes.CFUNCTYPE(_WHOLE, _POINTER, ctypes.c_char_p, _WHOLE)
_Write = ctypes.CFUNCTYPE(_WHOLE, _POINTER, _POINTER, _WHOLE, _LONG)
_Truncate = ctypes.CFUNCTYPE(_WHOLE, _POINTER, _LONG)
_Sync = ctypes.CFUNCTYPE(_WHOLE, _POINTER, _WHOLE)


class _Vfs(ctypes.Structure):
    """The beginning of `sqlite3_vfs`; what follows is copied as it is."""

    _fields_ = (
        ("version", _WHOLE),
        ("file_size", _WHOLE),
        ("longest_path", _WHOLE),
        ("next", _POINTER),
        ("name", ctypes.c_char_p),
        ("data", _POINTER),
        ("open", _Open),
        ("delete", _Delete),
        ("rest", _POINTER * 14),
    )


class _Methods(ctypes.Structure):
    """The beginning of `sqlite3_io_methods`."""

    _fields_ = (
        ("version", _WHOLE),
        ("close", _POINTER),
        ("read", _POINTER),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        ("rest", _POINTER * 13),
    )


class _File(ctypes.Structure):
    """The beginning of `sqlite3_file`."""

    _fields_ = (("methods", ctypes.POINTER(_Methods)),)


class Recorder:
    """Takes the place of SQLite's way to the disk in this process, for all databases that are opened from now on."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._names: dict[int, str] = {}
        self._new_logs: set[int] = set()
        self._kept: list[Any] = []
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._real = library.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(self._real.contents)
        self._vfs.name = b"recording"
        self._vfs.open = _Open(self._open)
        self._vfs.delete = _Delete(self._delete)
        library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)

    def acknowledge(self, text: str) -> None:
        self.events.append(("acknowledged", text))

    def save(self, path: str) -> None:
        Path(path).write_bytes(pickle.dumps(self.events))

    def _open(self, vfs: int, name: int | None, file: int, flags: int, flags_out: int) -> int:
        """The name goes on as the pointer it is: SQLite keeps it."""
        code = int(self._real.contents.open(ctypes.addressof(self._real.contents), name, file, flags, flags_out))
        if code == 0 and name is not None:
            self._names[file] = Path(ctypes.string_at(name).decode()).name
            if flags & CREATED and flags & LOGS:
                self._new_logs.add(file)
            self._watch(_File.from_address(file))
        return code

    def _watch(self, file: _File) -> None:
        real = file.methods.contents
        if any(ctypes.addressof(kept) == ctypes.addressof(real) for kept in self._kept):
            return
        watched = _Methods.from_buffer_copy(real)
        watched.write = _Write(self._writing(real.write))
        watched.truncate = _Truncate(self._truncating(real.truncate))
        watched.sync = _Sync(self._syncing(real.sync))
        self._kept.append(watched)
        file.methods = ctypes.pointer(watched)

    def _writing(self, write: Callable[..., int]) -> Callable[..., int]:
        def record(file: int, data: int, amount: int, offset: int) -> int:
            self.events.append(("write", self._names[file], offset, ctypes.string_at(data, amount)))
            return write(file, data, amount, offset)

        return record

    def _truncating(self, truncate: Callable[..., int]) -> Callable[..., int]:
        def record(file: int, size: int) -> int:
            self.events.append(("truncate", self._names[file], size))
            return truncate(file, size)

        return record

    def _syncing(self, sync: Callable[..., int]) -> Callable[..., int]:
        def record(file: int, flags: int) -> int:
            code = sync(file, flags)
            self.events.append(("sync", self._names[file]))
            if file in self._new_logs:
                self._new_logs.discard(file)
                self.events.append(("sync folder",))
            return code

        return record

    def _delete(self, vfs: int, name: bytes, is_synced: int) -> int:
        code = int(self._real.contents.delete(ctypes.addressof(self._real.contents), name, is_synced))
        self.events.append(("delete", Path(name.decode()).name))
        if is_synced:
            self.events.append(("sync folder",))
        return code


@dataclass
class DiskFile:
    """What is safe of a file, and what has been written since: of that, a cut leaves any part."""

    safe: bytearray = field(default_factory=bytearray)
    pending: list[Event] = field(default_factory=list)

    def sync(self) -> None:
        self.safe = self._with(self.pending)
        self.pending = []

    def after_cut(self, rng: random.Random) -> bytes:
        some = [_torn(event, rng) for event in self.pending if rng.random() < 0.5]
        return bytes(self._with(rng.choice([[], self.pending, some])))

    def _with(self, events: list[Event]) -> bytearray:
        content = bytearray(self.safe)
        for kind, *rest in events:
            if kind == "write":
                offset, data = rest
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = data
            else:
                del content[rest[0] :]
        return content


class Disk:
    """A folder and its files. Until the folder is synced, a name may still lead where it led at its last sync."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._now = {name: DiskFile(bytearray(content)) for name, content in files.items()}
        self._safe_names = dict(self._now)

    def take(self, event: Event) -> None:
        match event:
            case ("sync folder",):
                self._safe_names = dict(self._now)
            case ("sync", name):
                self._now.setdefault(name, DiskFile()).sync()
            case ("delete", name):
                self._now.pop(name, None)
            case (kind, name, *rest):
                self._now.setdefault(name, DiskFile()).pending.append((kind, *rest))

    def after_cut(self, rng: random.Random) -> dict[str, bytes]:
        names = {**self._safe_names, **self._now}
        found = {name: rng.choice([self._safe_names, self._now]).get(name) for name in sorted(names)}
        return {name: file.after_cut(rng) for name, file in found.items() if file is not None}


def _torn(event: Event, rng: random.Random) -> Event:
    """A write of which only the first sectors came to the disk."""
    if event[0] != "write":
        return event
    kind, offset, data = event
    return kind, offset, data[: rng.randint(0, len(data) // SECTOR) * SECTOR]


class Recording:
    """What a program did to its disk. `before` is what was there when it began."""

    def __init__(self, events: list[Event], before: dict[str, bytes]) -> None:
        self.events = events
        self._before = before

    @classmethod
    def load(cls, path: Path, before: dict[str, bytes]) -> "Recording":
        return cls(pickle.loads(path.read_bytes()), before)

    def acknowledged(self, cut: int) -> list[str]:
        return [event[1] for event in self.events[:cut] if event[0] == "acknowledged"]

    def cut_power(self, cut: int, folder: Path, rng: random.Random) -> None:
        """Leaves in the folder what a disk has when the power ends before the event of that number."""
        disk = Disk(self._before)
        for event in self.events[:cut]:
            if event[0] != "acknowledged":
                disk.take(event)
        for name, content in disk.after_cut(rng).items():
            (folder / name).write_bytes(content)
