// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {RegistryStorage} from "./RegistryStorage.sol";
import {ICapabilityRegistry} from "./interfaces/ICapabilityRegistry.sol";
import {EventLog} from "./libraries/EventLog.sol";
import {Names} from "./libraries/Names.sol";
import {Reserved} from "./libraries/Reserved.sol";

/// @notice Who owns a name, who may publish under it, and how both change. See `ICapabilityRegistry`.
abstract contract NameOwnership is ICapabilityRegistry, RegistryStorage {
    using EventLog for EventLog.Log;

    /// @dev Room for a sentence or two; reasons and messages live in the log, not in storage.
    uint256 internal constant MAX_REASON_BYTES = 500;

    uint32 internal constant NAME_DEPRECATED = 0x01;

    /// @inheritdoc ICapabilityRegistry
    uint256 public immutable MIN_COMMITMENT_AGE;

    /// @inheritdoc ICapabilityRegistry
    uint256 public immutable MAX_COMMITMENT_AGE;

    constructor(uint256 minCommitmentAge, uint256 maxCommitmentAge) {
        if (minCommitmentAge != 0 && minCommitmentAge >= maxCommitmentAge) {
            revert InvalidCommitmentAges(minCommitmentAge, maxCommitmentAge);
        }
        MIN_COMMITMENT_AGE = minCommitmentAge;
        MAX_COMMITMENT_AGE = maxCommitmentAge;
    }

    // ------------------------------------------------------------------------------------------ claiming

    /// @inheritdoc ICapabilityRegistry
    function commit(bytes32 commitment) external {
        if (MIN_COMMITMENT_AGE == 0) revert CommitmentNotNeeded();
        uint256 madeAt = _commitments[commitment];
        // Until it expires nobody, not even its maker, can make it younger.
        if (madeAt != 0 && block.timestamp <= madeAt + MAX_COMMITMENT_AGE) {
            revert CommitmentExists(commitment, madeAt + MAX_COMMITMENT_AGE);
        }
        _commitments[commitment] = block.timestamp;
        _log.append(
            Committed.selector, commitment, msg.sender, abi.encode(_log.next(), uint64(block.timestamp))
        );
    }

    /// @inheritdoc ICapabilityRegistry
    function claim(string calldata name, bytes32 secret) external {
        bytes32 nameId = keccak256(bytes(name));
        NameRecord memory record = _names[nameId];
        if (_isClaimed(record)) revert NameClaimed(name, record.owner);
        _claim(nameId, name, msg.sender, secret);
        _names[nameId].owner = msg.sender;
        _log.append(Claimed.selector, nameId, msg.sender, abi.encode(_log.next(), name));
    }

    /// @dev Checks that `claimer` may have `name` now, and gives the name its skeleton. The grammar is looked at here
    /// only: a name that is claimed has passed.
    function _claim(bytes32 nameId, string calldata name, address claimer, bytes32 secret) internal {
        bytes32 skeletonId = keccak256(bytes(Names.skeletonOf(name)));
        if (Reserved.contains(skeletonId)) revert NameReserved(name);
        string memory takenBy = _nameOfSkeleton[skeletonId];
        if (bytes(takenBy).length != 0) revert NameTaken(name, takenBy);
        if (MIN_COMMITMENT_AGE != 0) _checkCommitment(_commitment(nameId, claimer, secret));
        _nameOfSkeleton[skeletonId] = name;
    }

    function _checkCommitment(bytes32 commitment) private view {
        uint256 madeAt = _commitments[commitment];
        if (madeAt == 0) revert CommitmentMissing(commitment);
        if (block.timestamp < madeAt + MIN_COMMITMENT_AGE) {
            revert CommitmentTooYoung(commitment, madeAt + MIN_COMMITMENT_AGE);
        }
        if (block.timestamp > madeAt + MAX_COMMITMENT_AGE) {
            revert CommitmentExpired(commitment, madeAt + MAX_COMMITMENT_AGE);
        }
    }

    // ------------------------------------------------------------------------------------------ maintainers

    /// @inheritdoc ICapabilityRegistry
    function addMaintainer(string calldata name, address account) external {
        (bytes32 nameId, NameRecord memory record) = _owned(name);
        if (account == address(0) || account == record.owner) revert InvalidRecipient(name, account);
        mapping(address => bool) storage maintainers = _maintainers[nameId][record.epoch];
        if (maintainers[account]) revert MaintainerUnchanged(name, account);
        maintainers[account] = true;
        _log.append(MaintainerAdded.selector, nameId, msg.sender, abi.encode(_log.next(), name, account));
    }

    /// @inheritdoc ICapabilityRegistry
    function removeMaintainer(string calldata name, address account) external {
        bytes32 nameId = keccak256(bytes(name));
        NameRecord memory record = _names[nameId];
        if (msg.sender != record.owner && msg.sender != account) revert NotOwner(name, msg.sender);
        mapping(address => bool) storage maintainers = _maintainers[nameId][record.epoch];
        if (!maintainers[account]) revert MaintainerUnchanged(name, account);
        maintainers[account] = false;
        _log.append(MaintainerRemoved.selector, nameId, msg.sender, abi.encode(_log.next(), name, account));
    }

    // ------------------------------------------------------------------------------------------ transfers

    /// @inheritdoc ICapabilityRegistry
    function offerTransfer(string calldata name, address recipient) external {
        (bytes32 nameId, NameRecord memory record) = _owned(name);
        if (recipient == address(0) || recipient == record.owner) revert InvalidRecipient(name, recipient);
        _pendingOwners[nameId] = recipient;
        _log.append(TransferOffered.selector, nameId, msg.sender, abi.encode(_log.next(), name, recipient));
    }

    /// @inheritdoc ICapabilityRegistry
    function cancelTransfer(string calldata name) external {
        (bytes32 nameId,) = _owned(name);
        if (_pendingOwners[nameId] == address(0)) revert NoOffer(name, msg.sender);
        delete _pendingOwners[nameId];
        _log.append(TransferCancelled.selector, nameId, msg.sender, abi.encode(_log.next(), name));
    }

    /// @inheritdoc ICapabilityRegistry
    function acceptTransfer(string calldata name) external {
        bytes32 nameId = keccak256(bytes(name));
        if (_pendingOwners[nameId] != msg.sender) revert NoOffer(name, msg.sender);
        address formerOwner = _names[nameId].owner;
        _handOver(nameId, msg.sender);
        _log.append(Transferred.selector, nameId, msg.sender, abi.encode(_log.next(), name, formerOwner));
    }

    /// @inheritdoc ICapabilityRegistry
    function renounce(string calldata name) external {
        (bytes32 nameId,) = _owned(name);
        _handOver(nameId, address(0));
        _log.append(Renounced.selector, nameId, msg.sender, abi.encode(_log.next(), name));
    }

    /// @dev The epoch goes up, and so whatever the old owner granted is void.
    function _handOver(bytes32 nameId, address owner) private {
        delete _pendingOwners[nameId];
        NameRecord storage record = _names[nameId];
        record.owner = owner;
        ++record.epoch;
    }

    // ------------------------------------------------------------------------------------------ deprecation

    /// @inheritdoc ICapabilityRegistry
    function deprecateName(string calldata name, string calldata message, string calldata replacedBy)
        external
    {
        if (bytes(message).length > MAX_REASON_BYTES) revert ReasonTooLong(bytes(message).length);
        (bytes32 nameId, NameRecord memory record) = _owned(name);
        if (record.flags & NAME_DEPRECATED != 0) revert AlreadyDeprecated(name, "");
        if (bytes(replacedBy).length != 0) Names.skeletonOf(replacedBy);
        _names[nameId].flags = record.flags | NAME_DEPRECATED;
        _log.append(
            NameDeprecated.selector, nameId, msg.sender, abi.encode(_log.next(), name, message, replacedBy)
        );
    }

    /// @inheritdoc ICapabilityRegistry
    function undeprecateName(string calldata name) external {
        (bytes32 nameId, NameRecord memory record) = _owned(name);
        if (record.flags & NAME_DEPRECATED == 0) revert NotDeprecated(name, "");
        _names[nameId].flags = record.flags & ~NAME_DEPRECATED;
        _log.append(NameUndeprecated.selector, nameId, msg.sender, abi.encode(_log.next(), name));
    }

    // ------------------------------------------------------------------------------------------ views

    /// @inheritdoc ICapabilityRegistry
    function ownerOf(string calldata name) external view returns (address) {
        return _names[keccak256(bytes(name))].owner;
    }

    /// @inheritdoc ICapabilityRegistry
    function nameRecord(string calldata name)
        external
        view
        returns (address owner, address pendingOwner, uint32 count, uint32 epoch, bool deprecated)
    {
        bytes32 nameId = keccak256(bytes(name));
        NameRecord memory record = _names[nameId];
        bool isDeprecated = record.flags & NAME_DEPRECATED != 0;
        return (record.owner, _pendingOwners[nameId], record.releaseCount, record.epoch, isDeprecated);
    }

    /// @inheritdoc ICapabilityRegistry
    function isMaintainer(string calldata name, address account) external view returns (bool) {
        bytes32 nameId = keccak256(bytes(name));
        return _maintainers[nameId][_names[nameId].epoch][account];
    }

    /// @inheritdoc ICapabilityRegistry
    function isReserved(string calldata name) external pure returns (bool) {
        return Reserved.contains(keccak256(bytes(Names.skeletonOf(name))));
    }

    /// @inheritdoc ICapabilityRegistry
    function nameOfSkeleton(string calldata skeleton) external view returns (string memory) {
        return _nameOfSkeleton[keccak256(bytes(skeleton))];
    }

    /// @inheritdoc ICapabilityRegistry
    function commitmentOf(string calldata name, address claimer, bytes32 secret)
        external
        pure
        returns (bytes32)
    {
        return _commitment(keccak256(bytes(name)), claimer, secret);
    }

    /// @inheritdoc ICapabilityRegistry
    function committedAt(bytes32 commitment) external view returns (uint256) {
        return _commitments[commitment];
    }

    // ------------------------------------------------------------------------------------------ inside

    /// @dev Whether a name was ever claimed. A renounced one has no owner, but an epoch.
    function _isClaimed(NameRecord memory record) internal pure returns (bool) {
        return record.owner != address(0) || record.epoch != 0;
    }

    /// @dev Reverts unless `account` owns the name or is a maintainer of it.
    function _checkMaintainer(bytes32 nameId, string calldata name, NameRecord memory record, address account)
        internal
        view
    {
        if (record.owner != account && !_maintainers[nameId][record.epoch][account]) {
            revert NotMaintainer(name, account);
        }
    }

    function _owned(string calldata name) private view returns (bytes32 nameId, NameRecord memory record) {
        nameId = keccak256(bytes(name));
        record = _names[nameId];
        if (record.owner != msg.sender) revert NotOwner(name, msg.sender);
    }

    function _commitment(bytes32 nameId, address claimer, bytes32 secret) private pure returns (bytes32) {
        return keccak256(abi.encode(nameId, claimer, secret));
    }
}
