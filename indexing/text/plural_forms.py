"""Numbers of things, in the singular or the plural."""


def pluralize(number: int, noun: str, plural: str | None = None) -> str:
    """`1 document`, `2 documents`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
