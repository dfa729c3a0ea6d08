"""The discussions of a fake GitHub, with the published schema of its GraphQL API: a query for an unknown
field is rejected."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from graphql import ExecutionResult, GraphQLError, build_schema, graphql_sync

from tests.support.services.github_state import LONG_AGO, Comment, Discussion, Repo, format_time
from tests.support.services.serving import Reply, reply_json

Json: TypeAlias = dict[str, Any]

_SCHEMA = build_schema("""
scalar DateTime
scalar URI
interface Node { id: ID! }
interface Actor { login: String! }
type User implements Actor & Node { id: ID! login: String! }
type PageInfo { endCursor: String hasNextPage: Boolean! }
type RateLimit { remaining: Int! resetAt: DateTime! }
type Label { name: String! }
type LabelConnection { nodes: [Label] pageInfo: PageInfo! totalCount: Int! }
type DiscussionCategory { name: String! isAnswerable: Boolean! }
type DiscussionComment implements Node {
  id: ID!
  author: Actor
  body: String!
  createdAt: DateTime!
  updatedAt: DateTime!
  isAnswer: Boolean!
  replies(after: String, first: Int): DiscussionCommentConnection!
  url: URI!
}
type DiscussionCommentConnection {
  nodes: [DiscussionComment] pageInfo: PageInfo! totalCount: Int!
}
type Discussion implements Node {
  id: ID!
  number: Int!
  title: String!
  body: String!
  url: URI!
  author: Actor
  category: DiscussionCategory!
  answer: DiscussionComment
  closed: Boolean!
  createdAt: DateTime!
  updatedAt: DateTime!
  labels(after: String, first: Int): LabelConnection
  comments(after: String, first: Int): DiscussionCommentConnection!
}
type DiscussionConnection { nodes: [Discussion] pageInfo: PageInfo! totalCount: Int! }
enum DiscussionOrderField { CREATED_AT UPDATED_AT }
enum OrderDirection { ASC DESC }
input DiscussionOrder { field: DiscussionOrderField! direction: OrderDirection! }
type Repository implements Node {
  id: ID!
  discussion(number: Int!): Discussion
  discussions(after: String, first: Int, orderBy: DiscussionOrder): DiscussionConnection!
}
type Query {
  rateLimit: RateLimit
  repository(owner: String!, name: String!): Repository
  node(id: ID!): Node
}
""")


class _Broken(Exception):
    """Raised to end the request with a status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


def execute_query(repositories: Sequence[Repo], limit: Json, request: Json) -> Reply:
    """Execute a query; errors have a type and come under status 200."""
    whole = {
        "rateLimit": limit,
        "repository": lambda _, owner, name: _format_repository(repositories, f"{owner}/{name}"),
        "node": lambda _, id: _node(repositories, id),  # noqa: A006 - named by the schema
    }
    result = graphql_sync(_SCHEMA, request["query"], whole, variable_values=request["variables"])
    for error in result.errors or ():
        if isinstance(error.original_error, _Broken):
            return reply_json({"message": "Oops"}, status=error.original_error.status)
    return reply_json(_to_response(result))


def _to_response(result: ExecutionResult) -> Json:
    if not result.errors:
        return {"data": result.data}
    errors = [
        {"message": one.message, "path": one.path, **(one.extensions or {})}
        for one in result.errors
    ]
    return {"data": result.data, "errors": errors}


