"""Signing in: the same answer and the same work for every reason to refuse, and limits that lock no owner out."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select

from backend.access import passwords
from backend.access.passwords import Passwords
from backend.access.people import AccountDetails, PeopleService
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.access.sessions import Visitor
from backend.access.sign_in import Limited, Refused, SignedIn, SignInService
from backend.access.sign_in_limits import (
    MOST_BY_ACCOUNT,
    MOST_BY_ADDRESS,
    MOST_BY_DEVICE,
    PERIOD,
)
from backend.store import audit
from backend.store.accounts import people, sessions
from backend.store.database import Database
from backend.store.schema.tables import devices, sign_in_failures
from connectors.errors import ConflictError
from tests.support.accounts import CHEAP, PASSWORD, add_person, find_person
from tests.support.statements import noted_statements

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
ANN = "ann@example.com"
HOME = Visitor(address="192.0.2.7")
STRANGER = Visitor(address="203.0.113.9")


@pytest.fixture
def service(database: Database) -> SignInService:
    add_person(database, ANN, Role.ADMIN)
    return SignInService(database, CHEAP)


def _sign_in(
    service: SignInService,
    password: str = PASSWORD,
    visitor: Visitor = HOME,
    email: str = ANN,
    now: datetime = NOW,
) -> SignedIn | Refused | Limited:
    return service.sign_in_with_password(email, password, visitor, now)


def _signed_in(service: SignInService, visitor: Visitor = HOME) -> SignedIn:
    result = _sign_in(service, visitor=visitor)
    assert isinstance(result, SignedIn)
    return result


@pytest.mark.parametrize("email", [ANN, "ANN@Example.com", f" {ANN} "])
def test_the_right_password_begins_a_session(service: SignInService, email: str) -> None:
    result = _sign_in(service, email=email)
    assert isinstance(result, SignedIn)
    assert result.person.email == ANN
    assert find_person(service.database, result.session, NOW) == result.person


def test_letters_may_be_composed_in_any_way(database: Database) -> None:
    service = PeopleService(database)
    code = service.invite(ANN, Role.ADMIN)
    password = "Zo\N{LATIN SMALL LETTER E WITH DIAERESIS} lives here"
    service.accept_invitation(code, AccountDetails(name="Ann", password=password), CHEAP)
    assert isinstance(
        _sign_in(SignInService(database, CHEAP), "Zoe\N{COMBINING DIAERESIS} lives here"), SignedIn
    )


@dataclass(frozen=True)
class Watched(Passwords):
    """Passwords that note which hashes were verified."""

    verified: list[str | None] = field(default_factory=list)

    def is_correct(self, password_hash: str | None, password: str) -> bool:
        self.verified.append(password_hash)
        return CHEAP.is_correct(password_hash, password)


def test_every_reason_to_refuse_looks_the_same(service: SignInService) -> None:
    database = service.database
    add_person(database, "gone@example.com")
    PeopleService(database).disable("gone@example.com")
    people.add(
        database,
        email="federated@example.com",
        name="Without a password",
        role=Role.MEMBER,
        password_hash=None,
        verified="admin",
        created_at=NOW,
    )
    watched = Watched()
    service = SignInService(database, watched)
    for email, password in (
        (ANN, "wrong"),
        ("gone@example.com", PASSWORD),
        ("federated@example.com", PASSWORD),
        ("federated@example.com", ""),
        ("nobody@example.com", PASSWORD),
        ("no address", PASSWORD),
        ("", ""),
    ):
        assert _sign_in(service, password, STRANGER, email) == Refused()
    # Of each exactly one hash was verified, a real one or the one that stands for none.
    assert len(watched.verified) == 7


def test_without_a_hash_one_is_verified_all_the_same() -> None:
    class Counting(PasswordHasher):
        count = 0

        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002
            Counting.count += 1
            return super().verify(hash, password)

    passwords = Passwords(Counting(time_cost=1, memory_cost=8, parallelism=1))
    known = passwords.hash(PASSWORD)
    for password_hash, password in ((known, PASSWORD), (known, "x"), (None, "x"), (None, "")):
        before = Counting.count
        assert passwords.is_correct(password_hash, password) is (password == PASSWORD)
        assert Counting.count == before + 1


class _Counting(PasswordHasher):
    """Counts the hashes that are verified, each of which takes a tenth of a second with the usual parameters."""

    verified = 0

    def verify(self, *arguments: Any, **more: Any) -> Any:
        self.verified += 1
        return super().verify(*arguments, **more)


def test_every_refusal_takes_the_same_work(database: Database) -> None:
    """So that no time tells whether there is an account: as many hashes, and the same statements in the same order."""
    add_person(database, "ann@example.com", Role.ADMIN)
    add_person(database, "gone@example.com")
    PeopleService(database).disable("gone@example.com")
    people.add(
        database,
        email="elsewhere@example.com",
        name="Signs in elsewhere",
        role=Role.MEMBER,
        password_hash=None,
        verified=None,
        created_at=datetime.now(UTC),
    )
    hasher = _Counting(time_cost=1, memory_cost=8, parallelism=1)
    service, done = SignInService(database, Passwords(hasher)), set()
    names = ("ann", "gone", "elsewhere", "nobody", "no address")
    for number, name in enumerate(names):
        email = name if " " in name else f"{name}@example.com"
        visitor = Visitor(address=f"192.0.2.{number}", device="unknown")
        hasher.verified = 0
        with noted_statements(database.engine) as statements:
            assert service.sign_in_with_password(email, "wrong", visitor) == Refused()
        done.add((hasher.verified, *statements))
    ((verified, *asked),) = done
    assert verified == 1
    assert len(asked) >= 5


def test_a_hash_that_is_none_is_refused() -> None:
    assert not CHEAP.is_correct("no hash", PASSWORD)


def test_a_hash_is_renewed_when_the_parameters_change(service: SignInService) -> None:
    changed = Passwords(PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
    before = people.get_by_email(service.database, ANN).password_hash
    _signed_in(service)
    assert people.get_by_email(service.database, ANN).password_hash == before
    _signed_in(SignInService(service.database, changed))
    after = people.get_by_email(service.database, ANN).password_hash
    assert before is not None
    assert after is not None
    assert "m=16,t=2,p=1" in after
    assert not CHEAP.is_outdated(before)
    assert isinstance(_sign_in(SignInService(service.database, changed)), SignedIn)


def test_what_is_too_long_for_a_password_is_not_normalized(
    service: SignInService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To normalize a megabyte of combining marks takes minutes."""
    normalized: list[int] = []
    normalize = passwords._normalize

    def record(password: str) -> str:
        normalized.append(len(password))
        return normalize(password)

    monkeypatch.setattr(passwords, "_normalize", record)
    long = "a" + "\u0300\u0327" * passwords.LONGEST
    assert service.sign_in_with_password(ANN, long, STRANGER) == Refused()
    assert service.sign_in_with_password("nobody@example.com", long, STRANGER) == Refused()
    assert normalized == []
    assert isinstance(service.sign_in_with_password(ANN, PASSWORD, HOME), SignedIn)
    assert normalized == [len(PASSWORD)]


