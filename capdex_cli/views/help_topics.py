"""The topics of `capdex help TOPIC`; tables are made from the code they describe."""

from __future__ import annotations

from collections.abc import Callable

from capdex.codes import error_codes


def exit_codes() -> str:
    """Return the table of exit codes."""
    rows = {
        0: "done, or already so",
        1: "the answer is no",
        2: "could not start: correct the call",
        3: "unavailable: the only code on which a script should retry",
        4: "refused: a person must decide",
        6: "published, and the node did not serve it in time: nothing is lost",
        70: "a bug of capdex; the path of the report is printed",
        130: "interrupted (143 if terminated, 129 a node by SIGHUP, 141 if stdout has no reader)",
    }
    lines = ["Exit codes (stable)", ""]
    for number, meaning in rows.items():
        lines.append(f"  {number:>3}  {meaning}")
        codes = [str(code) for code, kind in error_codes().items() if kind.exit == number]
        lines += [f"       {' '.join(codes[i : i + 5])}" for i in range(0, len(codes), 5)]
    return "\n".join(
        [
            *lines,
            "",
            "Of several files the highest wins in the order 70 > 2 > 4 > 3 > 1 > 6 > 0.",
            "Errors are text on stderr; with --json each is one line of JSON there, beside notes.",
        ]
    )


def environment() -> str:
    """Return the sources of settings, the strongest first, and all variables."""
    from capdex_cli.config.load import OTHER_VARIABLES
    from capdex_cli.config.sources import ENVIRONMENT

    names = sorted(ENVIRONMENT)
    others = {f"CAPDEX_{name}": meaning for name, meaning in OTHER_VARIABLES.items()} | _OTHERS
    return "\n".join(
        [
            "Settings, strongest first",
            "",
            "  1. options                 --network NAME, --config KEY=VALUE, --config FILE",
            "  2. CAPDEX_* variables      see below",
            "  3. capdex.toml             nearest upward, no further than the repository's root",
            "  4. config.toml             in the user's configuration directory",
            "  5. .capdex/up.json         while a `capdex up` runs in this directory or above",
            "  6. built-in values         public chains: `capdex config networks`",
            "",
            "A project's capdex.toml may not set keystore, author-key, passphrase-file,",
            "author-passphrase-file, signer, signer-address, fee-cap or trust-rpc-url.",
            "The network of `capdex up` brings its own keys; yours are used there only if an",
            "option or a variable names them. `capdex config` shows each value and its source.",
            "",
            "Variables",
            "",
            *(f"  {name:<24} {_MEANING[ENVIRONMENT[name]]}" for name in names),
            *(f"  {name:<24} {meaning}" for name, meaning in others.items()),
            "",
            "A file",
            "",
            '  default-network = "sepolia"',
            "  [networks.sepolia]",
            '  rpc-url = "https://rpc.example"',
            "  start-block = 7000000",
        ]
    )


_MEANING = {
    "network": "the network to use; custom: the one of these variables alone",
    "chain-id": "its chain id",
    "rpc-url": "its chain endpoint",
    "registry": "the registry's address",
    "start-block": "the block the registry was deployed in",
    "node-url": "the node that show and publish use",
    "mcp-url": "the node's MCP endpoint, used by search and resolve",
    "gateway-url": "the trustless gateway that get uses",
    "ipfs": "the storage of publish: dir:PATH, a Kubo RPC address",
    "votes": "the address of CapabilityVotes",
    "trust-rpc-url": "a second endpoint; proofs are checked against its block hashes",
    "nodes": "URLs of further nodes; install compares their answers with the first one's",
    "confirmations": "blocks until a transaction counts as done (2; local: 1)",
    "keystore": "key file of the publishing account",
    "author-key": "key file of the author's did:key",
    "passphrase-file": "file with the passphrase (mode 0600)",
    "author-passphrase-file": "the same for the author's key; default: passphrase-file",
    "signer": "http(s) URL or command of an external signer, instead of a key file",
    "signer-address": "the account that the signer signs for",
    "fee-cap": "the most one command may spend, in ETH (0.01, deploy: 0.1)",
}
_OTHERS = {
    "http(s)_proxy, no_proxy": "the http:// proxy to the chain, IPFS and nodes; hosts past it",
    "CI, NO_COLOR, FORCE_COLOR": "no questions; no colour; colour",
    "CMP_ROUTER, CMP_AGENT": "1: an agent reads: as with --json, no colour, no questions",
    "CLAUDE_CONFIG_DIR, CODEX_HOME": "where add-to finds the files of Claude Code and Codex",
    "COPILOT_HOME, CLINE_DIR": "where add-to finds the files of Copilot CLI and Cline",
}


def ranges() -> str:
    """Return the syntax of versions and ranges."""
    return """\
Versions and ranges

  did:nuwa:cap:weather             the latest: highest stable release that is not yanked,
                                   else the highest pre-release
  did:nuwa:cap:weather@1.2.3       exactly this one; found although yanked, with a warning
  did:nuwa:cap:weather@^1.2        1.2.0 and later, below 2.0.0
  did:nuwa:cap:weather@~1.2.3      1.2.3 and later, below 1.3.0
  'weather@>=1.2 <3 || 4.x'        any range of npm's grammar; quote it for the shell

The prefix did:nuwa:cap: may be left out. A version that stands alone has no `v` or `=` before it.
A range matches a pre-release only if the range names a pre-release of the same major.minor.patch.
A range never matches a yanked release."""


def verdicts() -> str:
    """Return the meaning of each verdict."""
    return """\
Verdicts: the result of verifying the bytes of a package

  verified      the signature is valid, and chain and bytes name each other; by default only
                these are served
  signed        the signature is valid, but the bytes do not name the account that published them
  unsigned      there is no signature
  invalid       the file or its signature is not what the format says
  unresolvable  the author's DID method is not known here
  mismatch      the bytes, the id, the version or the CID are not what the chain says

Verified means: this author signed these bytes, and this account published them. It does not mean
that they are safe to run.
A release also has an availability (pending, available, parked: can the bytes be fetched?) and the
flags yanked and deprecated. `capdex explain CODE` explains a reason code."""


def steps() -> str:
    """Return the SemVer step that each kind of change requires."""
    from capdex.diff.semver_step import Rule

    lines = ["Versions: the step that each change requires, from 1.0.0 on", ""]
    section = ""
    for rule in Rule:
        name = rule.section if rule.section != section else ""
        section = rule.section
        lines.append(f"  {name:<17} {rule.step!s:<6} {'!' if rule.risk else ' '} {rule.what}")
    return "\n".join(
        [
            *lines,
            "",
            "! widens what the package may do or reach: never a patch, at any version.",
            "Below 1.0.0, as npm's caret: 0.y requires a minor step where 1.0.0 requires a major,",
            "0.0.z a patch; all else but ! requires a patch. Between pre-releases of one version,",
            "and from them to that version, no step is required.",
            "",
            "`capdex diff OLD NEW` shows what changed. `publish` compares with the highest lower",
            "release; it refuses a smaller step unless --allow smaller-step, and a patch that",
            "widens unless --allow widened-permission. An incompatible schema under an unchanged",
            "$id is always refused (NIP-7): give it a new one, as in did:nuwa:state:weather#v2.",
        ]
    )


TOPICS: dict[str, Callable[[], str]] = {
    "exit-codes": exit_codes,
    "environment": environment,
    "ranges": ranges,
    "verdicts": verdicts,
    "steps": steps,
}
