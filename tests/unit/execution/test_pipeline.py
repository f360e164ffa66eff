"""Work in stages."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from farthing.caching.stage_cache import StageCache
from farthing.errors import WorkError
from farthing.execution import Pipeline, Stage
from farthing.execution.pipeline import PipelineWork
from farthing.space import Choice, Float, Space
from farthing.space.stages import prefix_key
from farthing.trials import Problem, State


@pytest.fixture
def staged():
    strength = {"strength": Float(0.0, 1.0)}
    return Problem(Space(stages={"denoise": strength, "score": {**strength, "cutoff": Float(0.0, 1.0)}}), value="f1")


def pipeline_work(**arguments):
    return PipelineWork(Pipeline(**arguments))


PARAMS = {"denoise.strength": 0.1, "score.strength": 0.2, "cutoff": 0.3}


def test_each_stage_gets_the_output_before_it_and_its_own_params(staged, make_trial):
    calls = []

    def denoise(previous, **params):
        calls.append((previous, params))
        return "clean"

    def score(previous, **params):
        calls.append((previous, params))
        return {"f1": 0.9, "recall": 0.8}

    pipeline = pipeline_work(source="noisy", denoise=denoise, score=Stage(score))
    pipeline.check(staged)
    trial = make_trial(staged, params=PARAMS)
    outcome = trial._finish(pipeline.run(trial))
    assert calls == [("noisy", {"strength": 0.1}), ("clean", {"strength": 0.2, "cutoff": 0.3})]
    assert (outcome.state, outcome.value, outcome.measurements[0].metrics) == (State.DONE, 0.9, {"recall": 0.8})


@pytest.mark.parametrize("limit", [0, None])
def test_the_source_is_among_the_code_only_where_outputs_are_kept(limit):
    found = pipeline_work(source=[1.0], a=lambda previous: previous, cache_limit=limit).code()
    assert set(found) == ({"a"} if limit == 0 else {"a", "source"})


def test_what_a_stage_cost_is_recorded_as_it_ends(staged, make_trial, recorder, clock):
    def denoise(previous, **params):
        clock.advance(5)

    def score(previous, **params):
        clock.advance(1)
        assert [point.cost for point in recorder.measurements] == [{"stage": 5.5}]
        raise ValueError("broken")

    trial = make_trial(staged, params=PARAMS)
    clock.advance(0.5)
    with pytest.raises(ValueError, match="broken"):
        pipeline_work(denoise=Stage(denoise, version=1), score=score).run(trial)


def test_all_seconds_of_a_pipeline_are_of_its_stages(staged, make_trial, recorder, clock):
    def stage(previous, **params):
        clock.advance(2)
        return 0.5

    trial = make_trial(staged, params=PARAMS)
    clock.advance(1)
    outcome = trial._finish(pipeline_work(denoise=Stage(stage, version=1), score=stage).run(trial))
    assert [(point.step, point.value, point.cost) for point in recorder.measurements] == [
        (0, None, {"stage": 3.0}),
        (1, None, {"stage": 2.0}),
    ]
    assert outcome.measurements[0].cost == {}


def test_what_came_before_a_wait_is_of_the_stages_too(staged, make_trial, recorder, clock):
    trial = make_trial(staged, params=PARAMS)
    clock.advance(1)
    with trial._waiting():
        clock.advance(50)
    pipeline_work(denoise=lambda previous, strength: 0.5, score=lambda previous, **params: 0.5).run(trial)
    assert [point.cost for point in recorder.measurements] == [{"stage": 1.0}, {}]


@pytest.mark.parametrize("names", [[], ["denoise"], ["score", "denoise"], ["denoise", "score", "plot"]])
def test_stages_that_are_not_those_of_the_space_are_refused_at_the_start(staged, names):
    pipeline = pipeline_work(**dict.fromkeys(names, lambda previous: previous))
    with pytest.raises(WorkError, match="'denoise', 'score'"):
        pipeline.check(staged)


def test_a_pipeline_in_a_space_without_stages_is_refused(plain):
    with pytest.raises(WorkError, match="there are none"):
        pipeline_work(denoise=lambda previous: previous).check(plain)


async def coroutine(previous, strength):
    return 0


@pytest.mark.parametrize(
    ("denoise", "wrong"),
    [
        (lambda previous, width: 0, r"params \('strength'\).*got denoise\(previous, width\)"),
        (lambda strength: 0, "multiple values for argument 'strength'"),
        (lambda previous, strength, more: 0, r"'more'.*Write def denoise\(previous, strength\)"),
        (lambda: 0, r"got denoise\(\): too many positional"),
        (coroutine, "plain function, got the coroutine 'denoise'"),
    ],
)
def test_a_stage_that_cannot_be_called_with_its_params_is_refused_at_the_start(staged, denoise, wrong):
    with pytest.raises(WorkError, match=wrong):
        pipeline_work(denoise=denoise, score=lambda previous, **params: 0).check(staged)


def test_a_decorator_may_supply_arguments(staged):
    def denoise(previous, strength, settings):
        return strength

    @functools.wraps(denoise)
    def with_settings(*args, **params):
        return denoise(*args, settings={}, **params)

    pipeline_work(denoise=with_settings, score=lambda previous, **params: 0).check(staged)


def test_a_param_that_is_not_always_active_needs_a_default():
    kinds = {"kind": Choice("a", "b"), "width": Float(0, 1, when={"kind": "b"})}
    problem = Problem(Space(stages={"denoise": kinds, "score": {"cut": Float(0, 1)}}), value="f1")
    score = {"score": lambda previous, cut: cut}
    pipeline_work(denoise=lambda previous, kind, width=0.5: width, **score).check(problem)
    with pytest.raises(WorkError, match=r"defaults for those that are not always active.*missing a required argument"):
        pipeline_work(denoise=lambda previous, kind, width: width, **score).check(problem)


def test_a_stage_must_be_a_function():
    with pytest.raises(WorkError, match="A stage must be a function, got 3"):
        pipeline_work(denoise=3)


@pytest.fixture
def three():
    stages = {
        "denoise": {"strength": Float(0.0, 1.0)},
        "train": {"rate": Float(0.0, 1.0)},
        "score": {"cut": Float(0, 1)},
    }
    return Problem(Space(stages=stages), value="f1")


@pytest.fixture
def calls():
    return []


@pytest.fixture
def pipeline(calls, clock):
    """Stages that take 5, 3 and 1 seconds; versions are given because they close over the test's own objects."""

    def stage(name, seconds):
        def run(previous, **params):
            calls.append(name)
            clock.advance(seconds)
            return [*previous, *params.values()] if name != "score" else sum(previous) + params["cut"]

        return Stage(run, version=1)

    return pipeline_work(source=[100.0], denoise=stage("denoise", 5), train=stage("train", 3), score=stage("score", 1))


