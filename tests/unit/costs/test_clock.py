from farthing.costs import FakeClock


def test_a_fake_clock_goes_on_when_told() -> None:
    clock = FakeClock(5.0)
    clock.advance(2.5)
    assert (clock.now(), clock.elapsed()) == (7.5, 7.5)
