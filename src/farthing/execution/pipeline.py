"""Work in stages, each fed with the output of the one before, which is kept for later trials."""

import copy
import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MethodType
from typing import Any

from farthing.caching import plain_files
from farthing.caching.identity import filled_by_running, identity_of_data, identity_of_function
from farthing.caching.plain_data import NotPlain
from farthing.caching.stage_cache import CacheKey, Kept, Load, StageCache, read_limit
from farthing.caching.stored_stages import stage_cache
from farthing.caching.users_modules import UnnamedImport, is_installed
from farthing.errors import WorkError
from farthing.execution.running_trial import RunningTrial
from farthing.files.file_lock import remove_abandoned, scratch_folder
from farthing.space import Space
from farthing.space.stages import local_name, prefix_key
from farthing.trials import Problem
from farthing.trials.prefixes import Eviction
from farthing.validation import listed, shown

LIMIT = "10 GB"
FOLDER_ARGUMENT = "folder"
"""The argument under which a stage that asks for one is given a folder of its own."""
SAVED = "cache"
"""The reason under which a measurement says what a stage from the cache had cost: those that have it were loaded."""


@dataclass(frozen=True)
class Stage:
    """One stage of a pipeline: `function(previous_output, **params)` returns the stage's output.

    Args:
        version: changes whenever outputs do. None takes it from the code of the function, of `save` and of `load`: with
            the constants, functions and objects of yours that it refers to, and the variables it closes over.
        save, load: for outputs that are no plain data: `save(output, folder)` writes files, `load(folder)` reads them.
        folder: for a stage that writes files: it is called with `folder=` as well, the path of an empty folder of its
            own. The path of that folder, or of anything in it, is an output that is kept with its content. The folder
            itself is removed when the trial ends.
    """

    function: Callable[..., Any]
    version: str | int | None = None
    save: Callable[[Any, Path], None] | None = field(default=None, kw_only=True)
    load: Callable[[Path], Any] | None = field(default=None, kw_only=True)
    folder: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise WorkError(
                f"A stage must be a function, got {shown(self.function)}. Write def stage(previous, **params)."
            )
        if (self.save is None) != (self.load is None):
            raise WorkError("A stage must have both save and load, or neither, got one of them. Add the other.")


class Pipeline:
    """Stage functions by name, in the order and under the names of the space's stages.

    Each is called with the output of the one before and the params of its own stage; the first gets `source`. The
    last returns the value, or a mapping that holds it by name. The cost of a stage is durable as soon as it ends.

    The outputs of all stages but the last are kept beside the study's checkpoints, and a trial starts from the longest
    sequence of stages whose output is kept. Two workers never compute the same one at the same time: the second waits.

    Args:
        source: input of the first stage: plain data, of which each call gets a copy, or a path, whose content counts.
        source_version: changes whenever the source does; needed if the source is no plain data. A source that has
            one is handed over as it is, without a copy.
        cache_limit: bytes, or a text such as "2 GB"; outputs with the least time to compute again per byte go first.
            None keeps everything, 0 nothing.
    """

    def __init__(
        self,
        *,
        source: object = None,
        source_version: str | int | None = None,
        cache_limit: int | str | None = LIMIT,
        **stages: Stage | Callable[..., Any],
    ) -> None:
        self.source = source
        self.source_version = source_version
        self.cache_limit = read_limit(cache_limit)
        self.stages: Mapping[str, Stage] = {
            name: stage if isinstance(stage, Stage) else Stage(stage) for name, stage in stages.items()
        }

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(self.stages)})"


