"""docs/benchmarks: every committed record, a page for each suite. `python -m benchmarks.report` makes them."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.evidence.contests import suite_of, suite_section
from benchmarks.evidence.others import (
    as_losses,
    coverage,
    online_section,
    own_table,
    pairs_table,
    population_section,
    scaling_figure,
    speed_section,
    spreads_table,
    training_section,
)
from benchmarks.markdown import section
from benchmarks.online import augmentation, training_suite, two_arms
from benchmarks.online.suites import ONLINE_SUITES
from benchmarks.paired import pair_sections
from benchmarks.population import cifar, real, rl, synthetic
from benchmarks.problems.data import REPOSITORY
from benchmarks.records import RESULTS, Record, read_records, results_path
from benchmarks.suites import ARENAS, SUITES

DOCS = REPOSITORY / "docs"
PAGES, IMAGES = "benchmarks", "images/benchmarks"

INTRODUCTION = """\
Every table and figure here is made from the records in `benchmarks/results` by `python -m benchmarks.report`; nothing
is written by hand, and rows in which we lose stay in. How it was measured, what the problems are and how to run it
again is in `benchmarks/README.md` of the repository. What it means is at the end of each page on a system:
[multi-fidelity](../systems/multifidelity.md#measured), [Bayesian optimisation](../systems/bayesian.md),
[online](../systems/online.md#measured), [populations](../systems/population.md#measured-on-made-up-training),
[pipelines](../systems/pipeline.md#measured). The tables of the papers are on [a page of their own](../papers.md).

*Regret* is the distance of the recommended configuration's true value from the best known one. Entries are medians with
quartiles over paired seeds; bold is the best median of a row. *Wins–ties–losses* compare two methods on the same
problem and seed. *Normalised* regret is on the scale of random search: 0 is the best of 20 000 random configurations,
1 their median, which also stands for a method that has nothing to recommend yet."""


def write_pages(docs: Path = DOCS) -> Path:
    """Writes the pages and their figures below `docs`, in place of those that are there; the folder of the pages."""
    folder, images = docs / PAGES, docs / IMAGES
    for stale in (*folder.glob("*.md"), *images.glob("*.svg")):
        stale.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(images).items():
        (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    return folder


def pages(images: Path) -> Mapping[str, str]:
    """The text of each page by its name: one a section, and `index`, which lists them."""
    found = dict(_as_page(one) for one in sections(images))
    listed = "\n".join(f"- [{name}]({name}.md)" for name in found)
    return {"index": section("Benchmarks", INTRODUCTION, listed, level=1), **found}


def _as_page(text: str) -> tuple[str, str]:
    """The name of a section, and the section with its headings a level higher, below the folder of the pages."""
    title = text.partition("\n")[0].removeprefix("## ").strip()
    higher = re.sub(r"^#(#+ )", r"\1", text, flags=re.MULTILINE)
    return title.lower(), higher.replace("](images/", "](../images/")


def sections(images: Path) -> Iterator[str]:
    """One section a file of records: suites in their order, then rounds, populations and speed."""
    for suite in SUITES.values():
        if records := read_records(results_path(suite.name)):
            yield suite_section(suite, records, images=images)
    yield from _arenas()
    yield from _former(images)
    yield from _online(images)
    yield from _populations(images)
    yield from _others()
    yield _speed(images)


FORMER = ("pipeline-nuclei", "pipeline-sklearn", "pipeline-synthetic-again")
"""Records of suites that are not run any more as they were, judged as they were then."""

OTHERS = {
    "cheap-trials": (("problem", "seconds", "budget", "method"), ("regret", "trials")),
    "suggesting-ahead": (("problem", "workers", "ahead"), ("regret",)),
    "stopping": (("family", "rule"), ("saved", "lost", "regret", "regret_at_the_end")),
    "stopping-outlook": (("family", "after"), ("gain", "expected", "low", "high")),
    "simulated-cluster": (
        ("strategy", "workers"),
        ("CPU ms a trial", "thinking CPU ms a trial", "idle share after the start"),
    ),
    "ray-overhead": (("method", "trials"), ("wall", "cpu")),
    "simulated-curves": (
        ("problem", "method"),
        ("regret_at_cost 2", "regret_at_cost 5", "regret_at_cost 10", "wall", "cost", "trials"),
    ),
    "predictions": (("method", "kind"), ("rms", "bias", "worst_ratio", "covered")),
    "real-live": (
        ("task", "code", "commit", "method"),
        ("verified_error", "configurations", "finished", "spent", "overhead"),
    ),
    "prompt-dollars": (("problem",), ("spent", "questions", "low", "high")),
    "demo-digits": (
        ("problem", "budget", "method"),
        ("validation_error", "test_error", "test_loss", "suggesting_share", "trials", "full"),
    ),
    "first-hour": (("problem", "budget", "method"), ("verified_error", "suggesting_share", "by_model", "trials")),
    "lightgbm-rounds": (("problem", "budget", "method"), ("test_loss", "validation_loss", "configurations")),
}
"""Records of another form: what tells their rows apart, and what is measured."""

PAIRED = {"first-hour": ("verified_error", "default")}
"""Of those the ones of which a method is compared with the others, pair by pair."""


def _arenas() -> Iterator[str]:
    for name in ARENAS:
        if records := read_records(results_path(name)):
            yield section(name, *coverage(records), *pair_sections(records, level=3), level=2)


def _former(images: Path) -> Iterator[str]:
    for name in FORMER:
        if name not in SUITES and (records := read_records(results_path(name))):
            yield suite_section(suite_of(name, records), records, images=images)


def _others() -> Iterator[str]:
    for name, (keys, measures) in OTHERS.items():
        if records := read_records(results_path(name)):
            rows = spreads_table([_flat(record) for record in records], keys, measures)
            pairs = [pairs_table(records, *PAIRED[name])] if name in PAIRED else []
            yield section(name, *coverage(records), rows, *pairs, level=2)


def _flat(record: Record) -> Record:
    """With a name of its own for each number of a table within it: `regret_at_cost 5`. "Now" was at its commit."""
    parts = {name: part for name, part in record.items() if isinstance(part, dict)}
    found = {**record, **{f"{name} {key}": one for name, part in parts.items() for key, one in part.items()}}
    found["code"] = str(record.get("code", "")).removeprefix("now").removeprefix(", ")
    return {**found, "commit": str(record.get("commit", ""))[:7]}


def _online(images: Path) -> Iterator[str]:
    for suite in ONLINE_SUITES.values():
        yield online_section(suite, read_records(results_path(suite.name)), images=images)
    trainings = read_records(results_path(training_suite.SUITE))
    yield training_section(training_suite.SUITE, trainings, order=tuple(training_suite.METHODS))
    if augmentations := read_records(results_path(augmentation.SUITE)):
        yield training_section(augmentation.SUITE, augmentations, order=tuple(training_suite.METHODS))
    if armed := read_records(results_path(two_arms.SUITE)):
        yield training_section(two_arms.SUITE, armed, order=tuple(training_suite.METHODS_OF_ARMS))
    name = "online-fashion-mnist"
    heading = ("method", "accuracy", "validations", "seconds", "paid", "n")
    note = "`examples/2_online.py --compare 3`: means; CPU seconds of the whole run, and of them for validating."
    yield section(name, note, own_table(read_records(results_path(name)), heading), level=2)


def _populations(images: Path) -> Iterator[str]:
    made_up = read_records(results_path(synthetic.SUITE))
    yield population_section(
        synthetic.SUITE, made_up, ours="PB2", order=tuple(synthetic.METHODS), measure="regret", images=images
    )
    yield population_section(
        real.SUITE,
        read_records(results_path(real.SUITE)),
        ours="PB2",
        order=tuple(real.METHODS),
        measure="minus the accuracy or the return of the chosen agent, on data or in play that no decision saw",
    )
    images_half = as_losses(read_records(results_path(cifar.SUITE)), "test_accuracy", scale=100.0)
    yield population_section(
        cifar.SUITE, images_half, ours="pb2", order=_methods(images_half), measure="minus the test accuracy in percent"
    )
    lander = as_losses(read_records(results_path(rl.SUITE)), "reward")
    yield population_section(
        rl.SUITE, lander, ours="pb2", order=_methods(lander), measure="minus the reward of the best agent at the end"
    )


def _methods(records: list[dict[str, object]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(record["method"]) for record in records))


def _speed(images: Path) -> str:
    files = sorted(RESULTS.glob("speed-*.json"))
    note = (
        "CPU time of processes. Peers took turns with us in the same session; "
        "a bar that does not hold is marked NO and stays in."
    )
    figure = scaling_figure(RESULTS, images / "scaling.svg")
    return section("Speed", note, figure, *(speed_section(path) for path in files), level=2)
