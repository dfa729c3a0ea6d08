"""The issues and pull requests of a repository, in the order in which they changed, none left out.

GitHub's list is paged by number, so an item that changes or is deleted meanwhile shifts all that follow.
Therefore no second page is requested: after each page the list is requested again from the time at which
that page ended. Only among items of one second the pages are followed; as a position is a time, the pages
of one second have to fit into one hour's requests (of 5,000 requests: 500,000 items).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from connectors.connector import (
    Change,
    Deletion,
    DocumentListing,
    KnownVersions,
    Unreadable,
    format_timestamp,
    is_timestamp,
)
from connectors.document import Document
from connectors.http_client.api_client import check_objects, find_text, get_time, required
from connectors.http_client.response import Response
from connectors.sources.github.client import GitHubClient
from connectors.sources.github.content_reader import (
    PartCompleted,
    PartPosition,
    PartStart,
    RepositoryContext,
    read_or_report,
)
from connectors.sources.github.issue_document import (
    Issue,
    format_issue_name,
    get_issue_version,
    get_last_comment_time,
    read_issue,
)
from connectors.sources.github.repositories import Repository
from connectors.sources.github.settings import Content

_SECOND = timedelta(seconds=1)


class RepositoryGoneError(Exception):
    """The repository does not exist any more."""


@dataclass(frozen=True, slots=True)
class IssuePage:
    issues: Sequence[Issue]
    resume_since: str
    """The time from which to request the following page; empty if it is not known."""


@dataclass(frozen=True, slots=True)
class IssuesPart:
    """Implements `connectors.sources.github.content_reader.Part`. A document is named by its number."""

    contents: tuple[Content, ...]
    name: str = "issues"

    def owns(self, name: str) -> bool:
        return re.fullmatch(r"\d{1,10}", name) is not None

    def changes(
        self, context: RepositoryContext, start: PartStart, known: KnownVersions
    ) -> Iterator[Change | PartPosition | PartCompleted]:
        """Yield what changed, with a position after each page of 100."""
        previous: Mapping[int, str] = {}
        since = start.position if is_timestamp(start.position) else start.since
        for page in self._iterate_pages(context, since):
            fresh = [one for one in page.issues if previous.get(one.number) != one.version]
            yield from self._compare(context, fresh, known)
            previous = {one.number: one.version for one in page.issues}
            yield PartPosition(page.resume_since)
        if start.since:
            yield from self._read_commented(context, start.since, known)
        yield PartCompleted()

    def refetch(self, context: RepositoryContext, document_ids: Sequence[str]) -> Iterator[Change]:
        for document_id in document_ids:
            yield self._refetch_issue(context, int(context.to_name(document_id)))

    def listing(
        self, context: RepositoryContext, position: str
    ) -> Iterator[DocumentListing | PartPosition]:
        """Yield each issue once, although one that changes meanwhile is listed again."""
        # A bit for each number: a repository may have millions.
        seen = bytearray()
        since = position if is_timestamp(position) else ""
        for page in self._iterate_pages(context, since):
            for issue in page.issues:
                index, bit = issue.number >> 3, 1 << (issue.number & 7)
                seen.extend(bytes(max(0, index + 1 - len(seen))))
                if not seen[index] & bit:
                    seen[index] |= bit
                    document_id = context.to_document_id(str(issue.number))
                    yield DocumentListing(document_id, context.access)
            yield PartPosition(page.resume_since)

    def probe(self, context: RepositoryContext) -> None:
        next(self._iterate_pages(context, ""), None)

    def _read_commented(
        self, context: RepositoryContext, since: str, known: KnownVersions
    ) -> Iterator[Change]:
        """Read issues with comments newer than in the known documents.

        An edited comment does not always count as a change of its issue.
        """
        repository = context.repository
        pulls = ["pulls"] if "pull requests" in self.contents else []
        for kind in ["issues", *pulls]:
            with required(f"the comments of {repository.name}"):
                for latest in iterate_commented(context.client, repository, kind, since):
                    numbers = {context.to_document_id(str(number)): number for number in latest}
                    for document_id, version in (known(list(numbers)) if numbers else {}).items():
                        number = numbers[document_id]
                        if get_last_comment_time(version) < latest[number]:
                            yield self._refetch_issue(context, number)

    def _iterate_pages(self, context: RepositoryContext, since: str) -> Iterator[IssuePage]:
        """Yield the issues that the settings select; none if the repository was deleted meanwhile."""
        what = f"the issues of {context.repository.name}"
        with required(what):
            try:
                for page in iterate_changed_issues(context.client, context.repository, since):
                    selected = list(filter(self._is_selected, page.issues))
                    yield IssuePage(selected, page.resume_since)
            except RepositoryGoneError:
                context.check_repository_gone(what)

    def _is_selected(self, issue: Issue) -> bool:
        return ("pull requests" if issue.is_pull_request else "issues") in self.contents

    def _compare(
        self, context: RepositoryContext, issues: Sequence[Issue], known: KnownVersions
    ) -> Iterator[Change]:
        """Read those issues whose known version differs."""
        ids = {one.number: context.to_document_id(str(one.number)) for one in issues}
        versions = known(list(ids.values())) if ids else {}
        for issue in issues:
            if get_issue_version(versions.get(ids[issue.number], "")) != issue.version:
                yield self._read(context, issue)

    def _read(self, context: RepositoryContext, issue: Issue) -> Document | Unreadable:
        unreadable = Unreadable(
            document_id=context.to_document_id(str(issue.number)),
            item=format_issue_name(context, issue),
            reason="",
            link=issue.link,
        )
        return read_or_report(lambda: read_issue(context, issue), unreadable)

    def _refetch_issue(self, context: RepositoryContext, number: int) -> Change:
        client, repository = context.client, context.repository
        with required(f"{repository.name}#{number}"):
            response = client.get(f"{repository.path}/issues/{number}")
            if response.status == 410:
                response = client.get(f"{repository.path}/pulls/{number}")
            issue = _parse_issue(response, repository, number)
        if issue is None or not self._is_selected(issue):
            return Deletion(context.to_document_id(str(number)))
        return self._read(context, issue)


def iterate_changed_issues(
    client: GitHubClient, repository: Repository, since: str
) -> Iterator[IssuePage]:
    """Yield what changed since a time, the oldest change first; everything if `since` is empty.

    An issue that changes meanwhile comes again; one may come twice, unchanged, on two consecutive pages.

    Raises:
        RepositoryGoneError: the repository does not exist.
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    pages = _iterate_by_update_time(client, f"{repository.path}/issues", {"state": "all"}, since)
    for response, resume_since in pages:
        if response.not_found:
            yield from _iterate_pull_requests(client, repository, response)
        else:
            yield IssuePage(_parse_issues(response), resume_since)


