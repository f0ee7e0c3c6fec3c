"""Opening the places that packages go to and are fetched back from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cli.terminal.app import App

if TYPE_CHECKING:
    from publisher.publish.upload import Delivery


@asynccontextmanager
async def open_delivery(app: App, ipfs: str | None) -> AsyncIterator[Delivery]:
    """The storage named by --ipfs or the network, and the network's gateways.

    A gateway that is the node's own has a package only once it was announced.
    """
    from capdex.net.ipfs.open import Gateway, open_storage
    from publisher.publish.upload import Delivery

    network = app.settings.need_network()
    storage = open_storage(ipfs or app.settings.need_network("ipfs").ipfs)
    node_url, gateway_url = network.node_url, network.gateway_url
    delivery = Delivery(
        storage,
        Gateway(gateway_url) if gateway_url and gateway_url != node_url else None,
        Gateway(node_url) if node_url else None,
    )
    try:
        yield delivery
    finally:
        await delivery.close()
