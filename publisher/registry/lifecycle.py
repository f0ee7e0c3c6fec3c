"""Yank and deprecate releases and names, and undo both (P11)."""

from __future__ import annotations

from typing import Any

from capdex.errors import UsageError
from capdex.uri import CapabilityURI, check_name
from capdex.version import Version
from publisher.registry.change import Change, Stands, name_change
from publisher.registry.permission import check_text, own_release, owned
from publisher.registry.registry import Registry


def yank(registry: Registry, name: str, semver: str, reason: str = "") -> Change:
    """Take a release out of search and latest."""
    text = check_text(reason)

    async def stands(sender: str) -> bool:
        return (await own_release(registry, name, semver, sender)).yanked

    return _release_change(
        registry, name, semver, "yank", (text,), stands,
        already="it is yanked already; to change the reason, unyank it first",
        effects=("latest, ranges and search pass it over; who asks for it exactly still gets it",),
    )  # fmt: skip


def unyank(registry: Registry, name: str, semver: str) -> Change:
    """Put a yanked release back."""

    async def stands(sender: str) -> bool:
        return not (await own_release(registry, name, semver, sender)).yanked

    return _release_change(
        registry, name, semver, "unyank", (), stands,
        already="it is not yanked",
        effects=("latest, ranges and search find it again",),
    )  # fmt: skip


def deprecate(registry: Registry, name: str, semver: str, message: str = "") -> Change:
    """Advise against a release."""
    text = check_text(message)

    async def stands(sender: str) -> bool:
        return (await own_release(registry, name, semver, sender)).deprecated

    return _release_change(
        registry, name, semver, "deprecate", (text,), stands,
        already="it is deprecated already; to change the message, undeprecate it first",
        effects=("it is found as before, with your message",),
    )  # fmt: skip


def undeprecate(registry: Registry, name: str, semver: str) -> Change:
    """Take back the advice against a release."""

    async def stands(sender: str) -> bool:
        return not (await own_release(registry, name, semver, sender)).deprecated

    return _release_change(
        registry, name, semver, "undeprecate", (), stands,
        already="it is not deprecated",
        effects=("it is found without a warning again",),
    )  # fmt: skip


def deprecate_name(
    registry: Registry, name: str, message: str = "", replaced_by: str = ""
) -> Change:
    """Advise against a name, with all its releases."""
    text = check_text(message)
    if replaced_by and check_name(replaced_by) == name:
        raise UsageError(f'"{name}" cannot be replaced by itself', fix="name another capability")

    async def stands(sender: str) -> bool:
        return (await owned(registry, name, sender)).deprecated

    instead = f", and that {replaced_by} takes its place" if replaced_by else ""
    return name_change(
        registry, name, "deprecate", "deprecateName", (text, replaced_by), stands,
        already="it is deprecated already; to change the message, undeprecate it first",
        effects=(f"all its releases are found as before, with your message{instead}",),
    )  # fmt: skip


def undeprecate_name(registry: Registry, name: str) -> Change:
    """Take back the advice against a name."""

    async def stands(sender: str) -> bool:
        return not (await owned(registry, name, sender)).deprecated

    return name_change(
        registry, name, "undeprecate", "undeprecateName", (), stands,
        already="it is not deprecated",
        effects=("its releases are found without a warning again",),
    )  # fmt: skip


def _release_change(
    registry: Registry, name: str, semver: str, verb: str, texts: tuple[str, ...], stands: Stands,
    **shown: Any,
) -> Change:  # fmt: skip
    uri = CapabilityURI(check_name(name), Version.parse(semver))

    async def arguments() -> tuple[Any, ...]:
        return name, semver, await registry.index_of(name, semver), *texts

    return Change(verb, str(uri), registry, verb, stands, arguments, **shown)
