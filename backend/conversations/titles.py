"""The title of a conversation: the first words of its first question."""

LONGEST_TITLE = 60
_CUT = "…"


def make_title(question: str) -> str:
    """Return as many whole words as fit; of a word that is longer than a title, its beginning."""
    words = " ".join(question.split())
    if len(words) <= LONGEST_TITLE:
        return words
    room = LONGEST_TITLE - len(_CUT)
    whole = words[: room + 1].rpartition(" ")[0]
    return (whole or words[:room]) + _CUT