def run(pipeline, problem, make_trial, **params):
    trial = make_trial(problem, params={"strength": 0.1, "rate": 0.2, "cut": 0.3, **params})
    return trial._finish(pipeline.run(trial)).value


def stages_in(recorder):
    return [(point.step, point.cost.get("stage", 0.0), point.saved) for point in recorder.measurements]


def test_a_trial_starts_from_the_longest_run_of_stages_that_is_there(three, pipeline, make_trial, calls, recorder):
    assert run(pipeline, three, make_trial) == pytest.approx(100.6)
    assert run(pipeline, three, make_trial, cut=0.5) == pytest.approx(100.8)
    assert run(pipeline, three, make_trial, rate=0.7) == pytest.approx(101.1)
    assert calls == ["denoise", "train", "score", "score", "train", "score"]


def test_a_stage_out_of_the_cache_says_what_it_had_cost(three, pipeline, make_trial, recorder):
    run(pipeline, three, make_trial)
    run(pipeline, three, make_trial, cut=0.5)
    assert stages_in(recorder) == [
        (0, 5.0, {}),
        (1, 3.0, {}),
        (2, 1.0, {}),
        (1, 0.0, {"cache": 3.0}),
        (0, 0.0, {"cache": 5.0}),
        (2, 1.0, {}),
    ]


