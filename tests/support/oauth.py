"""Programs that are connected by OAuth: what they register, ask for and prove."""

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from httpx2 import Client, Response

CALLBACK = "http://127.0.0.1/callback"
"""As it is registered; the program listens at a port of its own."""
AT_A_PORT = "http://127.0.0.1:33418/callback"
CLIENT = {
    "client_name": "Editor",
    "redirect_uris": [CALLBACK, "https://editor.example.com/callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "token_endpoint_auth_method": "none",
}
Fields = Mapping[str, str | None]
"""None leaves a field out."""


def make_challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


@dataclass(frozen=True)
class Program:
    """A program that has registered, and the flow that it has begun."""

    client: Client
    """Without a session."""
    registered: Mapping[str, Any]
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    state: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    @property
    def id(self) -> str:
        return str(self.registered["client_id"])

    def make_request(self, **changed: str | None) -> dict[str, str]:
        """Return the parameters of the request by which a person is asked."""
        fields: Fields = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": AT_A_PORT,
            "state": self.state,
            "code_challenge": make_challenge(self.verifier),
            "code_challenge_method": "S256",
            **changed,
        }
        return _given(fields)

    def make_address(self, **changed: str | None) -> str:
        return f"/oauth/authorize?{urlencode(self.make_request(**changed))}"

    def redeem(self, code: str, /, **changed: str | None) -> Response:
        fields: Fields = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": self.verifier,
            "redirect_uri": AT_A_PORT,
            "client_id": self.id,
            **changed,
        }
        return self.client.post("/oauth/token", data=_given(fields))

    def refresh(self, token: str, /, **changed: str | None) -> Response:
        fields: Fields = {
            "grant_type": "refresh_token",
            "refresh_token": token,
            "client_id": self.id,
            **changed,
        }
        return self.client.post("/oauth/token", data=_given(fields))

    def revoke(self, token: str, /, **changed: str | None) -> Response:
        fields: Fields = {"token": token, "client_id": self.id, **changed}
        return self.client.post("/oauth/revoke", data=_given(fields))

    def use(self, access_token: str, path: str = "/api/documents") -> int:
        """Return how the server answers a request with an access token."""
        headers = {"authorization": f"Bearer {access_token}", "accept": "application/json"}
        return self.client.get(path, headers=headers).status_code


def _given(fields: Fields) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value is not None}


def register(client: Client, **changed: Any) -> Program:
    answer = client.post("/oauth/register", json=CLIENT | changed)
    assert answer.status_code == 201, answer.text
    return Program(client, answer.json())


def read_form(html: str) -> dict[str, str]:
    """Return the hidden fields of the page on which a person decides."""
    form = html[html.index('action="/oauth/consent"') :]
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in hidden}


def allow(browser: Client, address: str, decision: str = "allow") -> dict[str, str]:
    """Decide as the person whose browser it is, and return what the program is told."""
    shown = browser.get(address)
    assert shown.status_code == 200, shown.text
    sent = browser.post("/oauth/consent", data=read_form(shown.text) | {"decision": decision})
    assert sent.status_code == 303, sent.text
    return read_response(sent)


def read_response(sent: Response) -> dict[str, str]:
    return parse_response(sent.headers["location"])


def parse_response(address: str) -> dict[str, str]:
    """Return what a program reads in the address at which a person comes back."""
    return dict(parse_qsl(urlsplit(address).query))


def connect(browser: Client, program: Program, **changed: str | None) -> dict[str, Any]:
    """Go the whole way, and return the tokens."""
    code = allow(browser, program.make_address(**changed))["code"]
    answer = program.redeem(code, redirect_uri=changed.get("redirect_uri", AT_A_PORT))
    assert answer.status_code == 200, answer.text
    tokens: dict[str, Any] = answer.json()
    return tokens
