"""Removing quotes from replies, where an earlier message of the conversation contains the text.

A quote is recognized by its form: lines that begin with `>`, and everything below a line with which mail
programs introduce the original message. It is removed only if an earlier message contains it word for
word, regardless of line breaks; so quotes from elsewhere, and edited quotes, stay.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MAX_EARLIER_CHARACTERS = 500_000
"""How much text of earlier messages is kept for comparison; the newest."""
_MAX_QUOTED_PARAGRAPHS = 1000
"""How many quoted paragraphs of a message are compared; the rest stays."""

_QUOTE_PREFIX = re.compile(r"^\s{0,3}>[>\s]*")
_BLANK_LINES = re.compile(r"\n(?:\s*\n)+")
_SEPARATOR = re.compile(
    r"[\s>]*(?:[-_]{2,}\s*)?(?:original message|original appointment|forwarded message|reply message"
    r"|ursprüngliche nachricht|weitergeleitete nachricht|message d'origine|message transféré"
    r"|mensaje original|messaggio originale|mensagem original|oorspronkelijk bericht"
    r"|originalnachricht|原始邮件|原始郵件|元のメッセージ|원본 메시지)\s*[-_]{2,}\s*",
    re.IGNORECASE,
)
_RULE = re.compile(r"\s*_{8,}\s*")
_ADDRESS = re.compile(r"<[^<>@\s]+@[^<>@\s]+>|\[mailto:")
_WROTE = re.compile(
    r"\b(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|skrev|napisał[a(]?|написал[а(]?)"
    r"|写道|寫道|のメール|書きまし|작성",
    re.IGNORECASE,
)
_MAX_INTRODUCTION_LENGTH = 800
_FIELD = re.compile(
    r"\s*\*?(from|sent|date|to|cc|subject|von|gesendet|datum|an|betreff|de|envoyé|à|objet|enviado"
    r"|para|asunto|da|inviato|a|oggetto|发件人|发送时间|收件人|主题|差出人|送信日時|宛先|件名)\s*\*?\s*[:：]",
    re.IGNORECASE,
)
_MIN_FIELDS = 3


@dataclass(frozen=True, slots=True)
class _Paragraph:
    text: str
    """Unchanged, with quote prefixes."""
    is_quoted: bool
    is_introduction: bool = False
    """It says who wrote the text below."""


class QuoteRemover:
    """Removes quotes of earlier messages; to be used on a conversation in the order of its messages."""

    def __init__(self) -> None:
        self._earlier_text = ""

    def remove_quotes(self, text: str) -> str:
        """Remove quoted paragraphs that an earlier message contains, and introductions left alone."""
        return "\n\n".join(one.text for one in self._remaining_paragraphs(text)).strip()

    def add_message(self, text: str) -> None:
        """Add the text of a message, for the messages after it."""
        self._earlier_text = f"{self._earlier_text}\n{_normalize_spaces(_strip_prefixes(text))}"[
            -_MAX_EARLIER_CHARACTERS:
        ]

    def _remaining_paragraphs(self, text: str) -> Iterator[_Paragraph]:
        """Yield the paragraphs that stay; an introduction is held back until a quoted paragraph below it stays."""
        introductions: list[_Paragraph] = []
        before: _Paragraph | None = None
        compared = 0
        for one in _split_paragraphs(text):
            follows, before = before is not None and before.is_introduction, one
            if one.is_introduction:
                introductions = [*introductions, one] if follows else [one]
                continue
            if one.is_quoted and compared < _MAX_QUOTED_PARAGRAPHS:
                compared += 1
                if self._is_repeated(one.text):
                    continue
            if one.is_quoted:
                yield from introductions
            introductions = []
            yield one

    def _is_repeated(self, quoted: str) -> bool:
        return _normalize_spaces(_strip_prefixes(quoted)) in self._earlier_text


def _normalize_spaces(text: str) -> str:
    """Put one space around each word, so that texts compare equal however their lines are wrapped."""
    return f" {' '.join(text.split())} "


def _strip_prefixes(text: str) -> str:
    return "\n".join(_QUOTE_PREFIX.sub("", line, count=1) for line in text.split("\n"))


def _split_paragraphs(text: str) -> Iterator[_Paragraph]:
    """Split at blank lines, and where quote prefixes begin or end."""
    after_introduction = False
    for block in _BLANK_LINES.split(text):
        for piece, is_marked in _split_runs(block.split("\n")):
            if not piece.strip():
                continue
            if _is_introduction(piece):
                after_introduction = after_introduction or not is_marked
                yield _Paragraph(piece, is_quoted=True, is_introduction=True)
            else:
                yield _Paragraph(piece, is_quoted=is_marked or after_introduction)
            # Without prefixes nothing marks the end of the original: all of the rest is quoted.
            after_introduction = after_introduction and not is_marked


def _split_runs(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Group consecutive lines that have, or do not have, a quote prefix."""
    run: list[str] = []
    is_marked = False
    for line in lines:
        has_prefix = _QUOTE_PREFIX.match(line) is not None
        is_blank = not _QUOTE_PREFIX.sub("", line, count=1).strip()
        is_boundary = run and (_is_introduction_line(run[-1]) or _is_introduction_line(line))
        if run and (has_prefix != is_marked or is_blank or is_boundary):
            yield "\n".join(run), is_marked
            run = []
        is_marked = has_prefix
        if not is_blank:
            run.append(line)
    if run:
        yield "\n".join(run), is_marked


def _is_introduction_line(line: str) -> bool:
    return bool(_SEPARATOR.fullmatch(line) or _RULE.fullmatch(line))


def _is_introduction(paragraph: str) -> bool:
    text = _strip_prefixes(paragraph).strip()
    if len(text) > _MAX_INTRODUCTION_LENGTH:
        return False
    if _is_introduction_line(text) or _is_attribution(text):
        return True
    lines = text.split("\n")
    fields = sum(_FIELD.match(line) is not None for line in lines)
    return fields >= _MIN_FIELDS and fields >= len(lines) - 1


def _is_attribution(text: str) -> bool:
    """Match `On Monday, Ann Lee wrote:` in several languages, or any date and address before a colon."""
    if not text.endswith((":", "：")):
        return False
    has_digit = any(character.isdigit() for character in text)
    return has_digit and (_WROTE.search(text) or _ADDRESS.search(text)) is not None
