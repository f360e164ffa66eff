"""Remembering: what was acknowledged is still there after a crash."""

from farthing.storage.locate import StorageLike, open_storage
from farthing.storage.memory import MemoryStorage
from farthing.storage.storage import Changes, Storage, StudyRecord, StudySummary

__all__ = ["Changes", "MemoryStorage", "Storage", "StorageLike", "StudyRecord", "StudySummary", "open_storage"]
