"""The way to the server over HTTP. The server is loaded with the first request, of which most installations see none:
the protocol's library is a sixth of what a process loads at its start."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from anyio import TASK_STATUS_IGNORED, Lock, create_task_group, sleep_forever, to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from backend.programs.mcp.server import FindAsker


class HttpTransport:
    """Streamable HTTP without sessions: each request is whole in itself, so that any process may answer it.

    Args:
        most_bytes: of a request's body.
    """

    def __init__(self, find_asker: "FindAsker", most_bytes: int) -> None:
        self._find_asker = find_asker
        self._most_bytes = most_bytes
        self._tasks: TaskGroup | None = None
        self._starting = Lock()
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer requests within the block; what is under way at its end is cancelled."""
        async with create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Raises ValueError: it is called outside of `run`."""
        async with self._starting:
            if self._manager is None:
                if self._tasks is None:
                    raise ValueError("requests are answered while the transport runs")
                self._manager = await self._tasks.start(self._serve)
            manager = self._manager
        await manager.handle_request(scope, receive, send)

    async def _serve(
        self, *, task_status: "TaskStatus[StreamableHTTPSessionManager]" = TASK_STATUS_IGNORED
    ) -> None:
        # Made here: one runs once, an application may be started again.
        manager = await to_thread.run_sync(self._make_manager)
        try:
            async with manager.run():
                task_status.started(manager)
                await sleep_forever()
        finally:
            self._manager = None

    def _make_manager(self) -> "StreamableHTTPSessionManager":
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from backend.programs.mcp.server import make_server

        return StreamableHTTPSessionManager(
            make_server(self._find_asker), stateless=True, max_request_body_size=self._most_bytes
        )
