"""The pages by which people come in and go out: sign-in, sign-out, and accepting an invitation."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import FastAPI, Query, Request
from fastapi.responses import RedirectResponse, Response

from backend.access.openid.provider import ProviderSettings, is_of_domains
from backend.access.passwords import SHORTEST, PasswordQueue, Passwords
from backend.access.people import AccountDetails, PeopleService
from backend.access.sessions import LONGEST, Visitor, end_session
from backend.access.sign_in import DEVICE_LIFETIME, Limited, Refused, SignedIn, SignInService
from backend.api.account_authentication import AccountCookies
from backend.api.authentication import CHALLENGE
from backend.api.authorization import AskerDependency, Permission, find_asker, requires
from backend.api.problem_details import Problem, problem
from backend.api.request_context import get_request_context
from backend.store import audit
from backend.store.accounts.invitations import Invitation
from backend.store.audit import Actor
from backend.store.database import Database
from backend.web.forms import FormDependency
from backend.web.templates import page
from connectors.errors import ConflictError, InvalidInputError

SIGN_IN = "/sign-in"
LONGEST_NEXT = 2_000
"""Characters of an address to which a person is led after signing in."""
# An address of this server: a browser reads // and /\ as the beginning of another host's.
_LOCAL = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")
_REFUSED = "The address or the password is not right."
_SESSION_ENDED = problem(401, "The session has ended.")
_TOO_MANY = (
    "Too many sign-ins have failed. Try again in a quarter of an hour, or ask an admin for a link by which you choose"
    " another password."
)


def lead_to_sign_in(request: Request) -> Response:
    """Return what leads a browser to the sign-in page, and from there back to where it was."""
    if request.headers.get("sec-fetch-mode", "navigate") != "navigate":
        # A script asks for a part of a page, which it must not replace by the sign-in page.
        return page(request, "not_signed_in.html", "", {"problem": _SESSION_ENDED}, 401)
    query = f"?{request.url.query}" if request.url.query else ""
    following = request.url.path + query if request.method == "GET" else "/"
    return RedirectResponse(f"{SIGN_IN}?{urlencode({'next': following})}", 303)


def check_next(address: str) -> str:
    """Return an address of this server that a person is led to, or the first page instead of any other."""
    is_local = len(address) <= LONGEST_NEXT and _LOCAL.fullmatch(address)
    return address if is_local else "/"


Next = Annotated[str, Query(alias="next", max_length=LONGEST_NEXT)]
Code = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class SignInPages:
    open_database: Callable[[], Database]
    cookies: AccountCookies
    passwords: Passwords
    queue: PasswordQueue
    provider: ProviderSettings | None = None
    """By which people may sign in, too."""

    def mount(self, app: FastAPI) -> None:
        app.get(SIGN_IN, include_in_schema=False)(self.show_sign_in)
        app.post(SIGN_IN, include_in_schema=False)(self.sign_in)
        app.post("/sign-out", include_in_schema=False)(self.sign_out)
        app.get("/invitation", include_in_schema=False)(self.show_invitation)
        app.post("/invitation", include_in_schema=False)(self.accept_invitation)

    @requires(Permission.ANYONE)
    async def show_sign_in(self, request: Request, following: Next = "/") -> Response:
        if not get_request_context(request.scope).has_accounts:
            raise _no_accounts()
        asker = find_asker(request.scope)
        if asker is not None and asker.kind == "session":
            return RedirectResponse(check_next(following), 303)
        return self.render(request, following)

    @requires(Permission.ANYONE)
    async def sign_in(self, request: Request, form: FormDependency) -> Response:
        if not get_request_context(request.scope).has_accounts:
            raise _no_accounts()
        email, following = form.get("email", ""), form.get("next", "/")
        service = SignInService(self.open_database(), self.passwords)
        visitor = self.cookies.read_visitor(request)
        result = await self.queue.run(
            visitor.address,
            service.sign_in_with_password,
            email,
            form.get("password", ""),
            visitor,
        )
        match result:
            case SignedIn():
                return self.redirect_signed_in(result, check_next(following))
            case Refused():
                return self.render(request, following, email, _REFUSED, 401)
            case Limited(retry_after=wait):
                answer = self.render(request, following, email, _TOO_MANY, 429)
                answer.headers["Retry-After"] = str(int(wait.total_seconds()))
                return answer

    @requires(Permission.ACCOUNT)
    def sign_out(self, request: Request, asker: AskerDependency) -> Response:
        database = self.open_database()
        with database.transaction() as transaction:
            end_session(transaction, request.cookies[self.cookies.session])
            audit.record(transaction, "sign_out", asker.actor.name, {}, asker.actor)
        answer = RedirectResponse(SIGN_IN, 303)
        answer.delete_cookie(
            self.cookies.session, secure=self.cookies.secure, httponly=True, samesite="lax"
        )
        return answer

    @requires(Permission.ANYONE)
    def show_invitation(self, request: Request, code: Code = "") -> Response:
        return self._invitation_page(request, code, self._find_invitation(code))

    @requires(Permission.ANYONE)
    async def accept_invitation(self, request: Request, form: FormDependency) -> Response:
        code, visitor = form.get("code", ""), self.cookies.read_visitor(request)
        chosen = AccountDetails(
            name=form.get("name", ""),
            password=form.get("password", ""),
            email=form.get("email", ""),
        )
        invitation = await to_thread.run_sync(self._find_invitation, code)
        try:
            signed_in = await self.queue.run(visitor.address, self._accept, code, chosen, visitor)
        except (InvalidInputError, ConflictError) as error:
            return self._invitation_page(request, code, invitation, chosen, str(error), 422)
        return self.redirect_signed_in(signed_in, "/")

    def _accept(self, code: str, chosen: AccountDetails, visitor: Visitor) -> SignedIn:
        database = self.open_database()
        people = PeopleService(database, Actor("visitor", visitor.address))
        person = people.accept_invitation(code, chosen, self.passwords)
        return SignInService(database, self.passwords).begin(person, visitor)

    def _find_invitation(self, code: str) -> Invitation:
        return PeopleService(self.open_database()).find_invitation(code)

    def render(
        self,
        request: Request,
        following: str,
        email: str = "",
        trouble: str = "",
        status: int = 200,
    ) -> Response:
        """Return the sign-in page.

        Args:
            following: the address that the person is led to afterwards.
        """
        values = {
            "next": check_next(following),
            "email": email,
            "trouble": trouble,
            "provider": self.provider and self.provider.host,
        }
        answer = page(request, "sign_in.html", "", values, status)
        if status == 401:
            answer.headers.update(CHALLENGE)
        return answer

    def render_invitation(self, request: Request, code: str, trouble: str, status: int) -> Response:
        """Return the page of an invitation that the provider did not accept.

        Raises:
            InvalidInvitationError: it is not valid any more.
        """
        return self._invitation_page(
            request, code, self._find_invitation(code), None, trouble, status
        )

    def _invitation_page(
        self,
        request: Request,
        code: str,
        invitation: Invitation,
        chosen: AccountDetails | None = None,
        trouble: str = "",
        status: int = 200,
    ) -> Response:
        values = {
            "code": code,
            "email": invitation.email,
            "chosen": chosen,
            "trouble": trouble,
            "shortest": SHORTEST,
            "provider": self._find_provider(invitation),
        }
        return page(request, "invitation.html", "", values, status)

    def _find_provider(self, invitation: Invitation) -> str | None:
        """Return the name of the provider, if an invitation can be accepted by it."""
        provider, email = self.provider, invitation.email
        if provider is None or email is None or not is_of_domains(email, provider.domains):
            return None
        return provider.host

    def redirect_signed_in(self, signed_in: SignedIn, address: str) -> Response:
        answer = RedirectResponse(address, 303)
        self.cookies.give(answer, self.cookies.session, signed_in.session, LONGEST)
        self.cookies.give(answer, self.cookies.device, signed_in.device, DEVICE_LIFETIME)
        return answer


def _no_accounts() -> Problem:
    return Problem(problem(401, "This Quarry has no accounts."))
