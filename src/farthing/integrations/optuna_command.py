"""Optuna's studies for the command line, whose errors are one line."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from farthing.errors import InvalidArgument
from farthing.study import Study


def import_from(url: str, *, study_name: str, storage: Path | str, name: str | None, values: Sequence[str]) -> Study:
    """Imports the study of that name from the storage with that URL."""
    integration, _ = _loaded()
    found: Study = integration.import_study(
        url, study_name=study_name, storage=storage, name=name, value=values or "value"
    )
    return found


def export_to(study: Study, url: str) -> str:
    """Writes the study into the Optuna storage with that URL, under its own name, and returns that."""
    integration, optuna = _loaded()
    try:
        exported = integration.export_study(study, url)
    except optuna.exceptions.DuplicatedStudyError as error:
        raise InvalidArgument(
            f"An exported study must be new in Optuna, got {study.name!r}, which is there. Export to another storage."
        ) from error
    return str(exported.study_name)


def _loaded() -> tuple[Any, Any]:
    """The integration, and Optuna itself, which it needs."""
    integration = import_module("farthing.integrations.optuna")
    optuna = import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return integration, optuna