def test_keeping_to_the_limit_is_on_no_bill(three, pipeline, make_trial, recorder, clock, monkeypatch):
    monkeypatch.setattr(StageCache, "shrink", lambda cache: clock.advance(100))
    run(pipeline, three, make_trial)
    assert stages_in(recorder) == [(0, 5.0, {}), (1, 3.0, {}), (2, 1.0, {})]


def test_where_cost_is_no_time_a_stage_from_the_cache_saved_none(three, pipeline, make_trial, recorder):
    priced = replace(three, cost_unit="dollars", measures_cost=False)
    run(pipeline, priced, make_trial)
    run(pipeline, priced, make_trial)
    assert stages_in(recorder)[3:] == [(1, 0.0, {"cache": 0.0}), (0, 0.0, {"cache": 0.0}), (2, 0.0, {})]


def test_what_a_later_stage_does_to_its_input_stays_with_its_trial(three, make_trial):
    def denoise(image, strength):
        image += strength
        return image

    def train(image, rate):
        image *= 2
        return image

    pipeline = pipeline_work(
        source=np.ones(2), denoise=denoise, train=train, score=lambda image, cut: float(image[0]) + cut
    )
    for _ in range(2):
        assert run(pipeline, three, make_trial, strength=0.5, cut=0.0) == 3.0
        assert run(pipeline, three, make_trial, strength=0.25, cut=0.0) == 2.5
        assert run(pipeline, three, make_trial, strength=0.25, cut=0.5) == 3.0


def test_another_version_of_a_stage_is_computed_again_with_all_that_follows(three, pipeline, make_trial, calls):
    run(pipeline, three, make_trial)
    calls.clear()
    changed = {**pipeline.pipeline.stages, "train": replace(pipeline.pipeline.stages["train"], version=2)}
    run(pipeline_work(source=[100.0], **changed), three, make_trial)
    assert calls == ["train", "score"]
    calls.clear()
    run(pipeline_work(source=[200.0], **pipeline.pipeline.stages), three, make_trial)
    assert calls == ["denoise", "train", "score"]


def test_without_a_cache_every_stage_is_computed(three, pipeline, make_trial, calls, checkpoints, recorder):
    uncached = pipeline_work(source=[100.0], cache_limit=0, **pipeline.pipeline.stages)
    run(uncached, three, make_trial)
    run(uncached, three, make_trial)
    assert calls == ["denoise", "train", "score"] * 2
    assert not checkpoints.root.exists()
    assert [(eviction.length, eviction.why) for eviction in recorder.evictions] == [(1, "limit"), (2, "limit")] * 2
    assert uncached.lost_prefixes({"a": 1, "b": 2}, checkpoints.root) == ["a", "b"]


def test_a_corrupt_output_is_computed_again_from_what_is_left(
    three, pipeline, make_trial, calls, checkpoints, recorder
):
    value = run(pipeline, three, make_trial)
    calls.clear()
    (longer,) = (path for path in checkpoints.root.glob("stages/*/output/output.json") if "0.2" in path.read_text())
    longer.write_text(longer.read_text().replace("0.2", "0.9"))
    assert run(pipeline, three, make_trial) == value
    assert calls == ["train", "score"]
    assert [(eviction.length, eviction.why) for eviction in recorder.evictions] == [(2, "corrupt")]


def test_what_the_limit_evicts_is_told(three, pipeline, make_trial, recorder):
    small = pipeline_work(source=[100.0], cache_limit=30, **pipeline.pipeline.stages)
    run(small, three, make_trial)
    run(small, three, make_trial, strength=0.9)
    assert {eviction.why for eviction in recorder.evictions} == {"limit"}


class Model:
    def __init__(self, weight):
        self.weight = weight


def test_an_output_that_is_no_plain_data_is_refused_with_what_to_do(three, make_trial):
    def train(previous, rate):
        return {"model": Model(rate)}

    pipeline = pipeline_work(denoise=lambda _, strength: strength, train=train, score=lambda model, cut: cut)
    trial = make_trial(three, params={"strength": 0.1, "rate": 0.2, "cut": 0.3})
    with pytest.raises(WorkError, match=r"got <.*Model.*> \(Model\) from 'train'\. Give ft\.Stage\(train, save="):
        pipeline.run(trial)


