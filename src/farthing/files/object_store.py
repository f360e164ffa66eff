"""Folders in an object store, or on any file system that `fsspec` knows, by URL: `s3://bucket/studies`, `file:///nfs/x`.

Stores have no renaming and no locks. So a folder is uploaded file by file under a name of its own, and then one small
object, its manifest, makes it be there: whole or not at all. Of several that upload the same folder the first manifest
wins. What is downloaded is compared with the checksums in the manifest. Others may write to a store, so a manifest that
`put` would not have made is refused, and no link on a disk is followed.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from farthing.errors import InvalidArgument, MissingExtra
from farthing.files.durable import remove
from farthing.validation import shown

MANIFESTS, CONTENT = "manifests", "content"
"""Manifests lie under their folders' names; the files of each upload under a name that no other upload has."""
WITHOUT_FOLDERS = {"s3", "gs", "gcs", "abfs", "az"}
_URL = re.compile(r"[a-z][a-z0-9+.-]*://")
_UPLOAD, _CHECKSUM = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{64}")


def is_url(place: object) -> bool:
    return isinstance(place, str) and _URL.match(place) is not None


class Damaged(OSError):
    """A download differs from what was uploaded."""


@dataclass(frozen=True)
class Upload:
    """The manifest of a folder: which upload made it, and each file's bytes and checksum."""

    upload: str
    files: dict[str, tuple[int, str]]

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.files.values())

    def to_bytes(self) -> bytes:
        content = json.dumps({"upload": self.upload, "files": self.files}, sort_keys=True).encode()
        return _digest(content).encode() + b"\n" + content

    @classmethod
    def from_bytes(cls, text: bytes | None) -> "Upload | None":
        """None for one that is missing, or was not written to its end."""
        digest, _, content = (text or b"").partition(b"\n")
        if _digest(content).encode() != digest:
            return None
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            form = json.loads(content)
            upload = cls(form["upload"], {name: (size, checksum) for name, (size, checksum) in form["files"].items()})
            if upload._is_as_put_makes_it():
                return upload
        raise Damaged(f"A manifest must be as it was uploaded, got {shown(content)}. Who else writes to this store?")

    def _is_as_put_makes_it(self) -> bool:
        """Files of a folder have plain relative names, and none is a folder of another."""
        folders = {str(parent) for name in self.files for parent in PurePosixPath(name).parents}
        return _UPLOAD.fullmatch(self.upload) is not None and all(
            _is_plain(name)
            and name not in folders
            and type(size) is int
            and size >= 0
            and _CHECKSUM.fullmatch(checksum)
            for name, (size, checksum) in self.files.items()
        )


