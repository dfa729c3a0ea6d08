"""GitHub as docs.github.com describes it: issues, pull requests, people and their rights by the REST API,
discussions by GraphQL (see `tests.support.services.github_graphql`), wikis and files by git."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

from tests.support.services.git_http import GitHttp
from tests.support.services.github_graphql import answered
from tests.support.services.github_state import LONG_AGO, Issue, Repo, Said, stamped
from tests.support.services.serving import Asked, Reply, redirect, reply_json
from tests.support.services.troubled import Troubled

TOKEN = "ghp_right"

Json: TypeAlias = dict[str, Any]


class GitHub(Troubled):
    """A service with state: `running(GitHub(...))`."""

    def __init__(
        self,
        *repositories: Repo,
        members: Mapping[str, Sequence[str]] | None = None,
        folder: Path = Path("/nowhere"),
    ) -> None:
        """
        Args:
            members: the logins of each organisation.
            folder: what git serves: OWNER/NAME.git and OWNER/NAME.wiki.git.
        """
        super().__init__()
        self.repositories = list(repositories)
        self.members = dict(members or {})
        self.profiles: dict[str, str | None] = {}
        """The e-mail address that each person shows."""
        self.me = "quarry-bot"
        self.points = 5000
        """That are left for GraphQL."""
        self._git = GitHttp(folder, token=TOKEN)
        self.pages: Callable[[Asked, int, int], tuple[int, int]] = counted

    def _headed(self, asked: Asked, reply: Reply) -> Reply:
        """With what every answer says, and short where the client has it already."""
        headers = {
            "X-GitHub-Api-Version-Selected": "2022-11-28",
            "X-RateLimit-Limit": "5000",
            "X-RateLimit-Remaining": "4990",
            "X-RateLimit-Reset": str(int(self.now.timestamp()) + 3000),
            **reply.headers,
        }
        if reply.status == 200 and isinstance(reply.body, bytes):
            headers["ETag"] = f'W/"{hashlib.sha256(reply.body).hexdigest()}"'
            if asked.headers.get("if-none-match") == headers["ETag"]:
                reply = Reply(status=304)
        return super()._headed(asked, replace(reply, headers=headers))

    def _answer(self, asked: Asked) -> Reply:
        if re.match(r"/[^/]+/[^/]+\.git/", asked.path):
            return self._git(asked)
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return bad_credentials()
        for pattern, answer in (
            (r"(?:/api)?/graphql", self._graphql),
            (r"/user", self._myself),
            (r"/user/repos", self._mine),
            (r"/users/([^/]+)", self._profile),
            (r"/(?:users|orgs)/([^/]+)/repos", self._owned),
            (r"/orgs/([^/]+)/members", self._members),
        ):
            if match := re.fullmatch(pattern, asked.path):
                return answer(asked, *match.groups())
        return self._of_repository(asked)

    def _of_repository(self, asked: Asked) -> Reply:
        if match := re.fullmatch(r"/repos/([^/]+/[^/]+)(/.*)?", asked.path):
            former = [one for one in self.repositories if one.formerly == match[1]]
            if former:
                return redirect(f"/repositories/{former[0].id}{match[2] or ''}{_query(asked)}", 301)
            named = [one for one in self.repositories if one.name == match[1]]
        elif match := re.fullmatch(r"/repositories/(\d+)(/.*)?", asked.path):
            named = [one for one in self.repositories if str(one.id) == match[1]]
        else:
            return not_found()
        return self._inside(asked, named[0], match[2] or "") if named else not_found()

    def _inside(self, asked: Asked, repo: Repo, rest: str) -> Reply:
        match rest.split("/")[1:]:
            case []:
                return reply_json(_repository(repo))
            case ["collaborators"]:
                return self._collaborators(asked, repo)
            case ["issues"]:
                return self._issues(asked, repo)
            case ["pulls"]:
                pulls = [one for one in repo.issues.values() if one.is_pull]
                return self._paged(asked, repo, [_listed_pull(repo, one) for one in pulls])
            case ["issues" | "pulls" as kind, "comments"]:
                return self._comments(asked, repo, kind)
            case ["issues" | "pulls" as kind, number]:
                return self._issue(repo, kind, int(number))
            case ["issues" | "pulls" as kind, number, what] if int(number) in repo.issues:
                return self._said(asked, repo, repo.issues[int(number)], f"{kind}/{what}")
            case _:
                return not_found()

    def _graphql(self, asked: Asked) -> Reply:
        self.points -= 1
        reset = self.now + timedelta(minutes=50)
        if self.points < 0:
            return out_of_points(reset)
        limit = {"remaining": self.points, "resetAt": stamped(reset)}
        return answered(self.repositories, limit, asked.json())

    def _myself(self, asked: Asked) -> Reply:
        del asked
        return reply_json({"login": self.me, "type": "User"})

    def _mine(self, asked: Asked) -> Reply:
        return self._owned(asked, self.me)

    def _profile(self, asked: Asked, login: str) -> Reply:
        del asked
        if login in self.members:
            return reply_json({"login": login, "type": "Organization", "email": None})
        if login not in self.profiles and login != self.me:
            return not_found()
        return reply_json({"login": login, "type": "User", "email": self.profiles.get(login)})

    def _owned(self, asked: Asked, owner: str) -> Reply:
        owned = [one for one in self.repositories if one.name.startswith(f"{owner}/")]
        return self._paged(asked, None, [_repository(one) for one in owned])

    def _members(self, asked: Asked, organisation: str) -> Reply:
        return self._paged(asked, None, [_person(one) for one in self.members[organisation]])

    def _collaborators(self, asked: Asked, repo: Repo) -> Reply:
        if not repo.may_see_collaborators:
            return refused("Must have push access to view repository collaborators.")
        return self._paged(asked, repo, [_person(one) for one in repo.collaborators])

    def _issue(self, repo: Repo, kind: str, number: int) -> Reply:
        issue = repo.issues.get(number)
        if kind == "issues" and not repo.has_issues:
            return gone("Issues are disabled for this repo")
        if issue is None or (kind == "pulls" and not issue.is_pull):
            return gone("This issue was deleted") if kind == "issues" else not_found()
        told = _listed_pull(repo, issue) | {"comments": len(issue.comments)}
        return reply_json(told if kind == "pulls" else _issue(repo, issue))

    def _said(self, asked: Asked, repo: Repo, issue: Issue, what: str) -> Reply:
        if issue.status != 200:
            return reply_json({"message": "Something went wrong"}, status=issue.status)
        match what:
            case "issues/comments":
                found = issue.comments
            case "pulls/reviews" if issue.is_pull:
                found = issue.reviews
            case "pulls/comments" if issue.is_pull:
                found = issue.remarks
            case _:
                return not_found()
        return self._paged(asked, repo, [_saying(repo, issue, one) for one in found])

    def _issues(self, asked: Asked, repo: Repo) -> Reply:
        """In the order of their changes, those of one second in the order of their numbers."""
        if not repo.has_issues:
            return gone("Issues are disabled for this repo")
        since = asked.param("since")
        if repo.crowd:
            return self._crowd(asked, repo, since)
        found = [one for one in repo.issues.values() if not since or stamped(one.at) >= since]
        found.sort(key=lambda one: (one.at, one.number))
        reply = self._paged(asked, repo, [_issue(repo, one) for one in found])
        self._page_passed()
        return reply

    def _comments(self, asked: Asked, repo: Repo, kind: str) -> Reply:
        """Those on all items, in the order of their changes."""
        since = asked.param("since")
        found = [
            _saying(repo, issue, said)
            for issue in repo.issues.values()
            for said in (issue.comments if kind == "issues" else issue.remarks)
        ]
        lost = [Issue(number=number, title="", at=at) for number, at in repo.lost_comments]
        found += [_saying(repo, one, Said(by="bob", body="x", at=one.at)) for one in lost]
        found = [one for one in found if one["updated_at"] >= since]
        return self._paged(asked, repo, sorted(found, key=lambda one: str(one["updated_at"])))

    def _crowd(self, asked: Asked, repo: Repo, since: str) -> Reply:
        first = 0
        if since:
            first = max(0, int((datetime.fromisoformat(since) - LONG_AGO).total_seconds()))
        start, end = counted(asked, 100, repo.crowd)
        shown = [
            _issue(repo, Issue(number=one + 1, title="C", at=LONG_AGO + timedelta(seconds=one)))
            for one in range(first + start, min(first + end, repo.crowd))
        ]
        return reply_json(shown, headers=_link(asked, repo, more=first + end < repo.crowd))

    def _paged(self, asked: Asked, repo: Repo | None, found: Sequence[Json]) -> Reply:
        size = min(int(asked.param("per_page", "30")), 100)
        start, end = self.pages(asked, size, len(found))
        return reply_json(list(found[start:end]), headers=_link(asked, repo, more=end < len(found)))


def counted(asked: Asked, size: int, total: int) -> tuple[int, int]:
    """Where the page begins and ends."""
    del total
    page = int(asked.param("page", "1"))
    return (page - 1) * size, page * size


def bad_credentials() -> Reply:
    return reply_json({"message": "Bad credentials", "status": "401"}, status=401)


def not_found() -> Reply:
    return reply_json({"message": "Not Found", "status": "404"}, status=404)


def refused(message: str, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return reply_json({"message": message, "status": "403"}, status=403, headers=named)


def gone(message: str) -> Reply:
    return reply_json({"message": message}, status=410)


def spent(reset: datetime) -> Reply:
    """The primary rate limit."""
    return refused(
        "API rate limit exceeded for user ID 1.",
        X_RateLimit_Remaining="0",
        X_RateLimit_Reset=str(int(reset.timestamp())),
    )


def out_of_points(reset: datetime) -> Reply:
    """The primary rate limit of GraphQL."""
    message = "API rate limit exceeded for user ID 1."
    return reply_json(
        {"errors": [{"type": "RATE_LIMITED", "message": message}]},
        headers={
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(int(reset.timestamp())),
            "X-RateLimit-Resource": "graphql",
        },
    )


def abused(seconds: int) -> Reply:
    """A secondary rate limit."""
    return refused("You have exceeded a secondary rate limit.", Retry_After=str(seconds))


def _query(asked: Asked) -> str:
    return f"?{urlencode(asked.query, doseq=True)}" if asked.query else ""


def _link(asked: Asked, repo: Repo | None, *, more: bool) -> Mapping[str, str]:
    """By the number of the repository, as GitHub writes its links."""
    if not more:
        return {}
    path = asked.path
    if repo is not None:
        path = re.sub(r"^/repos/[^/]+/[^/]+", f"/repositories/{repo.id}", path)
    page = str(int(asked.param("page", "1")) + 1)
    query = urlencode({**asked.query, "page": [page]}, doseq=True)
    return {"Link": f'<http://{asked.headers["host"]}{path}?{query}>; rel="next"'}


def _person(login: str) -> Json:
    return {"login": login, "type": "User", "permissions": {"pull": True, "push": False}}


def _repository(repo: Repo) -> Json:
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
    told = {
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "user": None if issue.by is None else {"login": issue.by},
        "state": "open",
        "labels": [{"name": label} for label in issue.labels],
        "comments": len(issue.comments),
        "html_url": f"https://github.test/{repo.name}/{kind}/{issue.number}",
        "created_at": stamped(LONG_AGO),
        "updated_at": stamped(issue.at),
    }
    return told | ({"pull_request": {"merged_at": None}} if issue.is_pull else {})


def _listed_pull(repo: Repo, issue: Issue) -> Json:
    left_out = {"comments", "pull_request"}
    told = {name: value for name, value in _issue(repo, issue).items() if name not in left_out}
    return told | {"head": {"ref": "change"}}


def _saying(repo: Repo, issue: Issue, said: Said) -> Json:
    anchor = hashlib.sha256(json.dumps([said.by, said.body]).encode()).hexdigest()[:6]
    told: Json = {
        "user": {"login": said.by},
        "body": said.body,
        "html_url": f"https://github.test/{repo.name}/issues/{issue.number}#said-{anchor}",
    }
    if said.state:
        return told | {"state": said.state, "submitted_at": stamped(said.at)}
    told |= {"created_at": stamped(said.at), "updated_at": stamped(said.at)}
    about = f"https://api.github.test/repos/{repo.name}"
    if said.path:
        return told | {"path": said.path, "pull_request_url": f"{about}/pulls/{issue.number}"}
    return told | {"issue_url": f"{about}/issues/{issue.number}"}
