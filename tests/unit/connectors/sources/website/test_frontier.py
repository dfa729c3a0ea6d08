import sys

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
