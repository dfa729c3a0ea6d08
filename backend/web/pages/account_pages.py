"""The page of a person's own account: sessions, password, connected programs, accounts at sources, API tokens."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from backend.access.api_tokens import ApiTokenService, OwnTokens, TokenScope
from backend.access.oauth.grants import disconnect, list_programs
from backend.access.own_account import OwnAccount
from backend.access.passwords import SHORTEST, PasswordQueue, Passwords
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.access.source_accounts import OwnSourceAccounts
from backend.api.account_authentication import AccountCookies
from backend.api.authorization import Asker, AskerDependency, Permission, get_person, requires
from backend.api.languages import parse_language
from backend.store.accounts import api_tokens
from backend.store.database import Database
from backend.web.forms import NO_FORM, Form, FormDependency
from backend.web.templates import page
from connectors.errors import ConflictError, InvalidInputError

ACCOUNT = "/account"
_LIFETIME = timedelta(days=90)
_OF_READERS = (TokenScope.SEARCH, TokenScope.ASK)
_OF_MANAGERS = (*_OF_READERS, TokenScope.INGEST)


@dataclass(frozen=True, slots=True)
class AccountPages:
    open_database: Callable[[], Database]
    cookies: AccountCookies
    passwords: Passwords
    queue: PasswordQueue

    def mount(self, app: FastAPI) -> None:
        app.get(ACCOUNT, include_in_schema=False)(self.show)
        app.post(f"{ACCOUNT}/session", include_in_schema=False)(self.end_session)
        app.post(f"{ACCOUNT}/language", include_in_schema=False)(self.choose_language)
        app.post(f"{ACCOUNT}/password", include_in_schema=False)(self.change_password)
        app.post(f"{ACCOUNT}/identity", include_in_schema=False)(self.unlink_identity)
        app.post(f"{ACCOUNT}/program", include_in_schema=False)(self.disconnect_program)
        app.post(f"{ACCOUNT}/source-accounts", include_in_schema=False)(self.ask_for_source_account)
        app.post(f"{ACCOUNT}/source-account", include_in_schema=False)(self.give_up_source_account)
        app.post(f"{ACCOUNT}/tokens", include_in_schema=False)(self.create_token)
        app.post(f"{ACCOUNT}/token", include_in_schema=False)(self.revoke_token)

    @requires(Permission.ACCOUNT)
    def show(self, request: Request, asker: AskerDependency) -> Response:
        return self._render(request, asker)

    @requires(Permission.ACCOUNT)
    def end_session(self, asker: AskerDependency, form: FormDependency) -> Response:
        number = form.get("session", "")
        self._account(asker).end_session(int(number) if _is_id(number) else 0)
        return RedirectResponse(ACCOUNT, 303)

    @requires(Permission.ACCOUNT)
    def choose_language(self, asker: AskerDependency, form: FormDependency) -> Response:
        self._account(asker).choose_language(parse_language(form.get("language")))
        return RedirectResponse(ACCOUNT, 303)

    @requires(Permission.ACCOUNT)
    async def change_password(
        self, request: Request, asker: AskerDependency, form: FormDependency
    ) -> Response:
        try:
            await self.queue.run(
                asker.actor.address,
                self._account(asker).change_password,
                form.get("current", ""),
                form.get("new", ""),
                request.cookies[self.cookies.session],
                self.passwords,
                tokens=read_own_tokens(form),
            )
        except InvalidInputError as error:
            return await to_thread.run_sync(self._render, request, asker, str(error), "", form)
        return RedirectResponse(ACCOUNT, 303)

    @requires(Permission.ACCOUNT)
    def unlink_identity(
        self, request: Request, asker: AskerDependency, form: FormDependency
    ) -> Response:
        try:
            self._account(asker).unlink_identity(form.get("issuer", ""), form.get("subject", ""))
        except ConflictError as error:
            return self._render(request, asker, str(error))
        return RedirectResponse(ACCOUNT, 303)

    @requires(Permission.ACCOUNT)
    def disconnect_program(self, asker: AskerDependency, form: FormDependency) -> Response:
        number = form.get("grant", "")
        grant_id = int(number) if _is_id(number) else 0
        disconnect(self.open_database(), get_person(asker), grant_id, asker.actor)
        return RedirectResponse(ACCOUNT, 303)

    @requires(Permission.ACCOUNT)
    def ask_for_source_account(
        self, request: Request, asker: AskerDependency, form: FormDependency
    ) -> Response:
        try:
            self._source_accounts(asker).ask(form.get("source", ""), form.get("account", ""))
        except (InvalidInputError, ConflictError) as error:
            return self._render(request, asker, str(error))
        return RedirectResponse(ACCOUNT, 303)

    @requires(Permission.ACCOUNT)
    def give_up_source_account(self, asker: AskerDependency, form: FormDependency) -> Response:
        self._source_accounts(asker).withdraw(form.get("account_id", ""))
        return RedirectResponse(ACCOUNT, 303)

    @requires(Permission.ACCOUNT)
    def create_token(
        self, request: Request, asker: AskerDependency, form: FormDependency
    ) -> Response:
        chosen = [scope for scope in list_scopes(asker) if scope in form]
        try:
            token = self._tokens(asker).create(form.get("name", ""), chosen, _LIFETIME)
        except (InvalidInputError, ConflictError) as error:
            return self._render(request, asker, trouble=str(error))
        return self._render(request, asker, token=token)

    @requires(Permission.ACCOUNT)
    def revoke_token(self, asker: AskerDependency, form: FormDependency) -> Response:
        self._tokens(asker).revoke(form.get("name", ""))
        return RedirectResponse(ACCOUNT, 303)

    def _render(
        self,
        request: Request,
        asker: Asker,
        trouble: str = "",
        token: str = "",
        form: Form = NO_FORM,
    ) -> Response:
        """Return the page; a new token is in this answer alone."""
        account = self._account(asker)
        values = {
            "sessions": account.list_sessions(),
            "identities": account.list_identities(),
            "current": digest(request.cookies[self.cookies.session]),
            "tokens": api_tokens.list_of_person(self.open_database(), account.person.id),
            "source_accounts": self._source_accounts(asker).list_accounts(),
            "programs": list_programs(self.open_database(), account.person),
            "scopes": list_scopes(asker),
            "shortest": SHORTEST,
            "trouble": trouble,
            "token": token,
            "revokes_tokens": read_own_tokens(form) is OwnTokens.REVOKE,
        }
        return page(request, "account.html", "", values, 422 if trouble else 200)

    def _account(self, asker: Asker) -> OwnAccount:
        return OwnAccount(self.open_database(), get_person(asker), asker.actor)

    def _source_accounts(self, asker: Asker) -> OwnSourceAccounts:
        return OwnSourceAccounts(self.open_database(), get_person(asker), asker.actor)

    def _tokens(self, asker: Asker) -> ApiTokenService:
        return ApiTokenService(self.open_database(), asker.actor, get_person(asker))


def list_scopes(asker: Asker) -> tuple[TokenScope, ...]:
    """Return what a token of the asker may be made for: what the asker may do."""
    match asker.role:
        case Role.ADMIN:
            return tuple(TokenScope)
        case Role.SOURCE_MANAGER:
            return _OF_MANAGERS
        case Role.MEMBER:
            return _OF_READERS


def read_own_tokens(form: Form) -> OwnTokens:
    """Return what a form in which somebody chooses a password says of their API tokens."""
    return OwnTokens.REVOKE if "revoke_tokens" in form else OwnTokens.KEEP


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10
