"""What pages of docs say in counts (wins and losses, x of y, shares in percent), computed from the records.

`python -m benchmarks.evidence.counts PAGE` prints a page's tables and sentences as they must stand there.
"""

from collections.abc import Callable, Mapping

from benchmarks.evidence.counts.bayesian import bayesian
from benchmarks.evidence.counts.counting import Said
from benchmarks.evidence.counts.curves import curves
from benchmarks.evidence.counts.online import online
from benchmarks.evidence.counts.others import boosting, cluster, objectives, optuna, prompts, second_study, strategies
from benchmarks.evidence.counts.pipelines import pipelines
from benchmarks.evidence.counts.populations import populations

PAGES: Mapping[str, Callable[[], Said]] = {
    "guides/cluster.md": cluster,
    "guides/prompts.md": prompts,
    "guides/second_study.md": second_study,
    "guides/strategies.md": strategies,
    "integrations/boosting.md": boosting,
    "integrations/optuna.md": optuna,
    "systems/bayesian.md": bayesian,
    "systems/multifidelity.md": curves,
    "systems/objectives.md": objectives,
    "systems/online.md": online,
    "systems/pipeline.md": pipelines,
    "systems/population.md": populations,
}
