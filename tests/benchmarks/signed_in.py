"""What it costs a search that people sign in, at 20,000 chunks, 1,000 people and 200 groups.

    .venv/bin/python -m tests.benchmarks.signed_in [--questions N] [--rounds N]

Two servers on copies of one home. The one without accounts answers its owner; in the other, everybody is in ten groups of
an identity provider and in fifty of a source, by some of them through another group. The same questions go to both, to each
twice and in an order by chance: by a session, and by a personal token. Then people sign in, one after the other on each of
two connections, with the parameters of the product, during every second block of searches of the second server.

Bars for the medians: 1.1 for a search by a session over one without accounts, 1.3 for a search while people sign in over one
while nobody does. The command exits with 1 if one is missed.
"""

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median, quantiles

import httpx

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.passwords import Passwords
from backend.access.people import BY_ADMIN
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, make_csrf_token
from backend.api.account_authentication import AccountCookies
from backend.api.authentication import CSRF_HEADER
from backend.container import Container
from backend.settings import Settings
from backend.store.accounts import groups, identities, people
from backend.store.database import Database
from backend.store.sync import sources
from tests.benchmarks import scale
from tests.benchmarks.http_overhead import CHUNKS, build_home
from tests.support.groups import save_groups
from tests.support.home import Home
from tests.support.models import MODEL_CACHE
from tests.support.serving import Serving, serving

QUESTIONS, WARM_UP, BLOCK = 200, 20, 10
PEOPLE, GROUPS, OF_PERSON = 1_000, 200, 10
GROUPS_AT_SOURCE, OF_PERSON_AT_SOURCE = 400, 50
PLAIN, BY_SESSION = "without accounts", "by a session"
QUIET, BUSY = "while nobody signs in", "while people sign in"
BARS = {BY_SESSION: 1.1, BUSY: 1.3}
CONNECTIONS, SETTLING = 2, 0.3
ALL = scale.READER.removeprefix("group:")
ISSUER = "https://login.example.com"
PASSWORD = "a long password of the benchmark"

Call = Callable[[str], object]


@dataclass(frozen=True)
class Account:
    """What proves who one person is."""

    session: str
    token: str


def fill_accounts(database: Database) -> Account:
    """Make the accounts, and return what proves who the first of them is."""
    password_hash, now = Passwords().hash(PASSWORD), datetime.now(UTC)
    members: dict[str, list[str]] = {f"g{n}": [] for n in range(GROUPS_AT_SOURCE)}
    for number in range(PEOPLE):
        person = people.add(
            database,
            email=email_of(number),
            name=f"Person {number}",
            role=Role.MEMBER if number else Role.ADMIN,
            password_hash=password_hash,
            verified=BY_ADMIN,
            created_at=now,
        )
        identities.add(database, ISSUER, f"subject {number}", person.id, now)
        identities.record_statement(database, ISSUER, f"subject {number}", now)
        names = {f"team {(number + k) % GROUPS}" for k in range(OF_PERSON - 1)} | {ALL}
        groups.replace_of_person(database, person.id, ISSUER, names)
        for k in range(OF_PERSON_AT_SOURCE - 1):
            members[f"g{(number * 7 + k) % GROUPS_AT_SOURCE}"].append(f"user:{person.email}")
    # The last one by way of another group.
    members["everyone"] = list(members)
    sources.add(database, "desk", "folder", {"path": "/nowhere"})
    save_groups(database, "desk", members)
    first = people.get_by_email(database, email_of(0))
    token = ApiTokenService(database, owner=first).create(
        "benchmark", [TokenScope.SEARCH], timedelta(days=1)
    )
    return Account(begin_session(database, first, Visitor()), token)


def email_of(number: int) -> str:
    return f"p{number}@example.com"


@contextmanager
def serve_both(
    home: Path, folder: Path
) -> Iterator[tuple[Serving, Serving, Account, AccountCookies]]:
    """Serve two copies of a home; accounts are made in the second."""
    plain, signed = folder / "plain", folder / "signed"
    for each in (plain, signed):
        shutil.copytree(home, each)
    with ExitStack() as stack:
        running = [
            stack.enter_context(serving(Home(each), "--as", scale.READER, QUARRY_HOME=str(each)))
            for each in (plain, signed)
        ]
        container = Container(Settings(home=signed, models=Path(MODEL_CACHE)))
        account = fill_accounts(container.database)
        cookies = AccountCookies.of_machine(container.sign_in.machine_secret)
        yield running[0], running[1], account, cookies


