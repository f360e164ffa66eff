"""The endpoints, a module for each resource."""

from farthing.dashboard.endpoints import Endpoint
from farthing.dashboard.routes import changes, charts, studies, trials

READING: tuple[Endpoint, ...] = (*studies.ENDPOINTS, *trials.ENDPOINTS, *charts.ENDPOINTS)
CHANGING: tuple[Endpoint, ...] = changes.ENDPOINTS
ENDPOINTS: tuple[Endpoint, ...] = (*READING, *CHANGING)
