// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {EventLog} from "../src/libraries/EventLog.sol";

/// @notice A registry that believes everything, for tests of what reads the log: it announces any strings and any
/// digest, from any publisher, with a flawless sequence and head. Its functions that share a signature with
/// `ICapabilityRegistry` emit what the real ones would.
contract LaxRegistry {
    using EventLog for EventLog.Log;

    // As in `ICapabilityRegistry`, declared again so that they are in the ABI of this contract too.
    event Published(
        bytes32 indexed nameId,
        address indexed publisher,
        uint64 sequence,
        string capUri,
        string semver,
        string cid,
        bytes32 sha256
    );
    event Yanked(
        bytes32 indexed nameId, address indexed by, uint64 sequence, string name, string semver, string reason
    );
    event Unyanked(bytes32 indexed nameId, address indexed by, uint64 sequence, string name, string semver);

    EventLog.Log private _log;

    /// @notice Emits `Published` with exactly these values.
    function announce(
        bytes32 nameId,
        address publisher,
        string memory capUri,
        string memory semver,
        string memory cid,
        bytes32 sha256
    ) public {
        _log.append(
            Published.selector, nameId, publisher, abi.encode(EventLog.SEQUENCE, capUri, semver, cid, sha256)
        );
    }

    function publish(string memory name, string memory semver, string memory cid, bytes32 sha256) external {
        string memory capUri = string.concat("did:nuwa:cap:", name, "@", semver);
        announce(keccak256(bytes(name)), msg.sender, capUri, semver, cid, sha256);
    }

    function yank(string memory name, string memory semver, uint256, string memory reason) external {
        bytes memory data = abi.encode(EventLog.SEQUENCE, name, semver, reason);
        _log.append(Yanked.selector, keccak256(bytes(name)), msg.sender, data);
    }

    function unyank(string memory name, string memory semver, uint256) external {
        bytes memory data = abi.encode(EventLog.SEQUENCE, name, semver);
        _log.append(Unyanked.selector, keccak256(bytes(name)), msg.sender, data);
    }

    function log() external view returns (bytes24 head, uint64 count) {
        return (_log.head(), _log.count());
    }
}