class ObjectStore:
    """All that is under one URL. An `OSError` says that the store cannot be reached, or refuses."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def __reduce__(self) -> tuple[type["ObjectStore"], tuple[str]]:
        return ObjectStore, (self.url,)

    @cached_property
    def _system(self) -> tuple[Any, str]:
        try:
            found: tuple[Any, str] = import_module("fsspec").core.url_to_fs(self.url, use_listings_cache=False)
            return found
        except ImportError as error:
            raise MissingExtra(
                f"A folder at a URL needs fsspec and the package of its kind, got {error}. Run: pip install "
                "'farthing[s3]', or install the one for your store."
            ) from error
        except ValueError as error:
            raise InvalidArgument(
                f"A folder's URL must be one that fsspec knows, got {self.url!r} ({error}). Write for example "
                "folder='s3://bucket/studies'."
            ) from error

    # ---- single objects ---------------------------------------------------------------------------------------------

    def read(self, name: str) -> bytes | None:
        system, path = self._find(name)
        try:
            content: bytes = system.cat_file(path)
        except FileNotFoundError:
            return None
        return content

    def write(self, name: str, content: bytes) -> None:
        system, path = self._find(name)
        self._make_folder_of(path)
        system.pipe_file(path, content)

    def write_once(self, name: str, content: bytes) -> bool:
        """Writes an object that is not there yet; False where another was first.

        By a conditional put where the store has it; elsewhere by looking first, which two may do at the same moment.
        """
        system, path = self._find(name)
        self._make_folder_of(path)
        try:
            system.pipe_file(path, content, mode="create")
        except FileExistsError:
            return False
        except (NotImplementedError, TypeError, ValueError):
            if system.exists(path):
                return False
            system.pipe_file(path, content)
        return True

    def upload_file(self, path: Path, name: str) -> None:
        system, target = self._find(name)
        self._make_folder_of(target)
        system.put_file(str(path), target)

    def download_file(self, name: str, path: Path) -> bool:
        """False where there is no such object."""
        system, source = self._find(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            system.get_file(source, str(path))
        except FileNotFoundError:
            return False
        return True

    def delete(self, name: str) -> None:
        folder, _, last = name.rpartition("/")
        system, path = self._find(folder)
        with suppress(FileNotFoundError):
            system.rm_file(f"{path}/{last}")

    def names(self, prefix: str) -> list[str]:
        """The names of all objects whose names begin with `prefix/`."""
        system, root = self._system
        try:
            found = system.find(self._find(prefix)[1])
        except FileNotFoundError:
            return []
        start = len(root) + 1
        return sorted(path[path.index(root) + start :] for path in found)

    def _find(self, name: str) -> tuple[Any, str]:
        """The file system, and the path of an object in it. On a disk no link may lead there: `put` makes none."""
        system, root = self._system
        path = f"{root}/{name}".rstrip("/")
        if "file" in self._kinds and os.path.realpath(path) != f"{os.path.realpath(root)}/{name}".rstrip("/"):
            raise Damaged(f"A store must hold no links, got one on the way to {path}. Who else writes to this folder?")
        return system, path

    @property
    def _kinds(self) -> set[str]:
        protocol = self._system[0].protocol
        return {protocol} if isinstance(protocol, str) else set(protocol)

    def _make_folder_of(self, path: str) -> None:
        """Object stores have no folders, and asking them for one takes a call."""
        if not self._kinds & WITHOUT_FOLDERS:
            self._system[0].makedirs(path.rpartition("/")[0], exist_ok=True)

    # ---- folders ----------------------------------------------------------------------------------------------------

    def manifest(self, name: str) -> Upload | None:
        """`Damaged` says that there is one that `put` would not have made."""
        return Upload.from_bytes(self.read(f"{MANIFESTS}/{name}"))

    def sound_manifest(self, name: str) -> Upload | None:
        """As `manifest`, where one that is damaged is no better than none."""
        try:
            return self.manifest(name)
        except Damaged:
            return None

    def has(self, name: str) -> bool:
        return self.sound_manifest(name) is not None

    def put(self, folder: Path, name: str) -> bool:
        """Uploads a folder, the manifest last; False where another upload of that name was first, which then counts.

        When it returns, the manifest can be read back.
        """
        files = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
        upload = Upload(uuid4().hex, {rel: (path.stat().st_size, checksum_of(path)) for rel, path in files.items()})
        for relative, path in files.items():
            self.upload_file(path, self._content(name, upload, relative))
        is_first = self._announce(name, upload)
        counts = self.manifest(name)
        if counts is None:
            raise OSError(f"{self.url}/{MANIFESTS}/{name} was written, but cannot be read back")
        if counts.upload != upload.upload:
            self._delete_content(name, upload.upload)
        return is_first

    def _announce(self, name: str, upload: Upload) -> bool:
        """Writes the manifest, unless there is a sound one. A writer that died may have left half of one."""
        if self.write_once(f"{MANIFESTS}/{name}", upload.to_bytes()):
            return True
        if self.has(name):
            return False
        self.write(f"{MANIFESTS}/{name}", upload.to_bytes())
        return True

    def get(self, name: str, into: Path) -> bool:
        """Downloads a folder, which is then there whole; False where the store has none of that name."""
        upload = self.manifest(name)
        if upload is None:
            return False
        draft = into.with_name(f"{into.name}.{uuid4().hex}.download")
        try:
            for relative, (_, checksum) in upload.files.items():
                is_there = self.download_file(self._content(name, upload, relative), draft / relative)
                if not is_there or checksum_of(draft / relative) != checksum:
                    raise Damaged(f"{self.url}/{name}/{relative} is not as it was uploaded")
            draft.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # another process of this machine was quicker
                draft.rename(into)
        finally:
            remove(draft)
        return True

    def read_file(self, name: str, relative: str) -> bytes | None:
        """One file of a folder."""
        upload = self.sound_manifest(name)
        return None if upload is None else self.read(self._content(name, upload, relative))

    def size(self) -> int:
        """Bytes of all objects."""
        system, root = self._system
        return int(system.du(root)) if system.exists(root) else 0

    def drop(self, name: str) -> int:
        """Deletes a folder, the manifest first, so that nobody finds half of it; returns the bytes freed."""
        upload = self.sound_manifest(name)
        self.delete(f"{MANIFESTS}/{name}")
        for path in self.names(f"{CONTENT}/{name}"):
            self.delete(path)
        return upload.size if upload else 0

    def folders(self, prefix: str = "") -> list[str]:
        """The names of folders that are there, or that were uploaded in part."""
        return sorted({*self._announced(prefix), *self._begun(prefix)})

    def _announced(self, prefix: str) -> Iterator[str]:
        for name in self.names(f"{MANIFESTS}/{prefix}".rstrip("/")):
            yield name.removeprefix(f"{MANIFESTS}/")

    def _begun(self, prefix: str) -> Iterator[str]:
        for name in self.names(f"{CONTENT}/{prefix}".rstrip("/")):
            yield name.removeprefix(f"{CONTENT}/").partition("/upload-")[0]

    def _content(self, name: str, upload: Upload, relative: str) -> str:
        return f"{CONTENT}/{name}/upload-{upload.upload}/{relative}"

    def _delete_content(self, name: str, upload: str) -> None:
        for path in self.names(f"{CONTENT}/{name}/upload-{upload}"):
            self.delete(path)


def checksum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_plain(name: str) -> bool:
    """Whether a file in a folder can have that name, relative to it."""
    os.fsencode(name)  # a ValueError where no disk can hold it
    return "\0" not in name and all(part not in ("", ".", "..") for part in name.split("/"))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
