"""Checkpoints in an object store, with a folder on each machine in front of it."""

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

from farthing.caching.stored_stages import STORE_FILE
from farthing.errors import FarthingError, InvalidArgument
from farthing.execution.checkpoints import CheckpointFolder, Checkpoints, parsed_name
from farthing.execution.folder_mark import MARK, Mark
from farthing.files.durable import remove
from farthing.files.object_store import ObjectStore, is_url
from farthing.trials import Attempt

LOGS = "logs"
SECONDS_BETWEEN_LOOKS = 10.0
"""How often the end of a running trial's log is uploaded, if it has grown. Each upload is a request, which costs."""
LIVE_BYTES = 65_536
"""Most bytes of it: stores cannot append, so that the same bytes go up again each time."""


def checkpoints_at(place: str) -> Checkpoints:
    """The checkpoints at a place that `Checkpoints.place` named."""
    return StoredCheckpoints(place) if is_url(place) else Checkpoints(Path(place))


class StoredCheckpoints(Checkpoints):
    """As `Checkpoints`, for machines that share no disk: a checkpoint counts once the store has it.

    Work reads and writes in a folder of its machine, which all processes there share. A committed checkpoint is
    uploaded, manifest last, before it is announced; one that is needed elsewhere is downloaded there, once. Logs are
    uploaded when an attempt ends, and the end of each while it runs.
    """

    def __init__(self, url: str, *, mark: Mark | None = None) -> None:
        self.store = ObjectStore(url)
        super().__init__(_local_folder(self.store.url))
        self._owner = mark
        self._live = LiveLogs(self.store)
        self._prepare()

    @property
    def place(self) -> str:
        return self.store.url

    def claim(self) -> None:
        if self._owner is not None:
            self._claim(self._owner)

    def _claim(self, owner: Mark) -> None:
        if self._mark_identity() is None:
            self.store.write_once(MARK, json.dumps(asdict(owner)).encode())
        if self._mark_identity() != owner.identity:
            raise InvalidArgument(
                f"A study's folder must be its own, got {self.store.url!r}, whose mark says that it belongs to another "
                "study. Give another place: folder=…; or, if its files are not needed, delete it."
            )

    def commit(self, staging: Path) -> str | None:
        """Uploads what was staged; when this returns, the checkpoint can be read on every machine."""
        staged = parsed_name(staging.relative_to(self.root).as_posix())
        assert staged is not None
        if any(staging.iterdir()):
            self.store.put(staging, self._next(staged.attempt, phase="checkpoint").name)
        return super().commit(staging)

    def path(self, name: str) -> Path:
        folder = super().path(name)
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            self.store.get(name, folder)
        return folder

    def local(self, folder: Path) -> Path:
        name = "/".join(folder.parts[-2:])
        return self.path(name) if parsed_name(name) else folder

    def log_path(self, number: int, attempt: int) -> Path:
        path = super().log_path(number, attempt)
        if not path.exists():
            with suppress(OSError):
                self.store.download_file(f"{LOGS}/{number:06d}/{path.name}", path)
        return path

    def keep_log(self, attempt: Attempt) -> None:
        path = super().log_path(attempt.number, attempt.attempt)
        with suppress(OSError):  # a log is not worth failing for
            if path.exists():
                self.store.upload_file(path, f"{LOGS}/{attempt.number:06d}/{path.name}")

    def read_log(self, attempt: Attempt, *, since: int = 0) -> tuple[int, bytes] | None:
        whole = super().read_log(attempt, since=since)
        return self.read_live_log(attempt, since=since) if whole is None else whole

    def read_live_log(self, attempt: Attempt, *, since: int = 0) -> tuple[int, bytes] | None:
        return self._live.read(attempt, since=since)

    def show_log(self, attempt: Attempt) -> None:
        self._live.show(attempt, super().log_path(attempt.number, attempt.attempt))

    def hide_log(self, attempt: Attempt) -> None:
        self._live.hide(attempt)

    def prove(self) -> str:
        name = f"{MARK}.{uuid4().hex}"
        self.store.write(name, b"")
        return name

    def sees(self, proof: str) -> bool:
        try:
            return self.store.read(proof) is not None
        except (OSError, FarthingError):
            return False

    def withdraw(self, proof: str) -> None:
        with suppress(OSError):
            self.store.delete(proof)

    def disk_use(self) -> int:
        """Bytes in the store."""
        return self.store.size()

    def remove_all(self) -> int:
        """Deletes everything that belongs to the study, the mark last; returns the bytes freed."""
        freed = self.store.size()
        for name in [*self.store.folders(), *self.store.folders("stages")]:
            self.store.drop(name)
        for log in self.store.names(LOGS):
            self.store.delete(log)
        self.store.delete(MARK)
        remove(self.root)
        return freed

    def delete(self, name: str) -> int:
        if not self.is_ours:
            return 0
        freed = self.store.drop(name)
        return max(freed, super().delete(name))

    def collect(self, keep: Set[str | None], *, may_live: Callable[[Attempt], bool]) -> int:
        return super().collect(keep, may_live=may_live) if self.is_ours else 0

    @property
    def is_ours(self) -> bool:
        return self._owner is None or self._mark_identity() == self._owner.identity

    def _mark_identity(self) -> str | None:
        found = self.store.read(MARK)
        try:
            return None if found is None else str(json.loads(found)["identity"])
        except (ValueError, KeyError, TypeError):
            return ""

    def _prepare(self) -> None:
        """Makes the folder, and notes in it which store it is in front of. A folder of another user's is refused."""
        parent = self.root.parent
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if parent.is_symlink() or parent.stat().st_uid != os.getuid():
            raise InvalidArgument(
                f"The folder in front of a store must be this user's own, got {str(parent)!r}, which another has made. "
                "Set TMPDIR to a folder of yours."
            )
        self.root.mkdir(exist_ok=True, mode=0o700)
        if not (self.root / STORE_FILE).exists():
            (self.root / STORE_FILE).write_text(self.store.url)

    def _all_entries(self) -> list[CheckpointFolder]:
        """Those of this machine and those of the store, also the ones that were uploaded in part."""
        stored = (parsed_name(name) for name in self.store.folders() if not name.startswith("stages/"))
        return sorted({*super()._all_entries(), *filter(None, stored)}, key=lambda entry: entry.name)


