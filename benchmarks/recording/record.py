"""Record the tables: `python -m benchmarks.recording.record --images IMAGES.npz --out FOLDER`; see benchmarks/data.

First single trainings are timed, alone; then the tasks train side by side, a process each, until they have all rows or
`--seconds` are over. What is done is in the folder after every group.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from platform import python_version
from tempfile import gettempdir
from typing import Any

import numpy as np
import torch

from benchmarks.recording.data import IMAGES, images, source_code
from benchmarks.recording.stacked import curves, stepper
from benchmarks.recording.tables import FinetuneCifar, GruCode, ResnetCifar, Task

TIMED_STEPS = 40


def tasks(arrays: Path, device: torch.device, *, tiny: bool) -> list[Task]:
    with np.load(arrays) as archive:
        x, y, text = archive["images"], archive["labels"], archive["text"]
    resnet, finetune, gru = ResnetCifar(x, y, device), FinetuneCifar(x, y, device), GruCode(text, device)
    if not tiny:
        return [resnet, finetune, gru]
    return [
        replace(resnet, train=512, validation=128, epochs=4, models=2, passes=1),
        replace(finetune, before=256, before_epochs=1, train=128, validation=128, epochs=2, width=8, models=2),
        replace(gru, sequences=512, length=8, validation=16, models=2),
    ]


def timed(task: Task, *, every: int = 1) -> list[dict[str, Any]]:
    """Three stretches of steps of one training alone, for every shape."""
    found: list[dict[str, Any]] = []
    for number, shape in list(enumerate(task.space.shapes()))[::every]:
        training = task.training(task.space.drawn(np.random.default_rng([7, number]), 1, shape=shape), shape)
        step = stepper(training)
        steps = min(TIMED_STEPS, training.steps // 4)
        for _ in range(steps):
            step()
        for _ in range(3):
            seconds = _seconds_of(step, steps)
            run = {"shape": shape, "seconds": seconds / steps, "work": task.work(shape)}
            found.append({**run, "total_steps": task.steps(shape)})
        del training, step
        _tidy()
    return found


def _seconds_of(step: Callable[[], object], steps: int) -> float:
    _settle()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    _settle()
    return time.perf_counter() - started


def _settle() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _tidy() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def groups(task: Task) -> list[tuple[int, int, dict[str, int]]]:
    """(pass, number of the shape, shape): all shapes in a mixed order, then all again."""
    shapes = task.space.shapes()
    mixed = np.random.default_rng(0).permutation(len(shapes))
    return [(again, int(number), shapes[number]) for again in range(task.passes) for number in mixed]


def record(task: Task, out: Path, *, deadline: float) -> None:
    """Train group by group until all are done, or the next would end after the deadline."""
    rows: dict[str, list[np.ndarray]] = {}
    slowest = 0.0
    for again, number, shape in groups(task):
        started = time.time()
        if started + slowest > deadline:
            print(f"{task.name}: no time for more", flush=True)
            break
        seed = [len(task.name), again, number]
        settings = task.space.drawn(np.random.default_rng(seed), task.models, shape=shape)
        torch.manual_seed(again * 1000 + number)
        found = _group(task, settings, shape)
        for name, column in {"curves": found, **settings}.items():
            rows.setdefault(name, []).append(column.astype(np.float32))
        _store(out / f"{task.name}.npz", rows)
        slowest = max(slowest, time.time() - started)
        last = np.sort(found[:, -1])
        print(
            f"{task.name} pass {again} {shape}: {time.time() - started:.1f} s, "
            f"best {last[0]:.4f} median {last[len(last) // 2]:.4f}",
            flush=True,
        )


def _group(task: Task, settings: Mapping[str, np.ndarray], shape: Mapping[str, int]) -> np.ndarray:
    found = curves(task.training(settings, shape))
    _tidy()
    return found


def _store(path: Path, rows: Mapping[str, list[np.ndarray]]) -> None:
    unfinished = path.with_name(f"unfinished-{path.name}")
    np.savez_compressed(unfinished, **{name: np.concatenate(parts) for name, parts in rows.items()})  # type: ignore[arg-type]
    unfinished.rename(path)


def look(task: Task, out: Path, *, seconds: float) -> None:
    """Say what each shape's group would take, from a few steps; then train the cheapest seen, if there is time."""
    started = time.time()
    takes: list[float] = []
    cheapest: tuple[float, dict[str, int]] | None = None
    for _, number, shape in groups(task)[: len(task.space.shapes())]:
        if takes and time.time() - started > seconds / 2:
            break
        begun = time.time()
        training = task.training(task.space.drawn(np.random.default_rng(number), task.models, shape=shape), shape)
        step = stepper(training)
        step()
        training.validate(training.weights)
        _settle()
        ready = time.time() - begun
        stretch = min(6, training.steps // 2)
        a_step = _seconds_of(step, stretch) / stretch
        a_look = _seconds_of(partial(training.validate, training.weights), 1)
        takes.append(ready + training.steps * a_step + 20 * a_look)
        cheapest = min(cheapest or (np.inf, shape), (takes[-1], shape), key=lambda pair: pair[0])
        print(
            f"{task.name} {shape}: ready {ready:.2f} s, step {1e3 * a_step:.2f} ms x {training.steps}, "
            f"validate {1e3 * a_look:.0f} ms, group {takes[-1]:.1f} s, {_gibibytes():.1f} GiB",
            flush=True,
        )
        del training, step
        _tidy()
    count = len(task.space.shapes()) * task.passes
    print(f"{task.name}: {len(takes)} shapes seen, all {count} groups {np.mean(takes) * count:.0f} s", flush=True)
    if cheapest and time.time() - started + cheapest[0] < seconds:
        settings = task.space.drawn(np.random.default_rng(1), task.models, shape=cheapest[1])
        found = _group(task, settings, cheapest[1])
        np.savez(out / f"look-{task.name}.npz", curves=found, **settings)  # type: ignore[arg-type]
        print(f"{task.name} {cheapest[1]} at the end: {np.sort(found[:, -1]).round(3)}", flush=True)


def _gibibytes() -> float:
    return torch.cuda.max_memory_reserved() / 2**30 if torch.cuda.is_available() else 0.0


def work(number: int, arrays: Path, out: Path, deadline: float, tiny: bool) -> None:
    """One process: one task."""
    device = _device()
    task = tasks(arrays, device, tiny=tiny)[number]
    task.prepare()
    record(task, out, deadline=deadline)


def _device() -> torch.device:
    torch.set_float32_matmul_precision("high")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=530.0)
    parser.add_argument("--look", action="store_true", help="only say how long each group would take")
    parser.add_argument("--tiny", action="store_true", help="small enough for a test")
    arguments = parser.parse_args()
    deadline = time.time() + arguments.seconds
    arguments.out.mkdir(parents=True, exist_ok=True)
    arrays = Path(gettempdir()) / "farthing-recording.npz"
    x, y = images(arguments.images, count=2000 if arguments.tiny else IMAGES)
    np.savez(arrays, images=x, labels=y, text=source_code())
    device = _device()
    print(f"data ready after {time.time() - deadline + arguments.seconds:.1f} s", flush=True)
    all_tasks = tasks(arrays, device, tiny=arguments.tiny)
    timings: dict[str, dict[str, Any]] = {}
    for task in all_tasks:
        task.prepare()
        if arguments.look:
            look(task, arguments.out, seconds=arguments.seconds / 4)
        timings[task.name] = {
            "runs": timed(task, every=5 if arguments.look else 1),
            "says": task.says,
            "data": task.data,
            "work": task.work_says,
            "space": task.space.described(),
            "versions": {"python": python_version(), "torch": torch.__version__, "cuda": str(torch.version.cuda)},
        }
        (arguments.out / "timings.json").write_text(json.dumps(timings))
        for run in timings[task.name]["runs"] if arguments.look else []:
            print(run["shape"], f"alone {1e3 * run['seconds']:.3f} ms", flush=True)
        print(f"{task.name} timed after {time.time() - deadline + arguments.seconds:.1f} s", flush=True)
    if arguments.look:
        return
    del all_tasks
    _tidy()
    context = get_context("spawn")
    processes = [
        context.Process(target=work, args=(number, arrays, arguments.out, deadline, arguments.tiny))
        for number in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
