"""A dashboard that is looked at beside four writers: no errors on either side, and the writers hardly notice."""

import pytest

from benchmarks.speed.polling import LEAST_SHARE, compare


def test_a_page_beside_four_writers_makes_no_errors(tmp_path) -> None:
    found = compare(f"sqlite:///{tmp_path}/busy.db", windows=1, seconds=3.0)

    assert found["errors"] == 0, found
    assert found["answers"] > 0


@pytest.mark.long
def test_writers_hardly_notice_a_page_on_sqlite(tmp_path) -> None:
    found = compare(f"sqlite:///{tmp_path}/busy.db", windows=6, seconds=10.0)

    assert found["errors"] == 0, found
    assert found["share"] >= LEAST_SHARE, found


@pytest.mark.long
def test_writers_hardly_notice_a_page_on_postgresql(postgres_url) -> None:
    found = compare(postgres_url, windows=6, seconds=10.0)

    assert found["errors"] == 0, found
    assert found["share"] >= LEAST_SHARE, found
