"""The files of a git repository, at one branch, kept in step by its history.

Nothing in a repository's address says who may read it: the owner does, by a setting, or by an
`access.yaml` at the root of the branch, which then decides alone (see `connectors.access_file`): who
may write to the branch decides who may read it here.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from connectors.access_file import AccessRules, Rule, parse_access_rules
from connectors.addresses import reach_of
from connectors.connector import (
    Capability,
    Change,
    Check,
    Checkpoint,
    Deletion,
    Known,
    Listed,
    Unreadable,
)
from connectors.document import Access, Document
from connectors.errors import AskTheOwner, RetryLater
from connectors.extraction.extracted import CannotRead, shortened
from connectors.extraction.media_types import HEAD, media_type_of
from connectors.extraction.reading import can_read, extract, not_read_yet
from connectors.git.copy import Copy, opened
from connectors.git.credential import GitCredential
from connectors.git.history import Touch
from connectors.git.links import Hosting, file_link, hosting_of
from connectors.git.mirror import Mirror, NoSuchBranch
from connectors.git.place import Arrived, Place, Stage, checkpoint, place
from connectors.git.program import GitFailed, git_at
from connectors.git.reaching import Way
from connectors.git.remote import OnTheWeb, remote_of, repository_name, spoken
from connectors.git.tree import Entry, Gone
from connectors.globs import Glob, any_covers, any_matches
from connectors.kind import Kind
from connectors.paths import Parts, own_id, parts_of, readable, titled
from connectors.setting_types import Globs, PrivateHosts, ReaderTokens

ACCESS_FILE = "access.yaml"

# Raise it when files read again would say something else than before.
_READING = 1
_FILES_A_CHECKPOINT = 200
_LARGEST_ACCESS_FILE = 1_000_000
_MISNAMED = ("access.yml", "Access.yaml", "Access.yml", "ACCESS.YAML")
_LITTER = {"Thumbs.db", "desktop.ini"}
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_NO_TOUCH = Touch(None, ())

T = TypeVar("T")


class GitSettings(BaseModel):
    """Which files of which repository, and who may read them. Globs: see `connectors.globs`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(
        description="https://HOST/PATH, ssh://USER@HOST/PATH, USER@HOST:PATH, or the path of a"
        " repository on this machine."
    )
    readers: ReaderTokens = Field(
        description="Who may read the files: public, user:<email>, group:<id>. Where the branch has an"
        " access.yaml at its root, that decides instead."
    )
    branch: str = Field(
        default="",
        description="Its name. Empty: the default branch.",
        pattern=r"^[^-\x00-\x20~^:?*\[\\]*$",
    )
    include: Globs = Field(default=(), description="Globs of the files to read. Empty: all.")
    exclude: Globs = Field(default=(), description="Globs of the files to leave out.")
    largest_file: int = Field(
        default=100_000_000,
        gt=0,
        description="Bytes. A larger file is reported as unreadable.",
    )
    hosting: Hosting | None = Field(
        default=None,
        description="Which program shows the repository to people, for links to its pages. Empty: told"
        " by the name of the host.",
    )
    mirror: Path | None = Field(
        default=None,
        description="A folder in which a copy stays, so that the next run fetches only what is new."
        " Empty: each run that finds something new makes a copy of its own and removes it.",
    )
    private_hosts: PrivateHosts = Field(
        default=(),
        description="Hosts, addresses or networks (10.0.0.0/8) inside the own network that may be"
        " asked. An address with http:// is taken only where some are named.",
    )

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        remote_of(url)
        return url.strip()

    @field_validator("mirror")
    @classmethod
    def _absolute(cls, mirror: Path | None) -> Path | None:
        return mirror and mirror.absolute()

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        remote = remote_of(self.url)
        if isinstance(remote, OnTheWeb) and remote.scheme == "http" and not self.private_hosts:
            raise ValueError("http:// is not encrypted: write https://, or name the private host")
        return self