def iterate_commented(
    client: GitHubClient, repository: Repository, kind: str, since: str
) -> Iterator[dict[int, str]]:
    """Yield the issues with comments created or edited since a time, page by page.

    Args:
        kind: `issues` or, for comments on lines of a change, `pulls`.

    Yields:
        The numbers with the time of the latest comment.

    Raises:
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    path = f"{repository.path}/{kind}/comments"
    for response, _ in _iterate_by_update_time(client, path, {}, since):
        latest: dict[int, str] = {}
        for raw in [] if response.not_found else check_objects(response.json_list()):
            issue_url = find_text(raw, "issue_url") or find_text(raw, "pull_request_url")
            number = issue_url.rpartition("/")[2]
            if re.fullmatch("[0-9]{1,10}", number):
                latest[int(number)] = format_timestamp(get_time(raw, "updated_at"))
        yield latest


def _iterate_by_update_time(
    client: GitHubClient, path: str, params: dict[str, str], since: str
) -> Iterator[tuple[Response, str]]:
    """Yield the pages of a list with the time to resume from; one that is not found is the last."""
    params = {**params, "sort": "updated", "direction": "asc"}
    while True:
        window = {**params, "since": since} if since else params
        for page in client.iterate_pages(path, window):
            resume_since = since
            if not page.response.not_found and (found := check_objects(page.response.json_list())):
                last = get_time(found[-1], "updated_at")
                resume_since = max(since, format_timestamp(last - _SECOND))
            yield page.response, resume_since
            if page.next is None:
                return
            if resume_since > since:
                since = resume_since
                break


def _iterate_pull_requests(
    client: GitHubClient, repository: Repository, response: Response
) -> Iterator[IssuePage]:
    """Yield the pull requests of a repository whose issues are disabled (410).

    That list has no `since`; but as nobody can delete a pull request, its pages in the order of creation
    do not shift.
    """
    if response.status != 410:
        raise RepositoryGoneError(repository.name)
    params = {"state": "all", "sort": "created", "direction": "asc"}
    for page in client.iterate_pages(f"{repository.path}/pulls", params):
        if page.response.not_found:
            raise RepositoryGoneError(repository.name)
        yield IssuePage(_parse_issues(page.response), "")


def _parse_issues(response: Response) -> list[Issue]:
    return [Issue.parse(one) for one in check_objects(response.json_list())]


def _parse_issue(response: Response, repository: Repository, number: int) -> Issue | None:
    """Return the issue; None if it was deleted, or transferred to another repository (a redirect)."""
    if response.not_found:
        return None
    issue = Issue.parse(response.json_object())
    is_here = issue.link.lower().startswith(f"{repository.link}/".lower())
    return issue if issue.number == number and is_here else None
