"""Whatever library is absent, the error is one line and names the extra to install."""

import importlib
import sys

import pytest

import farthing as ft
from farthing.errors import MissingExtra

MODULES = {
    "hydra": ("hydra", "hydra"),
    "lightgbm": ("lightgbm", "lightgbm"),
    "lightning": ("lightning", "lightning"),
    "optuna": ("optuna", "optuna"),
    "ray_tune": ("ray", "raytune"),
    "sklearn": ("sklearn", "sklearn"),
    "transformers": ("transformers", "transformers"),
    "xgboost": ("xgboost", "xgboost"),
}


def forget(monkeypatch: pytest.MonkeyPatch, library: str, beginning: str) -> None:
    """As if the library were not installed, and ours not imported yet."""
    monkeypatch.setitem(sys.modules, library, None)
    for name in [name for name in sys.modules if name.startswith((f"{library}.", beginning))]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("module", MODULES)
def test_an_integration_without_its_library_names_the_extra(module, monkeypatch):
    library, extra = MODULES[module]
    forget(monkeypatch, library, "farthing.integrations.")
    with pytest.raises(MissingExtra, match=rf"pip install 'farthing\[{extra}\]'") as caught:
        importlib.import_module(f"farthing.integrations.{module}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tracker", "library", "extra"),
    [("MLflow", "mlflow", "mlflow"), ("WandB", "wandb", "wandb"), ("TensorBoard", "tensorboard", "tensorboard")],
)
def test_a_tracker_without_its_library_names_the_extra(tracker, library, extra, monkeypatch):
    forget(monkeypatch, library, "nothing")
    with pytest.raises(MissingExtra, match=rf"ft.trackers.{tracker} needs {library}.*'farthing\[{extra}\]'"):
        getattr(ft.trackers, tracker)()
