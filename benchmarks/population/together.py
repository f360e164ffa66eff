"""Makes runs in several processes at once and keeps each result as soon as it is there."""

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.records import Record, append_record


class Timed(Protocol):
    """Something to be run, until `deadline` in seconds since 1970."""

    @property
    def deadline(self) -> float: ...


R = TypeVar("R", bound=Timed)


def carry_out_together(
    runs: Sequence[R],
    carry_out: Callable[[R], Record | None],
    *,
    path: Path,
    processes: int,
    describe: Callable[[R, Record], str],
) -> None:
    """Begins no run after its deadline; one that ends without a record had no time left."""
    began = time.monotonic()

    def keep(record: Record | None, run: R) -> None:
        told = "no time left" if record is None else describe(run, record)
        print(f"{time.monotonic() - began:7.1f} s  {told}", flush=True)
        if record is not None:
            append_record(path, record)

    with ProcessPoolExecutor(max(1, min(processes, len(runs))), mp_context=get_context("spawn")) as pool:
        futures: dict[Future[Record | None], R] = {}
        for run in runs:
            if time.time() > run.deadline:
                break
            futures[pool.submit(carry_out, run)] = run
            while len(futures) >= processes:
                for done in wait(futures, return_when=FIRST_COMPLETED).done:
                    keep(done.result(), futures.pop(done))
        while futures:
            for done in wait(futures, return_when=FIRST_COMPLETED).done:
                keep(done.result(), futures.pop(done))


def parser_of(suite: str, description: str | None, *, seeds: int) -> argparse.ArgumentParser:
    """The options of a suite whose runs are made at once."""
    parser = argparse.ArgumentParser(f"python -m benchmarks.run {suite}", description=description)
    parser.add_argument("name", nargs="?", choices=[suite], help="the suite")
    parser.add_argument("--seeds", type=int, default=seeds, help="how many, from 0")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--minutes", type=float, default=600.0, help="end after about this number")
    parser.add_argument("--processes", type=int, default=1, help="runs that are made at once")
    parser.add_argument("--commit", help="what the results are of, for a copy of a clean tree without its git folder")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON lines to continue; benchmarks/results/ else")
    return parser
