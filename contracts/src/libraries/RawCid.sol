// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @notice CIDs of version 1, raw codec, sha2-256, in lower-case base32: 59 characters that spell one digest.
///
/// The bytes of such a CID are `01 55 12 20 ‖ digest`, 288 bits. Base32 writes them, with two zero bits behind, as 58
/// characters of 5 bits, after a `b` that names the base. The first 30 bits never change and give `afkrei`. What is
/// left are 52 characters: two zero bits and the upper half of the digest make 26, its lower half and two zero bits
/// make the other 26.
library RawCid {
    bytes7 private constant PREFIX = "bafkrei";

    // A one at the foot of every 8, 16 … bits: a word seen as lanes. `LANES_16 * x` is `x` in each lane.
    uint256 private constant LANES_8 = type(uint256).max / type(uint8).max;
    uint256 private constant LANES_16 = type(uint256).max / type(uint16).max;
    uint256 private constant LANES_32 = type(uint256).max / type(uint32).max;
    uint256 private constant LANES_64 = type(uint256).max / type(uint64).max;
    uint256 private constant LANES_128 = type(uint256).max / type(uint128).max;

    uint256 private constant LENGTH = 59;

    function encode(bytes32 sha256) internal pure returns (string memory) {
        (bytes32 first, bytes27 rest) = _spell(sha256);
        return string(abi.encodePacked(first, rest));
    }

    /// @notice Says whether `cid` is the CID of `sha256`.
    function spells(string calldata cid, bytes32 sha256) internal pure returns (bool) {
        if (bytes(cid).length != LENGTH) return false;
        (bytes32 first, bytes27 rest) = _spell(sha256);
        return bytes32(bytes(cid)[:32]) == first && bytes27(bytes(cid)[32:]) == rest;
    }

    /// @dev The CID of `sha256`, as its first 32 characters and the other 27.
    function _spell(bytes32 sha256) private pure returns (bytes32 first, bytes27 rest) {
        bytes26 upper = _base32(uint256(sha256) >> 128);
        bytes26 lower = _base32(uint256(uint128(uint256(sha256))) << 2);
        first = bytes32(PREFIX) | (bytes32(upper) >> 56);
        rest = bytes27(bytes32(upper) << 200 | bytes32(lower) >> 8);
    }

    /// @dev Spells the last 130 bits of `bits` in 26 characters, all of them at once.
    function _base32(uint256 bits) private pure returns (bytes26) {
        // Put each group of 5 bits into a byte of its own, by parting halves: 160 bits as 2 × 80, 4 × 40 … 32 × 5.
        bits = _part(bits, ((1 << 80) - 1) << 80, 48);
        bits = _part(bits, LANES_128 * (((1 << 40) - 1) << 40), 24);
        bits = _part(bits, LANES_64 * (((1 << 20) - 1) << 20), 12);
        bits = _part(bits, LANES_32 * (((1 << 10) - 1) << 10), 6);
        bits = _part(bits, LANES_16 * (((1 << 5) - 1) << 5), 3);

        unchecked {
            // 0 to 25 are `a` to `z`, 26 to 31 are `2` to `7`. Adding 102 to a byte sets its top bit from 26 on.
            uint256 isDigit = ((bits + LANES_8 * 102) >> 7) & LANES_8;
            uint256 characters = bits + LANES_8 * 0x61 - isDigit * (0x61 + 26 - 0x32);
            return bytes26(bytes32(characters << 48));
        }
    }

    /// @dev Moves the bits under `upperHalves` up by `distance` and leaves the others.
    function _part(uint256 bits, uint256 upperHalves, uint256 distance) private pure returns (uint256) {
        return ((bits & upperHalves) << distance) | (bits & ~upperHalves);
    }
}
