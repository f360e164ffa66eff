"""Who runs a trial, in words."""

import re


def where(owner: str) -> str:
    """The machine and the number of the process that runs a trial."""
    machine, process, _ = (["", "", "", *owner.rsplit(":", 2)])[-3:]
    return f"{re.split('[:/]', machine)[0]} {process}".strip()
