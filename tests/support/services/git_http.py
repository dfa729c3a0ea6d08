"""Repositories over HTTP, by git's own `git http-backend`, behind a door that can be shut."""

import base64
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from tests.support.services.serving import ReceivedRequest, Reply, reply_text

USER, TOKEN = "x-access-token", "right-token"


@dataclass
class GitHttp:
    """All repositories below a folder: `/handbook.git` is the one in `folder/handbook.git`."""

    folder: Path
    wants_token: bool = True
    token: str = TOKEN
    trouble: Reply | None = None
    """Answered instead, once `left` more requests were answered properly."""
    left: int = 0
    cut: int | None = field(default=None)
    """Bytes that are left of a body, once `left` more requests were answered properly."""

    def __call__(self, request: ReceivedRequest) -> Reply:
        self.left -= 1
        if self.left < 0 and self.trouble is not None:
            return self.trouble
        if self.wants_token and request.headers.get("authorization") != self._right:
            return Reply(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})
        reply = self._answered(request)
        if self.left < 0 and self.cut is not None:
            assert isinstance(reply.body, bytes)
            return Reply(status=reply.status, headers=reply.headers, body=reply.body[: self.cut])
        return reply

    @property
    def _right(self) -> str:
        return "Basic " + base64.b64encode(f"{USER}:{self.token}".encode()).decode()

    def _answered(self, request: ReceivedRequest) -> Reply:
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
    """What a proxy puts in the place of an answer."""
    return reply_text("<html><h1>Sign in to the network</h1></html>", media_type="text/html")