def search_by(client: httpx.Client) -> Call:
    return lambda question: client.post("/api/search", json={"query": question}).raise_for_status()


def measure(calls: dict[str, Call], questions: list[str], times: dict[str, list[float]]) -> None:
    """Time calls for each question, in an order by chance.

    Each server is asked twice: what it keeps from the first time helps both alike.
    """
    chance = random.Random(2026)
    for question in questions:
        for name in chance.sample([PLAIN, *calls], k=len(calls) + 1):
            times.setdefault(name, []).append(milliseconds(calls[name], question))


def milliseconds(call: Call, question: str) -> float:
    began = time.perf_counter()
    call(question)
    return 1000 * (time.perf_counter() - began)


@dataclass(frozen=True)
class SigningIn:
    """People who sign in, one after the other, whenever they may."""

    url: str
    may: threading.Event
    ended: threading.Event
    count: list[int]

    def run(self, first: int) -> None:
        with httpx.Client(base_url=self.url, timeout=60) as client:
            number = first
            while not self.ended.is_set():
                if not self.may.wait(0.1):
                    continue
                client.cookies.clear()
                form = {"email": email_of(number % PEOPLE), "password": PASSWORD}
                answer = client.post("/sign-in", data=form)
                assert answer.status_code == 303, answer.text
                self.count.append(number)
                number += CONNECTIONS


def measure_beside(search: Call, url: str, questions: list[str]) -> dict[str, list[float]]:
    """Time searches in blocks, while nobody signs in and while people do."""
    signing = SigningIn(url, threading.Event(), threading.Event(), [])
    threads = [threading.Thread(target=signing.run, args=(n,)) for n in range(CONNECTIONS)]
    for each in threads:
        each.start()
    times: dict[str, list[float]] = {QUIET: [], BUSY: []}
    for start in range(0, len(questions), BLOCK):
        for name in (QUIET, BUSY):
            (signing.may.set if name == BUSY else signing.may.clear)()
            time.sleep(SETTLING)
            times[name] += [milliseconds(search, q) for q in questions[start : start + BLOCK]]
    signing.ended.set()
    for each in threads:
        each.join()
    print(f"{len(signing.count)} people signed in")
    return times


def report(times: dict[str, list[float]], base: str) -> bool:
    """Print a table; whether all bars are met."""
    met = True
    for name, spent in times.items():
        ratio, bar = median(spent) / median(times[base]), BARS.get(name)
        met = met and (bar is None or ratio <= bar)
        limit = f"  bar {bar}" if bar else ""
        p95 = quantiles(spent, n=20)[-1]
        print(f"{name:24} p50 {median(spent):6.2f} ms  p95 {p95:6.2f} ms  x{ratio:.3f}{limit}")
    return met


def measure_searches(
    plain: Serving, url: str, account: Account, cookies: AccountCookies, options: argparse.Namespace
) -> bool:
    by_session = httpx.Client(
        base_url=url,
        timeout=60,
        cookies={cookies.session: account.session},
        headers={CSRF_HEADER: make_csrf_token(account.session)},
    )
    by_token = httpx.Client(
        base_url=url, timeout=60, headers={"Authorization": f"Bearer {account.token}"}
    )
    questions = scale.questions(options.questions)
    with by_session, by_token:
        calls = {
            PLAIN: search_by(plain.client),
            BY_SESSION: search_by(by_session),
            "by a token": search_by(by_token),
        }
        measure(calls, questions[:WARM_UP], {})
        times: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            measure(calls, questions, times)
        met = report(times, PLAIN)
        beside = measure_beside(calls[BY_SESSION], url, questions)
        return report(beside, QUIET) and met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    home = scale.KEPT / f"http-{CHUNKS}"
    build_home(home, CHUNKS).database.close()
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_both(home, Path(folder)) as (plain, signed, account, cookies),
    ):
        met = measure_searches(plain, signed.url, account, cookies, options)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
