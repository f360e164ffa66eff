"""Runs in a peer's environment, NePS, DEHB or FLAML: reads a JSON line, answers with one. Imports nothing of ours."""

import json
import random
import sys
import tempfile
import time
import warnings
from typing import Any


def main(peer: str) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what a peer prints is no answer
    warnings.simplefilter("ignore")
    asker: Any = None
    for line in sys.stdin:
        began, request = time.process_time(), json.loads(line)
        answer: dict[str, Any] = {}
        if "space" in request:
            asker = PEERS[peer](request)
        elif "ask" in request:
            answer = asker.ask()
        else:
            asker.tell(request["tell"], request["loss"], request["cost"])
        answers.write(json.dumps({**answer, "cpu_seconds": time.process_time() - began}) + "\n")
        answers.flush()


class NePS:
    """It has no conditions: it draws inactive parameters too."""

    def __init__(self, request: dict[str, Any]) -> None:
        import numpy as np
        import torch
        from neps.optimizers import load_optimizer
        from neps.optimizers.ask_and_tell import AskAndTell
        from neps.space.parsing import convert_to_space

        torch.set_num_threads(1)
        random.seed(request["seed"])
        np.random.seed(request["seed"])  # noqa: NPY002
        torch.manual_seed(request["seed"])
        [(self._fidelity, amount)] = request["fidelity"].items()
        tables = {**request["space"], self._fidelity: {**amount, "fidelity": True}}
        space = convert_to_space({name: self._declared(table) for name, table in tables.items()})
        optimizer, _ = load_optimizer(request["optimizer"], space)
        self._asker = AskAndTell(optimizer)

    def ask(self) -> dict[str, Any]:
        trial = self._asker.ask()
        config = plain(trial.config)
        return {"id": trial.id, "fidelity": config.pop(self._fidelity), "config": config}

    def tell(self, trial: Any, loss: float, cost: float) -> None:
        self._asker.tell(trial, {"objective_to_minimize": loss, "cost": cost})

    def _declared(self, table: dict[str, Any]) -> Any:
        from neps.space.parameters import HPOCategorical, HPOFloat, HPOInteger

        if table["kind"] == "choice":
            return HPOCategorical(table["options"])
        kind = HPOInteger if table["kind"] == "int" else HPOFloat
        return kind(table["low"], table["high"], log=table["log"], is_fidelity=table.get("fidelity", False))


class DEHB:
    """With its own defaults, in a ConfigSpace."""

    def __init__(self, request: dict[str, Any]) -> None:
        import dehb

        [amount] = request["fidelity"].values()
        self._folder = tempfile.TemporaryDirectory()
        self._jobs: list[Any] = []
        self._asker = dehb.DEHB(
            f=None,
            cs=self._space(request["space"], request["seed"]),
            min_fidelity=amount["low"],
            max_fidelity=amount["high"],
            n_workers=1,
            output_path=self._folder.name,
            seed=request["seed"],
            log_level="ERROR",
        )

    def ask(self) -> dict[str, Any]:
        job = self._asker.ask()
        self._jobs.append(job)
        return {"id": len(self._jobs) - 1, "fidelity": float(job["fidelity"]), "config": plain(dict(job["config"]))}

    def tell(self, trial: int, loss: float, cost: float) -> None:
        self._asker.tell(self._jobs[trial], {"fitness": loss, "cost": cost})

    def _space(self, tables: dict[str, Any], seed: int) -> Any:
        from ConfigSpace import ConfigurationSpace, InCondition

        declared = ConfigurationSpace(seed=seed)
        own = {name: self._hyperparameter(name, table) for name, table in tables.items()}
        declared.add(*own.values())
        for name, table in tables.items():
            for parent, values in table["when"].items():
                declared.add(InCondition(own[name], own[parent], values))
        return declared

    def _hyperparameter(self, name: str, table: dict[str, Any]) -> Any:
        from ConfigSpace import CategoricalHyperparameter, UniformFloatHyperparameter, UniformIntegerHyperparameter

        if table["kind"] == "choice":
            return CategoricalHyperparameter(name, table["options"])
        kind = UniformIntegerHyperparameter if table["kind"] == "int" else UniformFloatHyperparameter
        return kind(name, table["low"], table["high"], log=table["log"])


class FLAML:
    """One of its searchers; it draws inactive parameters too.

    It proposes nothing where it would repeat itself, and nothing any more once its budget is spent.
    """

    ATTEMPTS = 1000

    def __init__(self, request: dict[str, Any]) -> None:
        import logging

        from flaml.tune.searcher import blendsearch

        logging.disable(logging.WARNING)
        self._configs: list[dict[str, Any]] = []
        self._asker = getattr(blendsearch, request["searcher"])(
            metric="loss",
            mode="min",
            space={name: self._declared(table) for name, table in request["space"].items()},
            low_cost_partial_config=request["cheap"],
            cost_attr="cost",
            cost_budget=request["cost_budget"],
            seed=request["seed"],
        )

    def ask(self) -> dict[str, Any]:
        for _ in range(self.ATTEMPTS):
            self._configs.append(self._asker.suggest(str(len(self._configs))))
            if self._configs[-1] is not None:
                return {"id": len(self._configs) - 1, "config": plain(self._configs[-1])}
        return {}

    def tell(self, trial: int, loss: float, cost: float) -> None:
        self._asker.on_trial_complete(str(trial), {"config": self._configs[trial], "loss": loss, "cost": cost})

    def _declared(self, table: dict[str, Any]) -> Any:
        from flaml import tune

        if table["kind"] == "choice":
            return tune.choice(table["options"])
        if table["kind"] == "int":
            return (tune.lograndint if table["log"] else tune.randint)(table["low"], table["high"] + 1)
        return (tune.loguniform if table["log"] else tune.uniform)(table["low"], table["high"])


def plain(config: Any) -> dict[str, Any]:
    return {name: value.item() if hasattr(value, "item") else value for name, value in config.items()}


PEERS = {"neps": NePS, "dehb": DEHB, "flaml": FLAML}

if __name__ == "__main__":
    main(sys.argv[1])
