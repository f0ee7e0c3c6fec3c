"""Modules that the commands of the publisher must not import: each costs a tenth of a second up."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = {"web3", "eth_account", "eth_abi", "eth_keyfile", "eth_keys", "eth_utils", "pydantic", "rlp"}

COMMANDS = {
    "publish": (
        "capdex_publisher.publish.publish",
        "capdex_publisher.publish.preflight",
        "capdex_publisher.publish.claim",
    ),
    "yank": ("capdex_publisher.registry.change", "capdex_publisher.registry.lifecycle"),
    "transfer": ("capdex_publisher.registry.change", "capdex_publisher.registry.ownership"),
    "list": ("capdex_publisher.registry.name_history", "capdex_publisher.registry.audit"),
    "account": ("capdex_publisher.keys.keystore",),
    "signer": ("capdex_publisher.keys.external_signer",),
    "deploy": ("capdex_publisher.deploy.deploy",),
}


def imported(*modules: str, after: str = "pass") -> set[str]:
    """The top-level packages in a new process that imported these modules and ran `after`."""
    code = f"import sys, {', '.join(modules)}; {after}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_no_slow_package_before_it_signs(command: str) -> None:
    assert not imported(*COMMANDS[command]) & SLOW


def test_signing_imports_no_web3() -> None:
    signing = imported(
        *COMMANDS["publish"],
        "capdex_publisher.keys.signer",
        after="capdex_publisher.keys.signer.LocalSigner(bytes([7]) * 32)",
    )
    assert "eth_account" in signing
    assert "web3" not in signing


def test_key_files_and_addresses_need_no_network() -> None:
    offline = imported(
        "capdex_publisher.keys.keystore",
        "capdex_publisher.deploy.create2",
        "capdex_publisher.ethereum",
    )
    assert not offline & {"aiohttp", *SLOW}


def test_listing_names_loads_nothing_that_reads_packages() -> None:
    assert "yaml" not in imported(*COMMANDS["list"])


def test_publishing_loads_no_http_client_before_it_uploads() -> None:
    assert "aiohttp" not in imported(*COMMANDS["publish"], *COMMANDS["signer"])
