// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @notice A sequence of events that commits to its own contents: what is emitted here is what is folded into the
/// head, so the two cannot drift apart. The rule is in `ICapabilityRegistry`.
library EventLog {
    /// @param word `head (24 bytes) ‖ count (8)`.
    struct Log {
        bytes32 word;
    }

    /// @dev Holds the place of an event's sequence, its first parameter, until `append` knows it.
    uint64 internal constant SEQUENCE = 0;

    /// @notice Emits an event with three topics and folds it into the head.
    /// @param data The ABI encoding of the event's other parameters, the first being `SEQUENCE`.
    function append(Log storage self, bytes32 topic0, bytes32 topic1, address topic2, bytes memory data)
        internal
    {
        bytes32 word = self.word;
        bytes32 account = bytes32(uint256(uint160(topic2)));
        assembly ("memory-safe") {
            let sequence := add(and(word, 0xffffffffffffffff), 1)
            let start := add(data, 32)
            let length := mload(data)
            mstore(start, sequence)
            log3(start, length, topic0, topic1, account)

            let entry := mload(0x40) // past all memory in use
            mstore(entry, topic0)
            mstore(add(entry, 32), topic1)
            mstore(add(entry, 64), account)
            mstore(add(entry, 96), keccak256(start, length))
            mstore(0x00, word)
            mstore(0x20, keccak256(entry, 128))
            word := or(shl(64, shr(64, keccak256(0x00, 64))), sequence)
        }
        self.word = word;
    }

    function head(Log storage self) internal view returns (bytes24) {
        return bytes24(self.word);
    }

    function count(Log storage self) internal view returns (uint64) {
        return uint64(uint256(self.word));
    }
}
