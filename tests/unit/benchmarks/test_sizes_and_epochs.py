import numpy as np
import pytest

from benchmarks.problems.sizes_and_epochs import SIZES_AND_EPOCHS, SPACE, read_table


def test_a_recorded_configuration_shows_its_own_curve_and_costs_what_it_sees() -> None:
    table = read_table()
    [params] = SPACE.encoder.decode(table.tree.data[7:8])
    found = SIZES_AND_EPOCHS.evaluate(params, {"data": 0.25, "epochs": 5}, seed=0)
    assert [point.value for point in found.trace] == pytest.approx(table.curves[7, 2, :5].tolist())
    assert found.cost == pytest.approx(0.25 * 5 / 20)
    assert SIZES_AND_EPOCHS.full_value(params) == pytest.approx(table.curves[7, 4, 19])
    assert SIZES_AND_EPOCHS.evaluate(params, {"data": 1.0, "epochs": 20}, seed=0).cost == 1.0


def test_between_two_sizes_errors_are_on_a_line_in_the_logarithm() -> None:
    table = read_table()
    [params] = SPACE.encoder.decode(table.tree.data[3:4])
    middle = SIZES_AND_EPOCHS.evaluate(params, {"data": 0.5**1.5, "epochs": 20}, seed=0).value
    assert middle == pytest.approx(float(np.mean(table.curves[3, 2:4, -1])))
