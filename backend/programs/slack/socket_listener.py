"""Receives what happens in Slack over a connection that the bot opens (Socket Mode).

An envelope is acknowledged once what it asks is taken in the database, which is a matter of milliseconds; Slack delivers
again what is not acknowledged within three seconds. The library keeps the connection, replaces it when Slack asks for it, and
opens another one when it is lost (https://docs.slack.dev/apis/events-api/using-socket-mode).
"""

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.builtin import SocketModeClient
from slack_sdk.socket_mode.client import BaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web import WebClient

from connectors.errors import NotConfiguredError, QuarryError, TemporarilyUnavailableError

LOG = logging.getLogger("quarry.slack")
PING_SECONDS = 3.0
"""Between two pings; a connection on which five fail, or none is answered for four times as long, is replaced."""
_THREADS = 4
_RETRY_AFTER = timedelta(seconds=30)

Take: TypeAlias = Callable[[str, Mapping[str, Any]], Callable[[], object] | None]
"""Takes what an envelope of a type holds, and returns what is to be done once it is acknowledged. Raises QuarryError."""


class _SecureClient(SocketModeClient):
    """Connects with TLS alone wherever the Web API is asked with TLS.

    The library decides by the port of the address whether it encrypts.
    """

    def issue_new_wss_url(self) -> str:
        address = super().issue_new_wss_url()
        parts = urlsplit(address)
        is_encrypted = parts.scheme == "wss" and (parts.port or 443) == 443
        if self.web_client.base_url.startswith("https:") and not is_encrypted:
            raise NotConfiguredError("Slack names an address without TLS for Socket Mode.")
        return address


class SocketListener:
    def __init__(self, app_token: str, client: WebClient, take: Take) -> None:
        self._take = take
        self._client = _SecureClient(
            app_token,
            logger=logging.getLogger("quarry.slack.socket"),
            web_client=client,
            ping_interval=PING_SECONDS,
            concurrency=_THREADS,
        )
        self._client.socket_mode_request_listeners.append(self._receive)

    def start(self) -> None:
        """Connect.

        Raises:
            NotConfiguredError: the token of the app is not valid.
            TemporarilyUnavailableError: Slack cannot be reached.
        """
        try:
            self._client.connect()
        except SlackApiError as error:
            self.stop()
            raise NotConfiguredError(
                f"Slack refuses QUARRY_SLACK_APP_TOKEN: {error.response['error']}. It takes a token of the app with the"
                " scope connections:write, and Socket Mode switched on."
            ) from error
        except (NotConfiguredError, OSError) as error:
            self.stop()
            raise TemporarilyUnavailableError(
                f"Slack cannot be reached: {error}", _RETRY_AFTER
            ) from error

    def stop(self) -> None:
        """Receive nothing more."""
        self._client.close()

    def _receive(self, client: BaseSocketModeClient, request: SocketModeRequest) -> None:
        try:
            act = self._take(request.type, request.payload)
        except QuarryError as error:
            # It is not acknowledged: Slack delivers it again.
            LOG.warning("Slack events cannot be processed now: %s", error)
            return
        client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        if act is not None:
            act()
