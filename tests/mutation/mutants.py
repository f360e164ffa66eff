"""Changes one expression of the source at a time and asks whether a test notices: `make mutants`.

Each target is a part of the source with the tests that are its own. They run once, to learn which test reaches which
line; after that a mutant costs the tests that reach its line, the quick ones first, until one fails. A mutant lives in
the memory of a forked child: no file is changed. Mutants are drawn by seed until the CPU minutes are used up.

A number at the head of a module was chosen, not derived, and is left alone. The program fails when a mutant survives
that `equivalent.toml` does not list with its reason.
"""

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import json
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
HEAVY = ("numpy", "scipy.linalg", "scipy.optimize", "scipy.stats", "hypothesis", "sqlalchemy", "botorch")
"""Imported once, before the first fork: they are most of what a test run costs."""

WAITING = 5.0
"""Seconds of wall clock for a second of CPU, on a machine that is busy with other things too."""


@dataclass(frozen=True)
class Target:
    """A part of the source, and the tests that are its own."""

    sources: str
    tests: tuple[str, ...]


TARGETS = {
    "online": Target(
        "farthing/online/*.py",
        (
            "tests/papers/test_ce_gp_ucb.py",
            "tests/unit/online",
            "tests/properties/test_online.py",
            "tests/unit/fields/test_declaration.py::test_the_page_of_arguments_is_what_the_fields_say",
        ),
    ),
    "acquisition": Target("farthing/acquisition/*.py", ("tests/unit/acquisition", "tests/papers/test_takg.py")),
    "records": Target(
        "farthing/session/records.py",
        ("tests/unit/session/test_records.py", "tests/unit/study/test_ask_tell.py", "tests/unit/study/test_run.py"),
    ),
    "costs": Target("farthing/costs/*.py", ("tests/unit/costs",)),
}

# ------------------------------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class Mutant:
    """One node of a module's tree, by its place in `ast.walk`, and what comes instead of it."""

    path: Path
    place: int
    line: int
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

    def code(self) -> CodeType:
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        old = list(ast.walk(tree))[self.place]
        new = ast.copy_location(copy.deepcopy(self.replacement), old)
        mutated = ast.fix_missing_locations(_Replacing(old, new).visit(tree))
        return compile(mutated, str(self.path), "exec")


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
            yield Mutant(path, place, node.lineno, functions[node][0], before, after, replacement)


def _first_line(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]


def _functions(tree: ast.Module) -> dict[ast.AST, tuple[str, frozenset[str]]]:
    """Nodes that may be changed, each with the function it is in and the names that function has bound before it."""
    found: dict[ast.AST, tuple[str, frozenset[str]]] = {}

    def visit(node: ast.AST, name: str, bound: frozenset[str]) -> None:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            name = f"{name}.{node.name}".lstrip(".")
        if isinstance(node, ast.FunctionDef):
            bound = frozenset(argument.arg for argument in [*node.args.args, *node.args.kwonlyargs])
        for child in _changeable_children(node):
            found[child] = (name or "module", bound)
            visit(child, name, bound)
            bound |= _bound_by(child)

    visit(tree, "", frozenset())
    return found


def _changeable_children(node: ast.AST) -> Iterator[ast.AST]:
    """Not annotations, decorators, messages, assertions or docstrings: no behaviour that a test should pin down."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
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


class MutantFinder(importlib.abc.MetaPathFinder):
    """Imports the mutant instead of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert spec is not None
        spec.loader = MutantLoader(self._mutant)
        return spec


class MutantLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(mutant.path))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        return self._mutant.code()


def in_child(work: Callable[[], int], *, output: Path, cpu_seconds: float | None = None) -> int:
    """The exit status of `work` in a forked child that prints to a file; not 0 where its CPU time ran out.

    A child that waits for ever uses none: it is killed after `WAITING` times as many seconds of wall clock.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
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


def run_tests(names: Sequence[str], *, plugins: Sequence[object] = (), home: str) -> int:
    import pytest
    from hypothesis.configuration import set_hypothesis_home_dir

    set_hypothesis_home_dir(home)  # what breaks a mutant must not come back as an example in real tests
    plain = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", "-m", "not long")
    allowed = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # Hypothesis is there before the fork
    return int(pytest.main([*plain, *allowed, *names], plugins=list(plugins)))


class Stopwatch:
    """A pytest plugin that keeps how long each test took, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


