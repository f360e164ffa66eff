"""What every command that runs a suite shares: its options, and making only those runs that a file has no result of."""

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks.records import Record, append_record, key_of, read_records, results_path


class Resumable(Protocol):
    """One run of a suite. Its identity tells its result from any other."""

    @property
    def identity(self) -> dict[str, Any]: ...

    @property
    def title(self) -> str: ...


AnyRun = TypeVar("AnyRun", bound=Resumable)


def make_missing(
    path: Path, runs: Sequence[AnyRun], *, result_of: Callable[[AnyRun], Record], processes: int = 1
) -> None:
    """Makes every run that the file has no result of, and adds each result as soon as it is there.

    With several processes it is as soon as those before it are there too, and `result_of` must be a function of a
    module.
    """
    present = {key_of(record) for record in read_records(path)}
    to_do = [run for run in runs if key_of(run.identity) not in present]
    with _progress(total=len(runs), done=len(runs) - len(to_do)) as (bar, task):
        for run, result in zip(to_do, _results(to_do, result_of, processes=processes), strict=True):
            append_record(path, result)
            bar.update(task, description=run.title, advance=1)


def _results(runs: Sequence[AnyRun], result_of: Callable[[AnyRun], Record], *, processes: int) -> Iterator[Record]:
    if processes == 1:
        yield from map(result_of, runs)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(result_of, runs)


def samples_of(name: str, runs: Sequence[AnyRun], *, result_of: Callable[[AnyRun], Record], keep: bool) -> list[Record]:
    """The results of these runs: with `keep`, those that the records of that name lack are made and added to them."""
    with tempfile.TemporaryDirectory() as folder:
        path = results_path(name) if keep else Path(folder) / name
        make_missing(path, runs, result_of=result_of)
        wanted = {key_of(run.identity) for run in runs}
        return [record for record in read_records(path) if key_of(record) in wanted]


def suite_options(names: Iterable[str], *, description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.run", description=description)
    parser.add_argument("name", choices=list(names), help="the suite")
    parser.add_argument("--seeds", type=int, help="how many seeds, from the suite's first; its own number by default")
    parser.add_argument("--quick", action="store_true", help="two seeds and little to do, kept in a file of its own")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="only these; patterns such as 'fcnet/*' work")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these; patterns work")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON lines to continue; benchmarks/results/ else")
    return parser


@contextmanager
def _progress(*, total: int, done: int) -> Iterator[tuple[Progress, TaskID]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar, bar.add_task("starting", total=total, completed=done)
