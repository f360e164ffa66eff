"""Runs the Python blocks of README.md as one program, with what is installed and nothing else, for `make wheel`."""

import re
import sys
import tempfile
from pathlib import Path

import farthing


def program_of(readme: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", readme, flags=re.MULTILINE | re.DOTALL))


if __name__ == "__main__":
    readme = Path(sys.argv[1]).resolve()
    assert readme.parent / "src" not in Path(farthing.__file__).parents, "the installed package, not the clone"
    program = program_of(readme.read_text(encoding="utf-8"))
    assert program.count("ft.Study(") >= 3, "the blocks were found"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readme.py"
        path.write_text(f"import os\nos.chdir({folder!r})\n{program}", encoding="utf-8")
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})
    sys.stdout.write("The blocks of the README run with the installed wheel.\n")
