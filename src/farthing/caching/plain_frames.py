"""Data frames, series and indices as plain data: a column each, its type spelled out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from farthing.caching import plain_data
from farthing.caching.plain_data import NotPlain, Parts
from farthing.trials import Json

MASKED = {"i": pd.arrays.IntegerArray, "u": pd.arrays.IntegerArray, "f": pd.arrays.FloatingArray}


def take_apart(thing: Any, parts: Parts) -> Json:
    """The JSON form; what would not come back exactly as it was is refused."""
    if type(thing) is pd.DataFrame:
        return _certain(thing, {"frame": _write_frame(thing, parts)}, parts, pd.testing.assert_frame_equal)
    if type(thing) is pd.Series:
        return _certain(thing, {"series": _write_series(thing, parts)}, parts, pd.testing.assert_series_equal)
    if isinstance(thing, pd.Index):
        return _certain(thing, {"index": _write_index(thing, parts)}, parts, pd.testing.assert_index_equal)
    raise NotPlain(thing)


def put_together(kind: str, content: Any, parts: Parts) -> Any:
    return {"frame": _read_frame, "series": _read_series, "index": _read_index}[kind](content, parts)


def _certain(thing: Any, form: Json, parts: Parts, assert_equal: Callable[..., None]) -> Json:
    """The form, once it has been seen to give back the very same."""
    try:
        assert_equal(plain_data.put_together(form, parts), thing, check_exact=True)
    except Exception as error:
        raise NotPlain(thing, "Some column has a type that cannot be restored exactly: convert it.") from error
    return form


def _write_frame(frame: pd.DataFrame, parts: Parts) -> Json:
    columns = [_write_values(frame.iloc[:, place], parts) for place in range(frame.shape[1])]
    attributes = plain_data.take_apart(dict(frame.attrs), parts)
    return [_write_index(frame.columns, parts), _write_index(frame.index, parts), columns, attributes]


def _read_frame(content: list[Any], parts: Parts) -> pd.DataFrame:
    names, rows, columns, attributes = content
    index = _read_index(rows, parts)
    series = [pd.Series(_read_values(form, parts), index=index) for form in columns]
    frame = pd.DataFrame(dict(enumerate(series)), index=index)
    frame.index, frame.columns = index, _read_index(names, parts)
    frame.attrs = plain_data.put_together(attributes, parts)
    return frame


def _write_series(series: "pd.Series[Any]", parts: Parts) -> Json:
    name, attributes = (plain_data.take_apart(thing, parts) for thing in (series.name, dict(series.attrs)))
    return [name, _write_index(series.index, parts), _write_values(series, parts), attributes]


def _read_series(content: list[Any], parts: Parts) -> "pd.Series[Any]":
    name, rows, values, attributes = content
    series = pd.Series(_read_values(values, parts), index=_read_index(rows, parts))
    series.name = plain_data.put_together(name, parts)
    series.attrs = plain_data.put_together(attributes, parts)
    return series


def _write_index(index: Any, parts: Parts) -> Json:
    names = plain_data.take_apart(list(index.names), parts)
    if isinstance(index, pd.RangeIndex):
        return ["range", names, [index.start, index.stop, index.step]]
    if isinstance(index, pd.MultiIndex):
        codes = [plain_data.take_apart(np.asarray(code), parts) for code in index.codes]
        return ["levels", names, [[_write_index(level, parts) for level in index.levels], codes]]
    frequency = getattr(index, "freqstr", None)
    return ["values", names, [_write_values(pd.Series(index), parts), frequency]]


def _read_index(content: list[Any], parts: Parts) -> Any:
    kind, names_form, form = content
    names = plain_data.put_together(names_form, parts)
    if kind == "range":
        start, stop, step = form
        return pd.RangeIndex(start, stop, step, name=names[0])
    if kind == "levels":
        levels, codes = form
        return pd.MultiIndex(
            levels=[_read_index(level, parts) for level in levels],
            codes=[plain_data.put_together(code, parts) for code in codes],
            names=names,
        )
    values_form, frequency = form
    values = _read_values(values_form, parts)
    index = pd.Index(values, dtype=values.dtype, name=names[0])
    if frequency is not None:
        setattr(index, "freq", frequency)  # noqa: B010  # only some kinds of index have it
    return index


def _write_values(series: "pd.Series[Any]", parts: Parts) -> Json:
    dtype: Any = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = plain_data.take_apart(series.cat.codes.to_numpy(), parts)
        return ["categories", codes, _write_index(dtype.categories, parts), bool(dtype.ordered)]
    if isinstance(dtype, pd.DatetimeTZDtype):
        naive = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        return ["zone", plain_data.take_apart(naive, parts), str(dtype.tz)]
    if isinstance(dtype, pd.StringDtype):
        texts = [None if missing else text for text, missing in zip(series.tolist(), series.isna(), strict=True)]
        return ["text", plain_data.take_apart(texts, parts), dtype.storage, dtype.na_value is pd.NA]
    if isinstance(series.array, (*MASKED.values(), pd.arrays.BooleanArray)):
        missing = series.isna().to_numpy()
        data = series.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.type(0))
        return ["masked", *(plain_data.take_apart(array, parts) for array in (data, missing))]
    if not isinstance(dtype, np.dtype):
        raise NotPlain(series, f"Columns of type {dtype} cannot be restored exactly: convert them.")
    if dtype.hasobject:
        return ["objects", plain_data.take_apart(series.tolist(), parts)]
    return ["numbers", plain_data.take_apart(series.to_numpy(), parts)]


def _read_values(content: list[Any], parts: Parts) -> Any:
    kind, form, *details = content
    values = plain_data.put_together(form, parts)
    match kind:
        case "categories":
            return pd.Categorical.from_codes(values, categories=_read_index(details[0], parts), ordered=details[1])
        case "zone":
            return pd.Series(values).dt.tz_localize("UTC").dt.tz_convert(details[0]).array
        case "text":
            return pd.array(values, dtype=pd.StringDtype(details[0], na_value=pd.NA if details[1] else np.nan))
        case "masked":
            missing = plain_data.put_together(details[0], parts)
            return MASKED.get(values.dtype.kind, pd.arrays.BooleanArray)(values, missing)
        case "objects":
            return plain_data.object_array(values, [len(values)])
    return values
