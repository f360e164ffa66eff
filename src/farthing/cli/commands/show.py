"""`farthing show`"""

import click

from farthing.cli.options import follow_option, import_option, json_option, storage_option, study_argument


@click.command("show")
@study_argument
@storage_option
@import_option
@follow_option
@click.option("--all", "all_trials", is_flag=True, help="Every trial by number, instead of the best first.")
@click.option("--trial", "number", type=int, metavar="N", help="One trial, with all that was measured.")
@click.option("--log", is_flag=True, help="With --trial: the output of the trial.")
@click.option("--model", "wants_model", is_flag=True, help="Fit a model to the study: which parameters matter.")
@click.option("--of", metavar="VALUE", help="With --model and several objectives: which of them.")
@json_option
def command(
    study: str | None,
    storage: str | None,
    imports: bool,
    follows: bool,
    all_trials: bool,
    number: int | None,
    log: bool,
    wants_model: bool,
    of: str | None,
    as_json: bool,
) -> None:
    """Show a study: its best trials, learning curves and bill.

    STUDY may be left out if there is only one. A study that is running can be shown at any time.

    \b
    Example:  farthing show digits
              farthing show digits --trial 12 --log
              farthing show digits --model
    Next:     farthing plot digits, farthing best digits
    """
    if log and number is None:
        raise click.UsageError("--log needs a trial: farthing show STUDY --trial N --log")
    if wants_model and (all_trials or number is not None):
        raise click.UsageError("--model is about the whole study: leave out --trial and --all")
    if of is not None and not wants_model:
        raise click.UsageError("--of needs --model: farthing show STUDY --model --of VALUE")
    from farthing.cli.storages import address_to_read, opened_study
    from farthing.cli.study_view import study_json, study_text
    from farthing.cli.trial_view import chosen_trial, log_text, trial_json, trial_text

    address = address_to_read(storage)
    with opened_study(study, address, imports=imports) as found:
        if wants_model:
            from farthing.analysis.one_value import value_meant
            from farthing.cli.model_view import model_json, model_text

            of = value_meant(found.problem, of, example=f"--of {found.problem.value}")
            text = model_json(found, of) if as_json else model_text(found, of, address=address)
        elif number is None:
            text = (
                study_json(found)
                if as_json
                else study_text(found, address=address, all_trials=all_trials, follows=follows)
            )
        else:
            write = trial_json if as_json else log_text if log else trial_text
            text = write(found, chosen_trial(found, number), follows=follows)
    click.echo(text)
