"""Look-ups in the caches of sessions, as Prometheus reads them."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from backend.api.metrics_collector import Metrics
from backend.api.warmup import CurrentContainer, Warmup
from backend.web_search.results import WebQuery
from backend.web_search.session_cache import SessionCache, TurnEntries
from tests.unit.backend.api.conftest import make_container


def test_the_server_counts_for_the_container_that_it_has_now(tmp_path: Path) -> None:
    current = CurrentContainer(make_container(tmp_path))
    metrics = Metrics(current, Warmup(current.parts()))
    current.observe_web(metrics)
    for _ in range(2):
        current.container.web.sessions.looked_up_in_web_cache("search", "miss")
        current.reopen()
    assert 'quarry_web_cache_lookups_total{kind="search",outcome="miss"} 2.0' in (
        metrics.render().decode()
    )


def test_look_ups_are_counted_by_kind_and_outcome(tmp_path: Path) -> None:
    current = CurrentContainer(make_container(tmp_path))
    metrics = Metrics(current, Warmup(current.parts()))
    cache = SessionCache(TurnEntries(), metrics)
    query = WebQuery("leave law", 5)
    cache.find_results(query)
    cache.keep_results(query, ())
    cache.find_results(query)
    cache.find_results(query)
    cache.find_page("https://example.com")
    counted = {
        (sample.labels["kind"], sample.labels["outcome"]): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
        if sample.name == "quarry_web_cache_lookups_total"
    }
    searches = {("search", "miss"): 1, ("search", "hit"): 2}
    assert counted == searches | {("page", "miss"): 1, ("page", "hit"): 0}
