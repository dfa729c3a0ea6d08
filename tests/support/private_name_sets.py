"""Private documents with the names that no web query may carry, and innocent queries about the same subjects.

A document is a block of lines; those that begin with `name:` are the names in it. The rules that find names were written
with the set `developed`; `held_out` was written afterwards, and run once before anything was mended for it (57 of its 59
names were kept back then).
"""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

SETS = ("developed", "held_out")
LANGUAGES = ("en", "de", "zh", "ja")
_FOLDER = Path(__file__).parent / "private_names"
_NAME = "name: "


@dataclass(frozen=True)
class PrivateDocument:
    language: str
    text: str
    names: tuple[str, ...]


def read_documents(name: str) -> list[PrivateDocument]:
    return [
        _parse(language, block)
        for language in LANGUAGES
        for block in (_FOLDER / name / f"{language}.txt").read_text("utf-8").split("\n\n")
    ]


@dataclass(frozen=True)
class SentenceStart:
    """A text whose last sentence begins with a word that is a name or an ordinary one."""

    language: str
    is_name: bool
    text: str

    @property
    def word(self) -> str:
        return self.text.rpartition(". ")[2].split()[0]


def read_sentence_starts(name: str) -> list[SentenceStart]:
    lines = (_FOLDER / name / "sentence_starts.txt").read_text("utf-8").splitlines()
    split = (line.split("\t") for line in lines)
    return [SentenceStart(language, kind == "name", text) for language, kind, text in split]


def read_innocent_queries(name: str) -> list[str]:
    return (_FOLDER / name / "innocent.txt").read_text("utf-8").splitlines()


def _parse(language: str, block: str) -> PrivateDocument:
    lines = block.splitlines()
    text = "\n".join(line for line in lines if not line.startswith(_NAME))
    names = tuple(line.removeprefix(_NAME) for line in lines if line.startswith(_NAME))
    return PrivateDocument(language, text, names)


def to_full_width(text: str) -> str:
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)


def drop_accents(text: str) -> str:
    if not text.isascii() and max(text) > "\u2000":
        return text
    return "".join(
        one for one in unicodedata.normalize("NFD", text) if not unicodedata.combining(one)
    )


def write_out_umlauts(text: str) -> str:
    for umlaut, written in (("ä", "ae"), ("ö", "oe"), ("ü", "ue")):
        text = text.replace(umlaut, written)
    return text


SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "as it stands": str,
    "small": str.lower,
    "capitals": str.upper,
    "full width": to_full_width,
    "joined": lambda name: name.replace(" ", "").replace("-", ""),
    "spelled": " ".join,
    "hyphenated": "-".join,
    "without accents": drop_accents,
    "without umlauts": write_out_umlauts,
    "blanks for hyphens": lambda name: name.replace("-", " "),
    "genitive": lambda name: f"{name}'s",
}
