"""A study of many trials, written straight into the tables: running it would take hours."""

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import farthing as ft

BEGAN = 1_760_000_000.0
NAME = "large"
SPACE = ft.Space(
    {
        "rate": ft.Float(1e-4, 1.0, log=True),
        "layers": ft.Int(1, 8),
        "momentum": ft.Float(0.0, 0.99),
        "optimizer": ft.Choice("adam", "sgd", "lion"),
    },
    fidelities={"epochs": ft.Fidelity(1, 64, integer=True, trace=True)},
)


def write_large_study(path: Path, *, trials: int, points: int, name: str = NAME) -> None:
    """That many trials with that many measurements each, in a SQLite file."""
    ft.Study(SPACE, minimize="error", storage=path, name=name, seed=1, strategy="ASHA").close()
    rng = random.Random(1)
    with closing(sqlite3.connect(path)) as database, database:
        (study,) = database.execute("SELECT id FROM study WHERE name = ?", (name,)).fetchone()
        for row, own in _rows(trials, points, rng):
            _insert(database, "trial", [{"study_id": study, **row}])
            _insert(database, "measurement", [{"study_id": study, **point} for point in own])
        database.execute("UPDATE study SET version = ?, trials = ? WHERE id = ?", (trials, trials, study))


def _insert(database: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    names = list(rows[0])
    places = ", ".join("?" * len(names))
    database.executemany(
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})", [tuple(row.values()) for row in rows]
    )


def _rows(trials: int, points: int, rng: random.Random) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    for number in range(trials):
        params: dict[str, Any] = {
            "rate": 10 ** rng.uniform(-4, 0),
            "layers": rng.randint(1, 8),
            "momentum": 0.99 * rng.random(),
            "optimizer": rng.choice(["adam", "sgd", "lion"]),
        }
        failed = number % 97 == 5
        level = 0.05 + 0.3 * abs(params["momentum"] - 0.7) + rng.random() * 0.3
        opened = BEGAN + number * 2.0
        curve = [
            _point(number, at, level + 0.5 / (at + 1), opened + 0.3 * at)
            for at in range(max(1, points // 2) if failed else points)
        ]
        yield _trial(number, params, points, curve[-1]["value"], opened, failed=failed), curve


def _trial(
    number: int, params: dict[str, Any], points: int, value: float, opened: float, *, failed: bool
) -> dict[str, Any]:
    return {
        "number": number,
        "version": number + 1,
        "state": "failed" if failed else "done",
        "attempt": 1,
        "retries": 0,
        "params": json.dumps(params),
        "fidelity": json.dumps({"epochs": points}),
        "predicted_cost": json.dumps([0.3 * points, 0.2]),
        "predicted_value": json.dumps([value * 1.05, 0.02]),
        "note": json.dumps({"rung": number % 3}),
        "value": None if failed else value,
        "failure": json.dumps(["RuntimeError: diverged", "Traceback: none"]) if failed else None,
        "overhead": 0.001,
        "owner": f"node-{number % 16}:{100 + number % 16}:0",
        "opened_at": opened,
        "paid_until": 0.0,
        "renewed_at": 0.0,
        "finished_at": opened + 6.0,
    }


def _point(number: int, at: int, value: float, time: float) -> dict[str, Any]:
    return {
        "trial": number,
        "attempt": 1,
        "sequence": at,
        "version": number + 1,
        "value": value,
        "amount": 0.3,
        "cost": '{"training":0.3}',
        "charged": False,
        "fidelity": f'{{"epochs": {at + 1}}}',
        "time": time,
    }