def test_a_stage_may_save_and_load_its_outputs_itself(three, make_trial, calls):
    def train(previous, rate):
        calls.append("train")
        return Model(rate)

    stage = Stage(
        train,
        version="1",
        save=lambda model, folder: (folder / "weight").write_text(repr(model.weight)),
        load=lambda folder: Model(float((folder / "weight").read_text())),
    )
    pipeline = pipeline_work(denoise=lambda _, strength: 0, train=stage, score=lambda model, cut: model.weight + cut)
    values = [run(pipeline, three, make_trial, cut=cut) for cut in (0.0, 0.5)]
    assert (values, calls) == ([0.2, 0.7], ["train"])


def test_another_way_to_save_or_load_is_another_version():
    def versions(**ways):
        pipeline = pipeline_work(train=Stage(lambda previous: previous, **ways), score=lambda previous: 0)
        return pipeline.versions

    ways = {"save": lambda model, folder: None, "load": lambda folder: 1}
    assert versions(**ways) == versions(**ways)
    assert versions(**ways) != versions(**ways | {"save": lambda model, folder: 0})
    assert versions(**ways) != versions(**ways | {"load": lambda folder: 2})


def test_a_file_that_a_stage_wrote_is_there_for_later_trials(three, make_trial, tmp_path):
    def train(previous, rate):
        path = tmp_path / "model.txt"
        path.write_text(str(rate))
        return path

    pipeline = pipeline_work(
        denoise=lambda _, strength: 0,
        train=Stage(train, version=1),
        score=lambda path, cut: float(path.read_text()) + cut,
    )
    values = [run(pipeline, three, make_trial, rate=rate, cut=cut) for rate, cut in [(0.1, 0), (0.2, 0), (0.1, 0.5)]]
    assert values == [0.1, 0.2, 0.6]


def folder_pipeline(seen, **changes):
    """Trains into a folder: two files, one of them in a folder of its own; scoring changes what it is given."""

    def train(previous, rate, folder):
        seen.append((folder, list(folder.iterdir())))
        (folder / "weights").mkdir()
        (folder / "weights" / "0.txt").write_text(str(rate))
        (folder / "name.txt").write_text("model")
        return {"model": folder, "note": folder / "name.txt"}

    def score(output, cut):
        weights = output["model"] / "weights" / "0.txt"
        value = float(weights.read_text()) + cut
        assert output["note"].read_text() == "model"
        weights.write_text("changed")
        return value

    stages = {"denoise": lambda _, strength: 0, "train": Stage(train, version=1, folder=True), "score": score}
    return pipeline_work(**stages | changes)


def test_a_stage_may_ask_for_a_folder_whose_content_is_kept(three, make_trial):
    seen = []
    pipeline = folder_pipeline(seen)
    pipeline.check(three)
    values = [run(pipeline, three, make_trial, rate=rate, cut=cut) for rate, cut in [(0.1, 0), (0.2, 0), (0.1, 0.5)]]
    assert values == [0.1, 0.2, 0.6]
    (first, empty), (second, _) = seen
    assert empty == []
    assert first != second
    assert not first.exists(), "it goes with its trial"


@pytest.mark.parametrize("wrap", [str, lambda path: {"files": [str(path / "a.txt")]}])
def test_a_path_in_the_folder_of_a_stage_must_not_be_a_text(three, make_trial, wrap):
    train = Stage(lambda previous, rate, folder: wrap(folder), version=1, folder=True)
    with pytest.raises(WorkError, match=r"as a pathlib\.Path, got the text '.*' from 'train'\. Return folder / …"):
        run(folder_pipeline([], train=train), three, make_trial)


def test_a_stage_with_a_folder_must_take_it(three):
    with pytest.raises(WorkError, match=r"'strength', 'folder'\).*Write def denoise\(previous, strength, folder"):
        folder_pipeline([], denoise=Stage(lambda previous, strength: 0, version=1, folder=True)).check(three)


