"""What the page on populations counts."""

from collections.abc import Sequence
from statistics import median

from benchmarks.evidence.counts.counting import (
    Gaps,
    Said,
    Table,
    ends,
    of,
    wl,
    wtl,
)
from benchmarks.evidence.papers import records

POPULATIONS = {
    "random search": "random search",
    "ASHA": "ASHA",
    "LogEI, n = 8": "LogEI",
    "Clone": "Clone",
    "PBT": "PBT",
    "PB2.paper()": "PB2.paper()",
}
LANDERS = {"random search": "random", "PBT": "pbt", "Clone": "clone", "PB2.paper()": "pb2.paper", "PB2": "pb2"}
TRAININGS = ("digits", "fashion", "pendulum", "cart-pole")
BOXES = {
    "a box of .1, ± .05": "PB2, a box of .1",
    "a box of .2, ± .1": "PB2, a box of .2",
    "at most a factor of two on a logarithmic scale, else ± .2": "PB2, a factor of two",
    "PBT": "PBT",
    "Clone": "Clone",
}


def populations() -> Said:
    def real(other: str, problem: str, seeds: Sequence[int] = range(10**6), measure: str = "regret") -> list[float]:
        return ends("population-real", "PB2", other, problem, measure, seeds)

    def boxes(method: str, other: str, *tasks: str) -> str:
        found = {(row["problem"].partition(",")[0], row["seed"], row["method"]): row["regret"]
                 for row in records("tuning-population-box")}  # fmt: skip
        own = [(key, worth) for key, worth in found.items() if key[2] == method and key[0] in tasks]
        return wl(worth - found[*key[:2], other] for key, worth in own)

    def rl(other: str, problem: str, measure: str = "reward") -> list[float]:
        return ends("population-rl", "pb2", other, problem, measure)

    def judged(method: str) -> list[float]:
        return [row["judged"] for row in records("population-rl")
                if row["problem"] == "lander" and row["method"] == method]  # fmt: skip

    def cifar(other: str) -> str:
        return of(ends("population-cifar", "pb2", other, "cifar-10-half", "test_accuracy"))

    def scheduled(method: str, task: str) -> str:
        return wtl(ends("population-real", f"{method}, a schedule", method, f"{task}, B = 8, on a CPU"))

    cart, alone = "cart-pole, B = 8", "cart-pole, B = 8, on a CPU"
    landers = [
        _row([label, *_by_seed(method, "lander", 6), *_by_seed(method, "lander-misspecified", 6)])
        for label, method in LANDERS.items()
    ]
    fresh = {method: round(median(judged(method))) for method in LANDERS.values()}
    everyone = [*real("PBT", cart), *real("PBT", alone, range(5)), *real("PBT", alone, range(5, 29))]
    both = [(one, [*(gap for task in TRAININGS for gap in ends("population-real", "Clone", one, f"{task}, B = 8"))])
            for one in ("PB2", "PBT")]  # fmt: skip
    in_boxes = [boxes("Clone", one, *TRAININGS).split("–") for one in ("PB2", "PBT")]
    clone = [(sum(gap < 0 for gap in own) + int(box[0]), sum(gap > 0 for gap in own) + int(box[1]))
             for (_, own), box in zip(both, in_boxes, strict=True)]  # fmt: skip
    on_cpu = [gap for task in TRAININGS for gap in real("Ray PB2", f"{task}, B = 8, on a CPU", range(5))]
    against_pbt = [gap for task in TRAININGS for gap in real("PBT", f"{task}, B = 8, on a CPU", range(5))]
    return Said(
        [
            Table("| B = 8, n = 24 |", [
                (label, [wl(real(method, f"{task}, B = 8")) for task in TRAININGS])
                for label, method in POPULATIONS.items()]),
            Table("± .2 of each range, and against PBT:", [
                (label, [*(boxes(method, "PB2", task) for task in TRAININGS), boxes(method, "PB2", *TRAININGS),
                         *([] if method == "PBT" else [boxes(method, "PBT", *TRAININGS)])])
                for label, method in BOXES.items()]),
            Table("| B = 8, n = 5, on a CPU |", [
                (label, [wl(real(method, f"{task}, B = 8, on a CPU", range(5))) for task in TRAININGS])
                for label, method in (("random search", "random search"), ("PBT", "PBT"), ("Ray's PB2", "Ray PB2"))]),
            Table("| hopper-short, B = 8, n = 3 |", [
                (method, [of(real(method, "hopper-short, B = 8")),
                          of(real(method, "hopper-short, B = 8", measure="score"))])
                for method in ("random search", "PBT")]),
            Table("the test accuracy is that of the agent they choose:", [
                ("random search", [cifar("random")]),
                ("ASHA (84, 92, 80, 80 and 84 epochs in all, the others 80)", [cifar("asha")]),
                ("PBT", [cifar("pbt")]), ("Clone", [cifar("clone")]), ("PB2.paper()", [cifar("pb2-paper")])]),
        ],
        [
            f"on clothes, {scheduled('PB2', 'fashion')}, and level on digits, {scheduled('PB2', 'digits')};",
            f"for PBT {scheduled('PBT', 'fashion')} and {scheduled('PBT', 'digits')};",
            f"without it, {scheduled('random search', 'fashion')} and {scheduled('random search', 'digits')}.",
            f"they are level ({of(ends('population-synthetic', 'PB2', 'PB2.paper()', 'drift4, B = 8'))} seeds)",
            f"is behind PBT on cart-pole ({wl(real('PBT', cart))}, p = .04;",
            f"perhaps on fashion ({wl(real('PBT', 'fashion, B = 8'))}, p = .15)",
            f"behind PBT ({wl(real('PBT', 'pendulum, B = 16'))}) and the published method "
            f"({wl(real('PB2.paper()', 'pendulum, B = 16'))})",
            "No box is better than the default's beyond error "
            f"({boxes('PB2, a box of .1', 'PB2', *TRAININGS)} has p = .23)",
            f"PBT is ahead of PB2 on fashion ({boxes('PBT', 'PB2', 'fashion')})",
            _in_words("Nothing separates PB2 from Ray's: {} wins, {} losses and {} ties in all.", on_cpu),
            _in_words("Against PBT it has {} wins and {} losses,", against_pbt),
            _in_words("With these five seeds PB2 has {} wins and {} losses against PBT on the GPU",
                      real("PBT", cart, range(5))),
            _in_words("and {} wins and no loss on the CPU", real("PBT", alone, range(5))),
            f"and {wl(real('PBT', cart))} has one draw of batches",
            f"it is {wl(real('PBT', alone, range(5, 29)))}, both at the ceiling of 500 in the median, random search "
            f"{wl(real('random search', alone, range(5, 29)))}.",
            _in_words(f"Over all {len(everyone)} pairs PB2 has {{}} wins and {{}} losses against PBT", everyone),
            f"it is level with PB2 ({clone[0][0]} wins, {clone[0][1]} losses) and rather behind PBT "
            f"({clone[1][0]}–{clone[1][1]}, p = .09).",
            f"on six seeds that is no proof: {of(rl('random', 'lander'))} happens by chance",
            f"the medians are {fresh['random']} for random search, {fresh['pbt']} for PBT, {fresh['clone']} for Clone, "
            f"{fresh['pb2.paper']} for PB2.paper() and {fresh['pb2']} for PB2.",
            f"PB2 ran at commit {_commit('pb2', 6)}, PB2.paper() at {_commit('pb2.paper', 6)}, the others at "
            f"{_commit('random', 6)}; what has n = 3 ran at {_commit('random', 3)}.",
        ],
        lines=landers,
    )  # fmt: skip


