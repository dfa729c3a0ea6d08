"""Replies without what they repeat: a quoted paragraph goes where the conversation holds it already.

What is quoted is told by its marks: lines that begin with `>`, and all that follows a line by which
mail programs introduce the message that is answered. Whether it goes is told by its words: only
what stands in an earlier message word for word, however its lines were wrapped, is left out.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MOST_HELD = 500_000
"""Characters of earlier messages that are compared with; those of the newest."""
_MOST_PARAGRAPHS = 1000
"""Quoted ones that are compared; the rest stays."""

_MARK = re.compile(r"^\s{0,3}>[>\s]*")
_BLANK_LINES = re.compile(r"\n(?:\s*\n)+")
_SEPARATOR = re.compile(
    r"[\s>]*(?:[-_]{2,}\s*)?(?:original message|original appointment|forwarded message|reply message"
    r"|ursprüngliche nachricht|weitergeleitete nachricht|message d'origine|message transféré"
    r"|mensaje original|messaggio originale|mensagem original|oorspronkelijk bericht"
    r"|originalnachricht|原始邮件|原始郵件|元のメッセージ|원본 메시지)\s*[-_]{2,}\s*",
    re.IGNORECASE,
)
_RULE = re.compile(r"\s*_{8,}\s*")
_WRITER = re.compile(r"<[^<>@\s]+@[^<>@\s]+>|\[mailto:")
_WROTE = re.compile(
    r"\b(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|skrev|napisał[a(]?|написал[а(]?)"
    r"|写道|寫道|のメール|書きまし|작성",
    re.IGNORECASE,
)
_LONGEST_INTRODUCTION = 800
_FIELD = re.compile(
    r"\s*\*?(from|sent|date|to|cc|subject|von|gesendet|datum|an|betreff|de|envoyé|à|objet|enviado"
    r"|para|asunto|da|inviato|a|oggetto|发件人|发送时间|收件人|主题|差出人|送信日時|宛先|件名)\s*\*?\s*[:：]",
    re.IGNORECASE,
)
_FEWEST_FIELDS = 3


@dataclass(frozen=True, slots=True)
class _Paragraph:
    text: str
    """As it stands, marks included."""
    quoted: bool
    introduces: bool = False
    """It says who wrote what follows."""


class Said:
    """What the messages of a conversation have said so far, in the order in which they were sent."""

    def __init__(self) -> None:
        self._words = ""

    def without_repeats(self, text: str) -> str:
        """`text` without the quoted paragraphs that an earlier message holds; their introduction
        goes where nothing is left of them."""
        return "\n\n".join(paragraph.text for paragraph in self._kept(text)).strip()

    def add(self, text: str) -> None:
        """Take what a message says, for the messages after it."""
        self._words = f"{self._words}\n{_words(_unmarked(text))}"[-_MOST_HELD:]

    def _kept(self, text: str) -> Iterator[_Paragraph]:
        """An introduction waits for a quoted paragraph that stays."""
        waiting: list[_Paragraph] = []
        before: _Paragraph | None = None
        compared = 0
        for one in _paragraphs(text):
            follows, before = before is not None and before.introduces, one
            if one.introduces:
                waiting = [*waiting, one] if follows else [one]
                continue
            if one.quoted and compared < _MOST_PARAGRAPHS:
                compared += 1
                if self._holds(one.text):
                    continue
            if one.quoted:
                yield from waiting
            waiting = []
            yield one

    def _holds(self, quoted: str) -> bool:
        return _words(_unmarked(quoted)) in self._words


def _words(text: str) -> str:
    """The words with one space around each, however the text is wrapped."""
    return f" {' '.join(text.split())} "


def _unmarked(text: str) -> str:
    return "\n".join(_MARK.sub("", line, count=1) for line in text.split("\n"))


def _paragraphs(text: str) -> Iterator[_Paragraph]:
    """Pieces between blank lines, and between lines with and without marks."""
    after_introduction = False
    for block in _BLANK_LINES.split(text):
        for piece, marked in _runs(block.split("\n")):
            if not piece.strip():
                continue
            if _introduces(piece):
                after_introduction = after_introduction or not marked
                yield _Paragraph(piece, quoted=True, introduces=True)
            else:
                yield _Paragraph(piece, quoted=marked or after_introduction)
            # Marks end where the answer begins; without marks the old text goes on to the end.
            after_introduction = after_introduction and not marked


def _runs(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Lines that belong together, and whether they bear the mark of a quotation."""
    held: list[str] = []
    marked = False
    for line in lines:
        now = _MARK.match(line) is not None
        blank = not _MARK.sub("", line, count=1).strip()
        ends_here = held and (_is_introduction_line(held[-1]) or _is_introduction_line(line))
        if held and (now != marked or blank or ends_here):
            yield "\n".join(held), marked
            held = []
        marked = now
        if not blank:
            held.append(line)
    if held:
        yield "\n".join(held), marked


def _is_introduction_line(line: str) -> bool:
    return bool(_SEPARATOR.fullmatch(line) or _RULE.fullmatch(line))


def _introduces(paragraph: str) -> bool:
    text = _unmarked(paragraph).strip()
    if len(text) > _LONGEST_INTRODUCTION:
        return False
    if _is_introduction_line(text) or _attributes(text):
        return True
    lines = text.split("\n")
    fields = sum(_FIELD.match(line) is not None for line in lines)
    return fields >= _FEWEST_FIELDS and fields >= len(lines) - 1


def _attributes(text: str) -> bool:
    """`On Monday, Ann Lee wrote:`, in the languages of the common mail programs, or a date and an
    address before a colon."""
    if not text.endswith((":", "：")):
        return False
    has_digit = any(character.isdigit() for character in text)
    return has_digit and (_WROTE.search(text) or _WRITER.search(text)) is not None
