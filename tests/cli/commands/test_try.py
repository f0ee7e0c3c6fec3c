"""`capdex try`: what a tool of an unpublished file sends, shown and sent."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from capdex_router.policy.secrets import SecretFile, Secrets

API = "https://api.tides.dev"
KEY = "k3y-of-no-service"
TOOLS = {
    "tide": {
        "type": "http",
        "method": "GET",
        "url": API + "/v1/{beach}",
        "auth": [
            {"type": "header", "name": "X-API-Key", "secret": "TIDE_KEY"},
            {"type": "basic", "secret": "TIDE_LOGIN"},
            {"type": "query", "name": "k", "secret": "TIDE_KEY_2"},
        ],
    },
    "note": {
        "type": "http_post",
        "url": API + "/notes",
        "auth": {"type": "bearer", "secret": "TIDE_KEY"},
    },
    "remote": {
        "type": "mcp_service",
        "service_uri": "https://mcp.tides.dev/mcp",
        "mcp_action": "tell",
    },
}
SCHEMA = {"type": "object", "properties": {"beach": {"type": "string"}}, "required": ["beach"]}
SHORE = '{"beach": "Ny Å"}'


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session without a keyring, as on a server."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


@pytest.fixture
def write(folder: Path) -> Any:
    """Write a package whose tools have these bindings."""

    def written(bindings: dict[str, Any]) -> Path:
        schema = {"$id": "did:nuwa:state:tide#v1", "type": "object", "properties": {}}
        described = [
            {"name": name, "description": "Tells the tide.", "parameters": SCHEMA}
            for name in bindings
        ]
        value = {
            "metadata": {
                "id": "did:nuwa:cap:tide@0.1.0",
                "name": "Tide",
                "description": "Tells the tide at a beach.",
                "triggers": [{"type": "keyword", "value": "tide"}],
                "permissions": {"require": []},
            },
            "schema": json.dumps(schema),
            "prompt": "Tell the tide.",
            "tools": [{"type": "function", "function": one} for one in described],
            "tool_bindings": bindings,
        }
        path = folder / "tide.acp.yaml"
        path.write_text(json.dumps(value))  # which is YAML, too
        return path

    return written


@pytest.fixture
def file(write: Any) -> Path:
    return Path(write(TOOLS))


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str, str | None, bytes]]]]:
    """A server of this machine, and what it was sent."""
    sent: list[tuple[str, str, str | None, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sent.append((self.command, self.path, self.headers["Authorization"], body))
            refuses = self.path == "/refuses"
            self.send_response(404 if refuses else 200)
            self.send_header("Content-Type", "text/plain" if refuses else "application/json")
            self.end_headers()
            if refuses:
                self.wfile.write(b"no tide\x1b[31m today")
                return
            self.wfile.write(json.dumps({"saw": self.headers["Authorization"]}).encode())

        def log_message(self, *_: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}", sent
    running.shutdown()
    thread.join()
    running.server_close()


def test_the_request_is_shown_whole_with_secrets_by_name(capdex: Any, file: Path) -> None:
    (found,) = capdex.json("try", f"{file}#tide", SHORE)["results"]
    assert found["method"] == "GET"
    assert found["url"] == f"{API}/v1/Ny%20%C3%85?k=[secret TIDE_KEY_2]"
    assert found["headers"]["X-API-Key"] == "[secret TIDE_KEY]"
    assert found["headers"]["Authorization"] == "Basic [secret TIDE_LOGIN]"
    assert found["body"] is None
    shown = capdex("try", f"{file}#note", SHORE, "--format", "human")
    assert shown.stdout.startswith(f"POST {API}/notes\n")
    assert "Authorization: Bearer [secret TIDE_KEY]" in shown.stdout
    assert shown.stdout.endswith('\n\n{"beach":"Ny Å"}\n')
    assert "nothing was sent" in shown.stderr


def test_a_form_is_shown_and_sent_as_it_is(
    capdex: Any, write: Any, server: tuple[str, list[tuple[str, str, str | None, bytes]]]
) -> None:
    form = {"content": "application/x-www-form-urlencoded"}
    url, sent = server
    file = write({"send": {"type": "http", "method": "POST", "url": f"{API}/f", "body": form}})
    (found,) = capdex.json("try", f"{file}#send", SHORE)["results"]
    assert found["body"] == "beach=Ny+%C3%85"
    at = ("--at", f"{API}={url}")
    capdex("try", f"{file}#send", SHORE, *at, "--send", "--yes")
    assert [body for _, _, _, body in sent] == [b"beach=Ny+%C3%85"]


def test_a_call_of_an_mcp_service_is_listed(capdex: Any, file: Path) -> None:
    (found,) = capdex.json("try", f"{file}#remote", SHORE)["results"]
    assert found == {
        "service_uri": "https://mcp.tides.dev/mcp",
        "action": "tell",
        "arguments": {"beach": "Ny Å"},
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["#tide", "{}"], '"beach" is a required property'),
        (["#tide", '{"beach": "x", "sea": 1}'], "sea"),
        (["#tide", "{"], "the input is not JSON"),
        (["#tide", '{"beach": 1e400}'], "the input is not JSON"),
        (["#tide", '{"beach": ' + "[" * 1000 + "]" * 1000 + "}"], "the input is not JSON"),
        (["#tide", '{"beach": 123456789012345678901}'], "give numbers within 64 bits"),
        (["", "{}"], "tools with a binding: tide, note, remote"),
        (["#other", "{}"], "tools with a binding: tide, note, remote"),
        (
            ["#tide", SHORE, "--at", "https://other.dev=http://127.0.0.1:1"],
            "not at any of the URLs",
        ),
        (["#tide", SHORE, "--at", f"{API}=http://tides.dev:1"], "plain http is for this machine"),
        (["#tide", SHORE, "--at", f"{API}/v1=http://127.0.0.1:1"], "an origin is a scheme and"),
        (["#tide", SHORE, "--at", "tides.dev=http://127.0.0.1:1"], "is not https://ORIGIN=URL"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_a_remedy(
    words: list[str], message: str, capdex: Any, file: Path
) -> None:
    found = capdex("try", f"{file}{words[0]}", *words[1:])
    assert found.exit_code != 0
    assert message in found.stderr
    assert "fix" in found.stderr


def test_a_wrong_input_is_answered_with_a_command_that_is_right(capdex: Any, file: Path) -> None:
    error = json.loads(capdex("try", f"{file}#tide", "{}", "--json").stderr)
    right = ["capdex", "try", f"{file}#tide", '{"beach":"text"}']
    assert shlex.split(error["details"]["fix"].removeprefix("for example: ")) == right


def test_a_file_that_is_not_valid_is_refused(capdex: Any, folder: Path) -> None:
    (folder / "bad.yaml").write_text("metadata: {}\n")
    found = capdex("try", "bad.yaml#x")
    assert (found.exit_code, "the package is not valid" in found.stderr) == (1, True)


def test_a_file_without_tools_is_told_so(capdex: Any) -> None:
    capdex("init", "tea", "--kind", "prompt", "--description", "Tells.")
    assert "the file binds no tool, and sends nothing" in capdex("try", "tea.acp.yaml").stderr


def test_a_call_is_sent_to_this_machine_alone_after_a_yes(
    capdex: Any, file: Path, server: Any
) -> None:
    """The question, the right and the secret are those of the host that gets the request."""
    url, sent = server
    words = ("try", f"{file}#note", SHORE, "--send", "--at", f"{API}={url}/base")
    asked = capdex(*words)
    assert (asked.exit_code, sent) == (4, [])
    assert f"POST {url}/base/notes" in asked.stderr
    missing = capdex(*words, "--yes")
    assert "capdex secret tide 127.0.0.1 TIDE_KEY" in missing.stderr
    assert sent == []
    assert capdex("secret", "tide", "127.0.0.1", "TIDE_KEY", stdin=f"{KEY}\n").exit_code == 0
    done = capdex.json(*words, "--yes")
    assert sent == [("POST", "/base/notes", f"Bearer {KEY}", b'{"beach":"Ny \xc3\x85"}')]
    assert done["output"] == {"saw": "Bearer [secret]"}


def test_a_call_of_an_mcp_service_is_sent_to_a_server_of_this_machine(
    capdex: Any, file: Path, node: Any
) -> None:
    node.answer("tell", {"tide": "high"})
    move = f"https://mcp.tides.dev={node.url}"
    done = capdex.json("try", f"{file}#remote", SHORE, "--send", "--yes", "--at", move)
    assert done["output"]["tide"] == "high"
    assert node.calls == [("tell", {"beach": "Ny Å"})]


def test_a_secret_of_the_real_host_is_not_sent_elsewhere(
    capdex: Any, file: Path, server: Any, folder: Path
) -> None:
    capdex("secret", "tide", "api.tides.dev", "TIDE_KEY", stdin=f"{KEY}\n")
    found = capdex("try", f"{file}#note", SHORE, "--send", "--yes", "--at", f"{API}={server[0]}")
    assert "tide needs the secret TIDE_KEY for 127.0.0.1" in found.stderr
    assert server[1] == []
    kept = Secrets(SecretFile(folder / "home" / "data" / "router" / "secrets.json"))
    assert kept.get("tide", "api.tides.dev", "TIDE_KEY") == KEY


def test_what_a_service_says_of_a_request_that_it_refuses_is_shown(
    capdex: Any, write: Any, server: Any
) -> None:
    agent = {"type": "nuwa_a2a", "target_did": "did:web:a.example", "service_method": "receive"}
    move = f"did:web:a.example={server[0]}/refuses"
    found = capdex("try", f"{write({'ask': agent})}#ask", SHORE, "--send", "--yes", "--at", move)
    assert found.exit_code == 1
    assert (
        'why: the service refuses the request; it says "no tide\\u001b[31m today"' in found.stderr
    )


def test_the_input_that_is_proposed_has_what_is_required(capdex: Any, write: Any) -> None:
    path = write({"note": TOOLS["note"]})
    path.write_text(path.read_text().replace('"properties": {"beach"', '"properties": {"beech"'))
    refused = capdex("try", f"{path}#note")
    assert refused.exit_code == 1
    assert '{"beach":"text"}' in refused.stderr


def test_no_input_is_proposed_that_the_schema_refuses(capdex: Any, write: Any) -> None:
    path = write({"tide": TOOLS["tide"]})
    text = path.read_text()
    path.write_text(
        text.replace('{"type": "string"}', '{"type": "string", "pattern": "^[0-9]+?$"}')
    )
    refused = capdex("try", f"{path}#tide")
    assert refused.exit_code == 1
    assert "#tide' JSON" in refused.stderr
