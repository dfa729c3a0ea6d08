"""Repositories over HTTP by `git http-backend`, with authentication and injected errors."""

import base64
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from tests.support.services.serving import ReceivedRequest, Reply, reply_text

USER, TOKEN = "x-access-token", "right-token"


@dataclass
class GitHttp:
    """Serves the repositories below a folder: `/handbook.git` is `folder/handbook.git`."""

    folder: Path
    requires_token: bool = True
    token: str = TOKEN
    error_reply: Reply | None = None
    """Sent after `requests_before_error` further requests."""
    requests_before_error: int = 0
    truncate_to: int | None = None
    """The number of bytes of each body that are sent after `requests_before_error` further requests."""

    def __call__(self, request: ReceivedRequest) -> Reply:
        self.requests_before_error -= 1
        if self.requests_before_error < 0 and self.error_reply is not None:
            return self.error_reply
        if (
            self.requires_token
            and request.headers.get("authorization") != self._expected_authorization
        ):
            return Reply(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})
        reply = self._run_backend(request)
        if self.requests_before_error < 0 and self.truncate_to is not None:
            assert isinstance(reply.body, bytes)
            return Reply(
                status=reply.status, headers=reply.headers, body=reply.body[: self.truncate_to]
            )
        return reply

    @property
    def _expected_authorization(self) -> str:
        return "Basic " + base64.b64encode(f"{USER}:{self.token}".encode()).decode()

    def _run_backend(self, request: ReceivedRequest) -> Reply:
        done = subprocess.run(
            ["git", "http-backend"],
            input=request.body,
            capture_output=True,
            check=True,
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "GIT_PROJECT_ROOT": str(self.folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
                "REQUEST_METHOD": request.method,
                "PATH_INFO": request.path,
                "QUERY_STRING": urlencode(request.query, doseq=True),
                "CONTENT_TYPE": request.headers.get("content-type", ""),
                "CONTENT_LENGTH": str(len(request.body)),
                "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            },
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(re.findall(r"(.+?): (.*)", head.decode("ascii").replace("\r", "")))
        status = int(headers.pop("Status", "200").split()[0])
        return Reply(status=status, headers=headers, body=body)


def web_page() -> Reply:
    """Return a page as a captive portal sends it instead of the response."""
    return reply_text("<html><h1>Sign in to the network</h1></html>", media_type="text/html")
