"""The two ways to a workspace, as their owners set them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from connectors.http_client.setting_types import PrivateHosts, WebAddress, check_encrypted
from connectors.setting_types import AbsolutePath


class Api(BaseModel):
    """By Slack's Web API, with the token of an app."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["api"] = "api"
    api_url: WebAddress = Field(
        default="https://slack.com/api",
        description="Where the API is; https://slack-gov.com/api for GovSlack.",
    )
    look_back_days: float = Field(
        default=14.0,
        gt=0,
        description="Messages of the last days that each run compares again, for edits and for new"
        " answers.",
    )
    edited_answers_days: float = Field(
        default=2.0,
        ge=0,
        description="Threads with an answer in the last days are read again as a whole, for edited"
        " answers.",
    )
    compare_days: float = Field(
        default=7.0,
        ge=0,
        description="After so many days a run compares all of the history, for edits and answers to"
        " what is older. 0: never.",
    )
    largest_file: int = Field(
        default=20_000_000,
        ge=0,
        description="Bytes. A larger file is only named. 0: all files are only named.",
    )
    private_hosts: PrivateHosts = Field(
        default=(),
        description="Hosts, addresses or networks (10.0.0.0/8) inside your own network that may be"
        " asked. Only these may be asked by http, without encryption.",
    )

    @model_validator(mode="after")
    def _encrypted(self) -> "Api":
        check_encrypted(self.api_url, self.private_hosts)
        return self


class Export(BaseModel):
    """From the zip that Slack exports, on the disk of this machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["export"] = "export"
    path: AbsolutePath = Field(description="The zip file. A newer one is put in its place.")
    workspace_url: WebAddress = Field(
        description="The address of the workspace, such as https://acme.slack.com: links lead there."
    )
