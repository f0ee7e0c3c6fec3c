// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Commitments} from "./Commitments.sol";
import {ICapabilityRegistry} from "./interfaces/ICapabilityRegistry.sol";
import {EventLog} from "./libraries/EventLog.sol";
import {NameRecord, NameRecords} from "./libraries/NameRecord.sol";
import {Names} from "./libraries/Names.sol";
import {Reserved} from "./libraries/Reserved.sol";
import {Text} from "./libraries/Text.sol";

/// @notice Who owns a name, who may publish under it, and how both change. See `ICapabilityRegistry`.
abstract contract NameOwnership is Commitments {
    using EventLog for EventLog.Log;

    /// @dev Room for a sentence or two; reasons and messages live in the log, not in storage.
    uint256 private constant MAX_REASON_BYTES = 500;

    // ------------------------------------------------------------------------------------------ claiming

    /// @inheritdoc ICapabilityRegistry
    function claim(string calldata name, bytes32 secret) external {
        bytes32 nameId = Text.hash(name);
        NameRecord record = _names[nameId];
        if (record.isClaimed()) revert NameClaimed(name, record.owner());

        _names[nameId] = _claim(nameId, name, msg.sender, secret);
        _log.append(Claimed.selector, nameId, msg.sender, abi.encode(EventLog.SEQUENCE, name));
    }

    /// @dev Gives a name that was never claimed its skeleton, if `claimer` may have it now, and returns the record to
    /// be stored. The grammar is looked at here only: a name that is claimed has passed.
    function _claim(bytes32 nameId, string calldata name, address claimer, bytes32 secret)
        internal
        returns (NameRecord)
    {
        bytes32 skeletonId = keccak256(bytes(Names.skeletonOf(name)));
        if (Reserved.contains(skeletonId)) revert NameReserved(name);
        string memory takenBy = _nameOfSkeleton[skeletonId];
        if (bytes(takenBy).length != 0) revert NameTaken(name, takenBy);
        _checkCommitment(nameId, claimer, secret);
        _nameOfSkeleton[skeletonId] = name;
        return NameRecords.claimedBy(claimer);
    }

    // ------------------------------------------------------------------------------------------ maintainers

    /// @inheritdoc ICapabilityRegistry
    function addMaintainer(string calldata name, address account) external {
        (bytes32 nameId, NameRecord record) = _owned(name);
        if (account == address(0) || account == record.owner()) revert InvalidRecipient(name, account);
        mapping(address => bool) storage maintainers = _maintainers[nameId][record.epoch()];
        if (maintainers[account]) revert MaintainerUnchanged(name, account);

        maintainers[account] = true;
        bytes memory data = abi.encode(EventLog.SEQUENCE, name, account);
        _log.append(MaintainerAdded.selector, nameId, msg.sender, data);
    }

    /// @inheritdoc ICapabilityRegistry
    function removeMaintainer(string calldata name, address account) external {
        bytes32 nameId = Text.hash(name);
        NameRecord record = _names[nameId];
        if (msg.sender != record.owner() && msg.sender != account) revert NotOwner(name, msg.sender);
        mapping(address => bool) storage maintainers = _maintainers[nameId][record.epoch()];
        if (!maintainers[account]) revert MaintainerUnchanged(name, account);

        maintainers[account] = false;
        bytes memory data = abi.encode(EventLog.SEQUENCE, name, account);
        _log.append(MaintainerRemoved.selector, nameId, msg.sender, data);
    }

    // ------------------------------------------------------------------------------------------ transfers

    /// @inheritdoc ICapabilityRegistry
    function offerTransfer(string calldata name, address recipient) external {
        (bytes32 nameId, NameRecord record) = _owned(name);
        if (recipient == address(0) || recipient == record.owner()) revert InvalidRecipient(name, recipient);

        _pendingOwners[nameId] = recipient;
        bytes memory data = abi.encode(EventLog.SEQUENCE, name, recipient);
        _log.append(TransferOffered.selector, nameId, msg.sender, data);
    }

    /// @inheritdoc ICapabilityRegistry
    function cancelTransfer(string calldata name) external {
        (bytes32 nameId,) = _owned(name);
        if (_pendingOwners[nameId] == address(0)) revert NoOffer(name, msg.sender);

        delete _pendingOwners[nameId];
        _log.append(TransferCancelled.selector, nameId, msg.sender, abi.encode(EventLog.SEQUENCE, name));
    }

    /// @inheritdoc ICapabilityRegistry
    function acceptTransfer(string calldata name) external {
        bytes32 nameId = Text.hash(name);
        if (_pendingOwners[nameId] != msg.sender) revert NoOffer(name, msg.sender);

        NameRecord record = _names[nameId];
        _handOver(nameId, record, msg.sender);
        bytes memory data = abi.encode(EventLog.SEQUENCE, name, record.owner());
        _log.append(Transferred.selector, nameId, msg.sender, data);
    }

    /// @inheritdoc ICapabilityRegistry
    function renounce(string calldata name) external {
        (bytes32 nameId, NameRecord record) = _owned(name);

        _handOver(nameId, record, address(0));
        _log.append(Renounced.selector, nameId, msg.sender, abi.encode(EventLog.SEQUENCE, name));
    }

    /// @dev The epoch goes up, and so whatever the old owner granted is void.
    function _handOver(bytes32 nameId, NameRecord record, address newOwner) private {
        delete _pendingOwners[nameId];
        _names[nameId] = record.handedTo(newOwner);
    }

    // ------------------------------------------------------------------------------------------ deprecation

    /// @inheritdoc ICapabilityRegistry
    function deprecateName(string calldata name, string calldata message, string calldata replacedBy)
        external
    {
        _checkReason(message);
        (bytes32 nameId, NameRecord record) = _owned(name);
        if (record.isDeprecated()) revert AlreadyDeprecated(name, "");
        // slither-disable-next-line unused-return - a name that need not exist has to be one, and no more
        if (bytes(replacedBy).length != 0) Names.skeletonOf(replacedBy);

        _names[nameId] = record.flipDeprecated();
        bytes memory data = abi.encode(EventLog.SEQUENCE, name, message, replacedBy);
        _log.append(NameDeprecated.selector, nameId, msg.sender, data);
    }

    /// @inheritdoc ICapabilityRegistry
    function undeprecateName(string calldata name) external {
        (bytes32 nameId, NameRecord record) = _owned(name);
        if (!record.isDeprecated()) revert NotDeprecated(name, "");

        _names[nameId] = record.flipDeprecated();
        _log.append(NameUndeprecated.selector, nameId, msg.sender, abi.encode(EventLog.SEQUENCE, name));
    }

    // ------------------------------------------------------------------------------------------ views

    /// @inheritdoc ICapabilityRegistry
    function ownerOf(string calldata name) external view returns (address) {
        return _names[Text.hash(name)].owner();
    }

    /// @inheritdoc ICapabilityRegistry
    function nameRecord(string calldata name)
        external
        view
        returns (address owner, address pendingOwner, uint32 count, uint32 epoch, bool deprecated)
    {
        bytes32 nameId = Text.hash(name);
        NameRecord record = _names[nameId];
        owner = record.owner();
        pendingOwner = _pendingOwners[nameId];
        count = record.releaseCount();
        epoch = record.epoch();
        deprecated = record.isDeprecated();
    }

    /// @inheritdoc ICapabilityRegistry
    function isMaintainer(string calldata name, address account) external view returns (bool) {
        bytes32 nameId = Text.hash(name);
        return _maintainers[nameId][_names[nameId].epoch()][account];
    }

    /// @inheritdoc ICapabilityRegistry
    function isReserved(string calldata name) external pure returns (bool) {
        return Reserved.contains(keccak256(bytes(Names.skeletonOf(name))));
    }

    /// @inheritdoc ICapabilityRegistry
    function nameOfSkeleton(string calldata skeleton) external view returns (string memory) {
        return _nameOfSkeleton[Text.hash(skeleton)];
    }

    // ------------------------------------------------------------------------------------------ inside

    /// @dev Reverts unless `account` owns the name or is a maintainer of it.
    function _checkMaintainer(bytes32 nameId, string calldata name, NameRecord record, address account)
        internal
        view
    {
        if (record.owner() != account && !_maintainers[nameId][record.epoch()][account]) {
            revert NotMaintainer(name, account);
        }
    }

    function _checkReason(string calldata reason) internal pure {
        if (bytes(reason).length > MAX_REASON_BYTES) revert ReasonTooLong(bytes(reason).length);
    }

    /// @dev The id and the record of `name`, if the caller owns it.
    function _owned(string calldata name) private view returns (bytes32 nameId, NameRecord record) {
        nameId = Text.hash(name);
        record = _names[nameId];
        if (record.owner() != msg.sender) revert NotOwner(name, msg.sender);
    }
}
