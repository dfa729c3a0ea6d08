"""The page on which somebody chooses another password, by a link that an admin has made."""

from collections.abc import Callable
from dataclasses import dataclass

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from backend.access.api_tokens import OwnTokens
from backend.access.password_reset import PasswordResetService
from backend.access.passwords import SHORTEST, PasswordQueue, Passwords
from backend.access.sign_in import DEVICE_LIFETIME
from backend.api.account_authentication import AccountCookies
from backend.api.authentication import read_address
from backend.api.authorization import Permission, requires
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from backend.web.forms import NO_FORM, Form, FormDependency
from backend.web.pages.account_pages import read_own_tokens
from backend.web.pages.sign_in import SIGN_IN, Code
from backend.web.templates import page
from connectors.errors import InvalidInputError

PASSWORD_RESET = "/password-reset"


@dataclass(frozen=True, slots=True)
class PasswordResetPages:
    open_database: Callable[[], Database]
    cookies: AccountCookies
    passwords: Passwords
    queue: PasswordQueue

    def mount(self, app: FastAPI) -> None:
        app.get(PASSWORD_RESET, include_in_schema=False)(self.show)
        app.post(PASSWORD_RESET, include_in_schema=False)(self.choose_password)

    @requires(Permission.ANYONE)
    def show(self, request: Request, code: Code = "") -> Response:
        return _render(request, code, self._service(request).find_person(code))

    @requires(Permission.ANYONE)
    async def choose_password(self, request: Request, form: FormDependency) -> Response:
        """Set the password; the person then signs in with it."""
        service, code = self._service(request), form.get("code", "")
        person = await to_thread.run_sync(service.find_person, code)
        try:
            device = await self.queue.run(
                read_address(request),
                service.finish,
                code,
                form.get("password", ""),
                self.passwords,
                tokens=read_own_tokens(form),
            )
        except InvalidInputError as error:
            return _render(request, code, person, str(error), form)
        answer = RedirectResponse(SIGN_IN, 303)
        self.cookies.give(answer, self.cookies.device, device, DEVICE_LIFETIME)
        return answer

    def _service(self, request: Request) -> PasswordResetService:
        return PasswordResetService(self.open_database(), Actor("visitor", read_address(request)))


def _render(
    request: Request, code: str, person: Person, trouble: str = "", form: Form = NO_FORM
) -> Response:
    values = {
        "code": code,
        "email": person.email,
        "trouble": trouble,
        "shortest": SHORTEST,
        "revokes_tokens": read_own_tokens(form) is OwnTokens.REVOKE,
    }
    return page(request, "password_reset.html", "", values, 422 if trouble else 200)
