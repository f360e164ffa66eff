"""Importing the space is light: the command line and the workers do it before they know whether they need NumPy."""

import subprocess
import sys


def test_importing_and_checking_a_space_does_not_import_numpy() -> None:
    program = """
import sys
from farthing.space import Choice, Fidelity, Float, Int, Space
space = Space({"lr": Float(0, 1, step=0.1), "act": Choice("a", "b"), "n": Int(1, 3, when={"act": "a"})})
space.check({"lr": 0.3, "act": "b"})
Space.from_toml(space.to_toml())
assert "numpy" not in sys.modules, "numpy was imported"
space.encoder
assert "numpy" in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
