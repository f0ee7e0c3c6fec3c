// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {RegistryStorage} from "./RegistryStorage.sol";
import {ICapabilityRegistry} from "./interfaces/ICapabilityRegistry.sol";
import {EventLog} from "./libraries/EventLog.sol";
import {Text} from "./libraries/Text.sol";

/// @notice Commitments to names that are to be claimed. See `ICapabilityRegistry`.
abstract contract Commitments is ICapabilityRegistry, RegistryStorage {
    using EventLog for EventLog.Log;

    /// @inheritdoc ICapabilityRegistry
    uint256 public immutable MIN_COMMITMENT_AGE;

    /// @inheritdoc ICapabilityRegistry
    uint256 public immutable MAX_COMMITMENT_AGE;

    constructor(uint256 minAge, uint256 maxAge) {
        if (minAge != 0 && minAge >= maxAge) revert InvalidCommitmentAges(minAge, maxAge);
        MIN_COMMITMENT_AGE = minAge;
        MAX_COMMITMENT_AGE = maxAge;
    }

    /// @inheritdoc ICapabilityRegistry
    function commit(bytes32 commitment) external {
        if (MIN_COMMITMENT_AGE == 0) revert CommitmentNotNeeded();
        uint256 madeAt = _commitments[commitment];
        // Until it expires nobody, not even its maker, can make it younger.
        if (madeAt != 0 && block.timestamp <= madeAt + MAX_COMMITMENT_AGE) {
            revert CommitmentExists(commitment, madeAt + MAX_COMMITMENT_AGE);
        }

        _commitments[commitment] = block.timestamp;
        bytes memory data = abi.encode(EventLog.SEQUENCE, uint64(block.timestamp));
        _log.append(Committed.selector, commitment, msg.sender, data);
    }

    /// @inheritdoc ICapabilityRegistry
    function commitmentOf(string calldata name, address claimer, bytes32 secret)
        external
        pure
        returns (bytes32)
    {
        return _commitmentOf(Text.hash(name), claimer, secret);
    }

    /// @inheritdoc ICapabilityRegistry
    function committedAt(bytes32 commitment) external view returns (uint256) {
        return _commitments[commitment];
    }

    /// @dev Reverts unless `claimer` has a commitment that counts now, or none is needed.
    function _checkCommitment(bytes32 nameId, address claimer, bytes32 secret) internal view {
        if (MIN_COMMITMENT_AGE == 0) return;
        bytes32 commitment = _commitmentOf(nameId, claimer, secret);
        uint256 madeAt = _commitments[commitment];
        if (madeAt == 0) revert CommitmentMissing(commitment);
        uint256 ripeAt = madeAt + MIN_COMMITMENT_AGE;
        if (block.timestamp < ripeAt) revert CommitmentTooYoung(commitment, ripeAt);
        uint256 expiresAt = madeAt + MAX_COMMITMENT_AGE;
        if (block.timestamp > expiresAt) revert CommitmentExpired(commitment, expiresAt);
    }

    function _commitmentOf(bytes32 nameId, address claimer, bytes32 secret) private pure returns (bytes32) {
        return keccak256(abi.encode(nameId, claimer, secret));
    }
}
