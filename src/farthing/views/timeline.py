"""Trials by the worker that ran them, along the clock."""

import numpy as np

from farthing.trials import Json
from farthing.views.lines import Lines
from farthing.views.owners import where
from farthing.views.sampling import chosen_places

MOST_LANES = 60


def timeline(lines: Lines, *, now: float, most: int) -> dict[str, Json]:
    """A bar for each trial from when a worker took it, in lanes: a process that runs several at once has several."""
    is_taken = np.isfinite(lines.started_at)
    began = [place for place in np.flatnonzero(is_taken).tolist() if lines.states[place] != "pending"]
    shown = [began[int(place)] for place in chosen_places(len(began), most)]
    lanes: dict[tuple[str, int], float] = {}
    bars: list[dict[str, Json]] = []
    for place in sorted(shown, key=lambda place: lines.started_at[place]):
        start = float(lines.started_at[place])
        is_finished = lines.finished_at[place] == lines.finished_at[place]
        end = float(lines.finished_at[place]) if is_finished else max(now, start)
        owner = where(lines.owners[place])
        slot = next(slot for slot in range(len(lanes) + 1) if lanes.get((owner, slot), -1.0) <= start)
        lanes[owner, slot] = end
        bars.append(
            {
                "number": int(lines.number[place]),
                "state": lines.states[place],
                "start": start,
                "end": end,
                "lane": [owner, slot],
                "cost": float(lines.cost[place]),
            }
        )
    names = sorted(lanes)
    places = {name: at for at, name in enumerate(names)}
    for bar in bars:
        bar["lane"] = places[tuple(bar["lane"])]
    kept = [bar for bar in bars if bar["lane"] < MOST_LANES]
    labels = [f"{owner or 'not known'}{f' #{slot + 1}' if slot else ''}" for owner, slot in names[:MOST_LANES]]
    return {"lanes": labels, "bars": kept, "of": len(began), "all_lanes": len(names), "now": now}
