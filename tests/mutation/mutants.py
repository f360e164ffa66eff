"""Changes one expression of the source at a time and asks whether a test notices: `make mutants`.

Each part of the source has tests that are its own. They run once, to learn which test reaches which line, also in the
processes that tests start; after that a mutant costs the tests that reach its line, the quick ones first, until one
fails. Only a copy of the source is changed. Mutants are drawn by seed until the CPU minutes are used up.

A number at the head of a module was chosen, not derived, and is left alone. The program fails when a mutant survives
that `equivalent.toml` does not list with its reason.
"""

import argparse
import ast
import compileall
import copy
import fnmatch
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import tomllib
import traceback
import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate, chain, zip_longest
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "farthing"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
HEAVY = ("numpy", "scipy.linalg", "scipy.optimize", "scipy.stats", "hypothesis", "sqlalchemy", "botorch")
"""Imported once, before the first fork: they are most of what a test run costs."""

WAITING = 5.0
"""Seconds of wall clock for a second of CPU, on a machine that is busy with other things too."""


MOST_SECONDS = 60.0
"""A mutant is given the tests that reach its line, the quick ones first, until they come to this."""

MORE_TESTS = {
    "acquisition": ("tests/papers/test_takg.py",),
    "analysis": ("tests/unit/dashboard", "tests/unit/plots"),
    "execution": ("tests/contracts/test_executors.py",),
    "online": (
        "tests/papers/test_ce_gp_ucb.py",
        "tests/properties/test_online.py",
        "tests/unit/fields/test_declaration.py",
    ),
    "running": ("tests/unit/study",),
    "session": ("tests/unit/study",),
    "storage": ("tests/contracts/test_storage.py",),
    "strategies": ("tests/contracts/test_strategies.py",),
    "testing": ("tests/contracts",),
    "trackers": ("tests/unit/cli/test_file_trackers.py", "tests/unit/running/test_tracking.py"),
    "trials": ("tests/unit/session",),
}
"""The tests of a part are those of the same name in `tests/unit`, and these. Modules beside the folders: `study`."""


def part_of(path: Path) -> str:
    folder, *rest = path.relative_to(PACKAGE).parts
    return folder if rest else "study"


def tests_of(part: str) -> list[str]:
    own = f"tests/unit/{part}"
    return [*([own] if Path(ROOT, own).is_dir() else []), *MORE_TESTS.get(part, ())]


def sources() -> dict[str, list[Path]]:
    """The modules of each part; not those that only tests with other libraries reach, which coverage leaves out too."""
    settings = tomllib.loads(Path(ROOT, "pyproject.toml").read_text(encoding="utf-8"))
    left_out = settings["tool"]["coverage"]["run"]["omit"]
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if not any(fnmatch.fnmatch(str(path), pattern) for pattern in left_out):
            found.setdefault(part_of(path), []).append(path)
    return found


# ------------------------------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class Mutant:
    """One node of a module's tree, by its place in `ast.walk`, and what comes instead of it."""

    path: Path
    place: int
    line: int
    statement: int
    function: str
    before: str
    after: str
    replacement: ast.AST

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(SOURCE).with_suffix("").parts)

    @property
    def name(self) -> str:
        """Without the line number, so that it stays when the file grows."""
        return f"{self.module}.{self.function}: {self.before} -> {self.after}"

    def text(self) -> str:
        """The whole module with the change."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        return ast.unparse(_Replacing(list(ast.walk(tree))[self.place], self.replacement).visit(tree))


class _Replacing(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else self.generic_visit(node)


def mutants_of(path: Path) -> Iterator[Mutant]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = _functions(tree)
    for place, node in enumerate(ast.walk(tree)):
        if node not in functions or functions[node][0] == "module":
            continue
        for replacement in replacements(node, functions[node][1]):
            assert isinstance(node, ast.expr | ast.stmt), "others have no replacement and no line"
            before, after = (_first_line(each) for each in (node, replacement))
            name, _, statement = functions[node]
            yield Mutant(path, place, node.lineno, statement, name, before, after, replacement)


def _first_line(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]


def _functions(tree: ast.Module) -> dict[ast.AST, tuple[str, frozenset[str], int]]:
    """Nodes that may be changed, each with its function, the names bound before it there, and its statement's line."""
    found: dict[ast.AST, tuple[str, frozenset[str], int]] = {}

    def visit(node: ast.AST, name: str, bound: frozenset[str], line: int) -> None:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{name}.{node.name}".lstrip(".")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            bound = frozenset(argument.arg for argument in [*node.args.args, *node.args.kwonlyargs])
        for child in _changeable_children(node):
            own = child.lineno if isinstance(child, ast.stmt) else line
            found[child] = (name or "module", bound, own)
            visit(child, name, bound, own)
            bound |= _bound_by(child)

    visit(tree, "", frozenset(), 0)
    return found


def _changeable_children(node: ast.AST) -> Iterator[ast.AST]:
    """Not annotations, decorators, messages, assertions or docstrings: no behaviour that a test should pin down.

    Nor the numbers of processes and signals: a changed one would end a stranger.
    """
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.kill", "os.killpg"):
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr | ast.stmt | ast.comprehension | ast.arguments | ast.keyword):
                yield child


