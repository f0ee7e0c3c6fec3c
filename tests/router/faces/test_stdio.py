"""The router as hosts start it: constant answers first, and all that lines of stdin may hold."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capdex.net.stdio import MAX_LINE_BYTES
from tests.capdex.net.test_introduction import ENVELOPE, META, hello, request
from tests.e2e.forks import Warm
from tests.mcp_service.mcp.test_envelope import BAD

ROUTER = [sys.executable, "-m", "capdex", "router"]
YES: dict[str, Any] = {"action": "accept"}
Answers = Callable[..., dict[Any, dict[str, Any]]]
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(id_: Any, want: str = "", **more: Any) -> dict[str, Any]:
    return request("tools/call", {"name": "find", "arguments": {"want": want}} | more, id_)


@pytest.fixture
def answers(warm: Warm, tmp_path: Path) -> Answers:
    """Return the answers to lines by their ids; the answers of None are a list."""

    def answered(*messages: dict[str, Any] | bytes) -> dict[Any, dict[str, Any]]:
        lines = [x if isinstance(x, bytes) else json.dumps(x).encode() for x in messages]
        done = subprocess.run(
            [warm.capdex, "router"],
            input=b"".join(line + b"\n" for line in lines),
            capture_output=True,
            check=True,
            cwd=tmp_path,
        )
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return {x["id"]: x for x in found if x["id"] is not None} | {
            None: [x["error"]["code"] for x in found if x["id"] is None]
        }

    return answered


def text(answer: dict[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])


def test_each_bad_line_is_answered_and_the_next_one_is_read(answers: Answers) -> None:
    wrong = {x: y for x, y in BAD.items() if x and b"\xff" not in x and y[1] is None}
    found = answers(*wrong, b"", b"  ", request("ping", id_="last"))
    assert found[None] == [code for code, _ in wrong.values()]
    assert found["last"]["result"] == {}


def test_a_lone_surrogate_is_a_parse_error_with_its_id(answers: Answers) -> None:
    line = json.dumps(call(5, "x")).replace('"x"', '"\\ud800"').encode()
    found = answers(hello(), INITIALIZED, line, call(6))
    assert found[5]["error"]["code"] == -32700
    assert "nothing is installed" in text(found[6])


def test_a_line_that_is_too_long_or_too_deep_is_answered(answers: Answers) -> None:
    deep = json.dumps(call(5, "x")).replace('"x"', "[" * 500 + "]" * 500).encode()
    long = json.dumps(call(6, "x" * MAX_LINE_BYTES)).encode()
    found = answers(hello(), INITIALIZED, deep, long, call(7))
    assert found[5]["error"]["code"] == -32600
    assert found[None] == [-32600]
    assert "result" in found[7]


def test_requests_before_the_end_of_stdin_are_answered(answers: Answers) -> None:
    found = answers(hello(), INITIALIZED, *map(call, range(10, 30)))
    assert all("result" in found[number] for number in range(10, 30))
    assert found[None] == []


@pytest.mark.parametrize("version", ["2026-07-28", "2099-01-01"])
def test_a_client_that_probes_the_newer_protocol_and_falls_back_is_served(
    answers: Answers, version: str
) -> None:
    probe = {"_meta": ENVELOPE | {f"{META}protocolVersion": version}}
    found = answers(
        request("server/discover", probe, "probe"), hello(), INITIALIZED,
        request("tools/list", id_=2), call(3))  # fmt: skip
    assert ("result" in found["probe"]) is (version == "2026-07-28")
    assert found[1]["result"]["protocolVersion"] == "2025-11-25"
    assert len(found[2]["result"]["tools"]) == 5
    assert text(found[3]) == "nothing is installed: say in want what is to be done"


def test_a_client_that_falls_back_after_a_call_is_served(answers: Answers) -> None:
    found = answers(call(0, _meta=ENVELOPE), hello(), INITIALIZED, call(2))
    assert found[0]["result"]["resultType"] == "complete"
    assert text(found[0]) == text(found[2])


def test_a_file_that_cannot_be_read_is_told_at_each_call_and_the_next_one_tries_again(
    tmp_path: Path,
) -> None:
    config = tmp_path / "capdex.toml"
    config.write_text("[[")
    errors = tmp_path / "stderr"
    with errors.open("wb") as stderr, subprocess.Popen(
        ROUTER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, cwd=tmp_path
    ) as router:  # fmt: skip
        assert router.stdin is not None
        assert router.stdout is not None

        def ask(message: dict[str, Any]) -> dict[str, Any]:
            assert router.stdin is not None
            assert router.stdout is not None
            router.stdin.write(json.dumps(message).encode() + b"\n")
            router.stdin.flush()
            return dict(json.loads(router.stdout.readline()))

        assert "result" in ask(hello())
        for id_ in (2, 3):
            failed = ask(call(id_))["result"]
            assert failed["isError"]
            assert failed["structuredContent"]["details"]["fix"] in failed["content"][0]["text"]
        assert ask(request("prompts/list", id_=4))["error"]["code"] == -32603
        assert "capdex.toml" in errors.read_text()
        config.unlink()
        assert "nothing is installed" in text(ask(call(5)))
        router.stdin.close()
        assert router.wait() == 0


def test_an_interrupt_ends_it_before_and_after_the_first_call(tmp_path: Path) -> None:
    for messages in ([hello()], [hello(), INITIALIZED, call(2)]):
        with subprocess.Popen(
            ROUTER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=tmp_path,
        ) as router:  # fmt: skip
            assert router.stdin is not None
            assert router.stdout is not None
            router.stdin.writelines(json.dumps(x).encode() + b"\n" for x in messages)
            router.stdin.flush()
            for message in messages:
                if "id" in message:
                    router.stdout.readline()
            router.send_signal(signal.SIGINT)
            assert router.wait(60) == 130


NO_ANSWERS: list[dict[str, Any]] = [
    {"result": None}, {"result": "yes"}, {"result": []}, {"result": {"action": "maybe"}},
    {"error": "no"}, {"error": None}, {"error": {"code": "no"}}, {"error": {}},
    {}, {"jsonrpc": "1.0", "result": YES}, {"result": YES | {"content": {"x": "\ud800"}}},
]  # fmt: skip


def test_an_answer_that_is_none_of_mcp_is_no_yes_and_ends_the_call(tmp_path: Path) -> None:
    manage = {"name": "manage", "arguments": {"action": "learn", "target": "wc"}}
    with subprocess.Popen(
        ROUTER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    ) as router:
        assert router.stdin is not None
        assert router.stdout is not None

        def send(*messages: dict[str, Any]) -> None:
            assert router.stdin is not None
            router.stdin.writelines(json.dumps(x).encode() + b"\n" for x in messages)
            router.stdin.flush()

        send(hello(capabilities={"elicitation": {}}), INITIALIZED)
        heard = map(json.loads, router.stdout)
        for number, answer in enumerate(NO_ANSWERS):
            told, pinged = f"call {number}", f"ping {number}"
            send(request("tools/call", manage, told))
            question = next(x for x in heard if x.get("method") == "elicitation/create")
            send({"jsonrpc": "2.0", "id": question["id"]} | answer, request("ping", id_=pinged))
            replies: dict[Any, Any] = {}
            while not {told, pinged} <= replies.keys():
                message = next(heard)
                replies[message.get("id")] = message
            reason = replies[told]["result"]["structuredContent"]["error"]["reason"]
            assert (reason, replies[pinged]["result"]) == ("CONFIRM_NEEDED", {}), answer
        router.stdin.close()


@pytest.mark.parametrize("cancelled", [False, True], ids=["a question is open", "it is cancelled"])
def test_the_end_of_stdin_ends_a_router_that_waits_for_a_person(
    tmp_path: Path, cancelled: bool
) -> None:
    patient = "import capdex.net.stdio as x; x.LAST_ANSWERS_S = 1e6; import capdex_cli.main as m"
    program = [sys.executable, "-c", f"{patient}; m.main()", "router"]
    manage = {"name": "manage", "arguments": {"action": "learn", "target": "wc"}}
    messages = [hello(capabilities={"elicitation": {}}), INITIALIZED]
    messages.append(request("tools/call", manage, 2))
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    ) as router:
        assert router.stdin is not None
        assert router.stdout is not None
        router.stdin.writelines(json.dumps(x).encode() + b"\n" for x in messages)
        router.stdin.flush()
        said = [json.loads(router.stdout.readline()) for _ in range(2)]
        assert said[1]["method"] == "elicitation/create"
        if cancelled:
            params = {"requestId": 2, "reason": "too late"}
            late = {"jsonrpc": "2.0", "id": said[1]["id"], "result": {"action": "accept"}}
            gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            router.stdin.writelines(json.dumps(x).encode() + b"\n" for x in (gone, late))
        router.stdin.close()
        assert router.wait(60) == 0
    assert not (tmp_path / "learned").exists()


def test_a_byte_order_mark_before_the_first_line_is_passed_over(answers: Answers) -> None:
    first = b"\xef\xbb\xbf" + json.dumps(hello()).encode()
    found = answers(first, INITIALIZED, request("ping", id_="last"))
    assert found[None] == []
    assert found["last"]["result"] == {}
