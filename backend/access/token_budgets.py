"""What a budget of language model tokens may be, of a group as of a person."""

from connectors.errors import InvalidInputError

MOST_TOKENS = 10**15
"""Of a budget of a day."""


def check_tokens(tokens: int) -> None:
    """Raise InvalidInputError if it is no number of tokens of a day."""
    if not 0 <= tokens <= MOST_TOKENS:
        raise InvalidInputError(
            f"A budget is a whole number of tokens up to {MOST_TOKENS:,}; 0 ends it."
        )
