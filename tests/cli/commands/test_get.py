"""What `capdex get DIR/` writes beside the files of a package."""

from __future__ import annotations

import hashlib

import pytest

from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid
from capdex.package import VerifiedPackage, verify
from capdex.registry.events import Announcement
from capdex_cli.commands.find.get import made_files
from tests.indexer import making
from tests.router.simulated import PUBLISHER


def package(path: str) -> VerifiedPackage:
    data = making.package_bytes("forms", "1.0.0", prompt="Fill.", files={path: b"a"})
    uri, sha256 = "did:nuwa:cap:forms@1.0.0", hashlib.sha256(data).digest()
    told = Announcement(making.CHAIN_ID, PUBLISHER, uri, "1.0.0", str(Cid.of(data)), sha256)
    return verify(told, data)


def test_the_package_and_its_text_stand_beside_its_files() -> None:
    assert set(made_files(package("a.txt"))) == {"forms.acp.yaml", "SKILL.md"}


@pytest.mark.parametrize("path", ["forms.acp.yaml", "Forms.ACP.yaml", "forms.acp.yaml/a"])
def test_a_file_with_the_name_of_the_package_is_refused_and_not_replaced(path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        made_files(package(path))
    assert path in refused.value.message