@dataclass(frozen=True)
class PipelineWork:
    """Carries out the trials of a pipeline. Versions and the identity of the source are found once for each run."""

    pipeline: Pipeline

    def check(self, problem: Problem) -> None:
        expected = problem.space.stages
        if tuple(self.pipeline.stages) != tuple(expected):
            raise WorkError(
                f"A pipeline must have the space's stages in their order ({listed(expected) or 'there are none'}), "
                f"got {listed(self.pipeline.stages) or 'none'}. Name them alike in Space(stages=...) and Pipeline(...)."
            )
        for name, stage in self.pipeline.stages.items():
            _check_arguments(name, stage, problem.space)
        if self.pipeline.cache_limit != 0:
            self._take_stock()

    def run(self, trial: RunningTrial) -> object:
        trial._count_as("stage")
        with scratch_folder() as scratch:
            return _Passage(self, trial, scratch).output()

    def lost_prefixes(self, prefixes: Mapping[str, int], root: Path) -> list[str]:
        """Tidies the cache of a study whose files are at `root`; returns which of these prefixes are not in it.

        `prefixes` come with their lengths.
        """
        remove_abandoned()
        if self.pipeline.cache_limit == 0:
            return list(prefixes)
        cache = self.cache(root)
        cache.tidy()
        return [key for key, length in prefixes.items() if not cache.has(self.address(key, length))]

    def code(self) -> Mapping[str, str]:
        """The version of each stage, the last one too, and of the source; those that cannot be told are left out."""
        found: dict[str, str] = {}
        for name, stage in self.pipeline.stages.items():
            with suppress(WorkError):
                found[name] = _version(name, stage)
        if self.pipeline.cache_limit != 0:  # else nothing has read the source yet, which may be large
            found["source"] = self.source_identity
        return found

    def cache(self, root: Path) -> StageCache:
        """The cache of a study whose files are at that place."""
        return stage_cache(root, limit=self.pipeline.cache_limit)

    def address(self, prefix: str, length: int) -> CacheKey:
        """The place in the cache of the output of the first stages, given their params."""
        return CacheKey(self.source_identity, self.versions[:length], prefix)

    def running_here(self) -> AbstractContextManager[None]:
        """To be held while the stages run in this process."""
        own = (stage for stage in self.pipeline.stages.values() if stage.version is None)
        return filled_by_running(part for stage in own for part in _code_of(stage))

    def _take_stock(self) -> None:
        """Refuses what cannot be told apart. Workers are sent what it found, which holds until the next run begins.

        Between runs in one session a function that a stage refers to, or a file of the source, may change.
        """
        for found in ("versions", "source_identity"):
            vars(self).pop(found, None)
        self.address("", 0)

    @cached_property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """Of all stages that are cached, by name."""
        return tuple((name, _version(name, stage)) for name, stage in list(self.pipeline.stages.items())[:-1])

    @cached_property
    def source_identity(self) -> str:
        if self.pipeline.source_version is not None:
            return f"given: {self.pipeline.source_version}"
        source = self.pipeline.source
        try:
            return identity_of_data(source.resolve() if isinstance(source, Path) else source)
        except NotPlain as refused:
            raise _not_a_source(refused.thing) from None

    @property
    def fresh_source(self) -> object:
        """The source for one call: a stage that changes what it is given must not change it for the next trial."""
        source = self.pipeline.source
        return source if self.pipeline.source_version is not None else copy.deepcopy(source)


class _Passage:
    """One trial's way through the stages."""

    def __init__(self, work: PipelineWork, trial: RunningTrial, scratch: Path) -> None:
        self._stages = list(work.pipeline.stages.items())
        self._work = work
        self._trial = trial
        self._scratch = scratch
        self._cached = 0 if work.pipeline.cache_limit == 0 else len(self._stages) - 1
        self._cache = work.cache(trial._study_folder)
        self._lineage = [work.address(self._key(length), length) for length in range(1, self._cached + 1)]

    def output(self) -> object:
        """The value that the last stage returns."""
        kept = self._longest_kept()
        for index in range(len(kept.seconds), self._cached):
            kept = self._next_kept(index, kept)
        output = kept.output
        for index in range(self._cached, len(self._stages)):
            output = self._compute(index, output)
            self._trial._settle(step=index)
            if index < len(self._stages) - 1:
                self._trial._tell_eviction(Eviction(self._key(index + 1), index + 1, "limit"))
        return output

    def _key(self, length: int) -> str:
        return prefix_key(self._trial.problem.space, self._trial.params, length)

    def _longest_kept(self) -> Kept:
        """The output to start from: that of the most stages. It has the seconds of each."""
        for index in reversed(range(self._cached)):
            kept = self._cache.get(self._lineage[index], self._loader(index))
            self._tell_news()
            if kept is not None:
                for step in reversed(range(index + 1)):  # only loading the last one was paid for
                    self._trial._settle(step=step, saved=self._savings(kept, step))
                return kept
        return Kept(self._work.fresh_source, ())

    def _next_kept(self, index: int, before: Kept) -> Kept:
        """The output of a stage that was not kept: computed, or found after waiting for another worker."""
        address = self._lineage[index]
        with ExitStack() as held:
            with self._trial._waiting():
                held.enter_context(self._cache.computing(address))
            kept = self._cache.get_held(address, self._loader(index))
            was_there = kept is not None
            if kept is None:
                kept = self._compute_and_put(index, before)
        self._trial._settle(step=index, saved=self._savings(kept, index) if was_there else {})
        with self._trial._waiting():
            self._cache.shrink()
        self._tell_news()
        return kept

    def _compute_and_put(self, index: int, before: Kept) -> Kept:
        began = self._trial.spent
        output = self._compute(index, before.output)
        kept = Kept(output, (*before.seconds, self._trial.spent - began))
        name, stage = self._stages[index]
        try:
            self._cache.put(
                self._lineage[: index + 1], output, seconds=kept.seconds, save=stage.save or plain_files.save
            )
        except NotPlain as refused:
            raise _not_plain(name, refused) from None
        return kept

    def _compute(self, index: int, previous: object) -> object:
        name, stage = self._stages[index]
        params = self._trial.problem.space.stage_params(name, self._trial.params)
        if not stage.folder:
            return stage.function(previous, **params)
        folder = self._own_folder(name)
        output = stage.function(previous, **params, **{FOLDER_ARGUMENT: folder})
        _refuse_path_as_text(name, output, folder)
        return output

    def _own_folder(self, name: str) -> Path:
        """Beside the folder of what is loaded of this stage."""
        folder = self._scratch / f"{name}.own" / name
        folder.mkdir(parents=True)
        return folder

    def _loader(self, index: int) -> Load:
        name, stage = self._stages[index]
        return stage.load or (lambda folder: plain_files.load(folder, scratch=self._scratch / name))

    def _savings(self, kept: Kept, index: int) -> dict[str, float]:
        """The cost of a stage that was loaded, if cost is seconds; else 0, which says that it was loaded."""
        return {SAVED: kept.seconds[index] if self._trial.problem.measures_cost else 0.0}

    def _tell_news(self) -> None:
        for eviction in self._cache.news():
            self._trial._tell_eviction(eviction)


