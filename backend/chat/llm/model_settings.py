"""Where a language model is, what it can do, and how messages name what an admin may have to correct."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SettingNames:
    """What messages to an admin call the settings of a model."""

    url: str
    model: str
    key: str
    window: str

    @classmethod
    def of_stored(cls, name: str) -> "SettingNames":
        """Name the settings of a model that an admin has set under this name."""
        return cls(
            f"the base URL of {name}",
            f"the model id of {name}",
            f"the key of {name}",
            f"the context window of {name}",
        )


FROM_ENVIRONMENT = SettingNames(
    *(f"QUARRY_LLM_{name}" for name in ("URL", "MODEL", "KEY", "WINDOW"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    base_url: str
    """Usually ends in `/v1`."""
    model: str
    api_key: str | None = field(default=None, repr=False)
    context_window: int = 32_000
    """Tokens, of prompt and answer together."""
    answer_tokens: int = 2_048
    """Reserved for the answer; never more than a quarter of the window."""
    temperature: float | None = None
    """None leaves it to the server; some models accept only their default."""
    first_backoff: float = 0.5
    """Seconds before the first retry; doubled for each further one."""
    name: str = ""
    """By which people know it; empty: by the id that its endpoint has for it."""
    calls_tools: bool = True
    sees_pictures: bool = False
    reasons: bool = False
    """It may be silent for long before its first token."""
    names: SettingNames = FROM_ENVIRONMENT

    @property
    def prompt_tokens(self) -> int:
        return self.context_window - min(self.answer_tokens, self.context_window // 4)

    @property
    def shown_name(self) -> str:
        return self.name or self.model

    def hide_key(self, text: str) -> str:
        """Return what a server wrote without the key, which it may repeat."""
        return text.replace(self.api_key, "…") if self.api_key else text
