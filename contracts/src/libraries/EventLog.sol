// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @notice A sequence of events that commits to its own contents: what is emitted here is what is folded into the
/// head, so the two cannot drift apart. The rule is in `ICapabilityRegistry`.
library EventLog {
    /// @param word `head (24 bytes) ‖ count (8)`.
    struct Log {
        bytes32 word;
    }

    /// @notice Returns the sequence that the next event has to carry.
    function next(Log storage self) internal view returns (uint64) {
        return count(self) + 1;
    }

    /// @notice Emits an event with three topics and folds it into the head.
    /// @param data The ABI encoding of the event's other parameters, its sequence being the first.
    function append(Log storage self, bytes32 topic0, bytes32 topic1, address topic2, bytes memory data)
        internal
    {
        assembly ("memory-safe") {
            log3(add(data, 32), mload(data), topic0, topic1, topic2)
        }
        bytes32 entry = keccak256(abi.encode(topic0, topic1, topic2, keccak256(data)));
        bytes24 newHead = bytes24(keccak256(abi.encode(self.word, entry)));
        self.word = newHead | bytes32(uint256(next(self)));
    }

    function head(Log storage self) internal view returns (bytes24) {
        return bytes24(self.word);
    }

    function count(Log storage self) internal view returns (uint64) {
        return uint64(uint256(self.word));
    }
}
