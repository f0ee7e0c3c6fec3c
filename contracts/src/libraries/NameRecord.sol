// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @notice What is kept of a name, in one word: `flags (4 bytes) ‖ epoch (4) ‖ releaseCount (4) ‖ owner (20)`, most
/// significant first. It is zero until the name is claimed, and never again: a name without an owner has an epoch.
type NameRecord is uint256;

using NameRecords for NameRecord global;

library NameRecords {
    uint256 private constant COUNT = 160; // where the fields begin, in bits
    uint256 private constant EPOCH = 192;
    uint256 private constant FLAGS = 224;

    uint256 private constant DEPRECATED = 1 << FLAGS;

    /// @notice Says whether the name was ever claimed.
    function isClaimed(NameRecord record) internal pure returns (bool) {
        return NameRecord.unwrap(record) != 0;
    }

    /// @notice Returns who owns the name; zero when it is unclaimed, and when it is renounced.
    function owner(NameRecord record) internal pure returns (address) {
        return address(uint160(NameRecord.unwrap(record)));
    }

    /// @notice Returns how many releases there are; their indices are 0 to `releaseCount - 1`.
    function releaseCount(NameRecord record) internal pure returns (uint32) {
        return uint32(NameRecord.unwrap(record) >> COUNT);
    }

    /// @notice Returns how often the name has changed hands. What an owner grants is keyed by it, and so ends with it.
    function epoch(NameRecord record) internal pure returns (uint32) {
        return uint32(NameRecord.unwrap(record) >> EPOCH);
    }

    function isDeprecated(NameRecord record) internal pure returns (bool) {
        return NameRecord.unwrap(record) & DEPRECATED != 0;
    }

    /// @notice Returns the record of a name that `claimer` has just claimed.
    function claimedBy(address claimer) internal pure returns (NameRecord) {
        return NameRecord.wrap(uint160(claimer));
    }

    /// @notice Returns the record with one release more. Reverts at 2^32 rather than disturb the epoch.
    function withOneMoreRelease(NameRecord record) internal pure returns (NameRecord) {
        return _with(record, COUNT, record.releaseCount() + 1);
    }

    /// @notice Returns the record in the hands of `newOwner`. Reverts at 2^32 changes of hands.
    function handedTo(NameRecord record, address newOwner) internal pure returns (NameRecord) {
        uint256 ownerless = NameRecord.unwrap(record) & ~uint256(type(uint160).max);
        return _with(NameRecord.wrap(ownerless | uint160(newOwner)), EPOCH, record.epoch() + 1);
    }

    /// @notice Returns the record deprecated if it was not, and the other way round.
    function flipDeprecated(NameRecord record) internal pure returns (NameRecord) {
        return NameRecord.wrap(NameRecord.unwrap(record) ^ DEPRECATED);
    }

    function _with(NameRecord record, uint256 field, uint32 value) private pure returns (NameRecord) {
        uint256 others = NameRecord.unwrap(record) & ~(uint256(type(uint32).max) << field);
        return NameRecord.wrap(others | (uint256(value) << field));
    }
}
