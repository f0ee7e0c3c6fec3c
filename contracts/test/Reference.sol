// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @notice What the registry computes, written a second time in the plainest way, one character after the other.
library Reference {
    function rawCid(bytes32 digest) internal pure returns (string memory) {
        bytes memory alphabet = "abcdefghijklmnopqrstuvwxyz234567";
        bytes memory raw = abi.encodePacked(hex"01551220", digest);
        bytes memory text = new bytes(59);
        text[0] = "b";
        for (uint256 i; i < 58; ++i) {
            uint256 value;
            for (uint256 bit = 5 * i; bit < 5 * i + 5; ++bit) {
                uint256 octet = bit / 8 < raw.length ? uint8(raw[bit / 8]) : 0;
                value = 2 * value + ((octet >> (7 - bit % 8)) & 1);
            }
            text[i + 1] = alphabet[value];
        }
        return string(text);
    }

    /// @notice Returns the word of the log after one more event: 24 bytes of head, 8 of count.
    function fold(bytes32 word, bytes32[] memory topics, bytes memory data) internal pure returns (bytes32) {
        require(topics.length == 3, "an event has three topics");
        bytes32 entry = keccak256(bytes.concat(topics[0], topics[1], topics[2], keccak256(data)));
        bytes24 head = bytes24(keccak256(bytes.concat(word, entry)));
        return head | bytes32(uint256(uint64(uint256(word)) + 1));
    }

    /// @notice Returns the name in `did:nuwa:cap:<name>@<semver>`.
    function nameIn(string memory capUri) internal pure returns (string memory) {
        bytes memory text = bytes(capUri);
        uint256 start = bytes("did:nuwa:cap:").length;
        uint256 end = start;
        while (text[end] != "@") ++end;
        bytes memory name = new bytes(end - start);
        for (uint256 i; i < name.length; ++i) {
            name[i] = text[start + i];
        }
        return string(name);
    }

    function isName(bytes memory name) internal pure returns (bool) {
        if (name.length < 2 || name.length > 64) return false;
        for (uint256 i; i < name.length; ++i) {
            bytes1 c = name[i];
            bool letter = c >= "a" && c <= "z";
            bool digit = c >= "0" && c <= "9";
            if (i == 0 && !letter) return false;
            if (!letter && !digit && c != "-") return false;
            if (c == "-" && (i + 1 == name.length || name[i + 1] == "-")) return false;
        }
        return true;
    }

    function skeleton(bytes memory name) internal pure returns (string memory text) {
        for (uint256 i; i < name.length; ++i) {
            bytes1 c = name[i];
            if (c == "-") continue;
            if (c == "0") c = "o";
            if (c == "1" || c == "i") c = "l";
            text = string.concat(text, string(abi.encodePacked(c)));
        }
    }

    /// @dev Splits at the first hyphen, then at the dots, then looks at each piece.
    function isSemVer(bytes memory text) internal pure returns (bool) {
        if (text.length > 64) return false;
        uint256 hyphen;
        while (hyphen < text.length && text[hyphen] != "-") ++hyphen;
        (bool core, uint256 fields) = _pieces(text, 0, hyphen, false);
        if (!core || fields != 3) return false;
        if (hyphen == text.length) return true;
        (bool preRelease,) = _pieces(text, hyphen + 1, text.length, true);
        return preRelease;
    }

    function _pieces(bytes memory text, uint256 from, uint256 to, bool words)
        private
        pure
        returns (bool good, uint256 count)
    {
        good = true;
        uint256 start = from;
        for (uint256 i = from; i <= to; ++i) {
            if (i < to && text[i] != ".") continue;
            good = good && _piece(text, start, i, words);
            ++count;
            start = i + 1;
        }
    }

    function _piece(bytes memory text, uint256 from, uint256 to, bool words) private pure returns (bool) {
        bool number = true;
        for (uint256 i = from; i < to; ++i) {
            bytes1 c = text[i];
            if (c >= "0" && c <= "9") continue;
            number = false;
            if (!words || !(c == "-" || (c >= "a" && c <= "z") || (c >= "A" && c <= "Z"))) return false;
        }
        if (from >= to) return false;
        return !number || to == from + 1 || (text[from] != "0" && to - from <= 15);
    }
}
