"""Draws the pictures of the dashboard for the docs: python -m tests.browser.screenshots docs/images."""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import FLAGS, start
from tests.browser.some_studies import write_studies

PICTURES = {
    "dashboard-study": "study/digits",
    "dashboard-parameters": "study/digits/parameters",
    "dashboard-population": "study/population/system",
    "dashboard-pipeline": "study/pipeline/system",
}
SIZE = {"width": 1200, "height": 860}


def main(folder: Path, database: Path) -> None:
    if not database.exists():
        write_studies(database)
    with start(database.name, cwd=database.parent) as dashboard, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(120_000)
        page.goto(dashboard.url)
        page.locator("#main h1").first.wait_for()
        for name, place in PICTURES.items():
            page.evaluate("place => { location.hash = place; }", f"#/{place}")
            page.locator("main .page canvas, main .page .drawing svg").first.wait_for()
            page.wait_for_timeout(500)
            page.screenshot(path=folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(sys.argv[1]), Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else Path(scratch) / "studies.db")
