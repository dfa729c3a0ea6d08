"""An application on a socket of this machine, in the process of the test, for clients that bring their own HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socket import socket

import uvicorn

from backend.api.app import Api

SECONDS = 60.0


@contextmanager
def run_app(app: Api) -> Iterator[str]:
    """Serve an application, and yield its address once it is ready."""
    with socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        running = threading.Thread(target=server.run, args=([listening],))
        running.start()
        try:
            assert app.state.app_state.warmup.ready.wait(SECONDS)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            running.join(SECONDS)
            assert not running.is_alive()
