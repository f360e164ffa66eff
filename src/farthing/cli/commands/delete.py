"""`farthing delete`"""

from typing import TYPE_CHECKING

import click

from farthing.cli.options import storage_option

if TYPE_CHECKING:
    from farthing.study import Study


@click.command("delete")
@click.argument("study")
@storage_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(study: str, storage: str | None, yes: bool) -> None:
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
