"""Prints the document of the API: `python -m farthing.dashboard.document > docs/dashboard_api.json`."""

import json
import sys

from farthing.dashboard.endpoints import openapi
from farthing.dashboard.routes import ENDPOINTS

if __name__ == "__main__":
    sys.stdout.write(json.dumps(openapi(ENDPOINTS), indent=1) + "\n")
