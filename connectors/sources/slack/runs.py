"""What a checkpoint keeps of a run by the API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from connectors.sources.slack.checkpoint import Mark
from connectors.sources.slack.models import BEGINNING, is_ts


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Moments in seconds since 1970, by the clock of this machine."""

    began: float
    compared: float
    """When the last comparison of all began."""
    channels: str
    """A digest of those that it reads."""
    oldest: str = BEGINNING
    has_new_channels: bool = False

    @classmethod
    def of(cls, mark: Mark | None) -> Self | None:
        match mark.state if mark else None:
            case {
                "began": int() | float() as began,
                "compared": int() | float() as compared,
                "channels": str(channels),
                "oldest": str(oldest),
                "new": bool(new),
            } if is_ts(oldest):
                return cls(
                    began=began,
                    compared=compared,
                    channels=channels,
                    oldest=oldest,
                    has_new_channels=new,
                )
            case _:
                return None

    def state(self) -> Mapping[str, Any]:
        return {
            "began": self.began,
            "compared": self.compared,
            "channels": self.channels,
            "oldest": self.oldest,
            "new": self.has_new_channels,
        }
