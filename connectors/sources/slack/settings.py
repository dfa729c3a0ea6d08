"""The settings of a Slack source: by the API, or from an export."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from connectors.http_client.setting_types import PrivateHosts, WebAddress, check_encrypted
from connectors.setting_types import AbsolutePath


class ApiSettings(BaseModel):
    """Read with Slack's Web API and the token of an app."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["api"] = "api"
    api_url: WebAddress = Field(
        default="https://slack.com/api",
        description="The URL of the API; https://slack-gov.com/api for GovSlack.",
    )
    look_back_days: float = Field(
        default=14.0,
        gt=0,
        description="Days of messages that each run compares again, for edits and new replies.",
    )
    edited_answers_days: float = Field(
        default=2.0,
        ge=0,
        description="Threads with a reply in the last days are read again completely, for edited"
        " replies.",
    )
    compare_days: float = Field(
        default=7.0,
        ge=0,
        description="Days after which a run compares the whole history, for edits of and replies to"
        " older messages. 0: never.",
    )
    largest_file: int = Field(
        default=20_000_000,
        ge=0,
        description="Bytes. Of a larger file only the name is indexed. 0: only names.",
    )
    private_hosts: PrivateHosts = ()

    @model_validator(mode="after")
    def _check_encrypted(self) -> "ApiSettings":
        check_encrypted(self.api_url, self.private_hosts)
        return self


class ExportSettings(BaseModel):
    """Read from a zip file that Slack exported, on the disk of this machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["export"] = "export"
    path: AbsolutePath = Field(description="The zip file. Replace it with a newer one to update.")
    workspace_url: WebAddress = Field(
        description="The URL of the workspace, such as https://acme.slack.com, for links."
    )