def test_what_a_password_proved_is_void_once_the_account_has_changed(
    service: SignInService,
) -> None:
    proved = people.get_by_email(service.database, ANN)
    add_person(service.database, "bob@example.com", Role.ADMIN)
    PeopleService(service.database).disable(ANN)
    with pytest.raises(ConflictError, match="changed meanwhile"):
        service.begin(proved, HOME)
    PeopleService(service.database).enable(ANN)
    people.set_password_hash(service.database, proved.id, CHEAP.hash("another long password"))
    with pytest.raises(ConflictError, match="changed meanwhile"):
        service.begin(proved, HOME)
    assert sessions.list_of_person(service.database, proved.id) == []


def test_a_hash_is_not_renewed_over_another_password(service: SignInService) -> None:
    ann = people.get_by_email(service.database, ANN)
    assert ann.password_hash is not None
    people.replace_password_hash(service.database, ann.id, "a former hash", "anew")
    assert people.get_by_email(service.database, ANN).password_hash == ann.password_hash
    people.replace_password_hash(service.database, ann.id, ann.password_hash, "anew")
    assert people.get_by_email(service.database, ANN).password_hash == "anew"


def test_a_wrong_password_renews_nothing(service: SignInService) -> None:
    changed = Passwords(PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
    before = people.get_by_email(service.database, ANN)
    assert _sign_in(SignInService(service.database, changed), "wrong") == Refused()
    assert people.get_by_email(service.database, ANN) == before


def test_who_tries_many_passwords_is_stopped(service: SignInService) -> None:
    tries = [_sign_in(service, "wrong", STRANGER) for _ in range(MOST_BY_ACCOUNT)]
    assert tries == [Refused()] * MOST_BY_ACCOUNT
    assert _sign_in(service, PASSWORD, STRANGER) == Limited(PERIOD)
    # It is the account that is counted, from wherever somebody tries.
    assert _sign_in(service, PASSWORD, Visitor(address="198.51.100.1")) == Limited(PERIOD)
    assert isinstance(_sign_in(service, now=NOW + PERIOD), SignedIn)


def test_an_account_that_does_not_exist_is_limited_alike(service: SignInService) -> None:
    for _ in range(MOST_BY_ACCOUNT):
        assert _sign_in(service, "wrong", STRANGER, "nobody@example.com") == Refused()
    assert _sign_in(service, "wrong", STRANGER, "nobody@example.com") == Limited(PERIOD)
    assert _sign_in(service, "wrong", STRANGER, " NOBODY@example.com") == Limited(PERIOD)


def test_a_stranger_does_not_lock_the_owner_out(service: SignInService) -> None:
    own = _signed_in(service)
    for _ in range(MOST_BY_ACCOUNT + 5):
        _sign_in(service, "wrong", STRANGER)
    known = Visitor(address="198.51.100.1", device=own.device)
    assert _signed_in(service, known).device == own.device
    assert _sign_in(service, PASSWORD, Visitor(address="198.51.100.1")) == Limited(PERIOD)


def test_a_known_device_is_limited_too(service: SignInService) -> None:
    known = Visitor(device=_signed_in(service).device)
    for _ in range(MOST_BY_DEVICE):
        assert _sign_in(service, "wrong", known) == Refused()
    assert _sign_in(service, PASSWORD, known) == Limited(PERIOD)
    # By itself: its owner comes in with another one.
    assert isinstance(_sign_in(service, PASSWORD, HOME), SignedIn)


def test_a_device_is_known_to_the_account_alone_that_used_it(service: SignInService) -> None:
    add_person(service.database, "bob@example.com")
    known = Visitor(device=_signed_in(service).device, address="203.0.113.9")
    for _ in range(MOST_BY_ACCOUNT):
        assert _sign_in(service, "wrong", known, "bob@example.com") == Refused()
    assert _sign_in(service, PASSWORD, known, "bob@example.com") == Limited(PERIOD)


def test_a_device_that_somebody_chose_is_replaced(service: SignInService) -> None:
    """So that nobody who sets a cookie has a device that is known to the account of another."""
    result = _signed_in(service, Visitor(device="chosen"))
    assert result.device != "chosen"
    with service.database.reading() as connection:
        assert list(connection.scalars(select(devices.c.digest))) == [digest(result.device)]


@pytest.mark.parametrize(
    ("first", "second"),
    [("203.0.113.9", "203.0.113.9"), ("2001:db8:1:2::1", "2001:db8:1:2:ffff::7")],
)
def test_an_address_that_tries_many_accounts_is_stopped(
    service: SignInService, first: str, second: str
) -> None:
    for number in range(MOST_BY_ADDRESS):
        email = f"person{number}@example.com"
        assert _sign_in(service, "Winter2026", Visitor(address=first), email) == Refused()
    assert _sign_in(service, PASSWORD, Visitor(address=second)) == Limited(PERIOD)
    assert isinstance(_sign_in(service, PASSWORD, HOME), SignedIn)


def test_who_comes_in_is_not_counted(service: SignInService) -> None:
    for _ in range(MOST_BY_ACCOUNT + 2):
        _signed_in(service)
    with service.database.reading() as connection:
        assert connection.execute(select(sign_in_failures)).all() == []


def test_failures_are_kept_for_their_period_and_hold_no_address(service: SignInService) -> None:
    _sign_in(service, "wrong", STRANGER, "my password by mistake")
    with service.database.reading() as connection:
        kept = connection.execute(select(sign_in_failures)).all()
    assert len(kept) == 2
    assert "mistake" not in str(kept)
    assert "203.0.113" not in str(kept)
    _sign_in(service, "wrong", STRANGER, now=NOW + PERIOD)
    with service.database.reading() as connection:
        assert len(connection.execute(select(sign_in_failures)).all()) == 2


def test_the_audit_says_who_came_in_and_who_did_not(service: SignInService) -> None:
    _signed_in(service)
    _sign_in(service, "wrong", STRANGER)
    _sign_in(service, "wrong", STRANGER, "my password by mistake")
    unknown, wrong, signed_in = audit.list_entries(service.database, limit=3)
    assert (signed_in.actor, signed_in.address) == (f"user:{ANN}", HOME.address)
    assert (wrong.actor, wrong.subject, wrong.address, wrong.outcome) == (
        "user:unknown",
        f"user:{ANN}",
        STRANGER.address,
        "refused",
    )
    assert unknown.subject == "user:unknown"
    assert "mistake" not in str(unknown)


def test_sign_ins_of_long_ago_are_no_device_any_more(service: SignInService) -> None:
    old = _signed_in(service)
    later = NOW + timedelta(days=366)
    assert isinstance(_sign_in(service, now=later), SignedIn)
    renewed = _sign_in(service, visitor=Visitor(device=old.device), now=later)
    assert isinstance(renewed, SignedIn)
    assert renewed.device != old.device
