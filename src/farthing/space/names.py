"""What parameters, fidelities and stages may be called."""

from collections.abc import Iterable

from farthing.errors import InvalidSpace
from farthing.validation import shown

# Command templates fill these in and reports use them as keys, so a parameter of the same name would be ambiguous.
RESERVED = frozenset({"step", "value", "cost", "metrics", "gradient", "resume_dir", "checkpoint_dir", "trial"})


def check_names(names: Iterable[object], *, role: str) -> None:
    """Refuse names that are no identifiers or that reports and commands use; `lambda` and other keywords are fine."""
    for name in names:
        check_identifier(name, role=role)
        if name in RESERVED:
            raise InvalidSpace(
                f"The name of a {role} must not be a word of reports and commands, got {name!r}. "
                f"Rename it, for example to 'my_{name}'."
            )


def check_identifier(name: object, *, role: str) -> None:
    """Refuse a name that could not be a keyword argument."""
    if not (isinstance(name, str) and name.isidentifier()):
        raise InvalidSpace(
            f"The name of a {role} must be an identifier, got {shown(name)}. "
            "Use letters, digits and underscores, such as 'learning_rate'."
        )


def check_distinct(parameters: Iterable[str], fidelities: Iterable[str]) -> None:
    """Refuse a name that stands for a parameter and for a fidelity."""
    for name in sorted(set(parameters) & set(fidelities)):
        raise InvalidSpace(
            f"A parameter and a fidelity must have different names, got {name!r} for both. Rename one of them."
        )
