"""What the documentation says is so: its code runs, and prints what the page says it prints.

A page is run as one program, in a folder of its own, its blocks in their order:

- ```` ```python ```` and ```` ```bash ```` blocks are run;
- a block with `title="study.toml"` is written to that file instead;
- ```` ```text title="Output" ```` is what the block before it prints; seconds may differ;
- `<!-- not run: reason -->` before a block leaves it out;
- `<!-- run with: xgboost -->` before a block leaves it out where that module is absent, as `needs` does a page.

`<!-- needs: mlflow wandb -->` on the first line names modules that the page imports; where one is absent, the page is
skipped, except in `make test-integrations`, which has them all.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

import farthing as ft

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if "```" in path.read_text(encoding="utf-8"))
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]_*.py"))

FENCE = re.compile(r"```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?$")
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+) -->$")
RUN_WITH = re.compile(r"<!-- run with: (?P<module>\w+) -->$")
NEEDS = re.compile(r"<!-- needs: (?P<modules>.+) -->")
MEASURED = re.compile(r"[\d.e+-]+( +)seconds\b(, \d+% of the cost)?")
END_OF_BLOCK = "--- end of block {} ---"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page. `line` is where its fence opens, counted from 1."""

    language: str
    title: str | None
    line: int
    text: str
    not_run: str | None = None

    @property
    def is_output(self) -> bool:
        return (self.language, self.title) == ("text", "Output")

    @property
    def statement(self) -> str | None:
        """The Python that does what the block asks for, on as many lines as it has; None where there is nothing."""
        if self.not_run or self.is_output:
            return None
        if self.title:
            return f"__import__('pathlib').Path({self.title!r}).write_text({self.text!r})"
        if self.language == "bash":
            return f"__import__('subprocess').run(['bash', '-euo', 'pipefail', '-c', {self.text!r}], check=True)"
        return self.text if self.language == "python" else None


def blocks_of(page: str) -> Iterator[Block]:
    lines = page.splitlines()
    starts = iter(range(len(lines)))
    for start in starts:
        if not (fence := FENCE.match(lines[start])):
            continue
        end = lines.index("```", start + 1)
        reason = next(filter(None, map(reason_not_to_run, lines[max(0, start - 2) : start])), None)
        text = "".join(f"{line}\n" for line in lines[start + 1 : end])
        yield Block(fence["language"], fence["title"], start + 1, text, reason)
        for _ in range(start, end):
            next(starts)


def reason_not_to_run(mark: str) -> str | None:
    """What a line before a block says against running it here."""
    if never := NOT_RUN.match(mark):
        return never["reason"]
    needed = RUN_WITH.match(mark)
    return f"{needed['module']} is absent" if needed and is_absent(needed["module"]) else None


def program_of(page: str) -> str:
    """The page as a program whose lines have the numbers they have on the page."""
    program = [""] * (page.count("\n") + 2)
    for block in blocks_of(page):
        if block.statement is not None:
            written = block.statement.splitlines()
            program[block.line : block.line + len(written)] = written
            program[block.line + block.text.count("\n")] = f"print({END_OF_BLOCK.format(block.line)!r}, flush=True)"
    return "\n".join(program)


def expected_outputs(page: str) -> dict[int, str]:
    """What the block that opens on a line prints, for those blocks of which the page says it."""
    blocks = list(blocks_of(page))
    return {before.line: block.text for before, block in pairwise(blocks) if block.is_output and not before.not_run}


def printed(output: str) -> dict[int, str]:
    """What each block that was run has printed, by the line on which it opens."""
    pieces = re.split(END_OF_BLOCK.format(r"(\d+)") + "\n", output)
    return {int(line): text for text, line in zip(pieces[::2], pieces[1::2], strict=False)}


def run(path: Path, *arguments: str, folder: Path) -> str:
    """Runs a program as a reader would, in an empty folder, and returns what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FARTHING_", "COLUMNS"))}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONUNBUFFERED": "1",
        "RAY_ADDRESS": "local",  # its own: another test's Ray ends with that test, and who joined it waits for ever
    }
    ended = subprocess.run(
        [sys.executable, str(path), *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, f"{path.name} ended with {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def without_times(text: str) -> str:
    """The same with all measured seconds alike, and without trailing spaces."""
    return "\n".join(line.rstrip() for line in MEASURED.sub(r"N seconds", text).strip().splitlines())


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def is_absent(module: str) -> bool:
    """Whether a library is absent and may be: `make test-integrations` has them all."""
    return not is_there(module) and "FARTHING_INTEGRATIONS" not in os.environ


def skip_without_libraries(page: str) -> None:
    needs = NEEDS.match(page)
    absent = [name for name in (needs["modules"].split() if needs else ()) if is_absent(name)]
    if absent:
        pytest.skip(f"the page needs {', '.join(absent)}; see make test-integrations")


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT / "docs")) for page in PAGES])
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    skip_without_libraries(text)
    program = tmp_path / "page.py"
    program.write_text(program_of(text), encoding="utf-8")
    outputs = printed(run(program, folder=tmp_path))
    for line, expected in expected_outputs(text).items():
        assert without_times(outputs[line]) == without_times(expected), f"{page.name}, block on line {line}"


SHORTER = {"1_multifidelity.py": ("--seconds", "15"), "3_population_digits.py": ("--epochs", "9")}
"""Options of examples that would take the better part of a minute."""


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    assert run(example, *SHORTER.get(example.name, ()), folder=tmp_path), "an example shows something"


def test_every_public_name_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    documented = re.findall(r"^::: farthing\.(\w+)$", reference, flags=re.MULTILINE)
    assert set(ft.__all__) <= set(documented)


def test_every_page_is_in_the_navigation() -> None:
    """Those of benchmarks are in a list on the page that the navigation names."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("not_in_nav")[0]
    named = set(re.findall(r"[\w/]+\.md", navigation))
    assert "benchmarks/index.md" in named
    index = (ROOT / "docs" / "benchmarks" / "index.md").read_text(encoding="utf-8")
    named |= {f"benchmarks/{page}" for page in re.findall(r"^- \[.*\]\(([\w-]+\.md)\)$", index, re.MULTILINE)}
    assert {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} <= named


PAGE = """
```toml title="a.toml"
x = 1
```

Words.

```python
from pathlib import Path
print(Path("a.toml").read_text(), "took 0.31 seconds")
```

```text title="Output"
x = 1
 took 12 seconds
```

<!-- not run: it would fail -->
```python
raise SystemExit(1)
```

```bash
echo said
```
"""


def test_pages_are_read_as_they_are_meant(tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text(program_of(PAGE))
    outputs = printed(run(program, folder=tmp_path))
    assert outputs == {2: "", 8: "x = 1\n took 0.31 seconds\n", 23: "said\n"}
    assert without_times(outputs[8]) == without_times(expected_outputs(PAGE)[8])
    assert program.read_text().splitlines()[8] == PAGE.splitlines()[8] == "from pathlib import Path"
