"""Which process of a distributed training this is: launchers start one program several times, once for each rank."""

import os

from farthing.errors import WorkError

ADVICE = 'Let a command start them: ft.Command("torchrun --nproc-per-node 2 train.py …"); see guides/several_devices.'
RULE = "A study is run by one process, got rank"


def refuse_other_ranks() -> None:
    """Refuses a process that a launcher started as another rank than 0: it would take trials of its own.

    torchrun, Accelerate, DeepSpeed and Lightning set WORLD_SIZE with the rank. SLURM_PROCID and MPI's variables say
    nothing: `srun` also starts workers of one study, each of which is to take its own trials.
    """
    size, ranks = _whole("WORLD_SIZE"), {name: _whole(name) for name in ("RANK", "LOCAL_RANK")}
    name = next((name for name, rank in ranks.items() if rank), None)
    if name is not None and size > 1:
        raise WorkError(f"{RULE} {ranks[name]} of {size} (by {name}), which was started to train with rank 0. {ADVICE}")


def refusal_in(log: str) -> str | None:
    """How another rank was refused that the work started; its launcher then kills rank 0 without a word."""
    return next((RULE + line.partition(RULE)[2] for line in log.splitlines() if RULE in line), None)


def _whole(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0
