"""`farthing show`"""

import click

from farthing.cli.options import json_option, storage_option, study_argument


@click.command()
@study_argument
@storage_option
@click.option("--all", "all_trials", is_flag=True, help="Every trial by number, instead of the best first.")
@click.option("--trial", "number", type=int, metavar="N", help="One trial, with all that was measured.")
@click.option("--log", is_flag=True, help="With --trial: what the trial printed.")
@json_option
def show(
    study: str | None, storage: str | None, all_trials: bool, number: int | None, log: bool, as_json: bool
) -> None:
    """Show a study: its best trials, learning curves and what was spent.

    STUDY may be left out where there is only one. A study that is running can be shown at any time.

    \b
    Example:  farthing show digits
              farthing show digits --trial 12 --log
    Next:     farthing plot digits, farthing best digits
    """
    if log and number is None:
        raise click.UsageError("--log needs a trial: farthing show STUDY --trial N --log")
    from farthing.cli.showing import study_json, study_text
    from farthing.cli.showing_trial import chosen_trial, log_text, trial_json, trial_text
    from farthing.cli.storages import address_to_read, opened_study

    address = address_to_read(storage)
    with opened_study(study, address) as found:
        if number is None:
            text = study_json(found) if as_json else study_text(found, address=address, all_trials=all_trials)
        else:
            write = trial_json if as_json else log_text if log else trial_text
            text = write(found, chosen_trial(found, number))
    click.echo(text)