@dataclass(frozen=True)
class Reached:
    """Which tests reach a line, and how long each of them takes."""

    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def by(self, mutant: Mutant) -> list[str]:
        """The quick ones first; all of them for a line that is run by importing its module."""
        tests = self.tests.get(str(mutant.path), {}).get(mutant.line, [])
        return sorted(self.seconds if "" in tests else tests, key=lambda test: self.seconds.get(test, 0.0))


def reached_by(target: Target, *, home: str) -> Reached:
    """Runs the tests of a target as they are, with coverage."""
    file = Path(home, "coverage.json")

    def measure() -> int:
        import coverage

        stopwatch = Stopwatch()
        measured = coverage.Coverage(data_file=None, source=["farthing"], config_file=False)
        measured.start()
        status = run_tests(target.tests, plugins=[stopwatch, ContextOf(measured)], home=home)
        measured.stop()
        data = measured.get_data()
        lines = {path: data.contexts_by_lineno(path) for path in data.measured_files()}
        file.write_text(json.dumps([lines, stopwatch.seconds]))
        return status

    output = Path(home, "output")
    if in_child(measure, output=output) != 0:
        raise SystemExit(f"{output.read_text()}\nThe tests must pass without a mutant.")
    lines, seconds = json.loads(file.read_text())
    tests = {path: {int(line): names for line, names in found.items()} for path, found in lines.items()}
    return Reached(tests, seconds)


class ContextOf:
    """A pytest plugin that tells coverage which test is running."""

    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coverage.switch_context(nodeid)


def survives(mutant: Mutant, tests: Sequence[str], *, seconds: float, home: str) -> bool:
    """Whether all these tests pass with the mutant; one that runs far longer than its original counts as noticed."""

    def attempt() -> int:
        sys.meta_path.insert(0, MutantFinder(mutant))
        return run_tests(tests, home=home)

    limit = 30.0 + 5.0 * seconds
    return not tests or in_child(attempt, output=Path(home, "output"), cpu_seconds=limit) == 0


# ------------------------------------------------------------------------------------------------------------ the whole


@dataclass
class Score:
    killed: int = 0
    equivalent: int = 0
    survived: int = 0

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


def try_target(name: str, *, count: int, seed: int, until: float) -> Score:
    """Draws mutants of a target until there are `count` of them, or the CPU minutes have come to `until`."""
    target, score, known = TARGETS[name], Score(), known_equivalents()
    drawn = [mutant for path in sorted(SOURCE.glob(target.sources)) for mutant in mutants_of(path)]
    total = len(drawn)
    random.Random(seed).shuffle(drawn)
    with tempfile.TemporaryDirectory() as home:
        reached = reached_by(target, home=home)
        for mutant in drawn[:count]:
            if cpu_minutes() > until:
                break
            if mutant.name in known:
                score.equivalent += 1
                continue
            tests = reached.by(mutant)
            if survives(mutant, tests, seconds=sum(map(reached.seconds.__getitem__, tests)), home=home):
                score.survived += 1
                reach = "" if tests else "  (reached by no test)"
                print(f"  survived: line {mutant.line}, {mutant.name}{reach}", flush=True)
            else:
                score.killed += 1
    print(f"{name}: {score}, of {total} mutants, at {cpu_minutes():.1f} CPU minutes", flush=True)
    return score


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
    parser.add_argument("targets", nargs="*", metavar="target", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--count", type=int, default=80, help="mutants of each target")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--cpu-minutes", type=float, default=30.0, help="for all targets together")
    given = parser.parse_args(arguments)
    names = given.targets or list(TARGETS)
    preload()
    scores = [
        try_target(name, count=given.count, seed=given.seed, until=given.cpu_minutes * (index + 1) / len(names))
        for index, name in enumerate(names)
    ]
    return 1 if any(score.survived for score in scores) else 0


if __name__ == "__main__":
    sys.exit(main())
