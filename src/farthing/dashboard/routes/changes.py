"""Changes, which only a server that was started with --allow-changes answers."""

from farthing.dashboard.endpoints import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = ()
