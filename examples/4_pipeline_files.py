"""Tunes a pipeline whose stages write files, as programs do: tokens on the disk, then an index, then a score.

    python examples/4_pipeline_files.py         half a minute of work, most of it saved

    text ── tokenize ── index ── search ── share of questions answered
            shortest     weight   cut
            stem

A stage with `folder=True` is given an empty folder and returns its path, or that of a file in it. The content is kept,
and a later trial with the same first stages gets a copy, which it may change. The example leaves `files.db` behind:

    farthing cache list --storage files.db
    farthing cache verify --storage files.db
    farthing cache prune --storage files.db --limit "2 kB"
"""

import json
import math
import time
from collections import Counter
from pathlib import Path

import farthing as ft

SENTENCES = [
    "the first stage of a pipeline is often the most expensive",
    "an output is kept under a name that says everything it depends on",
    "a killed worker leaves a staging folder that the next run removes",
    "checksums are verified whenever an output is read",
    "the cheapest outputs per byte are evicted when the disk is nearly full",
    "a trial pays only for the stages that it has to compute",
]
QUESTIONS = {"expensive stages": 0, "names of outputs": 1, "killed workers": 2, "verifying checksums": 3, "evicting": 4}
SPACE = ft.Space(
    stages={
        "tokenize": {"shortest": ft.Int(1, 6), "stem": ft.Int(3, 10)},
        "index": {"weight": ft.Choice("count", "idf")},
        "search": {"cut": ft.Float(0.0, 2.0)},
    }
)


def tokenize(sentences: list[str], shortest: int, stem: int, folder: Path) -> Path:
    """One file for each sentence, beside the settings that questions need too."""
    time.sleep(0.5)  # a program that takes its time
    (folder / "settings.json").write_text(json.dumps([shortest, stem]))
    for number, sentence in enumerate(sentences):
        (folder / f"{number}.txt").write_text("\n".join(tokens(sentence, shortest, stem)))
    return folder


def index(tokenized: Path, weight: str, folder: Path) -> Path:
    time.sleep(0.1)
    files = sorted(tokenized.glob("*.txt"))
    counts = [Counter(file.read_text().split()) for file in files]
    seen = Counter(word for count in counts for word in count)
    rarity = {word: math.log(len(files) / number) if weight == "idf" else 1.0 for word, number in seen.items()}
    weights = [{word: number * rarity[word] for word, number in count.items()} for count in counts]
    file = folder / "index.json"
    file.write_text(json.dumps({"settings": json.loads((tokenized / "settings.json").read_text()), "weights": weights}))
    return file


def search(indexed: Path, cut: float) -> float:
    """The share of questions whose best sentence, if it scores more than the cut, is the right one."""
    content = json.loads(indexed.read_text())
    right = 0
    for question, answer in QUESTIONS.items():
        words = tokens(question, *content["settings"])
        scores = [sum(sentence.get(word, 0.0) for word in words) for sentence in content["weights"]]
        right += max(scores) > cut and scores.index(max(scores)) == answer
    return right / len(QUESTIONS)


def tokens(text: str, shortest: int, stem: int) -> list[str]:
    return [word[:stem] for word in text.split() if len(word) >= shortest]


def main() -> None:
    pipeline = ft.Pipeline(
        source=SENTENCES,
        tokenize=ft.Stage(tokenize, folder=True),
        index=ft.Stage(index, folder=True),
        search=search,
    )
    study = ft.Study(SPACE, maximize="answered", storage="files.db", name="files", seed=0)
    study.run(pipeline, budget=ft.Budget(trials=20), workers=2)
    print(f"{study.best.value:.0%} of the questions are answered with {dict(study.best.params)}")
    print(study.ledger)


if __name__ == "__main__":
    main()
