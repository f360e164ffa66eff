"""The connection to a Ray cluster, and what to say when there is none."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from farthing.errors import InvalidArgument, MissingExtra, WorkError

SECONDS_TO_CONNECT = 10.0
"""Longest wait for an address to answer, before Ray is asked: Ray itself tries for minutes, and may end the process."""
START = "Start one with `ray start --head`, or name another: executor=ft.RayExecutor(address='HOST:6379')."


def imported_ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise MissingExtra(
            f"executor='ray' needs Ray, got {error}. Install it: pip install 'farthing[ray]', here and on every node."
        ) from error


class Connection:
    """This process's connection to the cluster: the one that there is, or a new one, which ends with `close`."""

    def __init__(self, address: str, *, runtime_env: Mapping[str, Any] | None) -> None:
        self.ray = imported_ray()
        self._is_ours = not self.ray.is_initialized()
        self.runtime_env = dict(runtime_env or {})
        if self._is_ours:
            self._connect(address)
        elif address != "auto":
            self._require_same(address)

    @property
    def options(self) -> dict[str, Any]:
        """Options of actors. Where the connection is ours it has the environment, so that local folders may be sent."""
        return {} if self._is_ours or not self.runtime_env else {"runtime_env": self.runtime_env}

    def close(self) -> None:
        if self._is_ours:
            self._is_ours = False
            self.ray.shutdown()

    def nodes(self) -> list[dict[str, float]]:
        """The resources of each living node, in all."""
        return [node["Resources"] for node in self.ray.nodes() if node["Alive"]]

    def _connect(self, address: str) -> None:
        named = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
        _require_answer(named)
        try:
            self.ray.init(
                address=address,
                runtime_env=self.runtime_env or None,
                log_to_driver=False,  # what trials print is in their logs
                configure_logging=False,
            )
        except ConnectionError as error:
            raise _no_cluster(named, error) from error
        except RuntimeError as error:  # another Ray, another Python
            raise WorkError(
                f"This process must have the cluster's Python and Ray, got {_one_line(error)} Install the same here."
            ) from error

    def _require_same(self, address: str) -> None:
        """Of two clusters a process can be connected to one."""
        current = self.ray.get_runtime_context().gcs_address
        if not address.startswith("ray://") and address != current:
            raise InvalidArgument(
                f"A process is connected to one Ray cluster, got {address!r} while it is connected to {current!r}. "
                "Call ray.shutdown() first, or leave the address out."
            )


def _require_answer(address: str) -> None:
    """Raises `WorkError` where nothing listens at HOST:PORT; other forms are Ray's to understand."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    with suppress(ValueError):  # a port that is no number
        if parts.hostname and parts.port:
            try:
                socket.create_connection((parts.hostname, parts.port), timeout=SECONDS_TO_CONNECT).close()
            except OSError as error:
                raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> WorkError:
    return WorkError(f"A Ray cluster must be running, got none at {address!r} ({_one_line(error)}). {START}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
