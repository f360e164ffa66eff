"""`farthing --help` answers at once and teaches."""

import json
import subprocess
import sys
from typing import Any

import click
import pytest

from farthing.cli.app import COMMANDS
from farthing.cli.app import farthing as program

HEAVY = ("numpy", "scipy", "sqlalchemy", "rich", "matplotlib", "sklearn")
PROBE = f"""
import json, sys
before = len(sys.modules)
sys.argv = ["farthing", *json.loads(sys.argv[1])]
from farthing.cli import main
try:
    main()
except SystemExit as end:
    code = end.code
heavy = [name for name in {HEAVY!r} if name in sys.modules]
print(json.dumps({{"code": code, "heavy": heavy, "imported": len(sys.modules) - before}}), file=sys.stderr)
"""
IMPORTS = 120
"""The most modules that an answer may import, half of them click's: importing is nearly all of the 0.05 s it takes.

They are counted because a busy machine takes any time; NumPy alone would bring more than a hundred.
"""


def probe(*arguments: str, **environment: str) -> tuple[str, dict[str, Any]]:
    ended = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin", **environment},
    )
    return ended.stdout, json.loads(ended.stderr.splitlines()[-1])


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("run", "--help")])
def test_help_and_version_are_quick_and_import_nothing_heavy(arguments: tuple[str, ...]) -> None:
    _, seen = probe(*arguments)

    assert seen["code"] == 0
    assert seen["heavy"] == []
    assert seen["imported"] <= IMPORTS


def test_shell_completion_is_quick_and_knows_the_commands() -> None:
    words = {"COMP_WORDS": "farthing re", "COMP_CWORD": "1"}
    said, seen = probe(_FARTHING_COMPLETE="bash_complete", **words)

    assert "resume" in said
    assert seen["heavy"] == []
    assert seen["imported"] <= IMPORTS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_and_says_what_comes_next(farthing, name: str) -> None:
    text = farthing(name, "--help").output

    assert "Example:" in text
    assert "Next:" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_of_each_what_its_own_help_says_first(name: str) -> None:
    command = program.get_command(click.Context(program), name)

    assert command is not None
    assert command.name == name
    assert (command.help or "").splitlines()[0] == COMMANDS[name]


def test_the_list_of_commands_imports_none_of_them() -> None:
    probe = "import sys; from farthing.cli.app import farthing; farthing(['--help'], standalone_mode=False)"
    shown = "print([name for name in sys.modules if name.startswith('farthing.cli.commands')], file=sys.stderr)"

    ended = subprocess.run([sys.executable, "-c", f"{probe}; {shown}"], capture_output=True, text=True, check=True)

    assert ended.stderr == "[]\n"


def test_commands_are_listed_in_the_order_of_a_studys_life(farthing) -> None:
    lines = farthing("--help").output.partition("Commands:")[2].split("\n")
    names = [line.split()[0] for line in lines if line.strip()]

    assert names[:5] == ["demo", "run", "resume", "worker", "budget"]
