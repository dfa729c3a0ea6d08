"""What docs/openai.md shows does what it says."""

import json
import os
import re
import subprocess

import openai
import pytest
import yaml

from backend.access.api_tokens import TokenScope
from tests.support.home import CHECKOUT
from tests.support.scripted_model import ScriptedModel
from tests.unit.backend.api.openai.conftest import BOB, Office

PAGE = (CHECKOUT / "docs" / "openai.md").read_text(encoding="utf-8")
ADDRESS, KEY = "http://127.0.0.1:8321", "qry_…"
(SDK,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CURL, OPEN_WEBUI = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(LIBRECHAT,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def token(office: Office, model: ScriptedModel) -> str:
    del model
    return office.make_token(BOB, TokenScope.ASK, TokenScope.SEARCH)


def test_the_sdk_prints_the_answer_with_its_sources(
    office: Office, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ADDRESS in SDK
    assert KEY in SDK
    exec(SDK.replace(ADDRESS, office.url).replace(KEY, token), {})
    answer, source = capsys.readouterr().out.splitlines()
    assert answer == "Parents have 26 weeks [1]."
    assert source == f"[1] Parental leave {office.url}/document/wiki:leave.md"


def test_curl_lists_asks_and_embeds(office: Office, token: str) -> None:
    models, answer, vectors = CURL.strip().split("\n\n")
    environment = {"PATH": os.environ["PATH"], "QUARRY": office.url, "TOKEN": token}

    def run(command: str) -> str:
        ran = subprocess.run(
            ["bash", "-c", command],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return ran.stdout

    assert json.loads(run(models))["data"][0]["id"] == "default"
    assert run(answer).rstrip().endswith("data: [DONE]")
    assert len(json.loads(run(vectors))["data"]) == 1


def test_the_addresses_of_chat_programs_lead_to_the_models(office: Office, token: str) -> None:
    settings = dict(line.split("=", 1) for line in OPEN_WEBUI.splitlines())
    (endpoint,) = yaml.safe_load(LIBRECHAT)["endpoints"]["custom"]
    assert endpoint["titleMethod"] == "completion"
    assert settings["OPENAI_API_KEY"] == KEY
    for address in (settings["OPENAI_API_BASE_URL"], endpoint["baseURL"]):
        url = address.replace(ADDRESS, office.url)
        with openai.OpenAI(base_url=url, api_key=token, max_retries=0) as client:
            first = client.models.list().data[0].id
            assert first == endpoint["models"]["default"][0]
