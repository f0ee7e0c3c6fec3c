// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @notice Strings in calldata: their hashes, and their single characters.
library Text {
    uint256 internal constant HYPHEN = 0x2d;
    uint256 internal constant DOT = 0x2e;
    uint256 internal constant ZERO = 0x30;

    /// @notice Returns the keccak256 of a string; `keccak256(bytes(text))` would keep the copy that it makes.
    function hash(string calldata text) internal pure returns (bytes32 digest) {
        assembly ("memory-safe") {
            let copy := mload(0x40)
            calldatacopy(copy, text.offset, text.length)
            digest := keccak256(copy, text.length)
        }
    }

    /// @notice Returns the byte at `index`, or zero beyond the end of the string.
    function at(string calldata text, uint256 index) internal pure returns (uint256 char) {
        assembly ("memory-safe") {
            char := mul(lt(index, text.length), byte(0, calldataload(add(text.offset, index))))
        }
    }

    /// @dev In these, a character below the range wraps round to a huge number: one comparison serves both ends.
    function isDigit(uint256 char) internal pure returns (bool) {
        unchecked {
            return char - 0x30 < 10;
        }
    }

    function isLower(uint256 char) internal pure returns (bool) {
        unchecked {
            return char - 0x61 < 26;
        }
    }

    function isLetter(uint256 char) internal pure returns (bool) {
        return isLower(char | 0x20); // one bit is all that separates `A` from `a`
    }
}
