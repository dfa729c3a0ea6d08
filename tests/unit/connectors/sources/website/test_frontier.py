import sys

import pytest

from connectors.sources.website.frontier import Frontier, PendingUrl


def test_the_nearest_come_first_and_each_once() -> None:
    with Frontier(10) as frontier:
        frontier.add(
            [PendingUrl("a", 1), PendingUrl("b", 0), PendingUrl("a", 0), PendingUrl("c", 1)]
        )
        assert [one.url for one in frontier.next_batch(5)] == ["b", "a", "c"]
        assert frontier.claim("b")
        assert not frontier.claim("b")
        assert [one.url for one in frontier.next_batch(5)] == ["a", "c"]


def test_one_too_many_is_left_out_and_reported() -> None:
    with Frontier(2) as frontier:
        frontier.add(PendingUrl(name, 0) for name in "abacd")
        assert [one.url for one in frontier.next_batch(5)] == ["a", "b"]
        assert frontier.first_skipped == "c"


def test_what_another_page_chose_is_known() -> None:
    with Frontier(5) as frontier:
        frontier.add([PendingUrl("a", 0)])
        frontier.add_canonical("a", 3)
        assert frontier.is_canonical("a")
        assert frontier.next_batch(5) == [PendingUrl("a", 0)]


def test_a_hundred_thousand_addresses_are_not_in_memory() -> None:
    with Frontier(100_000) as frontier:
        before = sys.getallocatedblocks()
        frontier.add(PendingUrl(f"https://example.com/{number}", 1) for number in range(100_000))
        assert sys.getallocatedblocks() - before < 1_000
        assert len(frontier.next_batch(200)) == 200


def test_one_that_is_saved_goes_on_as_it_was() -> None:
    with Frontier(3) as before, Frontier(3) as after:
        before.add([PendingUrl("https://a.example/é", 1, "2026-01-02"), PendingUrl("b", 0)])
        before.add_canonical("c", 2)
        before.add([PendingUrl("d", 1)])
        assert before.claim("b")
        assert after.restore(before.dump())
        assert after.next_batch(9) == before.next_batch(9)
        assert (after.count, after.first_skipped) == (3, "d")
        assert not after.claim("b")
        assert after.is_canonical("c")


def test_one_whose_visit_failed_is_visited_again() -> None:
    with Frontier(2) as frontier:
        frontier.add([PendingUrl("a", 0)])
        assert frontier.claim("a")
        frontier.release("a")
        assert frontier.next_batch(5) == [PendingUrl("a", 0)]


@pytest.mark.parametrize("cut", [0, 1, 20])
def test_what_is_no_frontier_leaves_it_empty(cut: int) -> None:
    with Frontier(2) as before, Frontier(2) as after:
        before.add([PendingUrl("a", 0), PendingUrl("b", 0)])
        assert not after.restore(before.dump()[:cut])
        assert after.next_batch(5) == []
        after.add([PendingUrl("c", 0)])
        assert after.next_batch(5) == [PendingUrl("c", 0)]
