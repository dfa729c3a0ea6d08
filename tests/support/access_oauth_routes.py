"""The routes by which programs are connected to accounts."""

from backend.api.authorization import Permission
from tests.support.access_expected import OBJECT, Kind, answers

_ANYONE, _ACCOUNT, _ACCOUNTS = Permission.ANYONE, Permission.ACCOUNT, Permission.ACCOUNTS

ROUTES_OF_OAUTH = {
    "GET /.well-known/oauth-protected-resource": answers(_ANYONE),
    "GET /.well-known/oauth-protected-resource/mcp": answers(_ANYONE),
    "GET /.well-known/oauth-authorization-server": answers(_ANYONE),
    "GET /.well-known/oauth-authorization-server/mcp": answers(_ANYONE),
    # Nothing is sent that names a client.
    "POST /oauth/register": answers(_ANYONE, found=400, json={}),
    "POST /oauth/token": answers(_ANYONE, found=400, form={}),
    "POST /oauth/revoke": answers(_ANYONE, found=401, form={"token": "x"}),
    "GET /oauth/authorize": answers(_ANYONE, found=400),
    "POST /oauth/consent": answers(_ACCOUNT, found=400, form={}),
    "POST /account/program": answers(_ACCOUNT, Kind.CONNECTED_PROGRAM, 303, form={"grant": OBJECT}),
    "POST /tokens/program": answers(_ACCOUNTS, Kind.OAUTH_CLIENT, 303, form={"client": OBJECT}),
}
