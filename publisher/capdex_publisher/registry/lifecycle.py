"""Yank and deprecate releases and names, and undo both (P11); vote on names."""

from __future__ import annotations

from typing import Any, Final

from capdex.errors import Code, InvalidInput, UsageError
from capdex.registry.state import MAX_REASON_BYTES
from capdex.uri import CapabilityURI, check_name
from capdex.version import Version
from capdex_publisher.ethereum.contract import Contract
from capdex_publisher.registry.change import RegistryChange, name_change
from capdex_publisher.registry.registry import Registry

NOT_DEPRECATED: Final = "it is not deprecated"
DEPRECATED_ALREADY: Final = "it is deprecated already; to change the message, undeprecate it first"
CHOICES: Final = {"up": 1, "down": -1, "clear": 0}  # votes

# By verb: a flag of a release, its new value, and words for people: that the flag has this value
# already, and the effect.
_VERBS: Final[dict[str, tuple[str, bool, str, str]]] = {
    "yank": (
        "yanked",
        True,
        "it is yanked already; to change the reason, unyank it first",
        "latest, ranges and search pass it over; who asks for it exactly still gets it",
    ),
    "unyank": ("yanked", False, "it is not yanked", "latest, ranges and search find it again"),
    "deprecate": (
        "deprecated",
        True,
        DEPRECATED_ALREADY,
        "it is found as before, with your message",
    ),
    "undeprecate": ("deprecated", False, NOT_DEPRECATED, "it is found without a warning again"),
}


def change_release(
    registry: Registry, verb: str, name: str, semver: str, text: str = ""
) -> RegistryChange:
    """Yank, unyank, deprecate or undeprecate (`verb`) a release.

    `text` is the reason of a yank, or the message of a deprecation.
    """
    flag, value, already, effect = _VERBS[verb]
    texts = (check_text(text),) if value else ()
    uri = CapabilityURI(check_name(name), Version.parse(semver))

    async def stands(sender: str) -> bool:
        release = await registry.own_release(name, semver, sender)
        return bool(getattr(release, flag) is value)

    async def arguments() -> tuple[Any, ...]:
        return name, semver, await registry.index_of(name, semver), *texts

    return RegistryChange(verb, str(uri), registry, verb, stands, arguments, already, (effect,))


def deprecate_name(
    registry: Registry, name: str, message: str = "", replaced_by: str = ""
) -> RegistryChange:
    """Advise against a name, with all its releases."""
    text = check_text(message)
    if replaced_by and check_name(replaced_by) == name:
        raise UsageError(f'"{name}" cannot be replaced by itself', fix="name another capability")

    async def stands(sender: str) -> bool:
        return (await registry.owned(name, sender)).deprecated

    instead = f", and that {replaced_by} takes its place" if replaced_by else ""
    return name_change(
        registry, name, "deprecate", "deprecateName", (text, replaced_by), stands,
        already=DEPRECATED_ALREADY,
        effects=(f"all its releases are found as before, with your message{instead}",),
    )  # fmt: skip


def undeprecate_name(registry: Registry, name: str) -> RegistryChange:
    """Take back the advice against a name."""

    async def stands(sender: str) -> bool:
        return not (await registry.owned(name, sender)).deprecated

    return name_change(
        registry, name, "undeprecate", "undeprecateName", (), stands,
        already=NOT_DEPRECATED,
        effects=("its releases are found without a warning again",),
    )  # fmt: skip


def check_text(text: str) -> str:
    """Return a reason or message if it is short UTF-8 text, else raise InvalidInput."""
    try:
        length = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidInput(
            "the reason or message is not text",
            why=f"{text[:80]!r} has bytes that are not UTF-8",
            fix="type it again, in UTF-8",
        ) from None
    if length > MAX_REASON_BYTES:
        raise InvalidInput(
            "the reason or message is too long",
            Code.TOO_LARGE,
            why=f"it has {length} bytes, and at most {MAX_REASON_BYTES} are allowed",
            fix="say it in a sentence, and the rest on your homepage",
        )
    return text


def vote(votes: Contract, registry: Registry, name: str, choice: str) -> RegistryChange:
    """Vote for (up) or against (down) a name, or take the vote back (clear)."""
    value = CHOICES[choice]

    async def stands(sender: str) -> bool:
        await votes.require_code()
        if (of := await votes.read("REGISTRY")) != registry.address:
            raise UsageError(
                f"the votes at {votes.address} are on the names of another registry",
                Code.CONFIG,
                why=f"they are on those of {of}, and the registry is {registry.address}",
                fix="correct votes of this network",
            )
        await registry.claimed(name)
        return bool(await votes.read("voteOf", name, sender) == value)

    said = {"up": "your vote counts for it", "down": "your vote counts against it"}
    return name_change(
        votes, name, "vote", "vote", (value,), stands,
        already="that is your vote already" if value else "you have no vote on it",
        effects=(said.get(choice, "your vote counts no more"), "you can change it at any time"),
        target=choice,
    )  # fmt: skip