def _check_arguments(name: str, stage: Stage, space: Space) -> None:
    """Refuses a stage that could not be called with its params, or without those that are not always active."""
    function = stage.function
    if inspect.iscoroutinefunction(function):
        raise WorkError(f"A stage must be a plain function, got the coroutine {name!r}. Call asyncio.run inside it.")
    try:
        signature = inspect.signature(function, follow_wrapped=False)  # decorators may supply arguments
    except (TypeError, ValueError):
        return  # builtins do not say
    params = {local_name(full): space.parameters[full] for full in space.stages[name]}
    always = [param for param, declared in params.items() if not declared.when]
    own = [FOLDER_ARGUMENT] if stage.folder else []
    if own and FOLDER_ARGUMENT in params:
        raise WorkError(
            f"A stage with folder=True is given its folder as {FOLDER_ARGUMENT!r}, got {name!r}, which has a parameter "
            "of that name. Rename the parameter."
        )
    try:
        signature.bind(None, **dict.fromkeys([*params, *own]))
        signature.bind(None, **dict.fromkeys([*always, *own]))
    except TypeError as error:
        raise WorkError(
            f"A stage must take the output before it, its params ({listed([*params, *own]) or 'none'}) and no more, "
            f"and have defaults for those that are not always active; got {name}{signature}: {error}. "
            f"Write def {name}({', '.join(['previous', *params, *own])})."
        ) from None


def _not_a_source(thing: object) -> WorkError:
    if isinstance(thing, Path):
        what = "is a link" if thing.is_symlink() else "does not exist"
        return WorkError(
            f"A path in a pipeline's source must be that of a file or a folder, got {str(thing)!r}, which {what}. "
            f"Check the path: it is read from {str(Path.cwd())!r}."
        )
    return WorkError(
        f"A pipeline's source must be plain data or have a version, got {shown(thing)} ({type(thing).__name__}). "
        f"Add source_version='1', and change it whenever the source changes."
    )


def _refuse_path_as_text(name: str, output: object, folder: Path) -> None:
    """A text would be kept as it is, and name a file that is gone when it is loaded."""
    if isinstance(output, str) and output.startswith(str(folder)):
        raise WorkError(
            f"A stage must return the path of what it wrote as a pathlib.Path, got the text {shown(output)} from "
            f"{name!r}. Return folder / …, or Path(…): a text is kept as it is, and the folder goes with its trial."
        )
    if isinstance(output, list | tuple | dict):
        for part in output.values() if isinstance(output, dict) else output:
            _refuse_path_as_text(name, part, folder)


def _code_of(stage: Stage) -> list[Callable[..., Any]]:
    """An object counts by its method `__call__`, with its state."""
    parts = [part for part in (stage.function, stage.save, stage.load) if part is not None]
    methods = [None if is_installed(part) else getattr(part, "__call__", None) for part in parts]  # noqa: B004
    return [method if isinstance(method, MethodType) else part for part, method in zip(parts, methods, strict=True)]


def _version(name: str, stage: Stage) -> str:
    if stage.version is not None:
        return f"given: {stage.version}"
    try:
        return " ".join(identity_of_function(part) for part in _code_of(stage))
    except UnnamedImport as refused:
        where = f" of {refused.thing!r}" if isinstance(refused.thing, str) else ""
        raise WorkError(
            f"A stage's code must name the modules that it imports, got {name!r}, which imports a module by a name "
            f"that is not in the code{where}. Write the name there, or give ft.Stage(…, version='1')."
        ) from None
    except NotPlain as refused:
        raise WorkError(
            f"A stage's code must say what it does, got {name!r}, which holds {shown(refused.thing)} "
            f"({type(refused.thing).__name__}). Give ft.Stage(…, version='1'), and change it whenever outputs change."
        ) from None


def _not_plain(name: str, refused: NotPlain) -> WorkError:
    thing = refused.thing
    remedy = refused.remedy or f"Give ft.Stage({name}, save=…, load=…) to keep it, or cache_limit=0 to keep none."
    return WorkError(
        f"A stage's output must be plain data to be kept, got {shown(thing)} ({type(thing).__name__}) from {name!r}. "
        f"{remedy}"
    )
