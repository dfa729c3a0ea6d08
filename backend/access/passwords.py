"""Passwords: what may be one, and how it is hashed and verified.

A hash takes a tenth of a second on purpose. One at a time is computed, in a thread of its own with a low priority, so
that people who sign in, or try to, do not slow down those who search.
"""

import asyncio
import os
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache, partial
from typing import ParamSpec, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from backend.access.networks import find_network
from connectors.errors import InvalidInputError, TemporarilyUnavailableError

SHORTEST = 12
LONGEST = 256
FEWEST_DIFFERENT = 5
MOST_WAITING = 20
"""Sign-ins that wait for their turn; more are asked to come back."""
MOST_OF_NETWORK = 4
"""Of them from one address, so that nobody takes all places."""
_LOW_PRIORITY = 10

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

PARAMETERS = PasswordHasher(time_cost=3, memory_cost=65_536, parallelism=1)
"""Argon2id with 64 MiB and three passes: the second recommendation of RFC 9106 with one lane, because one thread
computes it."""


@dataclass(frozen=True, slots=True)
class Passwords:
    hasher: PasswordHasher = PARAMETERS

    def hash(self, password: str) -> str:
        return self.hasher.hash(_normalize(password))

    def is_correct(self, password_hash: str | None, password: str) -> bool:
        """Compare a password with a hash. Without one this takes as long, and the result is False."""
        nothing = _hash_nothing(self.hasher)
        # What is longer is no password, and to normalize a long text can take minutes.
        is_possible = len(password) <= LONGEST
        expected = password_hash if password_hash and is_possible else nothing
        try:
            self.hasher.verify(expected, _normalize(password) if is_possible else "")
        except (VerificationError, InvalidHashError):
            return False
        return password_hash is not None and is_possible

    def is_outdated(self, password_hash: str) -> bool:
        """Return whether a hash was made with other parameters than those of today."""
        return self.hasher.check_needs_rehash(password_hash)


@lru_cache(maxsize=4)
def _hash_nothing(hasher: PasswordHasher) -> str:
    """Return a hash that is verified where there is none."""
    return hasher.hash("")


def check_password(password: str, email: str) -> None:
    """Raise InvalidInputError if a password is too short, too long or too easy to guess."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInputError(f"A password has {SHORTEST} to {LONGEST} characters.")
    if len(set(password)) < FEWEST_DIFFERENT:
        raise InvalidInputError(f"A password has at least {FEWEST_DIFFERENT} different characters.")
    if email.casefold() in password.casefold() or password.casefold() in email.casefold():
        raise InvalidInputError("A password is not the address, and does not contain it.")


def _normalize(password: str) -> str:
    """Return the same text for the same letters, whatever keyboard composed them."""
    return unicodedata.normalize("NFKC", password)


@dataclass(frozen=True, slots=True)
class PasswordQueue:
    """Does what verifies or hashes passwords, one after the other. Used by the event loop alone."""

    executor: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "passwords", initializer=_lower_priority)
    )
    waiting: Counter[str] = field(default_factory=Counter)
    """By network."""

    async def run(
        self,
        address: str | None,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Return what `work` returns.

        Args:
            address: from where the request comes.

        Raises:
            TemporarilyUnavailableError: too many are waiting.
        """
        network = find_network(address)
        if self.waiting.total() >= MOST_WAITING or self.waiting[network] >= MOST_OF_NETWORK:
            raise TemporarilyUnavailableError(
                "Too many people are signing in at this moment.", retry_after=timedelta(seconds=5)
            )
        self.waiting[network] += 1
        loop = asyncio.get_running_loop()
        future = self.executor.submit(partial(work, *args, **kwargs))
        # A client that goes away does not end the work.
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._leave, network))
        return await asyncio.wrap_future(future)

    def _leave(self, network: str) -> None:
        self.waiting[network] -= 1
        if not self.waiting[network]:
            del self.waiting[network]


def _lower_priority() -> None:
    """Lower the priority of this thread alone, where the system knows priorities of threads."""
    if hasattr(os, "setpriority") and os.uname().sysname == "Linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOW_PRIORITY)
