"""What strangers on the same host get: cookies that browsers send to every port, and links planted among files."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import expect

import farthing as ft
from tests.browser.conftest import Dashboard, start

SPACE = ft.Space({"x": ft.Float(0, 1)})
SECRET = "what only the account may read"


@dataclass
class Thief:
    """A server on another port of the host, which keeps the cookies that it is sent."""

    origin: str
    cookies: list[str] = field(default_factory=list)


@pytest.fixture
def thief() -> Iterator[Thief]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.cookies.extend(self.headers.get_all("Cookie", []))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>thief</title>")

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        found = Thief(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mine.db"


@pytest.fixture
def study(path: Path) -> Iterator[ft.Study]:
    with ft.Study(SPACE, minimize="loss", storage=path, name="mine") as found:

        def work(trial: ft.RunningTrial) -> float:
            with trial.checkpoint() as folder:
                (folder / "weights.txt").write_text("weights")
            return 0.5

        found.run(work, budget=ft.Budget(trials=1), executor="inline", progress=False)
        yield found


def replayed(dashboard: Dashboard, cookie: str, method: str, path: str) -> int:
    """The status of a request that a thief sends, with every header that a page of ours would have sent."""
    headers = {"Cookie": cookie, "Origin": dashboard.origin, "Sec-Fetch-Site": "same-origin"}
    body = {"data": b"{}", "headers": {**headers, "Content-Type": "application/json"}} if method == "POST" else {}
    asked = urllib.request.Request(dashboard.origin + path, **{"method": method, "headers": headers, **body})
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_cookie_that_another_port_was_sent_changes_nothing(study, path, thief, visit) -> None:
    with start(path, "--allow-changes") as dashboard:
        page = visit(dashboard).open("study/mine")
        tab = page.context.new_page()
        tab.goto(thief.origin)
        cookie = thief.cookies[0]
        assert replayed(dashboard, cookie, "GET", "/api/studies") == 200, "the cookie is the dashboard's, and lets look"

        assert replayed(dashboard, cookie, "POST", "/api/studies/mine/stop") == 403
        assert not study.history.is_to_stop


def test_a_page_of_another_port_reads_and_changes_nothing(study, path, thief, visit) -> None:
    """In the browser, which would send the cookie along."""
    ask = """async ([url, method]) => {
      const change = { headers: { "content-type": "application/json" }, body: "{}" };
      const options = { method, credentials: "include", ...(method === "GET" ? {} : change) };
      try { return (await fetch(url, options)).status; }
      catch { return "refused"; }
    }"""
    with start(path, "--allow-changes") as dashboard:
        tab = visit(dashboard).page.context.new_page()
        tab.goto(thief.origin)
        assert tab.evaluate(ask, [f"{dashboard.origin}/api/studies", "GET"]) == "refused"
        assert tab.evaluate(ask, [f"{dashboard.origin}/api/studies/mine/stop", "POST"]) == "refused"
        assert not study.history.is_to_stop
        assert tab.evaluate("Object.keys(localStorage)") == [], "what a page keeps is its own port's"


def test_every_tab_of_the_browser_that_had_the_token_may_change(study, path, visit) -> None:
    with start(path, "--allow-changes") as dashboard:
        context = visit(dashboard).page.context
        tab = context.new_page()
        tab.goto(f"{dashboard.origin}/#/study/mine")
        tab.get_by_role("button", name="Stop …").click()
        tab.get_by_role("button", name="Stop", exact=True).click()
        expect(tab.get_by_role("dialog")).to_have_count(0)
        assert study.history.is_to_stop
        assert "token" not in tab.evaluate("document.cookie + location.href")


def test_a_browser_with_the_cookie_alone_is_told_what_to_do(study, path, visit) -> None:
    with start(path, "--allow-changes") as dashboard:
        visitor = visit(dashboard)
        page = visitor.open("study/mine")
        page.evaluate("localStorage.clear()")
        page.get_by_role("button", name="Stop …").click()
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(page.get_by_role("dialog")).to_contain_text("open the address with the token again")
        assert not study.history.is_to_stop
        assert [fault for fault in visitor.faults if "403" not in fault] == []
        visitor.faults.clear()


def test_a_planted_link_is_not_among_the_files_and_leads_nowhere(study, path, visit, tmp_path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.txt").write_text(SECRET)
    folder = study.checkpoints.path(str(study.trials[0].checkpoint))
    with start(path) as dashboard:
        page = visit(dashboard).open("study/mine/trial/0")
        expect(page.locator(".files")).to_contain_text("weights.txt")
        folder.rename(folder.with_name("moved"))
        folder.symlink_to(tmp_path / "elsewhere")
        page.reload()
        expect(page.locator("#main")).to_contain_text("Trial 0")
        expect(page.locator("#main")).not_to_contain_text("secret.txt")
        answer = page.evaluate(
            "async (name) => (await fetch(`api/studies/mine/trials/0/file?name=${name}`)).text()", "secret.txt"
        )
        assert "error" in json.loads(answer)
        assert SECRET not in answer