class LiveLogs:
    """The ends of the logs of running attempts in the store, each with the place in its log where it begins.

    A thread uploads those that have grown, as long as there are any, so that nothing waits for the store.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._shown: dict[Attempt, Path] = {}
        self._is_looking = False

    def show(self, attempt: Attempt, path: Path) -> None:
        with self._lock:
            self._shown[attempt] = path
            if not self._is_looking:
                threading.Thread(target=self._keep_looking, name="farthing-logs", daemon=True).start()
            self._is_looking = True

    def hide(self, attempt: Attempt) -> None:
        with self._lock:
            self._shown.pop(attempt, None)

    def read(self, attempt: Attempt, *, since: int) -> tuple[int, bytes] | None:
        with suppress(OSError, ValueError):
            first, _, end = (self._store.read(_live_name(attempt)) or b"").partition(b"\n")
            begins = max(since, int(first))
            return begins, end[begins - int(first) :]
        return None

    def _keep_looking(self) -> None:
        uploaded: dict[Attempt, int] = {}
        while True:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            with self._lock:
                shown = dict(self._shown)
                self._is_looking = bool(shown)
            for attempt in uploaded.keys() - shown.keys():
                with suppress(OSError):  # it stays, and the whole log comes before it
                    self._store.delete(_live_name(attempt))
            if not shown:
                return
            uploaded = {
                attempt: self._upload(attempt, path, uploaded.get(attempt, 0)) for attempt, path in shown.items()
            }

    def _upload(self, attempt: Attempt, path: Path, before: int) -> int:
        """The length of the log in the store, which is tried again at the next look if it cannot be reached."""
        with suppress(OSError), path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            if size > before:
                begins = log.seek(max(0, size - LIVE_BYTES))
                self._store.write(_live_name(attempt), b"%d\n" % begins + log.read(size - begins))
            return size
        return before


def _live_name(attempt: Attempt) -> str:
    return f"{LOGS}/{attempt.number:06d}/attempt-{attempt.attempt}.live"


def _local_folder(url: str) -> Path:
    """The same for all processes of a user on a machine."""
    return Path(gettempdir(), f"farthing-store-{os.getuid()}", hashlib.sha256(url.encode()).hexdigest()[:16])
