// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Ascii} from "./Ascii.sol";

/// @notice The grammar of versions: Semantic Versioning 2.0.0 (https://semver.org) without build metadata, 64
/// characters at most.
library SemVer {
    uint256 internal constant MAX_LENGTH = 64;

    /// @dev 999999999999999 is below 2^53, so every number is exact in an IEEE double (JSON, JavaScript).
    uint256 internal constant MAX_DIGITS = 15;

    function isValid(string calldata text) internal pure returns (bool) {
        uint256 length = bytes(text).length;
        if (length > MAX_LENGTH) return false;

        uint256 end = _endOfDigits(text, 0); // major
        if (!_isNumber(text, 0, end) || Ascii.at(text, end) != Ascii.DOT) return false;
        uint256 start = end + 1;
        end = _endOfDigits(text, start); // minor
        if (!_isNumber(text, start, end) || Ascii.at(text, end) != Ascii.DOT) return false;
        start = end + 1;
        end = _endOfDigits(text, start); // patch
        if (!_isNumber(text, start, end)) return false;

        if (end == length) return true;
        if (Ascii.at(text, end) != Ascii.HYPHEN) return false;
        return _isPreRelease(text, end + 1);
    }

    /// @dev Whether the rest of `text` is one or more identifiers with dots between them.
    function _isPreRelease(string calldata text, uint256 start) private pure returns (bool) {
        uint256 length = bytes(text).length;
        while (true) {
            bool numeric = true;
            uint256 end = start;
            for (; end < length; ++end) {
                uint256 char = Ascii.at(text, end);
                if (char == Ascii.DOT) break;
                if (Ascii.isDigit(char)) continue;
                if (char != Ascii.HYPHEN && !Ascii.isLetter(char)) return false;
                numeric = false;
            }
            if (end == start) return false;
            if (numeric && !_isNumber(text, start, end)) return false;
            if (end == length) return true;
            start = end + 1; // behind the dot, where one more identifier has to be
        }
        return false;
    }

    /// @dev Whether the digits from `start` to before `end` are a number: some, not too many, no zero in front.
    function _isNumber(string calldata text, uint256 start, uint256 end) private pure returns (bool) {
        uint256 digits = end - start;
        if (digits == 0 || digits > MAX_DIGITS) return false;
        return digits == 1 || Ascii.at(text, start) != Ascii.ZERO;
    }

    function _endOfDigits(string calldata text, uint256 index) private pure returns (uint256) {
        while (Ascii.isDigit(Ascii.at(text, index))) ++index; // the end of the text reads as zero, which is no digit
        return index;
    }
}
