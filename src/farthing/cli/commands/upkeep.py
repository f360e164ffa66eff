"""Commands that keep a storage in order: `farthing cache`, `check` and `delete`."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from farthing.cli.options import follow_option, json_option, storage_option, study_argument

if TYPE_CHECKING:
    from farthing.session.stage_outputs import StageOutput, StageOutputs
    from farthing.study import Study

BY_STAGE = ("stage", "outputs", "size", "seconds")
EACH = ("output", "stage", "size", "seconds", "written", "params")
SHOWN = 12
"""Characters of an output's name: enough to tell outputs apart."""


@click.group("cache")
def cache() -> None:
    """List, verify and prune the kept outputs of a pipeline's stages.

    A pipeline keeps the output of every stage but the last, so that a later trial with the same first stages
    starts from there. All of these commands may be used while the study runs: an output that a worker uses is
    left alone, and one that was pruned is computed again when a trial needs it.

    \b
    Example:  farthing cache list nuclei
              farthing cache verify nuclei
              farthing cache prune nuclei --limit "2 GB"
    Next:     farthing cache COMMAND --help
    """


@cache.command("list")
@study_argument
@storage_option
@follow_option
@click.option("--all", "each", is_flag=True, help="Every output, instead of one line for each stage.")
@json_option
def list_outputs(study: str | None, storage: str | None, follows: bool, each: bool, as_json: bool) -> None:
    """List the kept outputs: how many, their size, and the seconds that they took to compute.

    STUDY may be left out if there is only one.

    \b
    Example:  farthing cache list nuclei --all
    Next:     farthing cache prune nuclei --limit "2 GB"
    """
    with _outputs(study, storage, follows=follows) as kept:
        outputs = kept.all()
        if as_json:
            size, seconds = _total(outputs)
            form = {"folder": str(kept.folder), "bytes": size, "seconds": seconds}
            click.echo(json.dumps({**form, "outputs": [output.to_json() for output in outputs]}))
        else:
            click.echo(_list_text(outputs, each=each) if outputs else f"No outputs are kept in {kept.folder}.")


@cache.command("verify")
@study_argument
@storage_option
@follow_option
@json_option
def verify_outputs(study: str | None, storage: str | None, follows: bool, as_json: bool) -> None:
    """Compare every kept output with its checksums, and change nothing.

    A damaged output is never served: the trial that wants it computes it again. Ends with exit code 1 if any
    is damaged. Outputs that a worker is just writing or loading are left out.

    \b
    Example:  farthing cache verify nuclei
    Next:     farthing cache prune nuclei --damaged
    """
    with _outputs(study, storage, follows=follows) as kept:
        faults = dict(kept.faults())
    damaged = {key: fault for key, fault in faults.items() if fault}
    if as_json:
        forms = [{"key": key, "fault": fault} for key, fault in damaged.items()]
        click.echo(json.dumps({"verified": len(faults), "damaged": forms}))
    else:
        lines = [f"{key[:SHOWN]}  {fault}" for key, fault in damaged.items()]
        click.echo("\n".join([*lines, _count(len(damaged), f"of {len(faults)} outputs", "damaged")]))
    sys.exit(1 if damaged else 0)


