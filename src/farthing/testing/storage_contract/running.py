"""Seconds of running are counted."""

import pytest

from farthing.errors import (
    FarthingError,
)
from farthing.testing.storage_contract.using import (
    LEASE,
    STUDY,
    Using,
    failed,
    suggestion,
)


class RunTests(Using):
    def test_time_counts_while_a_run_gives_signs_of_life(self) -> None:
        run = self.store.start_run(STUDY, lease=LEASE)
        self.time.advance(10)
        self.store.touch_run(STUDY, run)
        self.time.advance(100)
        assert self.store.seconds_run(STUDY) == pytest.approx(10, abs=0.5)

    def test_runs_at_the_same_time_count_once(self) -> None:
        first = self.store.start_run(STUDY, lease=LEASE)
        self.time.advance(5)
        second = self.store.start_run(STUDY, lease=LEASE)
        self.time.advance(5)
        self.store.touch_run(STUDY, first)
        self.time.advance(5)
        self.store.touch_run(STUDY, second)
        self.time.advance(100)
        self.store.touch_run(STUDY, self.store.start_run(STUDY, lease=LEASE))
        assert first != second
        assert self.store.seconds_run(STUDY) == pytest.approx(15, abs=0.5)

    def test_time_between_runs_does_not_count(self) -> None:
        for _ in range(3):
            run = self.store.start_run(STUDY, lease=LEASE)
            self.time.advance(4)
            self.store.touch_run(STUDY, run, ends=True)
            self.time.advance(LEASE / 4)
        assert self.store.seconds_run(STUDY) == pytest.approx(12, abs=0.5)

    def test_an_unknown_run_is_refused(self) -> None:
        with pytest.raises(FarthingError):
            self.store.touch_run(STUDY, 1)

    def test_the_clock_goes_on(self) -> None:
        before = self.store.now()
        self.time.advance(1)
        assert self.store.now() >= before + 1

    def test_a_sound_storage_has_nothing_wrong_with_it(self) -> None:
        self.open(suggestion(), suggestion(), retries=1)
        self.store.add_trial(STUDY, suggestion(), failed())
        self.close(self.read(0))
        self.expire()
        self.store.sweep(STUDY)
        assert self.store.check() == []
