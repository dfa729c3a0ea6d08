"""The HTTP/1.1 protocol of the server: uvicorn's, with a limit to the time that a client takes to send a request.

uvicorn limits only the pause between two requests. A client that sends half a request would hold its connection for
ever, and some thousand such clients all connections that the process may open (the attack is known as Slowloris).
"""

import asyncio
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
"""Until the headers are complete, from the first byte or the connection on; then between two parts of the body."""


class TimedRequestProtocol(H11Protocol):
    """Answers a request that does not arrive in time with 408 (RFC 9110, section 15.5.9), and closes the connection."""

    request_seconds = REQUEST_SECONDS
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        their_state = self.conn.their_state
        if their_state is h11.SEND_BODY:
            self._stop_timer()
            self._start_timer()
        elif their_state is not h11.IDLE:
            self._stop_timer()
        elif self._timer is None:
            # Half of the next request of a connection that was kept.
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.request_seconds, self._end_request)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_request(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            # It is the application that does not read on.
            self._start_timer()
            return
        has_begun = bool(self.conn.trailing_data[0]) or self.conn.their_state is h11.SEND_BODY
        if has_begun and self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send_timeout()
        self.transport.close()

    def _send_timeout(self) -> None:
        if self.conn.our_state is h11.SEND_RESPONSE:
            # From now on the application can send nothing to this client.
            self.cycle.disconnected = True
        status = HTTPStatus.REQUEST_TIMEOUT
        headers = [("content-length", "0"), ("connection", "close")]
        response = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
        for event in (response, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
