"""The best of a large study by its stored values: found by the database, without reading the rest."""

from collections.abc import Sequence

from farthing.storage import statements
from farthing.storage.json_text import mapping_from_text
from farthing.storage.storage import Leaders
from farthing.storage.study_rows import StudyRows
from farthing.trials import Problem, Trial


def leaders(found: StudyRows, problem: Problem) -> Leaders | None:
    """None where no trial is done with a value. Of trials as good as each other it is the first, as everywhere."""
    texts = [text or "" for (text,) in found.execute(statements.DONE_FIDELITIES)]
    fidelities = {text: mapping_from_text(text) if text else {} for text in texts}
    if not fidelities:
        return None
    reach = {text: problem.reach(fidelity) for text, fidelity in fidelities.items()}
    top = _best(found, problem, [text for text in texts if reach[text] == max(reach.values())])
    full = _best(found, problem, [text for text in texts if problem.is_full(fidelities[text])])
    if top is None:
        return None
    return Leaders(_lineage(found, top), None if full is None else found.whole_entry(full).trial)


def _best(found: StudyRows, problem: Problem, fidelities: Sequence[str]) -> int | None:
    statement = statements.LOWEST_DONE if problem.minimize else statements.HIGHEST_DONE
    row = found.execute(statement, fidelities=list(fidelities)).first() if fidelities else None
    return None if row is None else int(row[0])


def _lineage(found: StudyRows, number: int) -> list[Trial]:
    chain = [found.whole_entry(number).trial]
    while (parent := chain[-1].resume_from) is not None:
        chain.append(found.whole_entry(parent).trial)
    return chain[::-1]
