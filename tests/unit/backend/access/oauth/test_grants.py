"""Codes and tokens: each valid once, for one resource, until it ends or somebody ends it."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from backend.access.api_tokens import OwnTokens
from backend.access.oauth.authorization import CODE_LIFETIME
from backend.access.oauth.errors import OAuthError
from backend.access.oauth.grants import (
    ACCESS_LIFETIME,
    REFRESH_LIFETIME,
    USE_PRECISION,
    CodeExchange,
    GrantService,
    IssuedTokens,
    RefreshRequest,
    disconnect,
    find_valid_access_token,
    list_programs,
)
from backend.access.own_account import OwnAccount
from backend.access.people import PeopleService
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session
from backend.store import audit
from backend.store.accounts import oauth_clients, people
from backend.store.accounts.oauth_clients import OAuthClient
from backend.store.audit import Actor
from backend.store.schema.oauth_tables import oauth_grants as table
from connectors.errors import ConflictError, NotFoundError
from tests.support.accounts import CHEAP, PASSWORD, add_person
from tests.support.oauth import CALLBACK
from tests.support.races import race
from tests.unit.backend.access.oauth.conftest import NOW, SITE, VERIFIER, Flow, accept_any

SECOND = timedelta(seconds=1)
MCP = f"{SITE}/mcp"
Register = Callable[..., OAuthClient]


def _is_valid(flow: Flow, tokens: IssuedTokens, now: datetime = NOW, resource: str = MCP) -> bool:
    return find_valid_access_token(flow.database, tokens.access, resource, now) is not None


def _refuse(act: Callable[[], object], code: str = "invalid_grant") -> None:
    with pytest.raises(OAuthError) as refused:
        act()
    assert refused.value.code == code


def _reasons(flow: Flow) -> list[object]:
    entries = audit.list_entries(flow.database)
    return [one.detail["reason"] for one in entries if one.action == "disconnect_program"]


def test_a_code_is_exchanged_for_tokens_of_the_person(flow: Flow) -> None:
    tokens = flow.connect()
    assert tokens.access.startswith("qoat_")
    assert tokens.refresh
    assert tokens.refresh.startswith("qort_")
    found = find_valid_access_token(flow.database, tokens.access, MCP, NOW)
    assert found is not None
    grant, person = found
    assert person == flow.person
    assert (grant.resource, list(grant.scopes)) == (MCP, ["search", "ask"])
    granted, registered = (
        one for one in audit.list_entries(flow.database) if one.subject.startswith("client:")
    )
    assert (granted.action, granted.actor) == ("connect_program", "user:ann@example.com")
    assert registered.action == "register_client"


def test_only_hashes_are_stored(flow: Flow) -> None:
    code = flow.approve()
    tokens = flow.service.redeem_code(flow.exchange(code), NOW)
    assert tokens.refresh is not None
    with flow.database.reading() as connection:
        stored = str(connection.execute(select(table)).all())
    secrets = [code, tokens.access, *tokens.refresh.removeprefix("qort_").split(".")]
    assert [one for one in secrets if one in stored] == []
    assert digest(tokens.access) in stored
    for one in (digest(tokens.access), digest(code)):
        assert find_valid_access_token(flow.database, one, MCP, NOW) is None


@pytest.mark.parametrize("given", ["", "qoat_", "qoat_" + "x" * 43, "' OR 1=1 --", "é\ud800\x00"])
def test_anything_else_is_no_token(flow: Flow, given: str) -> None:
    flow.connect()
    flow.approve()
    assert find_valid_access_token(flow.database, given, MCP, NOW) is None
    _refuse(lambda: flow.refresh(given))
    _refuse(lambda: flow.service.redeem_code(flow.exchange(given), NOW))
    flow.service.revoke(given)
    assert len(list_programs(flow.database, flow.person, NOW)) == 1


def test_codes_tokens_and_grants_end(flow: Flow) -> None:
    late = flow.approve()
    _refuse(lambda: flow.service.redeem_code(flow.exchange(late), NOW + CODE_LIFETIME))
    tokens = flow.connect()
    assert _is_valid(flow, tokens, NOW + ACCESS_LIFETIME - SECOND)
    assert not _is_valid(flow, tokens, NOW + ACCESS_LIFETIME)
    refreshed = flow.refresh(tokens.refresh, NOW + REFRESH_LIFETIME - SECOND)
    assert _is_valid(flow, refreshed, NOW + REFRESH_LIFETIME)
    end = NOW + 2 * REFRESH_LIFETIME - SECOND
    assert len(list_programs(flow.database, flow.person, end - SECOND)) == 1
    assert list_programs(flow.database, flow.person, end) == []
    _refuse(lambda: flow.refresh(refreshed.refresh, end))


def test_what_has_ended_is_removed(flow: Flow) -> None:
    flow.approve(NOW)
    flow.connect(NOW)
    flow.approve(NOW + REFRESH_LIFETIME)
    with flow.database.reading() as connection:
        assert len(connection.execute(select(table)).all()) == 1


def test_a_token_is_for_one_resource(flow: Flow) -> None:
    for_mcp, for_api = flow.connect(), flow.connect(resource=SITE)
    assert _is_valid(flow, for_mcp, resource=MCP)
    assert not _is_valid(flow, for_mcp, resource=SITE)
    assert not _is_valid(flow, for_api, resource=MCP)
    assert _is_valid(flow, for_api, resource=SITE)
    assert not _is_valid(flow, for_mcp, resource="https://other.example.com/mcp")


def test_a_code_that_comes_again_ends_what_it_was_exchanged_for(flow: Flow) -> None:
    code = flow.approve()
    tokens = flow.service.redeem_code(flow.exchange(code), NOW)
    _refuse(lambda: flow.service.redeem_code(flow.exchange(code), NOW + CODE_LIFETIME))
    assert not _is_valid(flow, tokens)
    _refuse(lambda: flow.refresh(tokens.refresh))
    assert _reasons(flow) == ["code_used_again"]


def test_who_did_not_begin_the_flow_does_not_end_it_and_uses_the_code_up(flow: Flow) -> None:
    for verifier in ("w" * 43, VERIFIER[:-1], f"{VERIFIER}x", "", "v" * 42 + "é", "v" * 129):
        code = flow.approve()
        _refuse(lambda: flow.service.redeem_code(flow.exchange(code, verifier), NOW))  # noqa: B023
        _refuse(lambda: flow.service.redeem_code(flow.exchange(code), NOW))  # noqa: B023


def test_the_redirect_uri_is_the_one_of_before(flow: Flow) -> None:
    code = flow.approve()
    elsewhere = CodeExchange(code, VERIFIER, f"{CALLBACK}/other", accept_any)
    _refuse(lambda: flow.service.redeem_code(elsewhere, NOW))
    unnamed = CodeExchange(flow.approve(), VERIFIER, None, accept_any)
    assert _is_valid(flow, flow.service.redeem_code(unnamed, NOW))


def test_another_client_has_nothing_of_a_code_or_a_token(flow: Flow, register: Register) -> None:
    other = Flow(flow.database, register(), flow.person)
    code = flow.approve()
    _refuse(lambda: other.service.redeem_code(other.exchange(code), NOW))
    tokens = flow.service.redeem_code(flow.exchange(code), NOW)
    _refuse(lambda: other.service.redeem_code(other.exchange(code), NOW))
    _refuse(lambda: other.refresh(tokens.refresh))
    _refuse(lambda: other.service.revoke(tokens.access))
    _refuse(lambda: other.service.revoke(tokens.refresh or ""))
    assert _is_valid(flow, tokens)
    assert _is_valid(flow, flow.refresh(tokens.refresh))


def test_a_refresh_token_is_replaced_and_the_old_one_ends_everything(flow: Flow) -> None:
    first = flow.connect()
    second = flow.refresh(first.refresh)
    third = flow.refresh(second.refresh)
    assert len({first.access, second.access, third.access}) == 3
    assert [_is_valid(flow, one) for one in (first, second, third)] == [False, False, True]
    _refuse(lambda: flow.refresh(first.refresh))
    assert not _is_valid(flow, third)
    _refuse(lambda: flow.refresh(third.refresh))
    assert _reasons(flow) == ["refresh_token_used_again"]


def test_a_refresh_token_that_was_made_up_ends_nothing(flow: Flow) -> None:
    tokens = flow.connect()
    _refuse(lambda: flow.refresh("qort_made.up"))
    assert _is_valid(flow, flow.refresh(tokens.refresh))


def test_a_refresh_token_narrows_scopes_and_never_widens_them(flow: Flow) -> None:
    tokens = flow.connect(scope="search ask")

    def refresh(token: str | None, scope: str | None) -> IssuedTokens:
        return flow.service.refresh(RefreshRequest(token or "", scope, accept_any), NOW)

    narrowed = refresh(tokens.refresh, "search")
    found = find_valid_access_token(flow.database, narrowed.access, MCP, NOW)
    assert found is not None
    assert (list(found[0].access_scopes or ()), list(narrowed.scopes)) == (["search"], ["search"])
    for wide in ("search ask admin", "admin", "search  ask"):
        _refuse(lambda: refresh(narrowed.refresh, wide), "invalid_scope")  # noqa: B023
    assert list(refresh(narrowed.refresh, None).scopes) == ["search", "ask"]
    only = flow.connect(scope="search")
    _refuse(lambda: refresh(only.refresh, "search ask"), "invalid_scope")


def test_no_more_scopes_than_were_registered(flow: Flow, register: Register) -> None:
    narrow = Flow(flow.database, register(scopes=["search"]), flow.person)
    assert list(narrow.connect(scope="search ask").scopes) == ["search"]


def test_a_client_without_refresh_tokens_gets_none(flow: Flow, register: Register) -> None:
    brief = Flow(flow.database, register(grant_types=["authorization_code"]), flow.person)
    tokens = brief.connect()
    assert tokens.refresh is None
    assert _is_valid(brief, tokens)
    assert list_programs(flow.database, flow.person, NOW + ACCESS_LIFETIME) == []


def test_another_resource_is_not_had_by_asking_again(flow: Flow) -> None:
    def refuse_all(resource: str) -> None:
        assert resource == MCP
        raise ValueError(resource)

    code = flow.approve()
    exchange = CodeExchange(code, VERIFIER, CALLBACK, refuse_all)
    with pytest.raises(ValueError, match="mcp"):
        flow.service.redeem_code(exchange, NOW)
    tokens = flow.service.redeem_code(flow.exchange(code), NOW)
    with pytest.raises(ValueError, match="mcp"):
        flow.service.refresh(RefreshRequest(tokens.refresh or "", None, refuse_all), NOW)
    assert _is_valid(flow, flow.refresh(tokens.refresh))


@pytest.mark.parametrize("which", ["access", "refresh"])
def test_a_program_gives_its_tokens_back(flow: Flow, which: str) -> None:
    tokens = flow.connect()
    flow.service.revoke(str(getattr(tokens, which)))
    assert not _is_valid(flow, tokens)
    _refuse(lambda: flow.refresh(tokens.refresh))
    flow.service.revoke(tokens.access)
    assert _reasons(flow) == ["by_program"]


def test_a_person_disconnects_a_program_of_their_own(flow: Flow) -> None:
    tokens = flow.connect()
    (program,) = list_programs(flow.database, flow.person, NOW)
    assert (program.name, program.grant.last_used_at) == ("Editor", None)
    bob = add_person(flow.database, "bob@example.com")
    assert list_programs(flow.database, bob, NOW) == []
    for stranger, number in ((bob, program.grant.id), (flow.person, program.grant.id + 1)):
        with pytest.raises(NotFoundError):
            disconnect(flow.database, stranger, number, Actor("user:bob@example.com"))
    assert _is_valid(flow, tokens)
    disconnect(flow.database, flow.person, program.grant.id, Actor("user:ann@example.com"))
    assert not _is_valid(flow, tokens)
    assert _reasons(flow) == ["by_person"]


def test_the_last_use_is_recorded_once_a_minute(flow: Flow) -> None:
    tokens = flow.connect()

    def use(moment: datetime) -> datetime | None:
        assert _is_valid(flow, tokens, moment)
        return list_programs(flow.database, flow.person, NOW)[0].grant.last_used_at

    assert use(NOW) == NOW
    assert use(NOW + USE_PRECISION - SECOND) == NOW
    assert use(NOW + USE_PRECISION) == NOW + USE_PRECISION


# What happens to the account.


def _add_bob(flow: Flow) -> Flow:
    return Flow(flow.database, flow.client, add_person(flow.database, "bob@example.com"))


def test_a_disabled_account_has_no_programs_also_when_it_is_enabled_again(flow: Flow) -> None:
    bobs = _add_bob(flow)
    tokens, others = bobs.connect(), flow.connect()
    waiting = bobs.approve()
    PeopleService(flow.database).disable("bob@example.com")
    assert not _is_valid(flow, tokens)
    PeopleService(flow.database).enable("bob@example.com")
    assert not _is_valid(flow, tokens)
    _refuse(lambda: bobs.refresh(tokens.refresh))
    _refuse(lambda: bobs.service.redeem_code(bobs.exchange(waiting), NOW))
    assert _is_valid(flow, others)


def test_a_token_of_a_disabled_account_is_not_valid_whatever_is_left_of_it(flow: Flow) -> None:
    """The request reads the account of now, not only what disabling it removed."""
    bobs = _add_bob(flow)
    tokens = bobs.connect()
    people.set_disabled(flow.database, bobs.person.id, NOW)
    assert not _is_valid(bobs, tokens)


def test_nobody_grants_anything_while_they_are_disabled(flow: Flow) -> None:
    bobs = _add_bob(flow)
    outcome = race(
        flow.database,
        lambda opened: PeopleService(opened).disable("bob@example.com"),
        bobs.approve,
    )
    assert isinstance(outcome, ConflictError)
    with flow.database.reading() as connection:
        assert connection.execute(select(table)).all() == []


def test_nobody_connects_a_program_that_is_deleted_meanwhile(flow: Flow) -> None:
    outcome = race(
        flow.database,
        lambda opened: oauth_clients.remove(opened, flow.client.id),
        flow.approve,
    )
    assert isinstance(outcome, ConflictError | OAuthError)


def test_a_role_that_was_taken_is_gone_from_the_token(flow: Flow) -> None:
    add_person(flow.database, "bob@example.com", Role.ADMIN)
    tokens = flow.connect()
    PeopleService(flow.database).set_role("ann@example.com", Role.MEMBER)
    found = find_valid_access_token(flow.database, tokens.access, MCP, NOW)
    assert found is not None
    assert found[1].role == Role.MEMBER


@pytest.mark.parametrize(("chosen", "left"), [(OwnTokens.KEEP, 1), (OwnTokens.REVOKE, 0)])
def test_another_password_does_to_programs_what_it_does_to_tokens(
    flow: Flow, chosen: OwnTokens, left: int
) -> None:
    tokens = flow.connect()
    session = begin_session(flow.database, flow.person, Visitor())
    account = OwnAccount(flow.database, flow.person, Actor("user:ann@example.com"))
    account.change_password(PASSWORD, "staple battery horse", session, CHEAP, tokens=chosen)
    assert _is_valid(flow, tokens) is bool(left)
    (entry,) = audit.list_entries(flow.database, limit=1)
    assert entry.detail.get("disconnected_programs") == (None if left else 1)


def test_ended_sessions_leave_programs_as_they_leave_tokens(flow: Flow) -> None:
    tokens = flow.connect()
    PeopleService(flow.database).end_sessions("ann@example.com")
    assert _is_valid(flow, tokens)


# At once.


def _run_at_once(act: Callable[[], object], count: int) -> list[object]:
    together, outcomes = threading.Barrier(count), list[object]()

    def run() -> None:
        together.wait()
        try:
            outcomes.append(act())
        except OAuthError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_of_requests_with_one_code_at_once_one_wins(flow: Flow) -> None:
    """What it wins ends at once: somebody else has the code as well."""
    exchange = flow.exchange(flow.approve())
    outcomes = _run_at_once(lambda: flow.service.redeem_code(exchange, NOW), 8)
    (won,) = (one for one in outcomes if isinstance(one, IssuedTokens))
    assert len([one for one in outcomes if isinstance(one, OAuthError)]) == 7
    assert not _is_valid(flow, won)
    assert _reasons(flow) == ["code_used_again"]


def test_of_requests_with_one_refresh_token_at_once_one_wins(flow: Flow) -> None:
    tokens = flow.connect()
    outcomes = _run_at_once(lambda: flow.refresh(tokens.refresh), 8)
    assert len([one for one in outcomes if isinstance(one, IssuedTokens)]) == 1
    assert list_programs(flow.database, flow.person, NOW) == []


def test_a_code_is_redeemed_while_the_account_is_disabled(flow: Flow) -> None:
    bobs = _add_bob(flow)
    exchange = bobs.exchange(bobs.approve())
    outcome = race(
        flow.database,
        lambda opened: PeopleService(opened).disable("bob@example.com"),
        lambda: GrantService(flow.database, flow.client, Actor("x")).redeem_code(exchange, NOW),
    )
    assert isinstance(outcome, OAuthError)
