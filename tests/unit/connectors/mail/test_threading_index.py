from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from connectors.mail.headers import Envelope
from connectors.mail.threading_index import Thread, ThreadIndex, ThreadPosition

DAY = 24 * 3600


def mail(
    key: str, *references: str, sent: int = 0, subject: str = "", thread: str = ""
) -> Envelope:
    return Envelope(
        folder="INBOX",
        number=1,
        size=1,
        key=key,
        references=references,
        thread=thread,
        subject=subject,
        sent=sent,
    )


def threads(messages: Iterable[Envelope]) -> list[Thread]:
    with ThreadIndex() as index:
        for message in messages:
            index.add(message)
        index.build()
        return list(index.threads())


def keys(messages: Iterable[Envelope]) -> dict[str, list[str]]:
    return {one.name: [message.key for message in one.messages] for one in threads(messages)}


def test_what_references_each_other_is_one_conversation_in_the_order_sent() -> None:
    found = keys(
        [mail("c", "a", "b", sent=3), mail("a", sent=1), mail("x", sent=9), mail("b", "a")]
    )
    assert found == {"x": ["x"], "a": ["b", "a", "c"]}


def test_the_newest_conversation_comes_first_and_any_can_be_resumed_from() -> None:
    messages = [mail(f"m{number}", sent=number // 2) for number in range(6)]
    with ThreadIndex() as index:
        for message in messages:
            index.add(message)
        index.build()
        names = [one.name for one in index.threads()]
        assert names == ["m4", "m5", "m2", "m3", "m0", "m1"]
        assert [one.name for one in index.threads(ThreadPosition(1, "m2"))] == ["m3", "m0", "m1"]
        found = index.find("m3")
        assert found is not None
        assert found.messages == (messages[3],)
        assert index.find("m9") is None


def test_a_missing_parent_joins_and_names_its_answers() -> None:
    before = keys([mail("b", "gone", sent=2), mail("c", "gone", sent=3)])
    assert before == {"gone": ["b", "c"]}
    # it comes late: the name stays
    assert keys([mail("b", "gone", sent=2), mail("gone", sent=1)]) == {"gone": ["gone", "b"]}


def test_a_circle_harms_nothing() -> None:
    assert keys([mail("a", "b", sent=1), mail("b", "a", sent=2)]) == {"b": ["a", "b"]}


def test_a_message_that_is_there_twice_is_once() -> None:
    first = mail("a", sent=1)
    assert threads([first, mail("a", "elsewhere", sent=5)]) == [Thread("a", (first,))]


def test_conversations_that_a_message_joins_tell_the_names_they_had() -> None:
    (one,) = threads([mail("a", sent=1), mail("b", sent=2), mail("c", "a", "b", sent=3)])
    assert one.name == "a"
    assert set(one.former_names) == {"b", "c"}


def test_a_lost_reply_joins_the_newest_earlier_message_of_its_subject() -> None:
    plan = [
        mail("old", subject="Plan", sent=0),
        mail("new", subject="Plan", sent=10 * DAY),
        mail("reply", subject="RE: plan", sent=12 * DAY),
    ]
    assert keys(plan) == {"new": ["new", "reply"], "old": ["old"]}


def test_a_subject_joins_nothing_else() -> None:
    apart = [
        mail("a", subject="Plan", sent=0),
        # the same subject, and no reply
        mail("b", subject="Plan", sent=1),
        # a reply, three weeks later
        mail("c", subject="Re: Plan", sent=21 * DAY),
        # a reply whose parent is there
        mail("d", subject="Other", sent=2),
        mail("e", "d", subject="Re: Plan", sent=3),
        # replies to nothing
        mail("f", subject="Re:", sent=4),
        mail("g", subject="Re:", sent=5),
    ]
    assert keys(apart) == {
        "a": ["a"],
        "b": ["b"],
        "c": ["c"],
        "d": ["d", "e"],
        "f": ["f"],
        "g": ["g"],
    }


def test_what_the_server_calls_a_conversation_alone_counts() -> None:
    messages = [
        mail("a", sent=1, thread="t1"),
        mail("b", "a", sent=2, thread="t2"),
        mail("c", "z", sent=3, thread="t1", subject="Re: s"),
        mail("d", sent=2, thread="t3", subject="s"),
    ]
    assert keys(messages) == {"t1": ["a", "c"], "t2": ["b"], "t3": ["d"]}


NAMES = st.sampled_from([f"m{number}" for number in range(8)])
MESSAGES = st.lists(
    st.builds(
        lambda key, references, sent, subject: mail(
            key, *(one for one in references if one != key), sent=sent, subject=subject
        ),
        NAMES,
        st.lists(NAMES, max_size=3),
        st.integers(0, 40).map(lambda day: day * DAY),
        st.sampled_from(["", "Plan", "Re: Plan"]),
    ),
    max_size=8,
    unique_by=lambda one: one.key,
)


@given(MESSAGES.flatmap(lambda messages: st.tuples(st.just(messages), st.permutations(messages))))
def test_conversations_do_not_depend_on_the_order_of_the_mailbox(
    orders: tuple[list[Envelope], list[Envelope]],
) -> None:
    first, second = orders
    assert threads(first) == threads(second)


@given(MESSAGES)
def test_every_message_is_in_one_conversation_with_all_it_references(
    messages: list[Envelope],
) -> None:
    found = threads(messages)
    place = {message.key: one.name for one in found for message in one.messages}
    assert sorted(place) == sorted(one.key for one in messages)
    assert len({one.name for one in found}) == len(found)
    for message in messages:
        for reference in message.references:
            assert place.get(reference, place[message.key]) == place[message.key]
