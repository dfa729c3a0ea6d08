"""An OpenID provider on this machine that is as strict as the standard asks, with faults to order."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey

from backend.access.openid.claims import Identity
from backend.access.openid.code_flow import Attempt, AuthorizationResponse, CodeFlow
from backend.access.openid.provider import Provider, ProviderSettings

REDIRECT_URI = "https://quarry.example.com/sign-in/openid/callback"
CLIENT_ID = "quarry"
CLIENT_SECRET = "a secret: of + the % client"

_KEYS: dict[str, Key] = {}
"""Of this process: a key of RSA takes a while to make."""


def make_key(name: str) -> Key:
    """A key of that name, the same each time."""
    if name not in _KEYS:
        _KEYS[name] = (
            ECKey.generate_key("P-256", {"kid": name})
            if name.startswith("ec")
            else RSAKey.generate_key(2048, {"kid": name})
        )
    return _KEYS[name]


@dataclass(frozen=True)
class Issued:
    """What a code stands for."""

    redirect_uri: str
    challenge: str
    nonce: str


@dataclass(frozen=True)
class Reply:
    status: int
    body: Mapping[str, Any]
    location: str | None = None


@dataclass
class OpenIdProvider:
    """Whoever comes to it is signed in at once, as the person of `claims`."""

    issuer: str
    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "248289761001"})
    """Of the person, in the ID token."""
    userinfo: dict[str, Any] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    """That Entra's `getMemberObjects` returns."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Replaces entries of the discovery document."""
    replaced: dict[str, Any] = field(default_factory=dict)
    """Replaces claims of the ID token; None leaves one out."""
    sign: Callable[[dict[str, Any]], str] | None = None
    """Signs the ID token in place of the provider."""
    key: Key = field(default_factory=lambda: make_key("first"))
    published: list[Key] | None = None
    """The keys that it shows; by default the one it signs with."""
    algorithm: str = "RS256"
    clock_offset: float = 0.0
    """Seconds by which its clock is ahead."""
    response_parameters: dict[str, str] = field(default_factory=dict)
    """Added to the address to which it sends the browser back."""
    failing: set[str] = field(default_factory=set)
    """Paths that answer with the status 500."""
    requests: list[str] = field(default_factory=list)
    codes: dict[str, Issued] = field(default_factory=dict)
    access_tokens: set[str] = field(default_factory=set)

    def answer_get(self, path: str, query: dict[str, str], authorization: str) -> Reply:
        match path:
            case "/.well-known/openid-configuration":
                return Reply(200, self._describe())
            case "/jwks":
                keys = [self.key] if self.published is None else self.published
                return Reply(200, {"keys": [key.as_dict(private=False) for key in keys]})
            case "/authorize":
                return self._authorize(query)
            case "/userinfo" if authorization.removeprefix("Bearer ") in self.access_tokens:
                return Reply(200, {"sub": self.claims["sub"], **self.userinfo})
            case "/userinfo":
                return Reply(401, {"error": "invalid_token"})
            case _:
                return Reply(404, {})

    def answer_post(self, path: str, body: str, authorization: str) -> Reply:
        match path:
            case "/token":
                return self._exchange({k: v[0] for k, v in parse_qs(body).items()}, authorization)
            case "/v1.0/me/getMemberObjects":
                if authorization.removeprefix("Bearer ") not in self.access_tokens:
                    return Reply(401, {})
                assert json.loads(body) == {"securityEnabledOnly": False}
                return Reply(200, {"value": self.groups})
            case _:
                return Reply(404, {})

    def _describe(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }

    def _authorize(self, query: dict[str, str]) -> Reply:
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT_ID
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = Issued(query["redirect_uri"], query["code_challenge"], query["nonce"])
        returned = {"code": code, "state": query["state"], "iss": self.issuer}
        returned |= self.response_parameters
        address = f"{query['redirect_uri']}?{urlencode(returned)}"
        return Reply(302, {}, address)

    def _exchange(self, form: dict[str, str], authorization: str) -> Reply:
        if self._read_client(form, authorization) != [CLIENT_ID, CLIENT_SECRET]:
            return Reply(401, {"error": "invalid_client"})
        issued = self.codes.pop(form["code"], None)  # a code is good once
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if issued is None or (issued.redirect_uri, issued.challenge) != (
            form["redirect_uri"],
            challenge,
        ):
            return Reply(400, {"error": "invalid_grant"})
        token = secrets.token_urlsafe(16)
        self.access_tokens.add(token)
        id_token = self._sign(issued.nonce)
        return Reply(200, {"access_token": token, "token_type": "Bearer", "id_token": id_token})

    def _read_client(self, form: dict[str, str], authorization: str) -> list[str]:
        if "client_secret_post" in self.metadata.get("token_endpoint_auth_methods_supported", []):
            return [form["client_id"], form["client_secret"]]
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        return [unquote_plus(part) for part in pair.split(":")]

    def _sign(self, nonce: str) -> str:
        now = int(time.time() + self.clock_offset)
        standard = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
        }
        claims = {**standard, **self.claims, **self.replaced}
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.sign is not None:
            return self.sign(claims)
        return jwt.encode({"alg": self.algorithm, "kid": self.key.kid}, claims, self.key)


@contextmanager
def openid_provider() -> Iterator[OpenIdProvider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            self._answer(url.path, lambda sent: provider.answer_get(url.path, query, sent))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(self.path, lambda sent: provider.answer_post(self.path, body, sent))

        def _answer(self, path: str, answer: Callable[[str], Reply]) -> None:
            provider.requests.append(path)
            failing = path in provider.failing
            said = Reply(500, {}) if failing else answer(self.headers.get("Authorization", ""))
            body = json.dumps(said.body).encode()
            self.send_response(said.status)
            if said.location:
                self.send_header("Location", said.location)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Tests speak for themselves."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = OpenIdProvider(issuer=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def connect(provider: OpenIdProvider, **settings: Any) -> Provider:
    given: dict[str, Any] = {
        "issuer": provider.issuer,
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
    }
    return Provider(ProviderSettings(**given | settings))


def go_there(flow: CodeFlow) -> tuple[AuthorizationResponse, Attempt]:
    """What a browser brings back from the provider."""
    url, attempt = flow.begin(REDIRECT_URI, datetime.now(UTC))
    location = urlsplit(httpx.get(url).headers["location"])
    assert location._replace(query="").geturl() == REDIRECT_URI
    query = {name: values[0] for name, values in parse_qs(location.query).items()}
    return AuthorizationResponse.model_validate(query), attempt


def sign_in(flow: CodeFlow) -> Identity:
    return flow.finish(*go_there(flow), datetime.now(UTC))
