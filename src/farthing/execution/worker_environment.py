"""The environment of a worker process."""

from collections.abc import Mapping, Sequence

from farthing.execution.platform import usable_cores

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def worker_environment(
    base: Mapping[str, str], *, index: int, workers: int, devices: Sequence[str] | None = None
) -> dict[str, str]:
    """The environment of worker `index`: its share of the cores, and its device where there are any.

    Workers share the cores evenly, because numerical libraries would otherwise start a thread per core in each.
    Limits that the user has set stay. A worker sees only its own CUDA device, under the number 0; the name it was
    given by is in FARTHING_DEVICE.
    """
    share = str(max(1, usable_cores() // workers))
    environment = {**dict.fromkeys(THREAD_LIMITS, share), **base}
    return environment | _device(devices[index % len(devices)], base) if devices else environment


def _device(name: str, base: Mapping[str, str]) -> dict[str, str]:
    kind, _, number = name.partition(":")
    own = {"FARTHING_DEVICE": name}
    if kind == "cpu":
        return own | {"CUDA_VISIBLE_DEVICES": ""}
    return own | {"CUDA_VISIBLE_DEVICES": _visible(number or "0", base)} if kind == "cuda" else own


def _visible(number: str, base: Mapping[str, str]) -> str:
    """The device's name to the driver: numbers count among those that we ourselves may see."""
    ours = [device for device in base.get("CUDA_VISIBLE_DEVICES", "").split(",") if device]
    return ours[int(number)] if number.isdecimal() and int(number) < len(ours) else number
