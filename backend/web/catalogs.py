"""Message catalogs: the texts of the pages in other languages. The English text is the id of a message."""

import gettext
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_compact_decimal

from backend.api.languages import Language
from backend.store.files.file_source import NAMES_OF_SOURCE
from backend.web.sentences import SentenceTranslator
from indexing.text.normalization import pluralize

SCRIPT = "script"
"""The context of the messages that the scripts of the pages show."""
SENTENCE = "sentence"
"""The context of what lower layers write: see `backend.web.sentences`."""


@dataclass(frozen=True, slots=True)
class Messages:
    """What is said in one language."""

    language: Language
    translations: gettext.NullTranslations
    sentences: SentenceTranslator
    of_scripts: Mapping[str, str]
    """By their English; empty in English."""

    def translate(self, text: str) -> str:
        """Return a text that a lower layer has written in English, in the language of the page if that is known."""
        return self.sentences.translate(text)

    def name_source(self, name: str) -> str:
        """Return the name of a source as it is shown: people name theirs themselves, but for that of files."""
        return self.translate(name) if name in NAMES_OF_SOURCE else name

    def count(self, number: int, noun: str, plural: str | None = None) -> str:
        """Return such as `2 documents`."""
        if self.language == "en":
            return pluralize(number, noun, plural)
        one, many = f"%(number)s {noun}", f"%(number)s {plural or f'{noun}s'}"
        return self.translations.ngettext(one, many, number) % {"number": f"{number:,}"}

    def list_names(self, names: Iterable[str]) -> str:
        match self.language:
            case "en":
                return ", ".join(names)
            case "zh":
                return "、".join(names)

    def format_day(self, moment: date) -> str:
        match self.language:
            case "en":
                return f"{moment.day} {moment:%b} {moment.year}"
            case "zh":
                return f"{moment.year}年{moment.month}月{moment.day}日"

    def format_day_of_year(self, moment: date) -> str:
        """Write a day without its year, for the marks of an axis."""
        match self.language:
            case "en":
                return f"{moment.day} {moment:%b}"
            case "zh":
                return f"{moment.month}月{moment.day}日"

    def format_compact(self, number: float) -> str:
        """Return such as `12.5K`, for the marks of an axis."""
        return format_compact_decimal(number, locale=self.language, fraction_digits=1)

    def format_minute(self, moment: datetime) -> str:
        """Write a moment with its zone: the server does not know that of the reader."""
        utc = moment.astimezone(UTC)
        day = self.format_day(utc)
        match self.language:
            case "en":
                return f"{day}, {utc:%H:%M} UTC"
            case "zh":
                return f"{day} {utc:%H:%M} UTC"


@cache
def load_messages(language: Language) -> Messages:
    match language:
        case "en":
            nothing = gettext.NullTranslations()
            return Messages("en", nothing, SentenceTranslator({}), MappingProxyType({}))
        case "zh":
            catalog = read_catalog(language)
            return Messages(
                language=language,
                translations=_compile(catalog),
                sentences=SentenceTranslator(_of_context(catalog, SENTENCE)),
                of_scripts=MappingProxyType(_of_context(catalog, SCRIPT)),
            )


def read_catalog(language: Language) -> Catalog:
    path = files("backend.web") / "locale" / language / "LC_MESSAGES" / "quarry.po"
    with path.open("rb") as file:
        return read_po(file, locale=language)


def sentences_json(language: Language) -> bytes:
    """Return what lower layers write, by its English, in the order in which a text is compared with it."""
    found = load_messages(language).sentences.messages
    return json.dumps(dict(found), ensure_ascii=False).encode()


def _of_context(catalog: Catalog, context: str) -> dict[str, str]:
    """Return messages by their English; those for one and for more by the English for more."""
    return {_many(one.id): _many(one.string) for one in catalog if one.context == context}


def _many(text: str | Sequence[str] | None) -> str:
    return text if isinstance(text, str) else (text or ("",))[-1]


def _compile(catalog: Catalog) -> gettext.NullTranslations:
    compiled = io.BytesIO()
    write_mo(compiled, catalog)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)
