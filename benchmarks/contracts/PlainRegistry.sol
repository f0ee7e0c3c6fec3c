// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @title What NIP-7 asks of a registry, and nothing else
/// @notice The four pieces of information of a release, stored as they are said, and one event with them. Nothing is
/// checked but who owns a name and that a version is new. It is here to be measured beside `CapabilityRegistry`.
contract PlainRegistry {
    struct Release {
        string capUri;
        string semver;
        string cid;
        bytes32 sha256;
    }

    error NotOwner(string name);
    error VersionAlreadyPublished(string capUri);

    event Published(string capUri, string semver, string cid, bytes32 sha256);

    mapping(string name => address) public ownerOf;
    mapping(string capUri => Release) public releases;

    function publish(string calldata name, string calldata semver, string calldata cid, bytes32 sha256)
        external
    {
        if (ownerOf[name] == address(0)) ownerOf[name] = msg.sender;
        if (ownerOf[name] != msg.sender) revert NotOwner(name);
        string memory capUri = string.concat("did:nuwa:cap:", name, "@", semver);
        if (releases[capUri].sha256 != 0) revert VersionAlreadyPublished(capUri);
        releases[capUri] = Release(capUri, semver, cid, sha256);
        emit Published(capUri, semver, cid, sha256);
    }
}
