"""Every error of the product has a base by what the caller can do, a status and an exit code, or a reason for none."""

import ast
import builtins
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypeGuard

from backend.api.problem_details import STATUSES
from backend.cli.command_line import EXIT_CODES
from connectors.errors import (
    ActionRequiredError,
    HandledError,
    QuarryError,
    TemporarilyUnavailableError,
)
from indexing.runtime.deadline import DeadlineExceededError

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("backend", "connectors", "indexing")
ABSTRACT = {"QuarryError", "ActionRequiredError", "HandledError", "NotAllowedError"}
"""Only their subclasses are raised."""

WITHOUT_STATUS: Mapping[str, str] = {
    "backend.access.oauth.authorization.RefusedRequestError": "the page of the authorization answers with it, or sends the browser back",
    "backend.access.oauth.errors.OAuthError": "oauth_responses has the statuses of RFC 6749",
    "backend.access.sign_in_limits.TooManyFailuresError": "the sign-in turns it into its own sentence",
    "backend.api.problem_details.Problem": "it holds its status itself: what HTTP alone knows, such as who has signed in",
    "backend.chat.llm.stream_parser.ReportedError": "the client of the model makes a ModelError of it",
    "backend.chat.model_turn.TurnFailedError": "the turn ends with the TurnFailed that it holds",
    "backend.chat.rights_watch.AskerGoneError": "answer_events.describe_failure says it as 401",
    "backend.chat.rights_watch.DocumentWithdrawnError": "answer_events.describe_failure says it as 403",
    "backend.programs.mcp.asker.ToolError": "the MCP server answers the call with its text",
    "backend.sync.run_lease.StoppedError": "the thread of a worker ends",
    "backend.web_search.browser.browser_process.BrowserEndedError": "another browser is started, or the page is not rendered",
    "backend.web_search.browser.page_traffic.TrafficEndedError": "the proxy closes the connection",
    "backend.web_search.browser.proxy_requests.RefusedRequestError": "the proxy answers the browser with the status that it holds",
    "connectors.errors.QuarryError": "only its subclasses are raised",
    "connectors.files.walker.FileChangedError": "an OSError: the file is reported as unreadable",
    "connectors.files.walker.FileTooLargeError": "an OSError: the file is reported as unreadable",
    "connectors.files.walker.NotRegularFileError": "an OSError: the file is reported as unreadable",
    "connectors.git_repository.git_command.GitError": "the connector explains it, or reads the repository anew",
    "connectors.http_client.response.ClientError": "a connector reports the item, or raises another error for the run",
    "connectors.http_client.response.MalformedResponse": "a connector reports the item, or raises another error for the run",
    "connectors.http_client.response.ResponseError": "a connector reports the item, or raises another error for the run",
    "connectors.http_client.response.ResponseTooLarge": "a connector reports the item, or raises another error for the run",
    "connectors.http_client.response.TooManyRedirects": "a connector reports the item, or raises another error for the run",
    "connectors.sources.feed.entries.InvalidFeedError": "the client of feeds makes a SourceError of it",
    "connectors.sources.github.graphql_client.GraphQLNotFoundError": "a ResponseError: as that one",
    "connectors.sources.github.graphql_client.InvalidCursorError": "a ResponseError: as that one",
    "connectors.sources.github.issues.RepositoryGoneError": "the connector says that it is gone, and lists the others",
    "connectors.sources.imap.errors.CommandRefusedError": "the mailbox makes an error of the source of it",
    "connectors.sources.imap.response_parser.MalformedResponseError": "the mailbox makes an error of the source of it",
    "connectors.sources.imap.socket.ConnectionBrokenError": "an OSError: the session makes a ConnectionLostError of it",
    "connectors.sources.slack.client.SlackNotFoundError": "a ResponseError: as that one",
    "connectors.sources.website.sitemaps.InvalidSitemapError": "the run is put off: it is raised as a TemporarilyUnavailableError",
    "indexing.embedding.model_config.UnsupportedModelError": "the model is run by sentence-transformers instead",
    "indexing.embedding.safetensors_file.DamagedWeightsError": "it is raised as a DamagedDataError",
    "indexing.ingestion.progress.AbandonedError": "it ends a thread whose result nobody waits for",
    "indexing.local.tantivy_index.FulltextDamagedError": "it is raised as a DamagedDataError, or the files are built again",
    "indexing.opensearch.search_requests.PointInTimeGoneError": "the searcher opens another one",
}
"""Public errors that are no QuarryError and have no status, each with who deals with it."""


@cache
def _trees() -> Mapping[str, ast.Module]:
    """The modules of the product by their names."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text("utf-8"))
        for path in paths
    }


@cache
def _list_errors() -> Mapping[str, type[Exception]]:
    """Return the public errors that the product defines, by module and name."""
    bases = {
        (module, node.name): {base.id for base in node.bases if isinstance(base, ast.Name)}
        for module, tree in _trees().items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    names = {name for name, one in vars(builtins).items() if _is_error(one)}
    while more := {name for (_, name), of in bases.items() if of & names} - names:
        names |= more
    found = {
        f"{module}.{name}": getattr(import_module(module), name)
        for module, name in bases
        if name in names and not name.startswith("_")
    }
    return {name: one for name, one in found.items() if _is_error(one)}


def _is_error(one: object) -> TypeGuard[type[Exception]]:
    return isinstance(one, type) and issubclass(one, Exception)


def _has(table: Mapping[type[Exception], object], error: type[Exception]) -> bool:
    return any(kind in table for kind in error.__mro__)


def test_every_error_has_a_status_or_a_reason_for_none() -> None:
    without = {
        name
        for name, error in _list_errors().items()
        if not _has(STATUSES, error) and not issubclass(error, HandledError)
    }
    assert without == WITHOUT_STATUS.keys()


def test_every_expected_error_says_by_its_base_what_the_caller_can_do() -> None:
    bases = {TemporarilyUnavailableError, ActionRequiredError, HandledError}
    assert {error for error in _list_errors().values() if QuarryError in error.__bases__} == bases


def test_every_error_that_ends_a_command_has_an_exit_code() -> None:
    expected = [
        error
        for error in _list_errors().values()
        if issubclass(error, (QuarryError, DeadlineExceededError)) and error is not QuarryError
    ]
    assert [error for error in expected if not _has(EXIT_CODES, error)] == []


def test_only_subclasses_of_the_general_errors_are_raised() -> None:
    raised = {
        f"{module}:{node.lineno}"
        for module, tree in _trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and node.exc is not None and _name(node.exc) in ABSTRACT
    }
    assert raised == set()


def _name(raised: ast.expr) -> str:
    called = raised.func if isinstance(raised, ast.Call) else raised
    return called.id if isinstance(called, ast.Name) else ""