class GitConnector:
    """The plain files of one branch, without hidden ones, links and other repositories within."""

    def __init__(self, source: str, settings: GitSettings, credential: GitCredential) -> None:
        self._source = source
        self._settings = settings
        self._remote = remote_of(settings.url)
        self._repository = repository_name(self._remote)
        self._hosting = settings.hosting or hosting_of(self._remote)
        self._include = tuple(map(Glob.of, settings.include))
        self._exclude = tuple(map(Glob.of, settings.exclude))
        self._way = Way(
            source=source,
            remote=self._remote,
            sign_in=credential.sign_in,
            reach=reach_of(settings.private_hosts),
        )

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: Known) -> Iterator[Change]:
        """Yield what differs from the commit that was read last, with a checkpoint every 200 files.

        A run that was broken off is first taken to the end of its own commit. Where the last commit
        is no longer to be had, all files are compared with what Quarry holds; what went with it is
        then found from `listing`.

        Raises:
            RetryLater: the server, or this machine's disk, does not do it now.
            AskTheOwner: the repository, its branch, the credential or the access file must be mended.
        """
        began = place(since, self._chosen)
        with self._reached() as mirror:
            tip = mirror.tip(self._settings.branch)
            if began == Arrived(tip.commit):
                yield self._checkpoint(began)
                return
            with opened(mirror, tip) as copy:
                for stage in _stages(copy, began):
                    yield from self._along(copy, stage, known)

    def again(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.again`."""
        with self._reached() as mirror, opened(mirror, mirror.tip(self._settings.branch)) as copy:
            rules = self._rules(copy, copy.commit)
            for ids in _batches(document_ids, _FILES_A_CHECKPOINT):
                yield from self._again(copy, rules, ids)

    def listing(self) -> Iterator[Listed]:
        """Yield every file with those who may read it now; no content comes over the network.

        Raises:
            RetryLater: the server, or this machine's disk, does not do it now.
            AskTheOwner: the repository, its branch, the credential or the access file must be mended.
        """
        with self._reached() as mirror, opened(mirror, mirror.tip(self._settings.branch)) as copy:
            rules = self._rules(copy, copy.commit)
            for entry in filter(self._includes, copy.files.of(copy.commit)):
                yield Listed(self._id(entry.parts), rules.access(entry.parts))

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = self._fault()
        yield from (Check(capability, fault) for capability in Capability)

    @contextmanager
    def _reached(self) -> Iterator[Mirror]:
        """In a folder of this run alone, which holds what is secret, and is removed after it."""
        with TemporaryDirectory(prefix="quarry-git-") as folder:
            home = Path(folder)
            try:
                yield Mirror(self._way.prepared(git_at(home)), self._kept or home / "mirror")
            except GitFailed as error:
                raise self._way.trouble(error) from error
            except NoSuchBranch as error:
                raise AskTheOwner(f"{spoken(self._remote)}: {error}") from error

    @property
    def _kept(self) -> Path | None:
        """One folder may serve several repositories."""
        digest = hashlib.sha256(self._settings.url.encode()).hexdigest()[:20]
        return self._settings.mirror and self._settings.mirror / f"{self._repository}-{digest}"

    @property
    def _chosen(self) -> str:
        """Changes when files come in that were left out."""
        settings = self._settings
        told = [_READING, settings.include, settings.exclude, settings.largest_file]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:20]

    def _checkpoint(self, at: Place) -> Checkpoint:
        return checkpoint(at, self._chosen)

    def _along(self, copy: Copy, stage: Stage, known: Known) -> Iterator[Change]:
        rules = self._rules(copy, stage.commit)
        copy.learn(stage.commit, stage.base)
        items = filter(self._includes, _between(copy, stage))
        done = stage.done
        for batch in _batches(islice(items, done, None), _FILES_A_CHECKPOINT):
            yield from self._batch(copy, rules, batch, known)
            done += len(batch)
            yield self._checkpoint(Stage(base=stage.base, commit=stage.commit, done=done))
        yield self._checkpoint(Arrived(stage.commit))

    def _batch(
        self, copy: Copy, rules: AccessRules, batch: Sequence[Entry | Gone], known: Known
    ) -> Iterator[Change]:
        held = known([self._id(item.parts) for item in batch])
        wanted = [
            item
            for item in batch
            if isinstance(item, Entry) and held.get(self._id(item.parts)) != _version(item)
        ]
        yield from (Deletion(self._id(item.parts)) for item in batch if isinstance(item, Gone))
        yield from self._entries(copy, rules, wanted)

    def _again(self, copy: Copy, rules: AccessRules, ids: Sequence[str]) -> Iterator[Change]:
        asked = {one: parts_of(one.removeprefix(f"{self._source}:")) for one in ids}
        paths = [parts for parts in asked.values() if parts is not None]
        found = [one for one in copy.files.at(copy.commit, paths) if self._includes(one)]
        there = {self._id(one.parts) for one in found}
        yield from (Deletion(one) for one in ids if one not in there)
        if found:
            copy.learn_of([one.parts for one in found])
            yield from self._entries(copy, rules, found)

    def _entries(
        self, copy: Copy, rules: AccessRules, entries: Sequence[Entry]
    ) -> Iterator[Document | Unreadable]:
        copy.bring([entry.blob for entry in entries])
        touches = copy.history.of([entry.parts for entry in entries])
        for entry in entries:
            touch = touches.get(entry.parts, _NO_TOUCH)
            try:
                yield self._document(copy, rules.access(entry.parts), entry, touch)
            except CannotRead as error:
                yield self._unreadable(copy, entry, str(error))

    def _document(self, copy: Copy, access: Access, entry: Entry, touch: Touch) -> Document:
        """Raises CannotRead."""
        data = self._content(copy, entry)
        name = entry.parts[-1]
        media_type = media_type_of(name, data[:HEAD])
        if data and not can_read(media_type):
            raise not_read_yet(media_type)
        extracted = extract(data, media_type)
        path = {"repository": self._repository, "path": readable(entry.parts)}
        return Document(
            id=self._id(entry.parts),
            source=self._source,
            title=shortened(extracted.title or titled(name)),
            sections=extracted.sections,
            link=self._link(copy, entry),
            media_type=media_type,
            access=access,
            version=_version(entry),
            metadata={**path, **extracted.metadata},
            owners=extracted.authors or touch.authors,
            created_at=extracted.created_at,
            updated_at=touch.at or extracted.updated_at,
            parents=(self._repository, *(readable([part]) for part in entry.parts[:-1])),
        )

    def _content(self, copy: Copy, entry: Entry) -> bytes:
        """Raises CannotRead."""
        size, largest = copy.objects.size(entry.blob), self._settings.largest_file
        if size is None:
            raise CannotRead("the server does not give its content")
        if size > largest:
            raise CannotRead(f"{size:,} bytes; the limit is {largest:,}")
        data = copy.objects.content(entry.blob)
        if data.startswith(_LFS_POINTER):
            raise CannotRead("its content is kept in Git LFS, which Quarry does not read yet")
        return data

    def _unreadable(self, copy: Copy, entry: Entry, reason: str) -> Unreadable:
        return Unreadable(
            document_id=self._id(entry.parts),
            item=readable(entry.parts),
            reason=reason,
            link=self._link(copy, entry),
        )

    def _rules(self, copy: Copy, commit: str) -> AccessRules:
        present = copy.files.named(commit, [ACCESS_FILE, *_MISNAMED])
        if not present:
            return AccessRules((Rule(Glob.of("**"), Access.to(self._settings.readers)),))
        name = f"{ACCESS_FILE} of {spoken(self._remote)}"
        if ACCESS_FILE not in present:
            # Rules under a name that is almost right must not leave the files to other readers.
            raise AskTheOwner(f"{name}: rename {min(present)} to {ACCESS_FILE}")
        entry = next(copy.files.at(commit, [(ACCESS_FILE,)]), None)
        if entry is None:
            raise AskTheOwner(f"{name} must be a file")
        copy.bring([entry.blob])
        if (copy.objects.size(entry.blob) or 0) > _LARGEST_ACCESS_FILE:
            raise AskTheOwner(f"{name} is larger than {_LARGEST_ACCESS_FILE:,} bytes")
        return parse_access_rules(copy.objects.content(entry.blob), name)

    def _includes(self, item: Entry | Gone) -> bool:
        parts = item.parts
        if not all(self._enters(parts[:end]) for end in range(1, len(parts) + 1)):
            return False
        if self._include and not any_matches(self._include, parts):
            return False
        return not any_matches(self._exclude, parts)

    def _enters(self, parts: Parts) -> bool:
        name = parts[-1]
        hidden = name.startswith((".", "~$")) or name in _LITTER or parts == (ACCESS_FILE,)
        return not hidden and not any_covers(self._exclude, parts)

    def _id(self, parts: Parts) -> str:
        return f"{self._source}:{own_id(parts)}"

    def _link(self, copy: Copy, entry: Entry) -> str:
        return file_link(self._remote, self._hosting, copy.branch, entry.parts)

    def _fault(self) -> str | None:
        try:
            with self._reached() as mirror:
                mirror.tip(self._settings.branch)
        except (AskTheOwner, RetryLater) as error:
            return str(error)
        return None


def _stages(copy: Copy, began: Place | None) -> list[Stage]:
    """From where a run began to where the branch ends now."""
    whole = [Stage(base=None, commit=copy.commit)]
    match began:
        case Stage() if all(map(copy.has, filter(None, (began.base, began.commit)))):
            return [began, *_stages(copy, Arrived(began.commit))]
        case Arrived(commit) if copy.has(commit):
            return [] if commit == copy.commit else [Stage(base=commit, commit=copy.commit)]
        case _:
            return whole


def _between(copy: Copy, stage: Stage) -> Iterator[Entry | Gone]:
    if stage.base is None:
        return copy.files.of(stage.commit)
    return copy.files.between(stage.base, stage.commit)


def _version(entry: Entry) -> str:
    return f"{_READING}:{entry.blob}"


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


KIND = Kind(connector=GitConnector, settings=GitSettings, credential=GitCredential)
