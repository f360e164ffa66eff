"""Outputs of stages in an object store, with the cache of each machine in front of it."""

from collections.abc import Sequence
from pathlib import Path

from farthing.caching.stage_cache import FOLDER, MANIFEST, CacheKey, Kept, Load, Manifest, Save, StageCache
from farthing.files.durable import remove
from farthing.files.object_store import Damaged, ObjectStore

STORE_FILE = ".farthing-store"
"""In the folder of a study's files on one machine: the URL of the store that has them for all."""


def stage_cache(root: Path, *, limit: int | None) -> StageCache:
    """The cache of a study whose files are at that place on this machine."""
    try:
        url = (root / STORE_FILE).read_text()
    except OSError:
        return StageCache(root / FOLDER, limit=limit)
    return StoredStageCache(root / FOLDER, ObjectStore(url), limit=limit)


class StoredStageCache(StageCache):
    """As `StageCache`, for machines that share no disk.

    The locks are those of one machine: nobody waits for another one. So two machines may compute the same output; the
    first that uploads it counts from then on, and both have paid for it. The limit holds for the store.
    """

    def __init__(self, folder: Path, store: ObjectStore, *, limit: int | None) -> None:
        super().__init__(folder, limit=limit)
        self._store = store
        self.url = store.url
        self._known: dict[str, Manifest] = {}

    def has(self, address: CacheKey) -> bool:
        return super().has(address) or self._store.has(_name(address.key))

    def get(self, address: CacheKey, load: Load) -> Kept | None:
        if super().has(address):
            return super().get(address, load)
        with self.computing(address):
            return self.get_held(address, load)

    def get_held(self, address: CacheKey, load: Load) -> Kept | None:
        if not super().has(address):
            self._fetch(address)
        return super().get_held(address, load) if super().has(address) else None

    def put(self, lineage: Sequence[CacheKey], output: object, *, seconds: Sequence[float], save: Save) -> None:
        super().put(lineage, output, seconds=seconds, save=save)
        address = lineage[-1]
        folder = self._folder / address.key
        if not super().has(address):
            return
        try:
            is_first = self._store.put(folder, _name(address.key))
        except OSError as error:
            self._tell(address, "unwritable", str(error))
            return
        if not is_first:
            remove(folder)  # another machine's counts: it is fetched when it is needed

    def entries(self) -> list[Manifest]:
        here = {entry.key: entry for entry in super().entries()}
        stored = [name.partition("/")[2] for name in self._store.folders(FOLDER)]
        known = {key: found for key in stored if (found := here.get(key) or self._manifest(key))}
        return list({**here, **known}.values())

    def _manifest(self, key: str) -> Manifest | None:
        """The description of an output that is in the store only."""
        if key not in self._known:
            text = self._store.read_file(_name(key), MANIFEST)
            if text is not None and (found := Manifest.of(text, key=key)):
                self._known[key] = found
        return self._known.get(key)

    def _fetch(self, address: CacheKey) -> None:
        folder = self._folder / address.key
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._store.get(_name(address.key), folder)
        except Damaged as error:
            self._store.drop(_name(address.key))
            self._tell(address, "corrupt", str(error))
        except OSError as error:
            self._tell(address, "unwritable", str(error))

    def _evict(self, entry: Manifest, why: str) -> bool:
        self._folder.mkdir(parents=True, exist_ok=True)  # of outputs that are elsewhere, the locks are here
        is_gone = super()._evict(entry, why)
        if is_gone:
            self._store.drop(_name(entry.key))
            self._known.pop(entry.key, None)
        return is_gone


def _name(key: str) -> str:
    return f"{FOLDER}/{key}"
