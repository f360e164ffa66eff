"""A study as one HTML file: the pages of the dashboard with the answers of its server inside, and no requests.

The modules of the page go in as `data:` addresses under names of their own, the answers as JSON. The page's own policy
then allows no connection at all.
"""

import base64
import hashlib
import html
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from farthing.dashboard.endpoints import key_of, strict_json
from farthing.dashboard.reading import ShownStudies
from farthing.dashboard.routes import charts, studies, trials
from farthing.errors import FarthingError
from farthing.storage import Storage
from farthing.trials import Json

STATIC = Path(__file__).parent / "static"
MOST_TRIALS = 200
"""Trials that a report holds whole: those in its table, the latest failures and the best."""

IMPORT = re.compile(r'(from\s+|import\s+|import\()"(\.\.?/[^"]+)"')


class Report:
    """The text of a report. In a notebook it is shown inline."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def __repr__(self) -> str:
        return f"Report({self.name!r}, {len(self.text):,} characters)"

    def _repr_html_(self) -> str:
        """In a frame that may run its own scripts and reach nothing of the notebook."""
        return (
            f'<iframe title="Report of {html.escape(self.name, quote=True)}" sandbox="allow-scripts" width="100%" '
            f'height="800" style="border:0" srcdoc="{html.escape(self.text, quote=True)}"></iframe>'
        )


def report(storage: Storage, name: str) -> Report:
    """The report of one study, of now. It does not say where the study is stored: it may be sent anywhere."""
    key = key_of(name)
    return Report(name, _page(name, key, answers_about(ShownStudies(storage), key)))


def answers_about(found: ShownStudies, key: str) -> dict[str, Json]:
    """The answers that the pages of a study ask for, by address."""
    about = studies.show_study(found, key)
    base = f"api/studies/{key}"
    answers: dict[str, Json] = {base: about}
    wanted: dict[str, Callable[[], Json]] = {
        "best": lambda: studies.show_best(found, key),
        "predictions": lambda: studies.show_predictions(found, key),
        "bill": lambda: studies.show_bill(found, key),
        "timeline": lambda: charts.show_timeline(found, key),
        "outlook": lambda: charts.show_outlook(found, key),
        "front": lambda: charts.show_front(found, key),
    }
    for view, make in wanted.items():
        with suppress(FarthingError):  # what there is too little of is left out, and the page says so
            answers[f"{base}/{view}"] = make()
    for of in ("",) if len(about["objectives"]) == 1 else [one["name"] for one in about["objectives"]]:
        answers |= _of_one_value(found, key, base, of)
    answers |= _trials(found, key, base, about)
    return answers


def _of_one_value(found: ShownStudies, key: str, base: str, of: str) -> dict[str, Json]:
    """The views of one objective, under the addresses at which the page asks for them."""
    named = f"?of={quote(of, safe='')}" if of else ""
    wanted = {"parameters": charts.show_parameters, "system": charts.show_system, "model": charts.show_model}
    made: dict[str, Json] = {}
    for view, make in wanted.items():
        with suppress(FarthingError):
            made[f"{base}/{view}{named}"] = make(found, key, of)
    return made | _contours(found, key, base, made.get(f"{base}/model{named}"), of)


def _contours(found: ShownStudies, key: str, base: str, model: Json, of: str) -> dict[str, Json]:
    """Of the four parameters that matter most, each two."""
    names = list(model["importance"])[:4] if model else []
    named = f"&of={quote(of, safe='')}" if of else ""
    made: dict[str, Json] = {}
    for x in names:
        for y in names:
            if x != y:
                with suppress(FarthingError):
                    made[f"{base}/contour?x={x}&y={y}{named}"] = charts.show_contour(found, key, x, y, of)
    return made


def _trials(found: ShownStudies, key: str, base: str, about: dict[str, Json]) -> dict[str, Json]:
    order = "up" if about["minimize"] else "down"
    table = trials.list_trials(found, key, "value", order, [], "", "", [], 0, MOST_TRIALS)
    numbers = {row["number"] for row in table["trials"]} | {row["number"] for row in about["failures"]}
    made: dict[str, Json] = {f"{base}/table": table}
    for number in sorted(numbers):
        made[f"{base}/trials/{number}"] = {**trials.show_trial(found, key, number), "files": [], "logs": []}
    return made


def _page(name: str, key: str, answers: dict[str, Json]) -> str:
    modules = {f"farthing/{path}": _address(text) for path, text in _modules().items()}
    imports = _json({"imports": modules})
    start = 'import "farthing/app.js";'
    chart = (STATIC / "vendor" / "uPlot.iife.min.js").read_text(encoding="utf-8")
    licence = (STATIC / "vendor" / "uPlot.LICENSE").read_text(encoding="utf-8")
    style = "\n".join((STATIC / file).read_text(encoding="utf-8") for file in ("vendor/uPlot.min.css", "style.css"))
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in (imports, chart, start))
    policy = (
        f"default-src 'none'; script-src {allowed} data:; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
    )
    return f"""<!doctype html>
<html lang="en" data-report="{html.escape(key, quote=True)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(name)} · Farthing</title>
<style>{style}</style>
<!-- uPlot: {html.escape(licence).replace("--", "- -")} -->
<script>{chart}</script>
<script type="importmap">{imports}</script>
<script type="application/json" id="report-data">{_json(answers)}</script>
</head>
<body>{_body()}
<script type="module">{start}</script>
</body>
</html>
"""


def _body() -> str:
    """The places of the dashboard's page that its modules fill."""
    page = (STATIC / "page.html").read_text(encoding="utf-8")
    return page.partition("<body>")[2].partition("<noscript>")[0].rstrip()


def _modules() -> dict[str, str]:
    """The page's modules by name, each importing the others by name instead of by place."""
    found = {}
    for path in sorted(STATIC.rglob("*.js")):
        name = path.relative_to(STATIC).as_posix()
        if not name.startswith("vendor/"):
            found[name] = IMPORT.sub(lambda match, at=path: _named(match, at), path.read_text(encoding="utf-8"))  # type: ignore[misc]
    return found


def _named(match: "re.Match[str]", at: Path) -> str:
    target = (at.parent / match[2]).resolve().relative_to(STATIC.resolve()).as_posix()
    return f'{match[1]}"farthing/{target}"'


def _address(text: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _json(form: Any) -> str:
    """JSON that no parser of HTML takes for the end of its element."""
    return strict_json(form).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