def _bound_by(node: ast.AST) -> frozenset[str]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    return frozenset(name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
}
CALLS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin"}
CALLS |= {"any": "all", "all": "any", "sqrt": "exp"}


def replacements(node: ast.AST, bound: frozenset[str]) -> Iterator[ast.AST]:
    """What may come instead of a node whose function has bound those names before."""
    match node:
        case ast.Compare(ops=[operation]):
            yield from (_with(node, ops=[other()]) for other in COMPARISONS[type(operation)])
        case ast.BinOp(op=operation) if type(operation) in OPERATIONS:
            yield _with(node, op=OPERATIONS[type(operation)]())
        case ast.BoolOp(op=operation):
            yield _with(node, op=ast.Or() if isinstance(operation, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(number) | float(number)):
            yield ast.Constant(number + 1)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CALLS:
            yield _with(node, func=_renamed(node.func, CALLS[name]))
        case ast.If(test=test):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Name(id=name)]) if name in bound:
            yield ast.Pass()


def _with(node: ast.AST, **changes: Any) -> ast.AST:
    changed = copy.deepcopy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


def _renamed(function: ast.expr, name: str) -> ast.expr:
    changed = copy.deepcopy(function)
    setattr(changed, "id" if isinstance(changed, ast.Name) else "attr", name)
    return changed


# ----------------------------------------------------------------------------------------------------- running tests


class Copy:
    """The source in another folder, which this process, its children and theirs import instead."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "src"
        shutil.copytree(SOURCE, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(self.folder, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        sys.path.insert(0, str(self.folder))
        os.environ["PYTHONPATH"] = str(self.folder)

    def path(self, original: Path) -> Path:
        return self.folder / original.relative_to(SOURCE)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        self.path(mutant.path).write_text(mutant.text(), encoding="utf-8")
        try:
            yield
        finally:
            shutil.copy2(mutant.path, self.path(mutant.path))


def in_child(work: Callable[[], int], *, output: Path, cpu_seconds: float | None = None) -> int:
    """The exit status of `work` in a forked child that prints to a file; not 0 where its CPU time ran out.

    A child that waits for ever uses none: it is killed after `WAITING` times as many seconds of wall clock.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setsid()  # so that all it started ends with it
            written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(written, 1)
            os.dup2(written, 2)
            if cpu_seconds is not None:
                limit = int(cpu_seconds) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            status = work()
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    killer = threading.Timer(WAITING * (cpu_seconds or threading.TIMEOUT_MAX / WAITING), os.kill, (pid, signal.SIGKILL))
    killer.daemon = True
    killer.start()
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        killer.cancel()
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def run_tests(names: Sequence[str], *options: str, plugins: Sequence[object] = (), home: Path) -> int:
    import pytest
    from hypothesis.configuration import set_hypothesis_home_dir

    set_hypothesis_home_dir(str(home))  # what breaks a mutant must not come back as an example in real tests
    plain = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", "-m", "not long and not ray")
    allowed = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # Hypothesis is there before the fork
    return int(pytest.main([*plain, *allowed, *options, *names], plugins=list(plugins)))


class Watch:
    """A pytest plugin that keeps the seconds of each test and those that failed, and tells coverage which one runs."""

    def __init__(self, measured: Any) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._measured.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)


@dataclass(frozen=True)
class Reached:
    """Which tests reach a line, and how long each of them takes."""

    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def by(self, mutant: Mutant) -> list[str]:
        """The quick ones first; those of the part for a line that is run by importing its module."""
        lines = self.tests.get(str(mutant.path), {})
        found = {*lines.get(mutant.line, ()), *lines.get(mutant.statement, ())}
        if "" in found:
            own = tuple(tests_of(part_of(mutant.path)))
            found |= {test for test in self.seconds if test.startswith(own)}
        ordered = sorted(found & self.seconds.keys(), key=self.seconds.__getitem__)
        totals = list(accumulate(map(self.seconds.__getitem__, ordered)))
        return ordered[: bisect_left(totals, MOST_SECONDS) + 1]


COVERAGE = """[run]
data_file = {folder}/coverage
parallel = true
context = ${{PYTEST_CURRENT_TEST-}}
disable_warnings = no-data-collected, module-not-measured
include =
    {files}
"""
"""Also for the processes that tests start: in them the context is the test that was running."""


