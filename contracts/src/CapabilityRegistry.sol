// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";

import {Commitments} from "./Commitments.sol";
import {Releases} from "./Releases.sol";
import {ICapabilityRegistry} from "./interfaces/ICapabilityRegistry.sol";
import {EventLog} from "./libraries/EventLog.sol";
import {Text} from "./libraries/Text.sol";

/// @title CapabilityRegistry
/// @notice See `ICapabilityRegistry` for what it does, and `RegistryStorage` for what it keeps. The ways to publish are
/// here, what becomes of names in `Commitments` and `NameOwnership`, of releases in `Releases`.
contract CapabilityRegistry is Releases, EIP712 {
    using EventLog for EventLog.Log;

    bytes32 private constant PUBLICATION_TYPEHASH = keccak256(
        "Publication(string name,string semver,string cid,bytes32 sha256,bytes32 secret,address publisher,uint256 nonce,uint256 deadline)"
    );

    /// @param minCommitmentAge How old a commitment has to be, in seconds; zero lets names be claimed without one.
    /// @param maxCommitmentAge How old a commitment may be, in seconds.
    constructor(uint256 minCommitmentAge, uint256 maxCommitmentAge)
        Commitments(minCommitmentAge, maxCommitmentAge)
        EIP712("capdex", "1")
    {}

    /// @inheritdoc ICapabilityRegistry
    function publish(string calldata name, string calldata semver, string calldata cid, bytes32 sha256)
        external
    {
        _publish(name, semver, cid, sha256, 0, msg.sender);
    }

    /// @inheritdoc ICapabilityRegistry
    function claimAndPublish(
        string calldata name,
        string calldata semver,
        string calldata cid,
        bytes32 sha256,
        bytes32 secret
    ) external {
        _publish(name, semver, cid, sha256, secret, msg.sender);
    }

    /// @inheritdoc ICapabilityRegistry
    function publishBatch(Publication[] calldata publications) external {
        for (uint256 i; i < publications.length; ++i) {
            _publish(publications[i], msg.sender);
        }
    }

    /// @inheritdoc ICapabilityRegistry
    function publishWithSignature(
        Publication calldata publication,
        address publisher,
        uint256 deadline,
        bytes calldata signature
    ) external {
        if (block.timestamp > deadline) revert SignatureExpired(deadline);
        uint256 nonce = _nonces[publisher]++; // before a contract is asked, so that it cannot use it twice
        bytes32 digest = _hashTypedDataV4(_hashOf(publication, publisher, nonce, deadline));
        if (!SignatureChecker.isValidSignatureNowCalldata(publisher, digest, signature)) {
            revert InvalidSignature(publisher, nonce);
        }
        _log.append(
            Sponsored.selector,
            Text.hash(publication.name),
            publisher,
            abi.encode(EventLog.SEQUENCE, publication.name, msg.sender, nonce)
        );
        _publish(publication, publisher);
    }

    /// @inheritdoc ICapabilityRegistry
    function nonces(address publisher) external view returns (uint256) {
        return _nonces[publisher];
    }

    /// @inheritdoc ICapabilityRegistry
    function log() external view returns (bytes24 head, uint64 count) {
        return (_log.head(), _log.count());
    }

    function _publish(Publication calldata one, address publisher) private {
        _publish(one.name, one.semver, one.cid, one.sha256, one.secret, publisher);
    }

    /// @dev EIP-712's hash of what a publisher signs. The publisher is part of it, so that no other account whose
    /// signatures the same key makes (a second wallet of its owner) is bound by it.
    function _hashOf(Publication calldata one, address publisher, uint256 nonce, uint256 deadline)
        private
        pure
        returns (bytes32)
    {
        return keccak256(
            abi.encode(
                PUBLICATION_TYPEHASH,
                Text.hash(one.name),
                Text.hash(one.semver),
                Text.hash(one.cid),
                one.sha256,
                one.secret,
                publisher,
                nonce,
                deadline
            )
        );
    }
}
