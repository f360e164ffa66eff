"""`hydra/sweeper=farthing`: the plugin that Hydra finds, and its configuration.

Hydra imports every module of this namespace whenever an application starts, so Farthing is imported by a sweep only.
The package has no `__init__.py`: other plugins are in it too.
"""

from dataclasses import dataclass, field
from typing import Any, Optional

from hydra.core.config_store import ConfigStore
from hydra.errors import CompactHydraException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf


@dataclass
class BudgetConf:
    """`farthing.Budget`: the limits of the sweep, over every resume."""

    cost: Optional[float] = None  # noqa: UP045 - OmegaConf reads these
    seconds: Optional[float] = None  # noqa: UP045
    trials: Optional[int] = None  # noqa: UP045
    patience: Optional[float] = None  # noqa: UP045


@dataclass
class FarthingSweeperConf:
    """The defaults of `hydra.sweeper`; docs/integrations/hydra.md says what each of them is."""

    _target_: str = "hydra_plugins.farthing_sweeper.FarthingSweeper"
    params: dict[str, Any] = field(default_factory=dict)
    fidelities: dict[str, Any] = field(default_factory=dict)
    minimize: Any = None
    maximize: Any = None
    constraints: dict[str, Any] = field(default_factory=dict)
    budget: BudgetConf = field(default_factory=BudgetConf)
    strategy: Any = None
    cost_unit: str = "seconds"
    storage: Optional[str] = None  # noqa: UP045
    study_name: Optional[str] = None  # noqa: UP045
    seed: Optional[int] = None  # noqa: UP045
    n_jobs: int = 1
    verify: bool = False
    checkpoint_key: Optional[str] = None  # noqa: UP045
    resume_key: Optional[str] = None  # noqa: UP045


ConfigStore.instance().store(group="hydra/sweeper", name="farthing", node=FarthingSweeperConf, provider="farthing")


class FarthingSweeper(Sweeper):  # type: ignore[misc] # Hydra's class is Any to those who have no Hydra
    """Lets a study of Farthing choose the jobs, and Hydra's launcher run them."""

    def __init__(self, **settings: Any) -> None:
        """Hydra gives the settings here, and whole in `setup`."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.hydra_context, self.task_function, self.config = hydra_context, task_function, config

    def sweep(self, arguments: list[str]) -> None:
        from farthing.errors import FarthingError
        from farthing.integrations.hydra import sweep

        settings = OmegaConf.to_container(self.config.hydra.sweeper, resolve=True)
        try:
            sweep(settings, arguments, context=self.hydra_context, task=self.task_function, config=self.config)
        except FarthingError as error:  # of a compact exception Hydra shows the sentence alone
            raise CompactHydraException(str(error)) from error
