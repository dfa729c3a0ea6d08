"""A fake GitHub after docs.github.com: issues, pull requests, users and permissions with the REST API,
discussions with GraphQL (see `tests.support.services.github_graphql`), wikis and files with git."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

from tests.support.services.faulty_service import FaultyService
from tests.support.services.git_http import GitHttp
from tests.support.services.github_graphql import execute_query
from tests.support.services.github_state import LONG_AGO, Comment, Issue, Repo, format_time
from tests.support.services.serving import ReceivedRequest, Reply, redirect, reply_json

TOKEN = "ghp_right"

Json: TypeAlias = dict[str, Any]


class GitHub(FaultyService):
    """A service with state: `serve(GitHub(...))`."""

    def __init__(
        self,
        *repositories: Repo,
        members: Mapping[str, Sequence[str]] | None = None,
        folder: Path = Path("/nowhere"),
    ) -> None:
        """
        Args:
            members: the logins of each organization.
            folder: has the repositories for git: OWNER/NAME.git and OWNER/NAME.wiki.git.
        """
        super().__init__()
        self.repositories = list(repositories)
        self.members = dict(members or {})
        self.profiles: dict[str, str | None] = {}
        """The public e-mail address of each user."""
        self.me = "quarry-bot"
        self.points = 5000
        """Points left for GraphQL."""
        self._git = GitHttp(folder, token=TOKEN)
        self.pages: Callable[[ReceivedRequest, int, int], tuple[int, int]] = slice_by_page

    def _add_headers(self, request: ReceivedRequest, reply: Reply) -> Reply:
        """Add the headers of every reply; reply 304 if the client has the content already."""
        headers = {
            "X-GitHub-Api-Version-Selected": "2022-11-28",
            "X-RateLimit-Limit": "5000",
            "X-RateLimit-Remaining": "4990",
            "X-RateLimit-Reset": str(int(self.now.timestamp()) + 3000),
            **reply.headers,
        }
        if reply.status == 200 and isinstance(reply.body, bytes):
            headers["ETag"] = f'W/"{hashlib.sha256(reply.body).hexdigest()}"'
            if request.headers.get("if-none-match") == headers["ETag"]:
                reply = Reply(status=304)
        return super()._add_headers(request, replace(reply, headers=headers))

    def _answer(self, request: ReceivedRequest) -> Reply:
        if re.match(r"/[^/]+/[^/]+\.git/", request.path):
            return self._git(request)
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return bad_credentials()
        for pattern, answer in (
            (r"(?:/api)?/graphql", self._graphql),
            (r"/user", self._get_user),
            (r"/user/repos", self._list_own_repositories),
            (r"/users/([^/]+)", self._get_profile),
            (r"/(?:users|orgs)/([^/]+)/repos", self._list_repositories),
            (r"/orgs/([^/]+)/members", self._members),
        ):
            if match := re.fullmatch(pattern, request.path):
                return answer(request, *match.groups())
        return self._answer_repository(request)

    def _answer_repository(self, request: ReceivedRequest) -> Reply:
        if match := re.fullmatch(r"/repos/([^/]+/[^/]+)(/.*)?", request.path):
            former = [one for one in self.repositories if one.former_name == match[1]]
            if former:
                return redirect(
                    f"/repositories/{former[0].id}{match[2] or ''}{_query(request)}", 301
                )
            named = [one for one in self.repositories if one.name == match[1]]
        elif match := re.fullmatch(r"/repositories/(\d+)(/.*)?", request.path):
            named = [one for one in self.repositories if str(one.id) == match[1]]
        else:
            return not_found()
        return self._answer_path(request, named[0], match[2] or "") if named else not_found()

    def _answer_path(self, request: ReceivedRequest, repo: Repo, rest: str) -> Reply:
        match rest.split("/")[1:]:
            case []:
                return reply_json(_format_repository(repo))
            case ["collaborators"]:
                return self._collaborators(request, repo)
            case ["issues"]:
                return self._issues(request, repo)
            case ["pulls"]:
                pulls = [one for one in repo.issues.values() if one.is_pull]
                return self._reply_page(request, repo, [_format_pull(repo, one) for one in pulls])
            case ["issues" | "pulls" as kind, "comments"]:
                return self._comments(request, repo, kind)
            case ["issues" | "pulls" as kind, number]:
                return self._issue(repo, kind, int(number))
            case ["issues" | "pulls" as kind, number, what] if int(number) in repo.issues:
                return self._list_comments(
                    request, repo, repo.issues[int(number)], f"{kind}/{what}"
                )
            case _:
                return not_found()

    def _graphql(self, request: ReceivedRequest) -> Reply:
        self.points -= 1
        reset = self.now + timedelta(minutes=50)
        if self.points < 0:
            return graphql_limit(reset)
        limit = {"remaining": self.points, "resetAt": format_time(reset)}
        return execute_query(self.repositories, limit, request.json())

    def _get_user(self, request: ReceivedRequest) -> Reply:
        del request
        return reply_json({"login": self.me, "type": "User"})

    def _list_own_repositories(self, request: ReceivedRequest) -> Reply:
        return self._list_repositories(request, self.me)

    def _get_profile(self, request: ReceivedRequest, login: str) -> Reply:
        del request
        if login in self.members:
            return reply_json({"login": login, "type": "Organization", "email": None})
        if login not in self.profiles and login != self.me:
            return not_found()
        return reply_json({"login": login, "type": "User", "email": self.profiles.get(login)})

    def _list_repositories(self, request: ReceivedRequest, owner: str) -> Reply:
        owned = [one for one in self.repositories if one.name.startswith(f"{owner}/")]
        return self._reply_page(request, None, [_format_repository(one) for one in owned])

    def _members(self, request: ReceivedRequest, organization: str) -> Reply:
        return self._reply_page(
            request, None, [_format_person(one) for one in self.members[organization]]
        )

    def _collaborators(self, request: ReceivedRequest, repo: Repo) -> Reply:
        if not repo.collaborators_visible:
            return denied("Must have push access to view repository collaborators.")
        return self._reply_page(request, repo, [_format_person(one) for one in repo.collaborators])

    def _issue(self, repo: Repo, kind: str, number: int) -> Reply:
        issue = repo.issues.get(number)
        if kind == "issues" and not repo.has_issues:
            return gone("Issues are disabled for this repo")
        if issue is None or (kind == "pulls" and not issue.is_pull):
            return gone("This issue was deleted") if kind == "issues" else not_found()
        raw = _format_pull(repo, issue) | {"comments": len(issue.comments)}
        return reply_json(raw if kind == "pulls" else _issue(repo, issue))

    def _list_comments(
        self, request: ReceivedRequest, repo: Repo, issue: Issue, what: str
    ) -> Reply:
        if issue.status != 200:
            return reply_json({"message": "Something went wrong"}, status=issue.status)
        match what:
            case "issues/comments":
                found = issue.comments
            case "pulls/reviews" if issue.is_pull:
                found = issue.reviews
            case "pulls/comments" if issue.is_pull:
                found = issue.line_comments
            case _:
                return not_found()
        return self._reply_page(request, repo, [_format_comment(repo, issue, one) for one in found])

    def _issues(self, request: ReceivedRequest, repo: Repo) -> Reply:
        """Order issues by the time of their change, those of one second by number."""
        if not repo.has_issues:
            return gone("Issues are disabled for this repo")
        since = request.param("since")
        if repo.crowd:
            return self._list_crowd(request, repo, since)
        found = [one for one in repo.issues.values() if not since or format_time(one.at) >= since]
        found.sort(key=lambda one: (one.at, one.number))
        reply = self._reply_page(request, repo, [_issue(repo, one) for one in found])
        self._page_passed()
        return reply

    def _comments(self, request: ReceivedRequest, repo: Repo, kind: str) -> Reply:
        """List the comments on all issues by the time of their change."""
        since = request.param("since")
        found = [
            _format_comment(repo, issue, comment)
            for issue in repo.issues.values()
            for comment in (issue.comments if kind == "issues" else issue.line_comments)
        ]
        lost = [Issue(number=number, title="", at=at) for number, at in repo.orphaned_comments]
        found += [
            _format_comment(repo, one, Comment(by="bob", body="x", at=one.at)) for one in lost
        ]
        found = [one for one in found if one["updated_at"] >= since]
        return self._reply_page(
            request, repo, sorted(found, key=lambda one: str(one["updated_at"]))
        )

    def _list_crowd(self, request: ReceivedRequest, repo: Repo, since: str) -> Reply:
        first = 0
        if since:
            first = max(0, int((datetime.fromisoformat(since) - LONG_AGO).total_seconds()))
        start, end = slice_by_page(request, 100, repo.crowd)
        shown = [
            _issue(repo, Issue(number=one + 1, title="C", at=LONG_AGO + timedelta(seconds=one)))
            for one in range(first + start, min(first + end, repo.crowd))
        ]
        return reply_json(shown, headers=_link(request, repo, more=first + end < repo.crowd))

    def _reply_page(
        self, request: ReceivedRequest, repo: Repo | None, found: Sequence[Json]
    ) -> Reply:
        size = min(int(request.param("per_page", "30")), 100)
        start, end = self.pages(request, size, len(found))
        return reply_json(
            list(found[start:end]), headers=_link(request, repo, more=end < len(found))
        )


def slice_by_page(request: ReceivedRequest, size: int, total: int) -> tuple[int, int]:
    """Return the start and the end of a page by its number."""
    del total
    page = int(request.param("page", "1"))
    return (page - 1) * size, page * size


def bad_credentials() -> Reply:
    return reply_json({"message": "Bad credentials", "status": "401"}, status=401)


def not_found() -> Reply:
    return reply_json({"message": "Not Found", "status": "404"}, status=404)


def denied(message: str, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return reply_json({"message": message, "status": "403"}, status=403, headers=named)


def gone(message: str) -> Reply:
    return reply_json({"message": message}, status=410)


def primary_limit(reset: datetime) -> Reply:
    """Return the reply of the primary rate limit."""
    return denied(
        "API rate limit exceeded for user ID 1.",
        X_RateLimit_Remaining="0",
        X_RateLimit_Reset=str(int(reset.timestamp())),
    )


def graphql_limit(reset: datetime) -> Reply:
    """Return the reply of the primary rate limit of GraphQL."""
    message = "API rate limit exceeded for user ID 1."
    return reply_json(
        {"errors": [{"type": "RATE_LIMITED", "message": message}]},
        headers={
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(int(reset.timestamp())),
            "X-RateLimit-Resource": "graphql",
        },
    )


def secondary_limit(seconds: int) -> Reply:
    """Return the reply of a secondary rate limit."""
    return denied("You have exceeded a secondary rate limit.", Retry_After=str(seconds))


def _query(request: ReceivedRequest) -> str:
    return f"?{urlencode(request.query, doseq=True)}" if request.query else ""


def _link(request: ReceivedRequest, repo: Repo | None, *, more: bool) -> Mapping[str, str]:
    """Return the Link header with the id of the repository, as GitHub writes it."""
    if not more:
        return {}
    path = request.path
    if repo is not None:
        path = re.sub(r"^/repos/[^/]+/[^/]+", f"/repositories/{repo.id}", path)
    page = str(int(request.param("page", "1")) + 1)
    query = urlencode({**request.query, "page": [page]}, doseq=True)
    return {"Link": f'<http://{request.headers["host"]}{path}?{query}>; rel="next"'}


def _format_person(login: str) -> Json:
    return {"login": login, "type": "User", "permissions": {"pull": True, "push": False}}


def _format_repository(repo: Repo) -> Json:
    return {
        "id": repo.id,
        "full_name": repo.name,
        "html_url": f"https://github.test/{repo.name}",
        "private": repo.visibility != "public",
        "visibility": repo.visibility,
        "has_issues": repo.has_issues,
        "has_discussions": repo.has_discussions,
        "has_wiki": repo.has_wiki,
    }


def _issue(repo: Repo, issue: Issue) -> Json:
    kind = "pull" if issue.is_pull else "issues"
    raw = {
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "user": None if issue.by is None else {"login": issue.by},
        "state": "open",
        "labels": [{"name": label} for label in issue.labels],
        "comments": len(issue.comments),
        "html_url": f"https://github.test/{repo.name}/{kind}/{issue.number}",
        "created_at": format_time(LONG_AGO),
        "updated_at": format_time(issue.at),
    }
    return raw | ({"pull_request": {"merged_at": None}} if issue.is_pull else {})


def _format_pull(repo: Repo, issue: Issue) -> Json:
    left_out = {"comments", "pull_request"}
    raw = {name: value for name, value in _issue(repo, issue).items() if name not in left_out}
    return raw | {"head": {"ref": "change"}}


def _format_comment(repo: Repo, issue: Issue, comment: Comment) -> Json:
    anchor = hashlib.sha256(json.dumps([comment.by, comment.body]).encode()).hexdigest()[:6]
    raw: Json = {
        "user": {"login": comment.by},
        "body": comment.body,
        "html_url": f"https://github.test/{repo.name}/issues/{issue.number}#said-{anchor}",
    }
    if comment.state:
        return raw | {"state": comment.state, "submitted_at": format_time(comment.at)}
    raw |= {"created_at": format_time(comment.at), "updated_at": format_time(comment.at)}
    about = f"https://api.github.test/repos/{repo.name}"
    if comment.path:
        return raw | {"path": comment.path, "pull_request_url": f"{about}/pulls/{issue.number}"}
    return raw | {"issue_url": f"{about}/issues/{issue.number}"}
