"""Prints what pages must say."""

import sys
from collections.abc import Sequence

from benchmarks.evidence.counts import PAGES


def main(pages: Sequence[str]) -> int:
    for page in pages or PAGES:
        said = PAGES[page]()
        for table in said.tables:
            print(f"\n{table.after}")
            for label, counts in table.rows:
                print(f"| {label} | {' | '.join(counts)} |")
        print("", *said.lines, "", *said.sentences, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