def reached(files: Sequence[Path], tests: Sequence[str], *, copied: Copy, home: Path) -> Reached:
    """Runs the tests as they are, with coverage of these files. Tests that fail without a mutant are left out."""
    folder = home / "coverage"
    folder.mkdir()
    settings, found = folder / "settings", folder / "found.json"
    settings.write_text(COVERAGE.format(folder=folder, files="\n    ".join(str(copied.path(file)) for file in files)))

    def measure() -> int:
        import coverage

        measured = coverage.Coverage(config_file=str(settings))
        watch = Watch(measured)
        os.environ["COVERAGE_PROCESS_START"] = str(settings)
        measured.start()
        status = run_tests(tests, plugins=[watch], home=home)
        measured.stop()
        measured.save()
        measured.combine([str(folder)])
        data = measured.get_data()
        lines = {path: data.contexts_by_lineno(path) for path in data.measured_files()}
        found.write_text(json.dumps([lines, watch.seconds, watch.failed]))
        return 0 if status in (0, 1) else status

    output = home / "output"
    if in_child(measure, output=output) != 0:
        raise SystemExit(f"{output.read_text()}\nThe tests must run without a mutant.")
    lines, seconds, failed = json.loads(found.read_text())
    for test in failed:
        print(f"  left out, because it fails without a mutant: {test}")
        seconds.pop(test, None)
    by_file = {
        str(file): {
            int(line): [name.removesuffix(" (call)").removesuffix(" (setup)") for name in names]
            for line, names in lines.get(str(copied.path(file)), {}).items()
        }
        for file in files
    }
    return Reached(by_file, seconds)


def survives(mutant: Mutant, tests: Sequence[str], *, seconds: float, copied: Copy, home: Path) -> bool:
    """Whether all these tests pass with the mutant; one that runs far longer than its original counts as noticed."""

    def attempt() -> int:
        return run_tests(tests, "-x", home=home)

    limit = 30.0 + 5.0 * seconds
    with copied.mutated(mutant):
        return not tests or in_child(attempt, output=home / "output", cpu_seconds=limit) == 0


# ------------------------------------------------------------------------------------------------------------ the whole


@dataclass
class Score:
    killed: int = 0
    equivalent: int = 0
    survived: int = 0

    def __add__(self, other: "Score") -> "Score":
        return Score(self.killed + other.killed, self.equivalent + other.equivalent, self.survived + other.survived)

    @property
    def tried(self) -> int:
        return self.killed + self.equivalent + self.survived

    def __str__(self) -> str:
        counted = self.killed + self.survived
        share = f"{self.killed / counted:.1%}" if counted else "none tried"
        return f"{self.killed} of {counted} noticed ({share}), {self.equivalent} equivalent"


def cpu_minutes() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent) / 60.0


def known_equivalents() -> dict[str, str]:
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("equivalent", [])
    return {entry["mutant"]: entry["reason"] for entry in entries}


def drawn(parts: Mapping[str, Sequence[Path]], *, draw: int | None, count: int, seed: int) -> list[Mutant]:
    """That many over all of these parts; or of each part as many, in turn, so that all had some when the time is up."""
    found = {part: [mutant for path in paths for mutant in mutants_of(path)] for part, paths in parts.items()}
    for part, mutants in found.items():
        print(f"{part}: {len(mutants)} mutants")
        random.Random(seed).shuffle(mutants)
    if draw is not None:
        return random.Random(seed).sample(list(chain(*found.values())), draw)
    turns = zip_longest(*(mutants[:count] for mutants in found.values()))
    return [mutant for turn in turns for mutant in turn if mutant is not None]


def try_all(mutants: Sequence[Mutant], *, until: float, home: Path) -> Score:
    """Says of each mutant that survives, until the CPU minutes have come to `until`."""
    scores, known, copied = defaultdict[str, Score](Score), known_equivalents(), Copy(home)
    parts = sorted({part_of(mutant.path) for mutant in mutants})
    tests = sorted({test for part in parts for test in tests_of(part)})
    reach = reached(sorted({mutant.path for mutant in mutants}), tests, copied=copied, home=home)
    print(f"the tests of {len(parts)} parts: {len(reach.seconds)}, at {cpu_minutes():.1f} CPU minutes", flush=True)
    for mutant in mutants:
        if cpu_minutes() > until:
            break
        score, own = scores[part_of(mutant.path)], reach.by(mutant)
        if mutant.name in known:
            score.equivalent += 1
        elif survives(mutant, own, seconds=sum(map(reach.seconds.__getitem__, own)), copied=copied, home=home):
            score.survived += 1
            said = "" if own else "  (reached by no test)"
            print(f"  survived: line {mutant.line}, {mutant.name}{said}", flush=True)
        else:
            score.killed += 1
    for part, score in sorted(scores.items()):
        print(f"{part}: {score}")
    return sum(scores.values(), Score())


def preload() -> None:
    os.chdir(ROOT)
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[threads] = "1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in HEAVY:
            importlib.import_module(module)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parts = sources()
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(parts)}; all by default")
    parser.add_argument("--count", type=int, default=80, help="mutants of each part")
    parser.add_argument("--draw", type=int, help="instead, mutants over all of these parts, each as likely")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--cpu-minutes", type=float, default=30.0, help="for all of it")
    given = parser.parse_args(arguments)
    preload()
    chosen = {part: parts[part] for part in given.parts or parts}
    mutants = drawn(chosen, draw=given.draw, count=given.count, seed=given.seed)
    with tempfile.TemporaryDirectory() as home:
        score = try_all(mutants, until=given.cpu_minutes, home=Path(home))
    print(f"{score}; {score.tried} of {len(mutants)} drawn with seed {given.seed}, {cpu_minutes():.1f} CPU minutes")
    return 1 if score.survived else 0


if __name__ == "__main__":
    sys.exit(main())
