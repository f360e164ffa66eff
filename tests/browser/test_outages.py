"""A page says that the storage is away, keeps what it shows, and comes back by itself."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

import farthing as ft
from tests.browser.conftest import start
from tests.conftest import started
from tests.postgres import PostgresServer


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    yield from started(PostgresServer(durable=False))


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()


def test_a_page_says_that_the_storage_is_away_and_comes_back_by_itself(server: PostgresServer, visit) -> None:
    url = server.new_database()
    with ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="loss", storage=url, name="away") as study:
        study.add({"x": 0.5}, 0.25)
    with start(url) as dashboard:
        visitor = visit(dashboard)
        page = visitor.open("study/away")
        other = page.context.new_page()
        other.goto(f"{dashboard.origin}/#/study/away/trials")
        expect(page.locator(".live")).to_have_text("live")
        expect(other.locator(".live")).to_have_text("live")
        expect(page.locator("#main")).to_contain_text("0.25")  # what is known before stays
        with stopped(server):
            expect(page.locator(".live")).to_have_text("storage away")
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as if one came back to the page
            expect(page.locator("#main .warning")).to_contain_text("A PostgreSQL storage must")
            expect(page.locator("#main")).to_contain_text("0.25")
            other.reload()
            expect(other.locator("#main .failure")).to_contain_text("A PostgreSQL storage must")
        expect(page.locator(".live")).to_have_text("live")
        expect(page.locator("#main .warning")).to_have_count(0)
        expect(page.locator("#main")).to_contain_text("0.25")
        expect(other.locator("#main tbody tr")).to_have_count(1)
        assert [fault for fault in visitor.faults if "503" not in fault] == []
        visitor.faults.clear()
