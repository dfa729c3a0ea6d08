"""Charts of what people used of language models: tokens by model and by person, and what they cost."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum

from backend.schemas.language_model import price_tokens
from backend.store.database import Database
from backend.store.llm import model_usage
from backend.store.llm.language_models import StoredModel
from backend.store.llm.model_usage import ModelDay, PersonDay
from backend.web.bar_chart import BarChart, Series, lay_out_bars
from backend.web.catalogs import Messages

MOST_SERIES = 6
"""Distinguishable colors; all else is drawn as one more."""
_SMALLEST_COMPACT = 10
"""Below, a number of money needs the digits behind its point."""


class UsagePeriod(IntEnum):
    """Days that end today."""

    WEEK = 7
    MONTH = 30
    QUARTER = 90

    @property
    def days(self) -> tuple[date, ...]:
        today = datetime.now(UTC).date()
        return tuple(today - timedelta(days=back) for back in reversed(range(self)))


@dataclass(frozen=True, slots=True)
class UsageCharts:
    """Each is None where there is nothing to draw."""

    by_model: BarChart | None
    by_person: BarChart | None
    costs: BarChart | None
    unpriced: tuple[str, ...]
    """Models that were used and whose prices are not known."""


def draw_usage(
    database: Database, models: Sequence[StoredModel], days: Sequence[date], messages: Messages
) -> UsageCharts:
    of_models = model_usage.list_days_by_model(database, days[0])
    of_people = model_usage.list_days_by_person(database, days[0], MOST_SERIES)
    costs, unpriced = _price_days(of_models, models)
    return UsageCharts(
        lay_out_bars(days, _keep_largest(_group_models(of_models)), messages.format_compact),
        lay_out_bars(days, _group_people(of_people), messages.format_compact),
        lay_out_bars(days, _keep_largest(costs), lambda cost: _write_cost(cost, messages)),
        unpriced,
    )


def _group_models(used: Iterable[ModelDay]) -> list[Series]:
    values: dict[str, dict[date, float]] = defaultdict(dict)
    for one in used:
        values[one.model][one.day] = one.counts.input_tokens + one.counts.output_tokens
    return [Series(model, by_day) for model, by_day in values.items()]


def _price_days(
    used: Iterable[ModelDay], models: Iterable[StoredModel]
) -> tuple[list[Series], tuple[str, ...]]:
    """Return the costs of the models whose prices are known, and the names of the others."""
    by_name = {model.name: model for model in models}
    values: dict[str, dict[date, float]] = defaultdict(dict)
    unpriced: set[str] = set()
    for one in used:
        cost = price_tokens(one.counts, by_name.get(one.model))
        if cost is None:
            unpriced.add(one.model)
        else:
            values[one.model][one.day] = cost
    return [Series(model, by_day) for model, by_day in values.items()], tuple(sorted(unpriced))


def _group_people(used: Iterable[PersonDay]) -> list[Series]:
    values: dict[int | None, dict[date, float]] = defaultdict(dict)
    names: dict[int | None, str] = {}
    for one in used:
        values[one.person_id][one.day] = one.tokens
        names[one.person_id] = one.email or ""
    series = [Series(names[who], by_day, who is None) for who, by_day in values.items()]
    return sorted(series, key=lambda one: (one.is_rest, -one.total, one.name))


def _keep_largest(series: Iterable[Series]) -> list[Series]:
    """Return the largest series, the largest first, and behind them all others as one."""
    ordered = sorted(series, key=lambda one: (-one.total, one.name))
    rest: dict[date, float] = defaultdict(float)
    for one in ordered[MOST_SERIES:]:
        for day, value in one.values.items():
            rest[day] += value
    return [*ordered[:MOST_SERIES], *([Series("", rest, is_rest=True)] if rest else [])]


def _write_cost(cost: float, messages: Messages) -> str:
    return (
        messages.format_compact(cost)
        if cost >= _SMALLEST_COMPACT
        else f"{cost:.7f}".rstrip("0").rstrip(".")
    )
