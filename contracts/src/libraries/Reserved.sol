// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @notice Words that nobody may claim, nor a name that looks like one: they would pass for the registry itself, for
/// an authority, or for a word of the protocol. The list is as short as can be, and fixed.
library Reserved {
    /// @param skeletonId The hash of a skeleton.
    function contains(bytes32 skeletonId) internal pure returns (bool) {
        return _isOurs(skeletonId) || _isAnAuthority(skeletonId) || _isAWordOfTheProtocol(skeletonId);
    }

    function _isOurs(bytes32 id) private pure returns (bool) {
        return id == keccak256("capdex") || id == keccak256("nuwa") || id == keccak256("acp")
            || id == keccak256("cap") || id == keccak256("mcp");
    }

    // As skeletons: i and 1 are written l, 0 is written o.
    function _isAnAuthority(bytes32 id) private pure returns (bool) {
        return id == keccak256("admln") || id == keccak256("admlnlstrator") || id == keccak256("offlclal")
            || id == keccak256("root") || id == keccak256("securlty") || id == keccak256("support")
            || id == keccak256("system");
    }

    function _isAWordOfTheProtocol(bytes32 id) private pure returns (bool) {
        return id == keccak256("capablllty") || id == keccak256("capabllltles") || id == keccak256("reglstry")
            || id == keccak256("router") || id == keccak256("state") || id == keccak256("latest")
            || id == keccak256("null") || id == keccak256("undeflned");
    }
}
