"""Who may read a document, as far as an asker may know it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from backend.access.readers import is_files_token
from backend.store.accounts.admitted_readers import AdmittedReader, find_admitted
from backend.store.database import Database
from connectors.access import PUBLIC, Access, Readers

OF_FILES = (
    "the person who added it, and those in a project or with an assistant that it was added to"
)
"""Who may read a file: nobody is shown who these are."""


@dataclass(frozen=True, slots=True)
class DocumentReaders:
    access: Access
    """What the document names, as far as the asker may know it."""
    admitted: Sequence[AdmittedReader]
    """The first hundred of those who may read it."""
    count: int

    def describe(self) -> list[str]:
        """Return a line for each reader with the way that admits them, and one for those who are not named."""
        if any(map(is_files_token, self.access.readers)):
            return [OF_FILES]
        lines = [_describe(one) for one in self.admitted]
        more = self.count - len(lines)
        return [*lines, f"{more:,} more"] if more > 0 else lines


@dataclass(frozen=True, slots=True)
class AllReaders:
    """Finds all readers: for admins."""

    database: Database

    def limit(self, access: Access) -> Access:
        """Return what the asker may know of an access."""
        return access

    def find(self, access: Access) -> DocumentReaders:
        found = find_admitted(self.database, access)
        return DocumentReaders(access, found.readers, found.count)


@dataclass(frozen=True, slots=True)
class OwnReaders:
    """Finds what admits one reader, who is not shown others."""

    database: Database
    own: Readers
    """What the reader holds by itself."""
    held: Readers
    """The same with groups and conjunctions."""

    def limit(self, access: Access) -> Access:
        """Return what the asker may know of an access."""
        return Access.all_of(clause & self.held.tokens for clause in access.clauses)

    def find(self, access: Access) -> DocumentReaders:
        found = find_admitted(self.database, access, self.own.tokens)
        return DocumentReaders(self.limit(access), found.readers, found.count)


FindReaders: TypeAlias = AllReaders | OwnReaders


def _describe(reader: AdmittedReader) -> str:
    if reader.token == PUBLIC:
        return "everybody"
    account = f" · by the source account {reader.source_account}" if reader.source_account else ""
    ways = " in ".join(reader.groups)
    return reader.token.removeprefix("user:") + account + (f" · member of {ways}" if ways else "")
