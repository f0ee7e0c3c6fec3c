"""Cause, remedy and example of each error code, as `capdex explain` shows them."""

from __future__ import annotations

from typing import Final, NamedTuple

from capdex.errors import Code


class Explained(NamedTuple):
    """What leads to a code, what to do about it, and a command or a line to write."""

    cause: str
    remedy: str
    example: str


_NETWORK: Final = "capdex doctor"

ERRORS: Final[dict[Code, Explained]] = {
    Code.NOT_FOUND: Explained(
        "The index has no such name, or no release of it in the range that was asked for. A release"
        " whose bytes were rejected is not found by a range either.",
        "Check the spelling, ask for the name alone, or search by what the capability does.",
        "capdex show weather; capdex search 'rain tomorrow'",
    ),
    Code.YANKED: Explained(
        "The owner withdrew every release that matches. A yanked release can still be had by its"
        " exact version, and its answer carries the reason.",
        "Take a release that is not yanked, or name the exact version if you need this one.",
        "capdex resolve weather@^2; capdex get weather@1.3.0",
    ),
    Code.INVALID_INPUT: Explained(
        "A value does not follow the protocol: a capability URI, a range, a filter, a cursor, a"
        " schema or a package.",
        "Read the lines under the error: they name the value and what was expected.",
        "capdex resolve 'did:nuwa:cap:weather@^1.2.0'",
    ),
    Code.UNVERIFIED: Explained(
        "The release is on chain, but its bytes failed a check: the CID, the sha256, the format or"
        " the signature. Nodes list it with the reason and do not serve it.",
        "See the reason; the author must publish a corrected version.",
        "capdex show weather@1.3.0; capdex explain NOT_BOUND",
    ),
    Code.PENDING: Explained(
        "The release is announced on chain, and the node could not fetch its bytes yet, or the"
        " node builds its search just after a start.",
        "Wait and ask again. As the author, keep your IPFS node online or pin the file.",
        "capdex show weather@1.3.0",
    ),
    Code.UNAUTHENTICATED: Explained(
        "The service wants credentials, and the call carried none.",
        "Store the secret that the capability names, or pass the header that the operator gave.",
        "capdex secret weather api.example.net WEATHER_API_KEY",
    ),
    Code.PERMISSION_DENIED: Explained(
        "The credentials are known and do not suffice, the policy of this machine does not allow"
        " the call, or a sponsor does not pay for this account.",
        "See what the capability asks for, and grant it if you agree.",
        "capdex grant",
    ),
    Code.TOO_LARGE: Explained(
        "The input is over a stated limit. Limits hold before anything is parsed, so that a"
        " hostile input costs nothing.",
        "Shorten the part that the error names. docs/protocol.md lists every limit.",
        "capdex validate weather.acp.yaml",
    ),
    Code.RATE_LIMITED: Explained(
        "The service got more requests from you in a second than it takes from one client.",
        "Wait as long as Retry-After says, and send fewer requests at once. An operator raises"
        " the limit with --rate.",
        "capdex node --rate 500",
    ),
    Code.STALLED: Explained(
        "The node stopped following the chain: its endpoint is down or gives wrong data, or the"
        " node waits for its operator after a deep reorganisation.",
        "Ask another node. As the operator, read what /status and the log say.",
        "capdex doctor",
    ),
    Code.TIMEOUT: Explained(
        "No answer came within the time allowed. Nothing is known about whether it was done.",
        "Run the same command again: commands of capdex do nothing twice.",
        _NETWORK,
    ),
    Code.USAGE: Explained(
        "The options do not fit together, an argument is missing, or a word is not known.",
        "Read the help of the command; it ends with examples.",
        "capdex publish --help",
    ),
    Code.UNREADABLE: Explained(
        "A file cannot be read or written: it is missing, is a directory, or its permissions do"
        " not allow it.",
        "Check the path and the permissions, and that the disk is not full.",
        "chmod u+r weather.acp.yaml",
    ),
    Code.CONFIG: Explained(
        "A setting is missing, empty or not valid. The error names the setting, and `config` shows"
        " where each value comes from.",
        "Set it by its option, its variable, or in capdex.toml.",
        "capdex config; capdex help environment",
    ),
    Code.VERSION_EXISTS: Explained(
        "This version is on chain with other bytes. A published version never changes.",
        "Raise the version in metadata.id and publish again.",
        "id: did:nuwa:cap:weather@1.3.1",
    ),
    Code.ALREADY_DONE: Explained(
        "The state is the one that was asked for, so nothing was sent and nothing was paid.",
        "Nothing is left to do.",
        "capdex show weather",
    ),
    Code.NAME_TAKEN: Explained(
        "Another account owns the name. The first account that claims a name owns it.",
        "Choose another name, or ask the owner to make you a maintainer.",
        "capdex maintainer add weather 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    ),
    Code.NAME_RESERVED: Explained(
        "The name is reserved, or is written so much like a name in use that people would"
        " confuse them.",
        "Choose a name that differs in more than a hyphen or a look-alike character.",
        "capdex claim my-city-weather",
    ),
    Code.NOT_OWNER: Explained(
        "Only the owner of the name may do this; some actions are open to its maintainers, too.",
        "Use the owner's key, or ask the owner to do it.",
        "capdex show weather; capdex account show",
    ),
    Code.NO_CONSENT: Explained(
        "The plan was shown and not agreed to, or nobody could be asked because this is not a"
        " terminal. Nothing was sent.",
        "Read the plan, then agree to it on a terminal, or with --yes in a script.",
        "capdex publish weather.acp.yaml --dry-run; capdex publish weather.acp.yaml --yes",
    ),
    Code.WRONG_PASSPHRASE: Explained(
        "The passphrase does not open the key file. Account key and author key may have different"
        " passphrases; the error names the file.",
        "Give the passphrase of that file.",
        "capdex publish weather.acp.yaml --passphrase-file account.pass",
    ),
    Code.KEY_EXPOSED: Explained(
        "Other users of this machine can read the key file or the passphrase file, or the key is"
        " one of the public test keys and the chain is not a local one.",
        "Restrict the file to its owner. Make a new key if others may have read it.",
        "chmod 600 keys/account.json; capdex account new",
    ),
    Code.EMPTY_ACCOUNT: Explained(
        "The account has less ether than the transaction may cost at most.",
        "Send ether to the account that the error names. On a test network a faucet gives some.",
        "capdex account show",
    ),
    Code.WRONG_CHAIN: Explained(
        "The endpoint answers for another chain id than the network is configured for. Nothing"
        " was sent.",
        "Correct rpc-url or chain-id of the network.",
        "capdex config networks; capdex doctor",
    ),
    Code.NO_CONTRACT: Explained(
        "There is no contract at the registry's address on this chain.",
        "Check the network and the address; on a chain of your own, deploy the registry first.",
        "capdex deploy --network sepolia --dry-run",
    ),
    Code.REVERTED: Explained(
        "The contract refused the transaction. Mostly something changed between the plan and the"
        " block: another account claimed the name, or a maintainer was removed.",
        "Read the reason in the error, and run the command again to see a new plan.",
        "capdex show weather",
    ),
    Code.STEP_TOO_SMALL: Explained(
        "The new release changes more than its version number says: users of ^1.2.0 would get a"
        " change that can break them.",
        "Raise the version as far as the error says. --allow publishes all the same.",
        "capdex diff weather@1.2.0 weather.acp.yaml",
    ),
    Code.SCHEMA_CHANGED: Explained(
        "The state schema changed incompatibly, and its $id is the same. Stored objects of the old"
        " version would not be valid any more.",
        "Give the schema a new $id.",
        '"$id": "did:nuwa:state:weather#v2"',
    ),
    Code.FEE_OVER_CAP: Explained(
        "The transaction could cost more than the fee cap, or more than is left of a sponsor's"
        " budget. --yes never raises the cap.",
        "Wait for lower fees, or raise the cap if you agree with the cost.",
        "capdex publish weather.acp.yaml --fee-cap 0.02",
    ),
    Code.SIGNER_REFUSED: Explained(
        "The external signer (a wallet, a hardware key, a service) answered no.",
        "Agree on the signer, and check that it holds the account that capdex asks for.",
        "capdex account show",
    ),
    Code.SIGNER_UNAVAILABLE: Explained(
        "The external signer did not answer, or answered with something else than a signature.",
        "Start the signer, and check its address or command.",
        "capdex account show",
    ),
    Code.BAD_PROOF: Explained(
        "The storage proof does not prove what the node answered. The node is broken or lies.",
        "Do not use the answer; ask another node, and report this one to its operator.",
        "capdex resolve weather --trust-block 0x…",
    ),
    Code.RPC_UNAVAILABLE: Explained(
        "The chain endpoint does not answer or is over its limit.",
        "Try again later, or use another endpoint.",
        "capdex doctor; capdex publish weather.acp.yaml --rpc-url https://rpc.example.net",
    ),
    Code.IPFS_UNAVAILABLE: Explained(
        "The IPFS endpoint does not answer. Without it a package cannot be uploaded or fetched.",
        "Start the IPFS node, or name another one.",
        "capdex publish weather.acp.yaml --ipfs http://127.0.0.1:5001",
    ),
    Code.NODE_UNAVAILABLE: Explained(
        "The capdex node at the configured URL does not answer.",
        "Start it, or name another one. `capdex up` runs a whole local network.",
        "capdex doctor; capdex up",
    ),
    Code.NOT_SERVED: Explained(
        "The release is on chain, and the configured node does not answer with it yet.",
        "See what the node waits for, then run the same command again: nothing is paid twice.",
        "capdex doctor; capdex publish weather.acp.yaml --wait 300",
    ),
    Code.SERVICE_UNAVAILABLE: Explained(
        "The service that a tool calls is down or busy, or a node is too busy to check a file.",
        "Try again later. The capability itself is in order.",
        'capdex call city-weather#find_place \'{"name": "Lyon"}\'',
    ),
    Code.DATABASE_LOCKED: Explained(
        "Another process writes this index. One index has one writer.",
        "Stop the other node, or give this one a database of its own.",
        "capdex node --db sqlite:///second.db",
    ),
    Code.DATABASE_UNAVAILABLE: Explained(
        "The database does not answer, or the URL or the password is wrong.",
        "Start the database and check the URL.",
        "capdex node --db postgresql://capdex@localhost/capdex",
    ),
    Code.FOREIGN_DATABASE: Explained(
        "The database holds the index of another chain or registry.",
        "Use one database for each registry.",
        "capdex index digest --db sqlite:///sepolia.db",
    ),
    Code.AMBIGUOUS: Explained(
        "Several capabilities match the words equally well, and none is chosen for you.",
        "Name one of those that the error lists.",
        "capdex install city-weather",
    ),
    Code.CONFIRM_NEEDED: Explained(
        "The call can change or cost something, so a person must agree first. A model cannot"
        " agree in a person's place.",
        "Agree where you are asked, or grant it once with the command in the error.",
        "capdex grant",
    ),
    Code.EXECUTION_FAILED: Explained(
        "The tool ran and reported an error of its own.",
        "Read what the service answered, and correct the input.",
        'capdex call city-weather#find_place \'{"name": "Lyon"}\'',
    ),
    Code.OUTPUT_INVALID: Explained(
        "The output of the tool does not fit the output schema of the package.",
        "Report it to the author: the service or the schema changed.",
        "capdex show weather",
    ),
    Code.SIGNER_CHANGED: Explained(
        "The new version is signed by another key than the installed one. That can be a change of"
        " hands, or an attack.",
        "Ask the author over another channel. Agree only if you expected the change.",
        "capdex upgrade weather",
    ),
    Code.LOCK_DRIFT: Explained(
        "capdex.lock lists other packages than are installed.",
        "Bring the machine to the lock file.",
        "capdex sync",
    ),
    Code.INTERNAL: Explained(
        "capdex has a bug. A report was written without secrets; the error names its path.",
        "Please report it with that file.",
        "capdex version",
    ),
}
