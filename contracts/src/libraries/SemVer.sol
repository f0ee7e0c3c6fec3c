// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Text} from "./Text.sol";

/// @notice The grammar of versions: Semantic Versioning 2.0.0 (https://semver.org) without build metadata, 64
/// characters at most.
library SemVer {
    uint256 internal constant MAX_LENGTH = 64;

    /// @dev 999999999999999 is below 2^53, so every number is exact in an IEEE double (JSON, JavaScript).
    uint256 internal constant MAX_DIGITS = 15;

    /// @dev Unchecked, here and below: an index is never more than two past the end of 64 characters.
    function isValid(string calldata text) internal pure returns (bool) {
        uint256 length = bytes(text).length;
        if (length > MAX_LENGTH) return false;
        unchecked {
            uint256 end = _endOfDigits(text, 0); // major
            if (!_isNumber(text, 0, end) || Text.at(text, end) != Text.DOT) return false;
            uint256 start = end + 1;
            end = _endOfDigits(text, start); // minor
            if (!_isNumber(text, start, end) || Text.at(text, end) != Text.DOT) return false;
            start = end + 1;
            end = _endOfDigits(text, start); // patch
            if (!_isNumber(text, start, end)) return false;

            if (end == length) return true;
            if (Text.at(text, end) != Text.HYPHEN) return false;
            return _isPreRelease(text, end + 1);
        }
    }

    /// @dev Whether the rest of `text` is one or more identifiers with dots between them.
    function _isPreRelease(string calldata text, uint256 start) private pure returns (bool) {
        unchecked {
            while (true) {
                (bool valid, uint256 end) = _identifier(text, start);
                if (!valid) return false;
                if (end == bytes(text).length) break;
                start = end + 1; // behind the dot, where one more identifier has to be
            }
            return true;
        }
    }

    /// @dev Whether there is an identifier at `start`, and where it ends: before a dot, or with the text.
    function _identifier(string calldata text, uint256 start) private pure returns (bool valid, uint256 end) {
        unchecked {
            bool numeric = true;
            for (end = start; end < bytes(text).length; ++end) {
                uint256 char = Text.at(text, end);
                if (char == Text.DOT) break;
                if (Text.isDigit(char)) continue;
                if (char != Text.HYPHEN && !Text.isLetter(char)) return (false, end);
                numeric = false;
            }
            valid = !numeric || _isNumber(text, start, end);
        }
    }

    /// @dev Whether the digits from `start` to before `end` are a number: some, not too many, no zero in front.
    function _isNumber(string calldata text, uint256 start, uint256 end) private pure returns (bool) {
        unchecked {
            uint256 digits = end - start;
            if (digits == 0 || digits > MAX_DIGITS) return false;
            return digits == 1 || Text.at(text, start) != Text.ZERO;
        }
    }

    /// @dev The end of the text reads as zero, which is no digit.
    function _endOfDigits(string calldata text, uint256 index) private pure returns (uint256) {
        unchecked {
            while (Text.isDigit(Text.at(text, index))) ++index;
            return index;
        }
    }
}
