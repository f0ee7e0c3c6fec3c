// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @notice One entry of a name's list of releases: `flags (1 byte) ‖ length of the version (1) ‖ version (30)`, the
/// version left-aligned with zeros behind it. For a version longer than 30 bytes those 30 are zero, and its text is
/// kept elsewhere. A version has 5 bytes at least, so the word of a release is never zero.
type ReleaseWord is bytes32;

using ReleaseWords for ReleaseWord global;

library ReleaseWords {
    uint256 internal constant MAX_INLINE_LENGTH = 30;

    bytes32 internal constant YANKED = bytes32(uint256(0x01) << 248);
    bytes32 internal constant DEPRECATED = bytes32(uint256(0x02) << 248);
    bytes32 private constant ALL_FLAGS = bytes32(uint256(0xff) << 248);

    /// @notice Returns the word of a release without flags. `semver` has at most 255 bytes.
    function pack(string calldata semver) internal pure returns (ReleaseWord) {
        uint256 length = bytes(semver).length;
        bytes32 text;
        if (length <= MAX_INLINE_LENGTH) {
            assembly ("memory-safe") {
                text := calldataload(semver.offset)
            }
            // What follows the string in calldata is not part of it: keep `length` bytes, clear the others.
            text &= ~bytes32(type(uint256).max >> 8 * length);
        }
        return ReleaseWord.wrap(bytes32(length << 240) | (text >> 16));
    }

    /// @notice Says whether there is a release at all.
    function exists(ReleaseWord word) internal pure returns (bool) {
        return ReleaseWord.unwrap(word) != 0;
    }

    /// @notice Says whether the version's text is in the word itself.
    function isInline(ReleaseWord word) internal pure returns (bool) {
        return _length(word) <= MAX_INLINE_LENGTH;
    }

    /// @notice Returns the text of a version that `isInline`.
    function inlineSemVer(ReleaseWord word) internal pure returns (string memory) {
        bytes memory text = abi.encodePacked(ReleaseWord.unwrap(word) << 16);
        uint256 length = _length(word);
        assembly ("memory-safe") {
            mstore(text, length) // shortens the 32 bytes to the version
        }
        return string(text);
    }

    /// @notice Says whether two words agree in everything but the flags.
    function sameSemVer(ReleaseWord a, ReleaseWord b) internal pure returns (bool) {
        return (ReleaseWord.unwrap(a) ^ ReleaseWord.unwrap(b)) & ~ALL_FLAGS == 0;
    }

    /// @notice Says whether `flag` is set.
    function has(ReleaseWord word, bytes32 flag) internal pure returns (bool) {
        return ReleaseWord.unwrap(word) & flag != 0;
    }

    /// @notice Returns the word with `flag` the other way round.
    function flip(ReleaseWord word, bytes32 flag) internal pure returns (ReleaseWord) {
        return ReleaseWord.wrap(ReleaseWord.unwrap(word) ^ flag);
    }

    function _length(ReleaseWord word) private pure returns (uint256) {
        return uint8(ReleaseWord.unwrap(word)[1]);
    }
}
