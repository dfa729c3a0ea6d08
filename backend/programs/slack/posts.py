"""What the bot posts: an answer with its sources and buttons, cut to what Slack takes, and short notices.

Limits of Slack: 3,000 characters a section, 75 an option, 2,000 a value of a button (https://docs.slack.dev/reference/block-kit).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.chat.citations.citation_processor import CitationInfo, SourceKind
from backend.chat.document_addresses import SourceAddresses
from backend.programs.slack.mrkdwn import FindAddress, convert, cut, escape, make_link
from backend.programs.slack.web_api import Block, SlackPost
from backend.store.chat.messages import Json

SECTION_CHARACTERS = 2_900
SECTIONS_A_MESSAGE = 3
"""Slack refuses messages whose blocks are longer than some 13,000 characters together."""
MOST_MESSAGES = 6
_TITLE_CHARACTERS = 150
_OPTION_CHARACTERS = 70
_MOST_OPTIONS = 50
_MOST_PASSAGES = 5
_CUT_SHORT = "The answer is longer than what is shown here. Ask in Quarry to read it whole."
_GENERAL_KNOWLEDGE = "From general knowledge, not from a source. Check it before you rely on it."
_CUT_OFF = "The answer was cut off: the language model reached its length limit."


@dataclass(frozen=True, slots=True)
class ButtonSet:
    """The buttons below an answer."""

    value: str
    """Names the answer: what comes back when one is pressed."""
    offers_private: bool
    """Whether the question can be answered to its asker alone."""


def make_notice(text: str) -> SlackPost:
    """Return a post of one sentence of ours, in plain text."""
    shown = escape(text)
    return SlackPost(shown, [_make_section(shown)])


def make_answer_posts(
    answer: Json, notes: Sequence[str], buttons: ButtonSet, server: str | None
) -> list[SlackPost]:
    """Return the posts of an answer, at least one; the last has its sources and the buttons.

    Args:
        answer: as it is stored.
        notes: what is said below it.
        server: the address of the pages, where the sources have one that no browser opens.
    """
    addresses = _Addresses(server, answer)
    sections = [
        part
        for block in _list_blocks(answer, addresses.find)
        for part in cut(block, SECTION_CHARACTERS)
    ]
    messages = _fill_messages(sections or ["(no answer)"])
    shown = messages[:MOST_MESSAGES]
    if len(messages) > MOST_MESSAGES:
        notes = [_CUT_SHORT, *notes]
    posts = [SlackPost(part[0][:SECTION_CHARACTERS], [*map(_make_section, part)]) for part in shown]
    ending = [*_make_sources(answer, addresses), *map(_make_note, [*_judge(answer), *notes])]
    ending.append(_make_buttons(answer, buttons))
    return [*posts[:-1], SlackPost(posts[-1].text, [*posts[-1].blocks, *ending])]


def _list_blocks(answer: Json, find_address: FindAddress) -> Iterator[str]:
    yield from convert(answer["answer"], find_address)
    if answer.get("model") is None:
        for passage in answer.get("passages", ())[:_MOST_PASSAGES]:
            yield from _convert_passage(passage, find_address)


def _convert_passage(passage: Json, find_address: FindAddress) -> Iterator[str]:
    label = f"[{passage['number']}]"
    title = make_link(find_address(label, passage["link"]), passage["title"][:_TITLE_CHARACTERS])
    quote = "".join(run["text"] for run in passage["runs"])
    yield f"{title}\n> {escape(quote)}"


def _fill_messages(sections: Sequence[str]) -> list[list[str]]:
    return [
        list(sections[at : at + SECTIONS_A_MESSAGE])
        for at in range(0, len(sections), SECTIONS_A_MESSAGE)
    ]


class _Addresses:
    """Where the sources of one answer are opened, by their numbers."""

    def __init__(self, server: str | None, answer: Json) -> None:
        self._server = server
        shown = (*answer.get("documents", ()), *answer.get("passages", ()), *answer["citations"])
        self._sources: Mapping[str, Json] = {f"[{one['number']}]": one for one in shown}

    def find(self, label: str, target: str) -> str:
        """Return where a link of the answer leads: a citation to its source, any other to its target."""
        source = self._sources.get(label)
        return target if source is None else self.find_of(source)

    def find_of(self, source: Json) -> str:
        if self._server is None:
            return str(source["link"])
        info = CitationInfo(
            number=source["number"],
            document_id=source["document_id"],
            title=source["title"],
            link=source["link"],
            kind=SourceKind(source.get("kind", "document")),
        )
        return SourceAddresses(self._server).find(info)


def _make_sources(answer: Json, addresses: _Addresses) -> Iterator[Block]:
    references = _list_references(answer)
    lines = [
        f"[{one['number']}] {make_link(addresses.find_of(one), one['title'][:_TITLE_CHARACTERS])}"
        for one in references
    ]
    if lines:
        listed = "\n".join(["*Sources*", *lines])
        yield from map(_make_section, list(cut(listed, SECTION_CHARACTERS))[:2])


def _list_references(answer: Json) -> list[Json]:
    """Return the cited sources, each once, in the order of their numbers."""
    cited = {one["number"]: one for one in reversed(answer["citations"])}
    return [cited[number] for number in sorted(cited)]


def _judge(answer: Json) -> Iterator[str]:
    if answer.get("general_knowledge"):
        yield _GENERAL_KNOWLEDGE
    if answer.get("cut"):
        yield _CUT_OFF


def _make_section(text: str) -> Block:
    # `verbatim`: Slack makes no links and no mentions of words in it.
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _make_note(text: str) -> Block:
    element = {"type": "mrkdwn", "text": escape(text), "verbatim": True}
    return {"type": "context", "elements": [element]}


def _make_buttons(answer: Json, buttons: ButtonSet) -> Block:
    elements: list[dict[str, Any]] = [
        _make_button("good", "Good answer", buttons.value),
        _make_button("bad", "Bad answer", buttons.value),
    ]
    if references := _list_references(answer):
        elements.append(_make_choice(references[:_MOST_OPTIONS], buttons.value))
    if buttons.offers_private:
        elements.append(_make_button("answer_privately", "Answer privately", buttons.value))
    return {"type": "actions", "elements": elements}


def _make_button(name: str, label: str, value: str) -> dict[str, Any]:
    return {"type": "button", "action_id": name, "text": _make_plain(label), "value": value}


def _make_choice(references: Sequence[Json], value: str) -> dict[str, Any]:
    options = [
        {
            "text": _make_plain(f"[{one['number']}] {one['title']}"),
            "value": f"{value}:{one['number']}",
        }
        for one in references
    ]
    return {
        "type": "static_select",
        "action_id": "wrong_source",
        "placeholder": _make_plain("Wrong source…"),
        "options": options,
    }


def _make_plain(text: str) -> Block:
    return {"type": "plain_text", "text": text[:_OPTION_CHARACTERS], "emoji": False}
