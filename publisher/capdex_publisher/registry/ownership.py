"""Change the owner and the maintainers of a name: transfer, maintainers, renouncing (P12)."""

from __future__ import annotations

from capdex.encoding.abi import parse_address
from capdex.errors import UsageError
from capdex.registry.state import ZERO_ADDRESS
from capdex_publisher import errors
from capdex_publisher.registry.change import RegistryChange, name_change
from capdex_publisher.registry.registry import Registry


def offer_transfer(registry: Registry, name: str, recipient: str) -> RegistryChange:
    """Offer a name to another account."""
    to = parse_account(recipient)

    async def stands(sender: str) -> bool:
        record = await registry.owned(name, sender)
        if to == record.owner:
            raise errors.invalid_recipient(name, to)
        return record.pending_owner == to

    return name_change(
        registry, name, "transfer offer", "offerTransfer", (to,), stands,
        already=f"it is on offer to {to} already",
        effects=(
            f"{to} may accept (capdex transfer accept {name}), and is then the only owner",
            "until then nothing changes, and you can cancel the offer",
        ),
        target=to, typed_back=name,
    )  # fmt: skip


def cancel_transfer(registry: Registry, name: str) -> RegistryChange:
    """Take an offer back."""

    async def stands(sender: str) -> bool:
        return (await registry.owned(name, sender)).pending_owner is None

    return name_change(
        registry, name, "transfer cancel", "cancelTransfer", (), stands,
        already="it is not on offer",
        effects=("nobody can accept it any more",),
    )  # fmt: skip


def accept_transfer(registry: Registry, name: str) -> RegistryChange:
    """Accept a name that is on offer."""

    async def stands(sender: str) -> bool:
        record = await registry.claimed(name)
        if record.owner == sender:
            return True
        if record.pending_owner != sender:
            raise errors.no_offer(name, sender, record.pending_owner or "")
        return False

    return name_change(
        registry, name, "transfer accept", "acceptTransfer", (), stands,
        already="it is yours already",
        effects=("you become its only owner; the maintainers it has now are removed",),
    )  # fmt: skip


def renounce(registry: Registry, name: str) -> RegistryChange:
    """Give a name up for good."""

    async def stands(sender: str) -> bool:
        state = await registry.name_state(name)
        if state is not None and state.renounced:
            return True
        await registry.owned(name, sender)
        return False

    return name_change(
        registry, name, "renounce", "renounce", (), stands,
        already="it was given up already",
        effects=(
            "for ever: nobody can publish under it, change it or claim it again",
            "its releases stay as they are",
        ),
        typed_back=name,
    )  # fmt: skip


def add_maintainer(registry: Registry, name: str, account: str) -> RegistryChange:
    """Let another account publish, yank and deprecate releases of a name."""
    maintainer = parse_account(account)

    async def stands(sender: str) -> bool:
        record = await registry.owned(name, sender)
        if maintainer == record.owner:
            raise errors.invalid_recipient(name, maintainer)
        return await registry.is_maintainer(name, maintainer)

    return name_change(
        registry, name, "maintainer add", "addMaintainer", (maintainer,), stands,
        already=f"{maintainer} is a maintainer already",
        effects=(f"{maintainer} may publish, yank and deprecate releases until you remove it",),
        target=maintainer,
    )  # fmt: skip


def remove_maintainer(registry: Registry, name: str, account: str) -> RegistryChange:
    """Take that permission back; a maintainer may leave by itself."""
    maintainer = parse_account(account)

    async def stands(sender: str) -> bool:
        await (registry.claimed(name) if sender == maintainer else registry.owned(name, sender))
        return not await registry.is_maintainer(name, maintainer)

    return name_change(
        registry, name, "maintainer remove", "removeMaintainer", (maintainer,), stands,
        already=f"{maintainer} is not a maintainer",
        effects=(f"{maintainer} may not publish any more; what it published stays",),
        target=maintainer,
    )  # fmt: skip


def parse_account(address: str) -> str:
    """Return the checksummed address of an account; raises UsageError for the zero address, too."""
    checked = parse_address(address)
    if checked == ZERO_ADDRESS:
        raise UsageError("the zero address is nobody's", fix="name the account of a person")
    return checked
