"""Money, as people spend it: many at once, killed, dropped, replaced, reorganised; nothing told.

Each ends with exactly one event for each release, and with every nonce used once.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

AT_ONCE = 20
LETTERS = "abcdefghjkmnpqrstuvw"  # none looks like another
GWEI = 10**9
SECRET = "correct horse battery staple"  # noqa: S105 - that of `begin`
SIGNER = """
import json, os, sys
from eth_account import Account
account = Account.from_key(open(sys.argv[1]).read())
call = json.loads(sys.stdin.readline())
if call["method"] == "eth_accounts":
    print(json.dumps({"result": [account.address]}))
elif call["method"] == "eth_signTransaction":
    fields = dict(call["params"][0])
    fields.pop("from")
    numbers = {"type", "chainId", "nonce", "gas", "maxFeePerGas", "maxPriorityFeePerGas", "value"}
    fields = {k: int(v, 16) if k in numbers else v for k, v in fields.items()}
    fields |= json.loads(os.environ.get("CHANGES", "{}"))
    print("press the button", file=sys.stderr)
    print(json.dumps({"result": "0x" + bytes(account.sign_transaction(fields)[0]).hex()}))
else:
    print(json.dumps({"error": {"code": -32601, "message": "no such method"}}))
"""


@pytest.fixture
def author(begin: Callable[..., Any], shell: Any) -> Any:
    return begin(shell, f"dir:{shell / 'blocks'}")


def published(author: Any, rpc: Callable[..., Any]) -> list[str]:
    """The names of all Published events, in their order."""
    from capdex.registry.events import PUBLISHED

    wanted = {"address": author.registry, "topics": ["0x" + PUBLISHED.hex()], "fromBlock": "0x0"}
    return [log["topics"][1] for log in rpc(author.rpc_url, "eth_getLogs", wanted)]


def nonces(author: Any, rpc: Callable[..., Any]) -> tuple[int, int]:
    """How many transactions of the account are mined, and mined or waiting."""
    url, address = author.rpc_url, author.address
    counts = (
        rpc(url, "eth_getTransactionCount", address, block) for block in ("latest", "pending")
    )
    latest, pending = (int(x, 16) for x in counts)
    return latest, pending


def killed_once_sent(author: Any, rpc: Callable[..., Any], eventually: Any, path: Path) -> str:
    """Publish while no block is made, kill that, and give back the hash that waits."""
    rpc(author.rpc_url, "evm_setAutomine", False)
    before = nonces(author, rpc)[0]
    process = author.shell.start("publish", path.name, "--yes", "--json")
    process.wait_for(lambda: nonces(author, rpc)[1] > before, "it was sent")
    process.kill()
    assert nonces(author, rpc) == (before, before + 1)
    (entry,) = (author.shell / "home").rglob("sent/*publish*.json")
    return str(json.loads(entry.read_text("utf-8"))["tx_hash"])


def test_twenty_at_once_are_twenty_events_and_no_nonce_is_left_out(
    author: Any, rpc: Callable[..., Any]
) -> None:
    names = [f"note-{letter}" for letter in LETTERS]
    for name in names:
        author.write(name)
    before, _ = nonces(author, rpc)
    processes = [author.shell.start("publish", f"{x}.acp.yaml", "--yes", "--json") for x in names]
    codes = [process.popen.wait(300) for process in processes]
    assert codes == [0] * AT_ONCE, "\n".join(x.stderr[-500:] for x in processes)
    outcomes = [json.loads(process.stdout) for process in processes]
    assert len({one["tx_hash"] for one in outcomes}) == AT_ONCE
    assert len(set(published(author, rpc))) == len(published(author, rpc)) == AT_ONCE
    assert nonces(author, rpc) == (before + AT_ONCE, before + AT_ONCE)
    again = [author.shell.json("publish", f"{x}.acp.yaml", "--yes")["already"] for x in names[:2]]
    assert again == [True, True]


def test_a_transaction_that_was_dropped_is_sent_again_by_the_next_run(
    author: Any, rpc: Callable[..., Any], eventually: Any
) -> None:
    path = author.write("note")
    lost = killed_once_sent(author, rpc, eventually, path)
    rpc(author.rpc_url, "anvil_dropTransaction", lost)
    before = nonces(author, rpc)[0]
    rpc(author.rpc_url, "evm_setAutomine", True)
    outcome = author.shell.json("publish", path.name, "--yes")
    assert not outcome["already"]
    assert nonces(author, rpc) == (before + 1, before + 1)
    assert len(published(author, rpc)) == 1


def test_a_transaction_that_was_replaced_elsewhere_is_made_anew(
    author: Any, rpc: Callable[..., Any], eventually: Any
) -> None:
    path = author.write("note")
    killed_once_sent(author, rpc, eventually, path)
    url, before = author.rpc_url, nonces(author, rpc)[0]
    rpc(url, "anvil_impersonateAccount", author.address)
    elsewhere = {"from": author.address, "to": author.address, "nonce": hex(before)}
    fees = {"maxFeePerGas": hex(100 * GWEI), "maxPriorityFeePerGas": hex(50 * GWEI)}
    rpc(url, "eth_sendTransaction", elsewhere | fees)
    rpc(url, "evm_mine")
    rpc(url, "evm_setAutomine", True)
    assert not author.shell.json("publish", path.name, "--yes")["already"]
    assert nonces(author, rpc) == (before + 2, before + 2)
    assert len(published(author, rpc)) == 1


def test_a_transaction_that_got_stuck_is_replaced_by_the_next_run(
    author: Any, rpc: Callable[..., Any], eventually: Any
) -> None:
    path = author.write("note")
    stuck = killed_once_sent(author, rpc, eventually, path)
    url, before = author.rpc_url, nonces(author, rpc)[0]
    fees = rpc(url, "eth_getTransactionByHash", stuck)
    rpc(url, "anvil_setNextBlockBaseFeePerGas", hex(int(fees["maxFeePerGas"], 16) + 3 * GWEI))
    process = author.shell.start("publish", path.name, "--yes", "--json")
    (entry,) = (author.shell / "home").rglob("sent/*publish*.json")

    def replaced() -> Any:
        newest = json.loads(entry.read_text("utf-8"))
        return newest["tx_hash"] != stuck and newest

    newest = process.wait_for(replaced, "it was replaced")
    assert (newest["nonce"], newest["earlier"]) == (before, [stuck])
    for key, named in (("max_fee_per_gas", "maxFeePerGas"),
                       ("max_priority_fee_per_gas", "maxPriorityFeePerGas")):  # fmt: skip
        assert 8 * newest["transaction"][key] >= 9 * int(fees[named], 16)
    eventually(lambda: rpc(url, "eth_getTransactionByHash", newest["tx_hash"]), "it waits")
    rpc(url, "evm_mine")
    assert process.popen.wait(60) == 0, process.stderr
    assert json.loads(process.stdout)["tx_hash"] == newest["tx_hash"]
    assert "sent again" in process.stderr
    assert nonces(author, rpc) == (before + 1, before + 1)
    assert len(published(author, rpc)) == 1


def test_what_was_mined_and_then_reorganised_away_is_published_by_the_next_run(
    author: Any, rpc: Callable[..., Any]
) -> None:
    path = author.write("note")
    first = author.shell.json("publish", path.name, "--yes")
    assert len(published(author, rpc)) == 1
    rpc(author.rpc_url, "anvil_reorg", 1, [])
    assert published(author, rpc) == []
    second = author.shell.json("publish", path.name, "--yes")
    assert (first["already"], second["already"]) == (False, False)
    assert len(published(author, rpc)) == 1
    assert author.shell.json("publish", path.name, "--yes")["already"]


def test_a_command_signs_instead_of_a_key_file(
    author: Any, rpc: Callable[..., Any], open_shell: Callable[..., Any]
) -> None:
    account = Account.create()
    rpc(author.rpc_url, "anvil_setBalance", account.address, hex(10**18))
    shell = author.shell
    (shell / "signer.py").write_text(SIGNER, "utf-8")
    (shell / "key").write_text(account.key.hex(), "utf-8")
    command = shlex.join([sys.executable, str(shell / "signer.py"), str(shell / "key")])
    path = author.write("note")
    shown = shell.json("account", "show", "--signer", command)
    assert shown["address"] == account.address
    hostile = shell.error(
        "publish", path.name, "--yes", "--signer", command, code=4, CHANGES='{"value": 1}'
    )
    assert (hostile["code"], hostile["why"]) == ("SIGNER_REFUSED", "its value is 1, not 0")
    count = rpc(author.rpc_url, "eth_getTransactionCount", account.address, "pending")
    assert count == "0x0"
    done = shell("publish", path.name, "--yes", "--format", "human", CAPDEX_SIGNER=command)
    assert "press the button" in done.stderr
    name = rpc(author.rpc_url, "eth_getTransactionCount", account.address, "latest")
    assert name == "0x1"
    assert len(published(author, rpc)) == 1


def test_a_key_in_the_environment_is_warned_of_and_never_a_public_one_elsewhere(
    author: Any, rpc: Callable[..., Any]
) -> None:
    account, shell = Account.create(), author.shell
    rpc(author.rpc_url, "anvil_setBalance", account.address, hex(10**18))
    path = author.write("note")
    key = {"CAPDEX_PRIVATE_KEY": account.key.hex()}
    done = shell("publish", path.name, "--yes", "--json", **key)
    assert done.stderr.count("CAPDEX_PRIVATE_KEY can be read by other programs") == 1
    assert shell("account", "show", "--plain", **key).stdout.strip() == account.address
    rpc(author.rpc_url, "anvil_setChainId", 11155111)
    public = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
    other = author.write("other")
    elsewhere = {"CAPDEX_PRIVATE_KEY": public, "CAPDEX_CHAIN_ID": "11155111"}
    for words in (("sign", other.name), ("publish", other.name, "--yes"), ("deploy", "--yes")):
        assert shell.error(*words, code=4, **elsewhere)["code"] == "KEY_EXPOSED"
    wrong = shell.error("account", "show", code=2, CAPDEX_PRIVATE_KEY="0x" + "zz" * 32)
    assert "zz" not in json.dumps(wrong)


def test_an_account_is_imported_without_its_key_on_any_command_line(author: Any) -> None:
    account, shell = Account.create(), author.shell
    read, write = os.pipe()
    os.write(write, account.key.hex().encode())
    os.close(write)
    done = subprocess.run(
        [sys.executable, "-m", "capdex", "account", "import", "--light", "--json",
         "--out", "mine.json", "--key-fd", str(read)],
        cwd=shell.folder, env=os.environ | shell.env, pass_fds=[read],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    os.close(read)
    assert json.loads(done.stdout)["address"] == account.address
    copied = shell.json("account", "import", "--from", "mine.json", "--out", "copy.json", "--light")
    assert copied["address"] == account.address
    assert (shell / "copy.json").stat().st_mode & 0o777 == 0o600
    assert (
        "exists already"
        in shell.error("account", "import", "--from", "mine.json", "--out", "copy.json", code=2)[
            "what"
        ]
    )
    assert shell.error("account", "import", "--out", "other.json", code=2)["code"] == "UNREADABLE"


def test_the_cap_is_hard_whatever_is_agreed_to(author: Any) -> None:
    path = author.write("note")
    refused = author.shell.error("publish", path.name, "--yes", "--fee-cap", "0.000001", code=4)
    assert refused["code"] == "FEE_OVER_CAP"
    assert "--fee-cap" in refused["fix"]
    dry = author.shell.json("publish", path.name, "--dry-run", "--fee-cap", "0.005")
    assert json.dumps(dry).count(str(5 * 10**15))
    assert author.shell.error("publish", path.name, "--fee-cap", "much", code=2)["code"] == "CONFIG"


def test_no_secret_is_told_however_much_is_asked_for(
    author: Any, rpc: Callable[..., Any], open_shell: Callable[..., Any]
) -> None:
    """The whole road with --debug and -vv, its failures too: neither key nor passphrase."""
    shell, account = author.shell, Account.create()
    rpc(author.rpc_url, "anvil_setBalance", account.address, hex(10**18))
    key = account.key.hex()
    path = author.write("note")
    loud = ("--debug", "-vv")
    (shell / "wrong").write_text("a wrong passphrase", "utf-8")
    (shell / "wrong").chmod(0o600)
    (shell / "key").write_text(key, "utf-8")
    calls: list[tuple[tuple[str, ...], dict[str, str]]] = [
        (("sign", path.name), {}),
        (("publish", path.name, "--dry-run"), {}),
        (("publish", path.name, "--yes"), {}),
        (("yank", "note@0.1.0", "--yes", "--reason", "x"), {}),
        (("yank", "note@0.1.0", "--yes", "--passphrase-file", "wrong"), {}),
        (("unyank", "note@0.1.0", "--yes", "--passphrase-file", "wrong"), {}),
        (("account", "balance"), {"CAPDEX_PRIVATE_KEY": key}),
        (("publish", path.name, "--yes"), {"CAPDEX_PRIVATE_KEY": key}),
        (("publish", path.name, "--yes"), {"CAPDEX_PRIVATE_KEY": key + "00"}),
        (("account", "show"), {"CAPDEX_PASSPHRASE": SECRET, "CAPDEX_PASSPHRASE_FILE": ""}),
        (("config",), {"CAPDEX_PRIVATE_KEY": key}),
        (("doctor",), {"CAPDEX_PRIVATE_KEY": key}),
        (("deploy", "--yes"), {"CAPDEX_RPC_URL": "http://127.0.0.1:1"}),
    ]
    said = []
    for words, env in calls:
        done = shell.warm((*words, *loud), shell.folder, os.environ | shell.env | env)
        assert done.returncode in (0, 1, 2, 3, 4), done.stderr
        said.append(done.stdout + done.stderr)
    own = [shell / "passphrase", shell / "key", shell / "wrong"]
    kept = [x.read_bytes().decode("utf-8", "replace") for x in shell.folder.rglob("*")
            if x.is_file() and x not in own]  # fmt: skip
    for text in (*said, *kept):
        for secret in (SECRET, key, key[2:], "a wrong passphrase"):
            assert secret not in text
