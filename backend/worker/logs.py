"""The log of every process: one line of JSON for each entry, on standard error."""

import json
import logging
from datetime import UTC, datetime

_QUIET = (
    "alembic",
    "celery.app.trace",
    "celery.worker.strategy",
    "httpx",
    "mcp.server.streamable_http_manager",
    "uvicorn",
    "uvicorn.error",
)
"""Loggers that say nothing of use below a warning."""


class JsonFormatter(logging.Formatter):
    """Formats an entry as JSON. `extra={"fields": {…}}` of a log call adds these fields to it."""

    def __init__(self, process: str | None = None) -> None:
        super().__init__()
        self._process = {} if process is None else {"process": process}

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            **self._process,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def configure_logging(process: str | None = None) -> None:
    """Log to standard error.

    Args:
        process: a name of this process for its entries, where several of one kind log to the same place.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(process))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
