"""Checks an installed wheel, for `make wheel`. `package`, with what it brings and nothing else, has its page of PyPI,
its licences and Hydra's plugin, and runs a study. The blocks of the `readme` run as one program, with the extra that it
names.
"""

import re
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import farthing

LINK = re.compile(r"\]\(\s*([^)\s]+)|^\[[^\]]+\]:\s*(\S+)|(?:href|src)=[\"']([^\"']+)", flags=re.MULTILINE)


def program_of(readme: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", readme, flags=re.MULTILINE | re.DOTALL))


def text_of(readme: str) -> str:
    return re.sub(r"^```.*?^```$", "", readme, flags=re.MULTILINE | re.DOTALL)


def check_the_page(page: str, readme: str) -> None:
    """PyPI shows the page without the repository: its links must be absolute, and all else the same."""
    links = [next(filter(None, groups)) for groups in LINK.findall(text_of(page))]
    assert len(links) == len(LINK.findall(text_of(readme))) > 10, "the links were found"
    relative = [link for link in links if not link.startswith(("https://", "http://", "#"))]
    assert not relative, f"{relative} would be dead on PyPI: hatch_build.py makes links of Markdown absolute"
    assert program_of(page) == program_of(readme), "code is not changed"


def check_the_licences(names: list[str]) -> None:
    found = {Path(name).name for name in names if "/licenses/" in name}
    assert {"LICENSE", "THIRD_PARTY.md", "uPlot.LICENSE"} <= found, found


def check_the_plugins(names: list[str]) -> None:
    """The namespace in which Hydra looks for plugins is no package of ours: other plugins are in it too."""
    assert [name for name in names if name.startswith("hydra_plugins/")] == ["hydra_plugins/farthing_sweeper.py"], names


def run_a_study() -> None:
    space = farthing.Space({"x": farthing.Float(-1, 1)})
    study = farthing.minimize(lambda trial: trial.params["x"] ** 2, space, budget=farthing.Budget(trials=12), seed=0)
    assert abs(study.best.params["x"]) < 0.2


def run(program: str) -> None:
    assert "ft.Study(" in program, "the blocks were found"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readme.py"
        path.write_text(f"import os\nos.chdir({folder!r})\n{program}", encoding="utf-8")
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    what, readme = sys.argv[1], Path(sys.argv[2]).resolve()
    assert readme.parent / "src" not in Path(farthing.__file__).parents, "the installed package, not the clone"
    if what == "package":
        package = distribution("farthing")
        assert package.version == farthing.__version__
        check_the_page(package.metadata["Description"], readme.read_text(encoding="utf-8"))
        files = [str(file) for file in package.files or () if "__pycache__" not in str(file)]
        check_the_licences(files)
        check_the_plugins(files)
        run_a_study()
    else:
        run(program_of(readme.read_text(encoding="utf-8")))
    sys.stdout.write(f"The {what} is right as it was installed, on Python {sys.version.split()[0]}.\n")