@cache.command("prune")
@study_argument
@storage_option
@follow_option
@click.option("--limit", metavar="SIZE", help='Down to this size, as "2 GB": cheapest to compute per byte first.')
@click.option("--stage", metavar="NAME", help="The outputs of this stage.")
@click.option("--superseded", is_flag=True, help="Outputs that a changed source or changed code left behind.")
@click.option("--damaged", is_flag=True, help="Outputs that are not as they were written.")
@click.option("--all", "everything", is_flag=True, help="All outputs.")
@click.option("--dry-run", is_flag=True, help="Remove nothing; say what would go.")
@json_option
def prune_outputs(
    study: str | None,
    storage: str | None,
    follows: bool,
    limit: str | None,
    stage: str | None,
    superseded: bool,
    damaged: bool,
    everything: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove kept outputs, and the remains of killed workers.

    Say which: one of --limit, --stage, --superseded, --damaged and --all. What is removed is computed again
    when a trial needs it, and costs its seconds again. A running study takes notice: its strategy no longer
    counts on these outputs.

    \b
    Example:  farthing cache prune nuclei --limit "500 MB" --dry-run
              farthing cache prune nuclei --superseded
    Next:     farthing cache list nuclei
    """
    said = [limit is not None, stage is not None, superseded, damaged, everything]
    if sum(said) != 1:
        raise click.UsageError(
            f"Pruning needs one of --limit, --stage, --superseded, --damaged and --all, got {sum(said)} of them. "
            "Try one with --dry-run first: it removes nothing."
        )
    from farthing.caching.stage_cache import read_limit

    with _outputs(study, storage, follows=follows) as kept:
        if limit is not None:
            chosen = kept.beyond(read_limit(int(limit) if limit.isdigit() else limit) or 0)
        elif stage is not None:
            chosen = kept.of_stage(stage)
        elif damaged:
            chosen = kept.damaged()
        else:
            chosen = [output for output in kept.all() if everything or output.is_superseded]
        gone = chosen if dry_run else kept.prune(chosen)
    in_use, (size, seconds) = len(chosen) - len(gone), _total(gone)
    if as_json:
        form = {"removed": [output.to_json() for output in gone], "bytes": size, "seconds": seconds}
        click.echo(json.dumps({**form, "in_use": in_use, "dry_run": dry_run}))
        return
    from farthing.files.durable import short_bytes

    what = f"{len(gone)} output{'' if len(gone) == 1 else 's'}, {short_bytes(size)}, {seconds:.4g} seconds of work."
    click.echo(f"{'Would remove' if dry_run else 'Removed'} {what}{f' {in_use} in use: left there.' if in_use else ''}")


@contextmanager
def _outputs(study: str | None, storage: str | None, *, follows: bool) -> "Iterator[StageOutputs]":
    from farthing.cli.storages import address_to_read, not_followed, opened_study
    from farthing.session import session_of
    from farthing.session.stage_outputs import StageOutputs

    with opened_study(study, address_to_read(storage)) as found:
        if (url := session_of(found).files.url) and not follows:
            raise not_followed(url)
        kept = StageOutputs(session_of(found))
        if kept.url and not follows:
            raise not_followed(kept.url)
        yield kept


def _list_text(outputs: "Sequence[StageOutput]", *, each: bool) -> str:
    from farthing.cli.terminal import aligned

    if each:
        return aligned(EACH, [_cells(output) for output in outputs])
    stages = dict.fromkeys(output.stage for output in outputs)
    rows = [_row(stage, [output for output in outputs if output.stage == stage]) for stage in stages]
    text = aligned(BY_STAGE, [*rows, _row("all", outputs)])
    old = sum(output.is_superseded for output in outputs)
    return f"{text}\n{_count(old, 'outputs', 'superseded: farthing cache prune --superseded')}" if old else text


def _row(name: str, outputs: "Sequence[StageOutput]") -> list[str]:
    from farthing.files.durable import short_bytes

    size, seconds = _total(outputs)
    return [name, str(len(outputs)), short_bytes(size), f"{seconds:.4g}"]


def _cells(output: "StageOutput") -> list[str]:
    from farthing.analysis.text import short_params
    from farthing.files.durable import short_bytes

    params = {f"{stage}.{name}": value for stage, own in output.params.items() for name, value in own.items()}
    written = datetime.fromtimestamp(output.written_at).strftime("%Y-%m-%d %H:%M")
    size = short_bytes(output.size)
    return [output.key[:SHOWN], output.stage, size, f"{output.seconds:.4g}", written, short_params(params)]


def _total(outputs: "Sequence[StageOutput]") -> tuple[int, float]:
    """Their bytes, and the seconds that they took."""
    return sum(output.size for output in outputs), sum(output.seconds for output in outputs)


def _count(number: int, of_what: str, state: str) -> str:
    return f"{number or 'None'} {of_what} {'is' if number == 1 else 'are'} {state}."


@click.command("check")
@storage_option
@json_option
def check(storage: str | None, as_json: bool) -> None:
    """Check that a storage is intact.

    Checks the database itself, and whether the trials in it agree with each other. Ends with exit code 1 if anything
    is wrong.

    \b
    Example:  farthing check --storage digits.db
    Next:     restore a copy of the database if it is damaged
    """
    from farthing.cli.storages import address_to_read, opened_storage

    address = address_to_read(storage)
    with opened_storage(address) as found:
        problems = found.check()
    if as_json:
        click.echo(json.dumps({"storage": str(address), "problems": problems}))
    else:
        click.echo("\n".join(problems) or f"{address} is intact.")
    sys.exit(1 if problems else 0)


@click.command("delete")
@click.argument("study")
@storage_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(study: str, storage: str | None, yes: bool) -> None:
    """Delete a study for good, with its trials, checkpoints and logs.

    \b
    Example:  farthing delete digits
    Next:     farthing list
    """
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.session.studies import delete_study

    address = address_to_read(storage)
    with opened_study(study, address) as found:
        if not yes:
            click.confirm(f"Delete {losses(found)} for good?", abort=True)
    click.echo(f"Deleted {study}; {delete_study(study, address.place)}")


def losses(study: "Study") -> str:
    """Describes the files that would be deleted."""
    from farthing.trials import State

    history = study.history
    running = sum(trial.state is State.RUNNING for trial in history)
    still = f", {running} of them running now" if running else ""
    return f"{study.name} with its {len(history)} trials{still}, {history.cost:.4g} {study.problem.cost_unit} of work,"
