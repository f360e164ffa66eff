"""The kept outputs of a pipeline's stages, as a user sees them: listed, verified and pruned while a study runs."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farthing.caching.stage_cache import FOLDER, Manifest, beyond
from farthing.caching.stored_stages import StoredStageCache, stage_cache
from farthing.errors import InvalidArgument, StorageError
from farthing.session.session import Session
from farthing.trials import Json
from farthing.validation import did_you_mean, listed


@dataclass(frozen=True)
class StageOutput:
    """One output. `params` are those of all stages up to its own, `seconds` what its own stage took.

    It is superseded where a later output has the same params: the source or the code of a stage changed in between.
    """

    manifest: Manifest
    stage: str
    params: dict[str, Any]
    written_at: float
    is_superseded: bool

    @property
    def key(self) -> str:
        return self.manifest.key

    @property
    def size(self) -> int:
        return self.manifest.size

    @property
    def seconds(self) -> float:
        return self.manifest.seconds[-1]

    def to_json(self) -> dict[str, Json]:
        return {
            "key": self.key,
            "stage": self.stage,
            "params": self.params,
            "bytes": self.size,
            "seconds": self.seconds,
            "written_at": self.written_at,
            "superseded": self.is_superseded,
        }


class StageOutputs:
    """Those of one study. Other processes may compute, load and evict outputs meanwhile: none of them waits for long,
    and none finds half an output."""

    def __init__(self, session: Session) -> None:
        self._records = session.records
        self._stages = list(session.records.problem.space.stages)
        if not self._stages:
            raise InvalidArgument(
                f"Only pipelines keep outputs of stages, got the study {session.name!r}, whose space has no stages. "
                "Name the study of a pipeline: `farthing list` shows all studies."
            )
        root = session.files.checkpoints.root
        self.folder: Path = root / FOLDER
        self._cache = stage_cache(root, limit=None)

    @property
    def url(self) -> str | None:
        """The store that the folder is in front of, if it is; asking does not open it."""
        return self._cache.url if isinstance(self._cache, StoredStageCache) else None

    def all(self) -> list[StageOutput]:
        """By stage, the latest last."""
        entries = [entry for entry in self._cache.entries() if entry.length < len(self._stages)]
        written = {entry.key: self._cache.written_at(entry) for entry in entries}
        latest: dict[str, str] = {}
        for entry in sorted(entries, key=lambda entry: written[entry.key]):
            latest[entry.prefix] = entry.key
        outputs = [
            StageOutput(
                entry,
                self._stages[entry.length - 1],
                json.loads(entry.prefix),
                written[entry.key],
                is_superseded=latest[entry.prefix] != entry.key,
            )
            for entry in entries
        ]
        return sorted(outputs, key=lambda output: (output.manifest.length, output.written_at))

    def faults(self) -> Iterator[tuple[str, str]]:
        """The key of every output that no process holds, with what is wrong with it, which may be nothing."""
        return self._cache.verify()

    def of_stage(self, name: str) -> list[StageOutput]:
        kept = self._stages[:-1]
        if name not in kept:
            raise InvalidArgument(
                f"A stage whose outputs are kept must be among {listed(kept)}, got {name!r}. "
                f"{did_you_mean(name, kept, otherwise='The output of the last stage is the value, which is stored.')}"
            )
        return [output for output in self.all() if output.stage == name]

    def beyond(self, limit: int) -> list[StageOutput]:
        """Lists the outputs to delete to keep within a limit of bytes, the cheapest to compute per byte first."""
        outputs = {output.key: output for output in self.all()}
        return [outputs[entry.key] for entry in beyond((output.manifest for output in outputs.values()), limit)]

    def damaged(self) -> list[StageOutput]:
        wrong = {key for key, fault in self.faults() if fault}
        return [output for output in self.all() if output.key in wrong]

    def prune(self, outputs: Iterable[StageOutput]) -> list[StageOutput]:
        """Removes outputs, and what killed processes left half-written; returns those that were removed.

        Outputs in use stay. The history is told afterwards: a strategy that believes an output gone which is there
        again only overestimates a cost.
        """
        known = {output.key: output for output in outputs}
        try:
            self._cache.tidy()
            gone = self._cache.discard(output.manifest for output in known.values())
        except OSError as error:
            raise StorageError(
                f"A cache to prune must be writable, got {str(self.folder)!r}: {error.strerror}. "
                "Run this as the user who owns it."
            ) from error
        finally:
            for eviction in self._cache.news():
                self._records.log_eviction(eviction)
        return [known[entry.key] for entry in gone]
