"""A random history of a registry and its votes: what anybody could send, valid and not.

The ledger of what has been mined so far guides it, so that most operations are nearly right; what
is read in the end does not depend on it. The same seed gives the same history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from eth_abi.abi import encode
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_hash.auto import keccak

from capdex.ipld.cid import Cid
from capdex.registry.state import Ledger, ReleaseState

ACCOUNTS = 6
OPERATIONS_A_NAME = 60  # the pool of names grows, since renounced ones are lost for good
NO_SECRET = bytes(32)
PUBLICATION = ("string", "string", "string", "bytes32", "bytes32")
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "publish": PUBLICATION[:4],
    "claimAndPublish": PUBLICATION,
    "publishBatch": (f"({','.join(PUBLICATION)})[]",),
    "publishWithSignature": (f"({','.join(PUBLICATION)})", "address", "uint256", "bytes"),
    "commit": ("bytes32",),
    "claim": ("string", "bytes32"),
    "yank": ("string", "string", "uint256", "string"),
    "unyank": ("string", "string", "uint256"),
    "deprecate": ("string", "string", "uint256", "string"),
    "undeprecate": ("string", "string", "uint256"),
    "deprecateName": ("string", "string", "string"),
    "undeprecateName": ("string",),
    "addMaintainer": ("string", "address"),
    "removeMaintainer": ("string", "address"),
    "offerTransfer": ("string", "address"),
    "acceptTransfer": ("string",),
    "cancelTransfer": ("string",),
    "renounce": ("string",),
    "vote": ("string", "int8"),
}
SIGNED_TYPE = {
    "Publication": [
        *({"name": x, "type": "string"} for x in ("name", "semver", "cid")),
        *({"name": x, "type": "bytes32"} for x in ("sha256", "secret")),
        {"name": "publisher", "type": "address"},
        *({"name": x, "type": "uint256"} for x in ("nonce", "deadline")),
    ]
}


def call_data(function: str, *values: Any) -> bytes:
    """The input of a call; a string may be any bytes, which the ABI encodes alike."""
    types = ARGUMENTS[function]
    selector = keccak(f"{function}({','.join(types)})".encode())[:4]
    loose = [one.replace("string", "bytes") for one in types]
    return selector + encode(loose, [_raw(value) for value in values])


def _raw(value: Any) -> Any:
    if isinstance(value, str) and not value.startswith("0x"):
        return value.encode()
    return tuple(map(_raw, value)) if isinstance(value, list | tuple) else value


@dataclass
class History:
    """`operation()` makes the next transaction: sender, whether it is a vote, input."""

    random: Random
    chain_id: int
    registry: str
    now: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    made: int = 0
    secrets: dict[tuple[str, str], bytes] = field(default_factory=dict)
    commitments: set[bytes] = field(default_factory=set)
    names: set[str] = field(default_factory=set)  # every one that was ever tried

    def __post_init__(self) -> None:
        keys = [keccak(b"account %d" % n) for n in range(ACCOUNTS)]
        self.signers: dict[str, LocalAccount] = {
            account.address: account for account in map(Account.from_key, keys)
        }
        self.accounts = list(self.signers)
        self.weights: dict[Callable[[], tuple[str, str, list[Any]]], int] = {
            self._publish: 22,
            self._claim_and_publish: 8,
            self._batch: 8,
            self._signed: 9,
            self._commit: 10,
            self._claim: 7,
            self._yank: 16,
            self._deprecate: 12,
            self._deprecate_name: 8,
            self._maintain: 14,
            self._offer: 8,
            self._accept: 8,
            self._cancel: 3,
            self._renounce: 1,
            self._vote: 8,
        }

    def operation(self) -> tuple[str, bool, bytes]:
        self.made += 1
        (kind,) = self.random.choices(list(self.weights), list(self.weights.values()))
        sender, function, values = kind()
        return sender, function == "vote", call_data(function, *values)

    # ------------------------------------------------------------------------------ choosing

    def likely(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def pick(self, some: Sequence[Any]) -> Any:
        return self.random.choice(some)

    def name(self, *, kept: bool = False) -> str:
        """A name of the pool, or of those that are claimed; seldom one that nobody can claim."""
        if kept and self.ledger.names and self.likely(95):
            return str(self.pick(list(self.ledger.names)))
        pool = [
            f"pack-{chr(97 + n % 26)}{n // 26}" for n in range(5 + self.made // OPERATIONS_A_NAME)
        ]
        name = str(self.pick(pool))
        if not self.likely(92):
            odd = ["Bad", "a--b", "x", "y" * 65, "ad-min", "c4p", "cap", "nu-wa", "été"]
            name = str(self.pick([name.replace("-", ""), name.replace("o", "0"), *odd]))
        self.names.add(name)
        return name

    def standing(self, name: str, *, owner: bool = False) -> str:
        """An account that may change the name, most of the time."""
        state = self.ledger.names.get(name)
        if state is None or state.owner is None or self.likely(15):
            return str(self.pick(self.accounts))
        return str(self.pick([state.owner, *([] if owner else sorted(state.maintainers))]))

    def words(self) -> bytes:
        some = [b"", b"it is broken", "kaputt \N{FIRE} été".encode(), b"\xff\xfe not \xc3 UTF-8"]
        return bytes(self.pick([*some, b"y" * 500, "\xe9".encode() * 250, b"y" * 501]))

    def release(self) -> tuple[str, int, ReleaseState | None]:
        """A name, and one of its releases with its index."""
        name = self.name(kept=True)
        releases = self.ledger.names[name].releases if name in self.ledger.names else []
        if not releases:
            return name, 0, None
        index = self.random.randrange(len(releases))
        return name, index, releases[index]

    def publication(self, name: str, account: str) -> tuple[Any, ...]:
        numbers = ".".join(str(self.random.randrange(6)) for _ in range(3))
        tail = self.pick(["", "", "", "-rc.1", "-a.b-c", "-" + "long." * 9 + "0"])
        semver = numbers + tail
        if not self.likely(97):
            semver = self.pick(["1.0", "v1.0.0", "01.0.0", "1.0.0+build", "", "1.0.0-" + "x" * 60])
        sha256 = self.random.randbytes(32) if self.likely(98) else bytes(32)
        cid = Cid.raw(sha256 if self.likely(98) else self.random.randbytes(32)).text
        secret = self.secrets.get((name, account), NO_SECRET)
        return name, semver, cid, sha256, secret if self.likely(95) else b"\x01" * 32

    def claimer(self, name: str) -> str:
        """An account that may publish, or that has committed to the name."""
        if name in self.ledger.names:
            return self.standing(name)
        committed = [account for one, account in self.secrets if one == name]
        return str(self.pick(committed or self.accounts))

    # ---------------------------------------------------------------------------- operations

    def _publish(self) -> tuple[str, str, list[Any]]:
        name = self.name(kept=self.likely(70))
        account = self.claimer(name)
        return account, "publish", list(self.publication(name, account)[:4])

    def _claim_and_publish(self) -> tuple[str, str, list[Any]]:
        name = self.name()
        account = self.claimer(name)
        return account, "claimAndPublish", list(self.publication(name, account))

    def _batch(self) -> tuple[str, str, list[Any]]:
        name = self.name(kept=self.likely(70))
        account = self.claimer(name)
        more = [name] * self.random.randrange(4)
        if self.likely(20):
            more.append(self.name())
        return account, "publishBatch", [[self.publication(x, account) for x in [name, *more]]]

    def _signed(self) -> tuple[str, str, list[Any]]:
        name = self.name(kept=self.likely(70))
        publisher = self.claimer(name)
        name, semver, cid, sha256, secret = publication = self.publication(name, publisher)
        signed = {
            "name": name,
            "semver": semver,
            "cid": cid,
            "sha256": sha256,
            "secret": secret,
            "publisher": publisher,
            "nonce": self.ledger.nonces.get(publisher, 0) + (0 if self.likely(95) else 1),
            "deadline": self.now + self.pick([10_000, 10_000, 10_000, 5, -1]),
        }
        domain = {
            "name": "capdex",
            "version": "1",
            "chainId": self.chain_id if self.likely(98) else 1,
            "verifyingContract": self.registry,
        }
        signer = self.signers[publisher if self.likely(95) else self.pick(self.accounts)]
        message = encode_typed_data(domain, SIGNED_TYPE, signed)
        signature = bytes(signer.sign_message(message).signature)
        sender = self.pick(self.accounts)
        values = [publication, publisher, signed["deadline"], signature]
        return sender, "publishWithSignature", values

    def _commit(self) -> tuple[str, str, list[Any]]:
        name, claimer = self.name(), self.pick(self.accounts)
        secret = self.secrets.setdefault(
            (name, claimer), self.pick([NO_SECRET, self.random.randbytes(32)])
        )
        id_ = keccak(name.encode())
        commitment = keccak(encode(["bytes32", "address", "bytes32"], [id_, claimer, secret]))
        self.commitments.add(commitment)
        return self.pick(self.accounts), "commit", [commitment]

    def _claim(self) -> tuple[str, str, list[Any]]:
        name = self.name()
        account = self.claimer(name)
        return account, "claim", [name, self.secrets.get((name, account), NO_SECRET)]

    def _yank(self) -> tuple[str, str, list[Any]]:
        name, index, release = self.release()
        semver = release.semver if release else "1.0.0"
        where = [name, semver, index if self.likely(95) else index + 1]
        if (release is not None and release.yanked) is self.likely(90):
            return self.standing(name), "unyank", where
        return self.standing(name), "yank", [*where, self.words()]

    def _deprecate(self) -> tuple[str, str, list[Any]]:
        name, index, release = self.release()
        semver = release.semver if release else "1.0.0"
        where = [name, semver, index if self.likely(95) else index + 1]
        if (release is not None and release.deprecated) is self.likely(90):
            return self.standing(name), "undeprecate", where
        return self.standing(name), "deprecate", [*where, self.words()]

    def _deprecate_name(self) -> tuple[str, str, list[Any]]:
        name = self.name(kept=True)
        state, account = self.ledger.names.get(name), self.standing(name, owner=True)
        if (state is not None and state.deprecated) is self.likely(90):
            return account, "undeprecateName", [name]
        return account, "deprecateName", [name, self.words(), self.pick(["", self.name()])]

    def _maintain(self) -> tuple[str, str, list[Any]]:
        name = self.name(kept=True)
        state, sender = self.ledger.names.get(name), self.standing(name, owner=self.likely(80))
        kept = sorted(state.maintainers) if state else []
        if kept and self.likely(40):
            return sender, "removeMaintainer", [name, self.pick([*kept, sender])]
        return sender, "addMaintainer", [name, self.pick([*self.accounts, "0x" + "00" * 20])]

    def _offer(self) -> tuple[str, str, list[Any]]:
        name = self.name(kept=True)
        sender = self.standing(name, owner=self.likely(90))
        return sender, "offerTransfer", [name, self.pick([*self.accounts, "0x" + "00" * 20])]

    def _offered(self) -> str:
        offered = [name for name, x in self.ledger.names.items() if x.pending_owner is not None]
        return str(self.pick(offered)) if offered and self.likely(90) else self.name(kept=True)

    def _accept(self) -> tuple[str, str, list[Any]]:
        name = self._offered()
        state = self.ledger.names.get(name)
        recipient = state.pending_owner if state and self.likely(90) else None
        return recipient or self.pick(self.accounts), "acceptTransfer", [name]

    def _cancel(self) -> tuple[str, str, list[Any]]:
        name = self._offered()
        return self.standing(name, owner=True), "cancelTransfer", [name]

    def _renounce(self) -> tuple[str, str, list[Any]]:
        name = self.name(kept=True)
        return self.standing(name, owner=True), "renounce", [name]

    def _vote(self) -> tuple[str, str, list[Any]]:
        return self.pick(self.accounts), "vote", [self.name(kept=True), self.pick([1, -1, 0, 2])]