def test_a_stage_with_a_folder_has_no_parameter_of_that_name():
    space = Space(stages={"one": {"folder": Float(0, 1)}, "two": {"cut": Float(0, 1)}})
    pipeline = pipeline_work(
        one=Stage(lambda previous, folder: 0, version=1, folder=True), two=lambda previous, cut: cut
    )
    with pytest.raises(WorkError, match=r"got 'one', which has a parameter of that name\. Rename the parameter"):
        pipeline.check(Problem(space, value="f1"))


def test_a_source_that_is_no_plain_data_needs_a_version(three):
    stages = {name: lambda previous, **params: previous for name in three.space.stages}
    with pytest.raises(WorkError, match=r"plain data or have a version, got .*Model.*source_version='1'"):
        pipeline_work(source=Model(1), **stages).check(three)
    pipeline_work(source=Model(1), source_version="2024-05", **stages).check(three)
    pipeline_work(source=Model(1), cache_limit=0, **stages).check(three)


def test_what_changed_since_the_last_run_began_is_seen(three):
    session = {"factor": 1}
    stages = {name: eval("lambda previous, **params: factor", session) for name in three.space.stages}
    source = [1.0]
    pipeline = pipeline_work(source=source, **stages)

    def address():
        pipeline.check(three)
        return pipeline.address("", 1)

    before = address()
    assert address() == before
    session["factor"] = 2
    redefined = address()
    assert redefined.versions != before.versions
    source.append(2.0)
    assert address().source != redefined.source


def test_a_path_that_is_not_there_is_no_source(three, tmp_path):
    stages = {name: lambda previous, **params: previous for name in three.space.stages}
    with pytest.raises(WorkError, match=r"missing\.csv', which does not exist\. Check the path"):
        pipeline_work(source=tmp_path / "missing.csv", **stages).check(three)


def test_a_source_behind_links_counts_by_its_content(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.csv").write_text("1")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "part").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "a.csv")

    def identities():
        return [pipeline_work(source=tmp_path / name).source_identity for name in ("data", "link")]

    before = identities()
    assert identities() == before
    (tmp_path / "elsewhere" / "a.csv").write_text("2")
    assert all(one != other for one, other in zip(identities(), before, strict=True))


def test_a_stage_that_closes_over_an_object_needs_a_version(three):
    model = Model(1)

    def train(previous, rate):
        return model.weight

    stages = {name: lambda previous, **params: previous for name in three.space.stages}
    with pytest.raises(WorkError, match=r"'train', which holds .*Model.*Give ft\.Stage\(…, version='1'\)"):
        pipeline_work(**stages | {"train": train}).check(three)
    pipeline_work(**stages | {"train": Stage(train, version=1)}).check(three)


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, previous, **params):
        return previous * self.factor


def test_an_object_that_can_be_called_is_a_stage_and_counts_with_its_state(three):
    def address(factor):
        stages = {name: Scaled(factor) for name in three.space.stages}
        pipeline = pipeline_work(source=1.0, **stages)
        pipeline.check(three)
        return pipeline.address("", 1).versions

    assert address(2) == address(2) != address(3)


def test_save_and_load_come_together():
    with pytest.raises(WorkError, match="both save and load"):
        Stage(len, save=lambda output, folder: None)


def test_prefixes_that_are_not_in_the_cache_are_named(three, pipeline, make_trial, checkpoints):
    run(pipeline, three, make_trial)
    params = {"strength": 0.1, "rate": 0.2, "cut": 0.3}
    there = {prefix_key(three.space, params, length): length for length in (1, 2)}
    gone = prefix_key(three.space, {**params, "rate": 0.9}, 2)
    assert pipeline.lost_prefixes({**there, gone: 2}, checkpoints.root) == [gone]
    changed = {**pipeline.pipeline.stages, "train": replace(pipeline.pipeline.stages["train"], version=2)}
    assert pipeline_work(source=[100.0], **changed).lost_prefixes(there, checkpoints.root) == [list(there)[1]]
