"""Plain data in files: it comes back exactly as it was, or it is refused."""

import pickle
from datetime import timedelta, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from farthing.caching import plain_files
from farthing.caching.plain_data import NotPlain


@pytest.fixture
def there_and_back(tmp_path):
    def travel(thing):
        folder = tmp_path / "entry"
        folder.mkdir()
        plain_files.save(thing, folder)
        return plain_files.load(folder, scratch=tmp_path / "scratch")

    return travel


def same(one, other):
    """Equality of values, types and layouts, NaN included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | np.generic):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float):
        return repr(one) == repr(other)
    return one == other


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec=None)), st.binary()
)
DTYPES = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(),
    npst.floating_dtypes(),
    npst.complex_number_dtypes(),
    npst.datetime64_dtypes(),
    npst.timedelta64_dtypes(),
    npst.unicode_string_dtypes(max_len=4),
    npst.byte_string_dtypes(max_len=4),
)
SHAPES = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
ARRAYS = DTYPES.flatmap(lambda dtype: npst.arrays(dtype, SHAPES))
KEYS = st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.none())
PLAIN = st.recursive(
    st.one_of(SCALARS, ARRAYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)


@given(thing=PLAIN)
def test_plain_data_comes_back_exactly(thing, tmp_path_factory):
    folder = tmp_path_factory.mktemp("entry")
    plain_files.save(thing, folder)
    assert same(plain_files.load(folder, scratch=folder / "scratch"), thing)


@pytest.mark.parametrize("number", [1 << 5000, -(2**63), 2**63 - 1, float("inf"), float("nan"), -0.0], ids=type)
def test_odd_numbers_come_back(there_and_back, number):
    assert same(there_and_back(number), number)


def test_the_order_in_memory_comes_back(there_and_back):
    assert there_and_back(np.asfortranarray(np.arange(6.0).reshape(2, 3))).flags.f_contiguous


@pytest.mark.parametrize("shape", [(), (0, 2), (4,), (2, 2)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_plain_objects_come_back(there_and_back, shape, order):
    array = np.empty(shape, dtype=object, order=order)
    for place, thing in zip(np.ndindex(*shape), ["text", None, [1, 2], np.float32(1.5)], strict=False):
        array[place] = thing
    back = there_and_back(array)
    assert (back.dtype, back.shape, back.flags.f_contiguous) == (object, shape, array.flags.f_contiguous)
    assert same(list(back.flat), list(array.flat))


def test_long_texts_have_files_of_their_own(there_and_back, tmp_path):
    text = "prefix " * 1000
    assert there_and_back({"a": text, "b": "short"}) == {"a": text, "b": "short"}
    assert (tmp_path / "entry" / "0.bytes").read_text() == text


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "csr_array", "csc_array"])
def test_sparse_matrices_come_back_with_their_types(there_and_back, kind):
    matrix = getattr(scipy.sparse, kind)(np.array([[0, 1.5], [0, 0], [2, 0]], dtype=np.float32))
    matrix.indices = matrix.indices.astype(np.int64)
    back = there_and_back(matrix)
    assert (type(back), back.dtype, back.indices.dtype) == (type(matrix), np.float32, np.int64)
    assert (back != matrix).nnz == 0


FRAME = pd.DataFrame(
    {
        "short": np.arange(3, dtype=np.int16),
        "real": [1.0, np.nan, -np.inf],
        "text": ["a", "b", "c"],
        "mixed": np.array([1, "x", None], dtype=object),
        "category": pd.Categorical(["a", "b", "a"], categories=["b", "a", "c"], ordered=True),
        "local": pd.date_range("2020-03-29", periods=3, tz="Europe/Berlin"),
        "day": pd.date_range("2020-01-01", periods=3),
        "span": pd.to_timedelta([1, 2, 3], unit="s"),
        "maybe": pd.array([1, None, 3], dtype="Int32"),
        "perhaps": pd.array([True, None, False], dtype="boolean"),
        "fraction": pd.array([1.5, None, 3.0], dtype="Float64"),
        "string": pd.array(["a", None, "c"], dtype="string"),
    }
)


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME.iloc[:0],
        FRAME[[]],
        FRAME.set_index("local"),
        FRAME.set_index("day").asfreq("D"),
        FRAME.set_index(["text", "short"]),
        FRAME.set_index("category"),
        FRAME.rename_axis(columns="what"),
        pd.concat([FRAME[["real"]], FRAME[["real"]]], axis=1),
        pd.DataFrame(),
        pd.DataFrame({"a": [1, 2], "tokens": [["a"], ["b"]]}, index=pd.Index(["x", "y"], dtype=object)),
    ],
    ids=lambda frame: f"{'-'.join(map(str, frame.index.names))}-{frame.shape}",
)
def test_frames_come_back_with_every_type(there_and_back, frame):
    pd.testing.assert_frame_equal(there_and_back(frame), frame, check_exact=True)


def test_series_and_indices_come_back(there_and_back):
    series, index = there_and_back((FRAME["category"].rename(3), FRAME.set_index("day").index))
    pd.testing.assert_series_equal(series, FRAME["category"].rename(3))
    pd.testing.assert_index_equal(index, FRAME.set_index("day").index)


def test_a_file_is_copied_in_and_out(there_and_back, tmp_path):
    written = tmp_path / "model.bin"
    written.write_bytes(b"weights")
    first = there_and_back({"model": written})["model"]
    first.write_bytes(b"changed")
    again = plain_files.load(tmp_path / "entry", scratch=tmp_path / "again")["model"]
    assert (first.name, again.read_bytes(), written.read_bytes()) == ("model.bin", b"weights", b"weights")


def test_a_folder_is_copied_whole(there_and_back, tmp_path):
    written = tmp_path / "model"
    (written / "part").mkdir(parents=True)
    (written / "part" / "weights").write_text("1 2 3")
    assert (there_and_back(written) / "part" / "weights").read_text() == "1 2 3"


class Model:
    """What a stage may well return, and what no plain format holds."""


ITSELF: list[object] = []
ITSELF.append(ITSELF)


class Weights(list):
    """Looks like a list, and would come back as one."""


@pytest.mark.parametrize(
    "thing",
    [
        Model(),
        Weights([1.0]),
        {"deep": [1, (2, Model())]},
        {1, 2},
        {(1, 2): 3},
        ITSELF,
        np.array([1, Model()], dtype=object),
        np.zeros(2, dtype=[("name", object)]),
        pd.DataFrame({"local": pd.date_range("2020", periods=2, tz=timezone(timedelta(hours=2), "of our own"))}),
        np.ma.array([1.0]),
        np.zeros(2, dtype=np.dtype("f8", metadata={"unit": "mm"})),
        scipy.sparse.coo_matrix(np.eye(2)),
        pd.DataFrame({"model": [Model()]}),
        pd.Series(pd.period_range("2020", periods=2)),
        Path("there/is/no/such/file"),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_what_would_not_come_back_exactly_is_refused(there_and_back, thing):
    with pytest.raises(NotPlain):
        there_and_back(thing)


def test_a_pickle_in_the_place_of_an_array_is_not_read(tmp_path):
    plain_files.save(np.zeros(3), tmp_path)
    with (tmp_path / "arrays.npy").open("wb") as file:
        np.lib.format.write_array(file, np.array([Model()], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        plain_files.load(tmp_path, scratch=tmp_path)
    (tmp_path / "arrays.npy").write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(ValueError, match="magic string"):
        plain_files.load(tmp_path, scratch=tmp_path)