def _graphql_error(kind: str, message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": kind})


def _format_repository(repositories: Sequence[Repo], name: str) -> Json:
    named = [one for one in repositories if name in {one.name, one.former_name}]
    if not named:
        raise _graphql_error(
            "NOT_FOUND", f"Could not resolve to a Repository with the name '{name}'."
        )
    repo = named[0]
    return {
        "id": f"R_{repo.id}",
        "discussion": lambda _, number: _find_discussion(repo, number),
        "discussions": lambda _, **request: _discussions(repo, **request),
    }


def _find_discussion(repo: Repo, number: int) -> Json:
    if number not in repo.discussions:
        message = f"Could not resolve to a Discussion with the number of {number}."
        raise _graphql_error("NOT_FOUND", message)
    return _discussion(repo, repo.discussions[number])


def _discussions(
    repo: Repo, first: int, orderBy: Mapping[str, str], after: str | None = None
) -> Json:
    if not repo.discussions_visible:
        raise _graphql_error("FORBIDDEN", "Resource not accessible by personal access token")
    found = list(repo.discussions.values()) if repo.has_discussions else []
    by_change = orderBy["field"] == "UPDATED_AT"
    return _page(
        [_discussion(repo, one) for one in found],
        lambda one: (one["updatedAt" if by_change else "createdAt"], one["number"]),
        first,
        after,
        descending=orderBy["direction"] == "DESC",
    )


def _discussion(repo: Repo, one: Discussion) -> Json:
    comments = [_comment(repo, one, place) for place in range(len(one.comments))]
    return {
        "id": f"D_{repo.id}_{one.number}",
        "number": one.number,
        "title": one.title,
        "body": one.body,
        "url": _url(repo, one),
        "author": _actor(one.by),
        "category": {"name": one.category, "isAnswerable": one.category == "Q&A"},
        "answer": None if one.answer is None else comments[one.answer],
        "closed": one.is_closed,
        "createdAt": format_time(LONG_AGO),
        "updatedAt": format_time(one.at),
        "labels": lambda _, **request: _page_in_order(
            [{"name": each} for each in one.labels], **request
        ),
        "comments": lambda _, **request: _with_status(one, _page_in_order(comments, **request)),
    }


def _with_status(one: Discussion, page: Json) -> Json:
    """Let the nodes of a page fail with a status; their number is still returned."""

    def broken(info: object) -> None:
        del info
        raise _Broken(one.status)

    return page if one.status == 200 else {**page, "nodes": broken}


def _comment(repo: Repo, one: Discussion, place: int) -> Json:
    comment = one.comments[place]
    own = f"{repo.id}_{one.number}_{place}"
    replies = [
        _format_reply(repo, one, each, f"{own}_{number}")
        for number, each in enumerate(comment.replies)
    ]
    return {
        **_format_reply(repo, one, comment, own),
        "isAnswer": one.answer == place,
        "replies": lambda _, **request: _page_in_order(replies, **request),
    }


def _format_reply(repo: Repo, one: Discussion, comment: Comment, own: str) -> Json:
    return {
        "__typename": "DiscussionComment",
        "id": f"DC_{own}",
        "author": _actor(comment.by),
        "body": comment.body,
        "createdAt": format_time(comment.at),
        "updatedAt": format_time(comment.at),
        "isAnswer": False,
        "replies": lambda _, **request: _page_in_order([], **request),
        "url": f"{_url(repo, one)}#discussioncomment-{own}",
    }


def _node(repositories: Sequence[Repo], node_id: str) -> Json:
    repo_id, number, place, *_ = map(int, node_id.removeprefix("DC_").split("_"))
    (repo,) = [one for one in repositories if one.id == repo_id]
    return _comment(repo, repo.discussions[number], place)


def _actor(login: str | None) -> Json | None:
    return None if login is None else {"__typename": "User", "login": login}


def _url(repo: Repo, one: Discussion) -> str:
    return f"https://github.test/{repo.name}/discussions/{one.number}"


def _page_in_order(found: Sequence[Json], first: int, after: str | None = None) -> Json:
    placed = [{**one, "place": place} for place, one in enumerate(found)]
    return _page(placed, lambda one: one["place"], first, after)


def _page(
    found: Sequence[Json],
    place: Callable[[Json], Any],
    first: int,
    after: str | None,
    *,
    descending: bool = False,
) -> Json:
    """Page by cursors that have the sort key of the last node, whatever is added or deleted before it."""
    if not 1 <= first <= 100:
        raise _graphql_error("EXCESSIVE_PAGINATION", f"Requesting {first} records exceeds 100.")
    ordered = sorted(found, key=place, reverse=descending)
    if after is not None:
        last = _decode_cursor(after)
        ordered = [
            one for one in ordered if (place(one) < last if descending else place(one) > last)
        ]
    shown = ordered[:first]
    return {
        "totalCount": len(found),
        "nodes": shown,
        "pageInfo": {
            "hasNextPage": len(ordered) > first,
            "endCursor": _encode_cursor(place(shown[-1])) if shown else None,
        },
    }


def _encode_cursor(place: Any) -> str:
    return base64.b64encode(json.dumps(place).encode()).decode()


def _decode_cursor(cursor: str) -> Any:
    try:
        place = json.loads(base64.b64decode(cursor, validate=True))
    except ValueError as error:
        message = f"`{cursor}` does not appear to be a valid cursor."
        raise _graphql_error("INVALID_CURSOR_ARGUMENTS", message) from error
    return tuple(place) if isinstance(place, list) else place
