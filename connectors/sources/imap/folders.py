"""The folders of an IMAP mailbox, and which of them are read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from connectors.files.paths import GlobPattern, matches_any
from connectors.sources.imap.response_parser import (
    MalformedResponseError,
    ResponsePart,
    decode_folder_name,
    tokenize,
)
from connectors.text_cleaning import to_one_line

_ALL = "\\all"
_NOT_SELECTABLE = {"\\noselect", "\\nonexistent"}
_EXCLUDED_ATTRIBUTES = {"\\junk", "\\trash", "\\drafts", "\\flagged", "\\important", _ALL}
"""Attributes of RFC 6154: mail that was deleted or never sent, or that is in another folder too."""
_EXCLUDED_NAMES = {
    *("trash", "deleted items", "deleted messages", "bin", "papierkorb", "corbeille", "papelera"),
    *("junk", "junk e-mail", "junk email", "spam", "bulk mail", "drafts", "draft", "entwürfe"),
}
"""Used where the server sets none of these attributes."""


@dataclass(frozen=True, slots=True)
class Folder:
    raw_name: bytes
    """The name in the server's encoding."""
    path: tuple[str, ...]
    """The display name, and before it those of its parent folders."""
    attributes: frozenset[str]
    """In lower case."""

    @property
    def key(self) -> str:
        return self.raw_name.decode("latin-1")

    @property
    def quoted_name(self) -> str:
        """The name as an argument of a command.

        Raises:
            MalformedResponseError: it contains characters that cannot be quoted.
        """
        if any(byte < 32 or byte > 126 for byte in self.raw_name):
            raise MalformedResponseError(f"invalid folder name: {self.raw_name[:40]!r}")
        name = self.raw_name.decode("ascii").replace("\\", "\\\\").replace('"', '\\"')
        return f'"{name}"'


def parse_folder(response: Iterable[ResponsePart]) -> Folder:
    """Parse a response to LIST, such as `(\\HasNoChildren) "/" INBOX`.

    Raises:
        MalformedResponseError: it has another form.
    """
    tokens = list(tokenize(response))
    attributes = frozenset(
        one.text.decode("ascii", "replace").lower() for one in tokens if one.depth
    )
    arguments = [one for one in tokens if not one.depth]
    if len(arguments) != 2 or len(arguments[0].text) > 3:
        start = b"".join(one.text for one in tokens)[:60]
        raise MalformedResponseError(f"invalid response to LIST: {start!r}")
    delimiter, name = arguments
    has_levels = not (delimiter.is_atom and delimiter.text.upper() == b"NIL")
    parts = name.text.split(delimiter.text) if has_levels and delimiter.text else [name.text]
    path = tuple(to_one_line(decode_folder_name(part)) for part in parts if part)
    return Folder(name.text, path or (to_one_line(decode_folder_name(name.text)),), attributes)


def select_folders(
    folders: Iterable[Folder], include: Sequence[GlobPattern], exclude: Sequence[GlobPattern]
) -> list[Folder]:
    """Return the folders to be read, the inbox first, then by name.

    Without `include`: the folder with all messages, if the server has one; else all folders but junk,
    trash and drafts.
    """
    selectable = [one for one in folders if not one.attributes & _NOT_SELECTABLE]
    if include:
        selected = [one for one in selectable if matches_any(include, one.path)]
    else:
        all_mail = [one for one in selectable if _ALL in one.attributes]
        selected = all_mail or _default_folders(selectable)
    unique = {one.raw_name: one for one in selected if not matches_any(exclude, one.path)}
    return sorted(unique.values(), key=lambda one: (one.raw_name.upper() != b"INBOX", one.raw_name))


def _default_folders(folders: Sequence[Folder]) -> list[Folder]:
    if any(one.attributes & _EXCLUDED_ATTRIBUTES for one in folders):
        return [one for one in folders if not one.attributes & _EXCLUDED_ATTRIBUTES]
    return [one for one in folders if one.path[-1].casefold() not in _EXCLUDED_NAMES]
