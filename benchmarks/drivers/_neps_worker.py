"""Runs in the environment that has NePS: reads a JSON line, answers with one. It imports nothing of ours."""

import json
import random
import sys
import time
from typing import Any


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what NePS prints is no answer
    asker: Any = None
    for line in sys.stdin:
        began, request = time.process_time(), json.loads(line)
        if "space" in request:
            asker, answer = begin(request), {}
        elif "ask" in request:
            trial = asker.ask()
            answer = {"id": trial.id, "config": {name: plain(value) for name, value in trial.config.items()}}
        else:
            asker.tell(request["tell"], {"objective_to_minimize": request["loss"], "cost": request["cost"]})
            answer = {}
        answers.write(json.dumps({**answer, "cpu_seconds": time.process_time() - began}) + "\n")
        answers.flush()


def begin(request: dict[str, Any]) -> Any:
    import numpy as np
    import torch
    from neps.optimizers import load_optimizer
    from neps.optimizers.ask_and_tell import AskAndTell
    from neps.space.parsing import convert_to_space

    torch.set_num_threads(1)
    random.seed(request["seed"])
    np.random.seed(request["seed"])  # noqa: NPY002
    torch.manual_seed(request["seed"])
    space = convert_to_space({name: declared(table) for name, table in request["space"].items()})
    optimizer, _ = load_optimizer(request["optimizer"], space)
    return AskAndTell(optimizer)


def declared(table: dict[str, Any]) -> Any:
    from neps.space.parameters import HPOCategorical, HPOFloat, HPOInteger

    if table["kind"] == "choice":
        return HPOCategorical(table["options"])
    kind = HPOInteger if table["kind"] == "int" else HPOFloat
    return kind(table["low"], table["high"], log=table["log"], is_fidelity=table.get("fidelity", False))


def plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


if __name__ == "__main__":
    main()