def _by_seed(method: str, problem: str, most: int) -> Sequence[str]:
    """The median with its n where that is not the most, the reward of each seed, and where PB2 is better."""
    rows = [row for row in records("population-rl") if row["problem"] == problem and row["method"] == method]
    found = [row["reward"] for row in sorted(rows, key=lambda row: row["seed"])]
    middle = _whole(median(found)) + ("" if len(found) == most else f", n = {len(found)}")
    won = "" if method == "pb2" else of(ends("population-rl", "pb2", method, problem, "reward"))
    return [middle, " ".join(map(_whole, found)), won]


def _whole(number: float) -> str:
    return f"{number:.0f}".replace("-", "−")


def _row(cells: Sequence[str]) -> str:
    return " ".join(f"| {' | '.join(cells)} |".split())


def _commit(method: str, n: int) -> str:
    """Of the problem with so many runs of the method."""
    own = [row for row in records("population-rl") if row["method"] == method]
    by_problem = {name: [row for row in own if row["problem"] == name] for name in {row["problem"] for row in own}}
    (found,) = {row["commit"][:7] for rows in by_problem.values() if len(rows) == n for row in rows}
    return str(found)


def _in_words(text: str, gaps: Gaps) -> str:
    """Wins, losses and ties."""
    won, tied, lost = wtl(gaps).split("–")
    return text.format(won, lost, tied)
