"""Mend text whose characters beyond U+FFFF were cut in halves (surrogates), which UTF-8 cannot encode."""


def join_surrogates(text: str) -> str:
    """Join adjacent halves, and replace lone ones."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class SurrogateJoiner:
    """Mends text that arrives in pieces."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return text if text.isascii() else join_surrogates(text)

    def end(self) -> str:
        """Return the replacement of a half whose other half never came."""
        half, self._half = self._half, ""
        return join_surrogates(half)
