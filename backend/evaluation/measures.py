"""Score rankings with ir-measures."""

from collections.abc import Mapping, Sequence

import ir_measures
from ir_measures import RR, R, nDCG

from backend.evaluation.dataset import Judgments

DEPTH = 100
"""Documents of a ranking that count: the cut-off of the deepest measure."""

_MEASURES = {"nDCG@10": nDCG @ 10, "R@10": R @ 10, "R@100": R @ 100, "RR@10": RR @ 10}


def scores(judgments: Judgments, rankings: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return the means over all judged queries; one without a ranking counts 0.

    Args:
        rankings: query id to document ids, best first, each once.
    """
    run = {
        query: {document: float(-rank) for rank, document in enumerate(ranking[:DEPTH])}
        for query, ranking in rankings.items()
    }
    means = ir_measures.calc_aggregate(list(_MEASURES.values()), judgments, run)
    return {name: float(means[measure]) for name, measure in _MEASURES.items()}
