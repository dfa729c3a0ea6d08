"""What a message says, from what Slack writes."""

from typing import Any

import pytest

from connectors.sources.slack.message_text import NameLookup, get_message_text
from connectors.sources.slack.models import Message

_NAMES = NameLookup({"U1": "Ann Lee"}.get, {"C1": "general"}.get)  # type: ignore[arg-type]


def convert(**raw: Any) -> str:
    return get_message_text(Message.parse({"ts": "1700000000.000100", **raw}), _NAMES)


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("hello <@U1>", "hello @Ann Lee"),
        ("hello <@U1|ann>", "hello @Ann Lee"),
        ("see <#C1|old-name> and <#C1>, <#C1|>", "see #old-name and #general, #general"),
        ("<!here> <!channel> <!subteam^S1|@crew> <!subteam^S1>", "@here @channel @crew @group"),
        ("<!date^1700000000^{date}|Nov 14>", "Nov 14"),
        ("<https://a.example/x?a=1&amp;b=2>", "https://a.example/x?a=1&b=2"),
        ("<https://a.example/x|the page>", "the page (https://a.example/x)"),
        ("<http://a.example|a.example>", "http://a.example"),
        ("<mailto:ann@example.com|ann@example.com>", "ann@example.com"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2, &amp;lt;", "1 < 2 && 3 > 2, &lt;"),
        (":tada: :wave::skin-tone-3:", ":tada: :wave:"),
        ("*bold* `code`\n> quoted", "*bold* `code`\n> quoted"),
        ("  ", ""),
    ],
)
def test_markup_becomes_plain_text(text: str, reads: str) -> None:
    assert convert(text=text) == reads


def test_rich_text_equal_to_the_text_is_not_repeated() -> None:
    blocks = [_rich({"type": "text", "text": "hello"})]
    assert convert(text="hello", blocks=blocks) == "hello"


def test_rich_text_replaces_a_missing_text() -> None:
    elements = [
        {"type": "text", "text": "see "},
        {"type": "user", "user_id": "U1"},
        {"type": "text", "text": " in "},
        {"type": "channel", "channel_id": "C1"},
        {"type": "text", "text": ", "},
        {"type": "link", "url": "https://a.example", "text": "there"},
        {"type": "emoji", "name": "tada"},
        {"type": "broadcast", "range": "here"},
        {"type": "usergroup", "usergroup_id": "S1"},
        {"type": "date", "fallback": "today"},
    ]
    reads = "see @Ann Lee in #general, there (https://a.example):tada:@here@grouptoday"
    assert convert(text="", blocks=[_rich(*elements)]) == reads


def test_a_list_of_rich_text_has_an_item_a_line() -> None:
    items = [{"elements": [{"type": "text", "text": one}]} for one in ("saw", "wire")]
    block = {"type": "rich_text", "elements": [{"type": "rich_text_list", "elements": items}]}
    assert convert(blocks=[block]) == "• saw\n• wire"


def test_blocks_of_programs_are_read_beside_their_text() -> None:
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Deploy 12"}},
        {
            "type": "section",
            "text": {"type": "mrkdwn", "text": "by <@U1>"},
            "fields": [{"type": "mrkdwn", "text": "*State* done"}],
        },
        {"type": "context", "elements": [{"type": "image", "alt_text": "a chart"}]},
        {"type": "image", "title": {"type": "plain_text", "text": "Load"}, "alt_text": "rises"},
        {"type": "divider"},
        {"type": "markdown", "text": "**ends**"},
        {"type": "table", "rows": [[{"type": "raw_text", "text": "a"}, {"text": "b"}]]},
    ]
    parts = ["Deploy", "Deploy 12", "by @Ann Lee\n*State* done", "a chart", "Load\nrises"]
    # "Deploy" stands in none of the parts before it; each later part is new.
    assert convert(text="Deploy", blocks=blocks) == "\n\n".join([*parts, "**ends**", "a | b"])


def test_repeated_text_is_kept_once() -> None:
    block = {"type": "section", "text": {"type": "mrkdwn", "text": "the  disk\nis full"}}
    attachment = {"fallback": "disk", "text": "is full"}
    assert convert(text="Alert: the disk is full", blocks=[block], attachments=[attachment]) == (
        "Alert: the disk is full"
    )


def test_attachments_are_read() -> None:
    attachment = {
        "pretext": "New ticket",
        "author_name": "Bo",
        "title": "Wire breaks",
        "title_link": "https://t.example/7",
        "text": "again, <@U1>",
        "fields": [{"title": "Saw", "value": "C40"}, {"value": "urgent"}],
        "footer": "Tickets",
    }
    assert convert(attachments=[attachment]).splitlines() == [
        "New ticket",
        "Bo",
        "Wire breaks (https://t.example/7)",
        "again, @Ann Lee",
        "Saw: C40",
        "urgent",
    ]


def test_an_attachment_of_blocks_and_one_of_a_fallback() -> None:
    section = {"type": "section", "text": {"type": "plain_text", "text": "inside"}}
    shared = {"message_blocks": [{"message": {"blocks": [section]}}], "fallback": "[no preview]"}
    assert convert(attachments=[shared]) == "inside"
    assert convert(attachments=[{"fallback": "a <https://a.example|page>"}]) == (
        "a page (https://a.example)"
    )


@pytest.mark.parametrize(
    "raw",
    [
        {"blocks": None, "attachments": None, "files": None},
        {"blocks": [None, 1, {}, {"type": "rich_text", "elements": [None, {"elements": 3}]}]},
        {"blocks": [{"type": "table", "rows": [None, [None]]}], "attachments": [{"fields": 1}]},
        {"text": None, "attachments": [{"message_blocks": [{}]}]},
    ],
)
def test_blocks_of_another_shape_have_no_text(raw: dict[str, Any]) -> None:
    assert convert(**raw) == ""


def _rich(*elements: dict[str, Any]) -> dict[str, Any]:
    section = {"type": "rich_text_section", "elements": list(elements)}
    return {"type": "rich_text", "elements": [section]}
