"""The folders of an IMAP mailbox, and which of them are read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from connectors.extraction.result import one_line
from connectors.files.glob_patterns import Glob, any_matches
from connectors.sources.imap.response_parser import Malformed, Piece, folder_name, tokens

_ALL = "\\all"
_NOT_OPENED = {"\\noselect", "\\nonexistent"}
_PASSED_OVER = {"\\junk", "\\trash", "\\drafts", "\\flagged", "\\important", _ALL}
"""Marks of RFC 6154; what these folders hold was thrown away, was never sent, or lies elsewhere too."""
_PASSED_OVER_NAMES = {
    *("trash", "deleted items", "deleted messages", "bin", "papierkorb", "corbeille", "papelera"),
    *("junk", "junk e-mail", "junk email", "spam", "bulk mail", "drafts", "draft", "entwürfe"),
}
"""Where the server marks no folder."""


@dataclass(frozen=True, slots=True)
class Folder:
    raw: bytes
    """Its name as the server spells it."""
    path: tuple[str, ...]
    """Its name as a person sees it, and those of the folders around it, outermost first."""
    marks: frozenset[str]
    """In lower case."""

    @property
    def key(self) -> str:
        return self.raw.decode("latin-1")

    @property
    def quoted(self) -> str:
        """As it is written in a command.

        Raises:
            Malformed: it cannot be written.
        """
        if any(byte < 32 or byte > 126 for byte in self.raw):
            raise Malformed(f"a folder is called {self.raw[:40]!r}")
        name = self.raw.decode("ascii").replace("\\", "\\\\").replace('"', '\\"')
        return f'"{name}"'


def folder(answer: Iterable[Piece]) -> Folder:
    """From `(\\HasNoChildren) "/" INBOX`.

    Raises:
        Malformed: it is no such answer.
    """
    found = list(tokens(answer))
    marks = frozenset(one.text.decode("ascii", "replace").lower() for one in found if one.depth)
    outside = [one for one in found if not one.depth]
    if len(outside) != 2 or len(outside[0].text) > 3:
        raise Malformed(f"not a folder: {b''.join(one.text for one in found)[:60]!r}")
    between, name = outside
    has_levels = not (between.is_atom and between.text.upper() == b"NIL")
    raws = name.text.split(between.text) if has_levels and between.text else [name.text]
    path = tuple(one_line(folder_name(raw)) for raw in raws if raw)
    return Folder(name.text, path or (one_line(folder_name(name.text)),), marks)


def chosen(
    folders: Iterable[Folder], include: Sequence[Glob], exclude: Sequence[Glob]
) -> list[Folder]:
    """Those to be read, the inbox first, then by name.

    Where nothing is included by name: the one that holds all messages, if the server has one; else
    all but those of thrown away, unwanted and unsent mail.
    """
    opened = [one for one in folders if not one.marks & _NOT_OPENED]
    if include:
        wanted = [one for one in opened if any_matches(include, one.path)]
    else:
        wanted = [one for one in opened if _ALL in one.marks] or _usual(opened)
    kept = {one.raw: one for one in wanted if not any_matches(exclude, one.path)}
    return sorted(kept.values(), key=lambda one: (one.raw.upper() != b"INBOX", one.raw))


def _usual(folders: Sequence[Folder]) -> list[Folder]:
    if any(one.marks & _PASSED_OVER for one in folders):
        return [one for one in folders if not one.marks & _PASSED_OVER]
    return [one for one in folders if one.path[-1].casefold() not in _PASSED_OVER_NAMES]
