"""From the text of a message of Slack to the question that it asks.

Slack escapes `&`, `<` and `>`, and writes references as `<…>`: people `<@U1>`, channels `<#C1|name>`, groups and
`<!here>`, links `<https://…|label>`.
"""

import re

_REFERENCE = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def read_question_text(text: str, bot_user_id: str) -> str:
    """Return what is asked, without the mention of the bot; links and channels by their labels."""

    def show(found: re.Match[str]) -> str:
        sign, target, label = found.groups()
        if sign == "@" and target == bot_user_id:
            return " "
        match sign:
            case "@":
                return f"@{label or target}"
            case "#":
                return f"#{label or target}"
            case "!":
                return label or f"@{target.partition('^')[0]}"
            case _:
                return label or target

    shown = _REFERENCE.sub(show, text)
    for entity, character in _ENTITIES:
        shown = shown.replace(entity, character)
    return " ".join(shown.split())
