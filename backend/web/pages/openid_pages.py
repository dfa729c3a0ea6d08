"""The addresses of signing in through the identity provider: to it, back from it, and linking what came back."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ValidationError

from backend.access.openid.accounts import AccountExistsError, ProviderAccounts
from backend.access.openid.claims import Identity
from backend.access.openid.code_flow import (
    ATTEMPT_LIFETIME,
    Attempt,
    AuthorizationResponse,
    CodeFlow,
)
from backend.access.openid.errors import SignInRefusedError
from backend.access.openid.provider import Provider
from backend.access.own_account import OwnAccount
from backend.access.people import PeopleService
from backend.access.random_secrets import digest
from backend.access.sign_in import SignedIn, SignInService
from backend.api.account_authentication import AccountCookies
from backend.api.authentication import read_address
from backend.api.authorization import AskerDependency, Permission, find_asker, requires
from backend.api.request_context import get_request_context
from backend.store.accounts import identities
from backend.store.accounts.people import Person
from backend.store.database import Database
from backend.store.sync.credential_vault import Vault
from backend.web.forms import FormDependency
from backend.web.pages.sign_in import Code, Next, SignInPages, check_next
from backend.web.templates import page
from connectors.errors import (
    ConflictError,
    InvalidInputError,
    NotConfiguredError,
    NotFoundError,
    TemporarilyUnavailableError,
)

LOG = logging.getLogger("quarry.openid")

BEGIN = "/sign-in/openid"
CONTINUE = "/sign-in/openid/continue"
CALLBACK = "/sign-in/openid/callback"
LINK = "/sign-in/openid/link"
_THREADS = 4
"""For requests to the provider: a slow one holds up nobody who searches."""
_MOST_WAITING = 32
_LONGEST = 4_000
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Parameter = Annotated[str | None, Query(max_length=_LONGEST)]


class _KeptAttempt(BaseModel):
    """What the browser keeps, sealed, while it is at the provider."""

    purpose: Literal["attempt"] = "attempt"
    attempt: Attempt
    following: str
    invitation: str = ""
    """The code of the invitation that is accepted by it."""


class _KeptIdentity(BaseModel):
    """An identity that came back, sealed, while its person decides whether to link it."""

    purpose: Literal["identity"] = "identity"
    issuer: str
    subject: str
    name: str
    """By which its person knows it."""
    person_id: int
    expires_at: datetime


Kept = TypeVar("Kept", _KeptAttempt, _KeptIdentity)


@dataclass(frozen=True, slots=True)
class OpenIdPages:
    open_database: Callable[[], Database]
    open_vault: Callable[[], Vault]
    cookies: AccountCookies
    sign_in: SignInPages
    provider: Provider
    flow: CodeFlow
    cookie: str
    """Begins the names of the cookies that keep attempts: one of each, as there may be several pages."""
    limiter: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_THREADS))

    def mount(self, app: FastAPI) -> None:
        app.get(BEGIN, include_in_schema=False)(self.begin)
        app.get(CONTINUE, include_in_schema=False)(self.go_on)
        app.get(CALLBACK, include_in_schema=False)(self.callback)
        app.post(LINK, include_in_schema=False)(self.link)

    @requires(Permission.ANYONE)
    async def begin(
        self, request: Request, following: Next = "/", invitation: Code = ""
    ) -> Response:
        """Lead the browser to the provider."""
        _check_has_accounts(request)
        back = f"{request.base_url}{CALLBACK[1:]}"
        try:
            return await self._run(self._begin, back, following, invitation)
        except (NotConfiguredError, TemporarilyUnavailableError) as error:
            return await to_thread.run_sync(self._refuse, request, error, following, invitation)

    @requires(Permission.ANYONE)
    def go_on(self, request: Request) -> Response:
        """Lead a browser to the provider that has just sent a form: no form may lead to another server."""
        values = {"provider": self.provider.settings.host}
        return page(request, "openid_continue.html", "", values)

    @requires(Permission.ANYONE)
    async def callback(
        self,
        request: Request,
        state: Parameter = None,
        code: Parameter = None,
        iss: Parameter = None,
        error: Parameter = None,
    ) -> Response:
        """Sign in who comes back from the provider."""
        _check_has_accounts(request)
        response = AuthorizationResponse(state=state or "", code=code, iss=iss, error=error)
        cookie = self._name_cookie(response.state)
        sealed = request.cookies.get(cookie)
        try:
            answer = await self._run(self._finish, request, response, sealed)
        except (SignInRefusedError, NotConfiguredError, TemporarilyUnavailableError) as refused:
            invitation = self._find_invitation(sealed)
            answer = await to_thread.run_sync(self._refuse, request, refused, "/", invitation)
        if cookie in request.cookies:
            secure = self.cookies.secure
            answer.delete_cookie(cookie, secure=secure, httponly=True, samesite="lax")
        return answer

    @requires(Permission.ACCOUNT)
    async def link(
        self, request: Request, asker: AskerDependency, form: FormDependency
    ) -> Response:
        """Link the identity that came back to the account of the person, who gives the password, if there is one."""
        sealed = form.get("identity", "")
        kept, person = self._open(_KeptIdentity, sealed), asker.person
        if person is None or kept.person_id != person.id or kept.expires_at <= datetime.now(UTC):
            raise ConflictError("This page is too old, or of another account. Sign in again.")
        if person.password_hash is not None:
            account = OwnAccount(self.open_database(), person, asker.actor)
            try:
                await self.sign_in.queue.run(
                    asker.actor.address,
                    account.verify_password,
                    form.get("current", ""),
                    self.sign_in.passwords,
                )
            except InvalidInputError as error:
                return self._show_link(request, kept, sealed, str(error))
        accounts = self._accounts(request)
        await self._run(accounts.link, person, kept.issuer, kept.subject)
        return RedirectResponse("/", 303)

    async def _run(
        self,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run work that waits for the provider. Raises TemporarilyUnavailableError: too many wait for it."""
        if self.limiter.statistics().tasks_waiting >= _MOST_WAITING:
            raise TemporarilyUnavailableError(
                "Too many people are signing in at this moment.", timedelta(seconds=5)
            )
        return await to_thread.run_sync(lambda: work(*args, **kwargs), limiter=self.limiter)

    def _begin(self, redirect_uri: str, following: str, invitation: str) -> Response:
        if invitation:
            PeopleService(self.open_database()).find_invitation(invitation)
        address, attempt = self.flow.begin(redirect_uri, datetime.now(UTC))
        following = check_next(following)
        kept = _KeptAttempt(attempt=attempt, following=following, invitation=invitation)
        answer = RedirectResponse(address, 303)
        answer.set_cookie(
            self._name_cookie(attempt.state),
            self._seal(kept),
            max_age=int(ATTEMPT_LIFETIME.total_seconds()),
            secure=self.cookies.secure,
            httponly=True,
            samesite="lax",
        )
        return answer

    def _finish(
        self, request: Request, response: AuthorizationResponse, sealed: str | None
    ) -> Response:
        if sealed is None:
            raise SignInRefusedError(
                "This browser did not begin the sign-in, or it took too long. Sign in again."
            )
        kept = self._open(_KeptAttempt, sealed)
        now = datetime.now(UTC)
        end = kept.attempt.begun_at + ATTEMPT_LIFETIME
        if not identities.finish_attempt(
            self.open_database(), digest(kept.attempt.state), now, end
        ):
            raise SignInRefusedError("This sign-in was already completed. Sign in again.")
        identity = self.flow.finish(response, kept.attempt, now)
        if kept.invitation:
            person = self._accounts(request).accept_invitation(identity, kept.invitation)
            return self.sign_in.redirect_signed_in(self._begin_session(request, person), "/")
        return self._let_in(request, identity, kept.following)

    def _let_in(self, request: Request, identity: Identity, following: str) -> Response:
        accounts, asker = self._accounts(request), find_asker(request.scope)
        person = asker.person if asker and asker.kind == "session" else None
        if person is not None and accounts.find(identity) is None:
            return self._ask_to_link(request, identity, person)
        signed_in = self._begin_session(request, accounts.sign_in(identity))
        return self.sign_in.redirect_signed_in(signed_in, following)

    def _begin_session(self, request: Request, person: Person) -> SignedIn:
        service = SignInService(self.open_database(), self.sign_in.passwords)
        issuer = self.provider.settings.issuer
        return service.begin(person, self.cookies.read_visitor(request), issuer=issuer)

    def _ask_to_link(self, request: Request, identity: Identity, person: Person) -> Response:
        kept = _KeptIdentity(
            issuer=identity.issuer,
            subject=identity.subject,
            name=identity.email or identity.name or identity.subject,
            person_id=person.id,
            expires_at=datetime.now(UTC) + ATTEMPT_LIFETIME,
        )
        return self._show_link(request, kept, self._seal(kept))

    def _show_link(
        self, request: Request, kept: _KeptIdentity, sealed: str, trouble: str = ""
    ) -> Response:
        values = {
            "identity": sealed,
            "name": kept.name,
            "provider": self.provider.settings.host,
            "trouble": trouble,
        }
        return page(request, "openid_link.html", "", values, 422 if trouble else 200)

    def _find_invitation(self, sealed: str | None) -> str:
        """Return the code of the invitation that the attempt was to accept, if that can be read."""
        try:
            return self._open(_KeptAttempt, sealed or "").invitation
        except SignInRefusedError:
            return ""

    def _refuse(
        self, request: Request, error: Exception, following: str, invitation: str
    ) -> Response:
        """Say why, where the person can go on otherwise."""
        trouble, status = self._describe_refusal(error)
        match error:
            case _ if invitation:
                return self.sign_in.render_invitation(request, invitation, trouble, status)
            case AccountExistsError(email=email):
                return self.sign_in.render(request, CONTINUE, email, trouble, status)
            case _:
                return self.sign_in.render(request, following, "", trouble, status)

    def _describe_refusal(self, error: Exception) -> tuple[str, int]:
        """Return the sentence and the status."""
        if isinstance(error, SignInRefusedError):
            return str(error), 403
        LOG.warning("%s", error)
        host = self.provider.settings.host
        return f"Signing in with {host} is not possible now. The log says why.", 503

    def _accounts(self, request: Request) -> ProviderAccounts:
        domains = self.provider.settings.domains
        return ProviderAccounts(self.open_database(), domains, read_address(request))

    def _name_cookie(self, state: str) -> str:
        return f"{self.cookie}-{digest(state)[:8]}"

    def _seal(self, kept: BaseModel) -> str:
        return self.open_vault().seal(kept.model_dump(mode="json"))

    def _open(self, kind: type[Kept], sealed: str) -> Kept:
        """Open what was sealed. Raises SignInRefusedError: it was not sealed here, or for something else."""
        try:
            return kind.model_validate(self.open_vault().open(sealed))
        except (NotConfiguredError, ValidationError) as error:
            raise SignInRefusedError(
                "This browser began another sign-in. Sign in again."
            ) from error


def _check_has_accounts(request: Request) -> None:
    """Raise NotFoundError if nobody signs in yet; the first account is an admin's."""
    if not get_request_context(request.scope).has_accounts:
        raise NotFoundError("There is no page or route at this address.")
