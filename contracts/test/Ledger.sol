// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry as R} from "../src/interfaces/ICapabilityRegistry.sol";
import {ICapabilityVotes as V} from "../src/interfaces/ICapabilityVotes.sol";
import {Reference} from "./Reference.sol";
import {Test, Vm} from "./Test.sol";

/// @notice The state of a registry and of its votes, rebuilt from their logs alone. Whatever an event says that cannot
/// follow what was before fails the test.
abstract contract Ledger is Test {
    struct Entry {
        string semver;
        string cid;
        bytes32 sha256;
        bool yanked;
        bool deprecated;
    }

    struct Name {
        bool claimed;
        address owner;
        address pendingOwner;
        uint32 epoch;
        bool deprecated;
        Entry[] releases;
        mapping(uint32 epoch => mapping(address account => bool)) maintains;
        mapping(bytes32 semverId => uint256) places; // index plus one
        mapping(address voter => int8) votes;
        int256 upvotes;
        int256 downvotes;
    }

    mapping(bytes32 id => Name) internal names;
    mapping(bytes32 skeletonId => bytes32 id) internal nameOfSkeleton;
    mapping(bytes32 commitment => uint256) internal commitments;
    mapping(address publisher => uint256) internal nonces;

    /// @dev Head and count, by the contract that emits.
    mapping(address emitter => bytes32) internal logWord;

    /// @dev How many changes of each kind there were.
    mapping(bytes32 kind => uint256) internal changes;

    /// @notice Folds what was emitted since `recordLogs`, and returns how many events that were.
    function applyLogs() internal returns (uint256 count) {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            Vm.Log memory log = logs[i];
            logWord[log.emitter] = Reference.fold(logWord[log.emitter], log.topics, log.data);
            uint64 sequence = uint64(uint256(logWord[log.emitter]));
            assertEq(abi.decode(log.data, (uint64)), sequence, "contiguous sequence");
            ++changes[log.topics[0]];
            _apply(log.topics[0], log.topics[1], address(uint160(uint256(log.topics[2]))), log.data);
        }
        return logs.length;
    }

    function _apply(bytes32 kind, bytes32 id, address by, bytes memory data) private {
        if (kind == R.Published.selector) return _publish(id, by, data);
        if (kind == R.Committed.selector) {
            (, commitments[id]) = abi.decode(data, (uint64, uint64));
            return;
        }
        (, string memory text) = abi.decode(data, (uint64, string));
        assertEq(keccak256(bytes(text)), id, "the id is the name's");
        Name storage name = names[id];
        if (kind == R.Yanked.selector) _entry(name, by, data).yanked = true;
        else if (kind == R.Unyanked.selector) _entry(name, by, data).yanked = false;
        else if (kind == R.Deprecated.selector) _entry(name, by, data).deprecated = true;
        else if (kind == R.Undeprecated.selector) _entry(name, by, data).deprecated = false;
        else if (kind == R.Claimed.selector) _claim(id, text, by);
        else if (kind == R.Sponsored.selector) _sponsor(by, data);
        else if (kind == R.Transferred.selector) _transfer(name, by, data);
        else if (kind == V.Voted.selector) _vote(name, by, data);
        else _change(kind, name, by, data);
    }

    /// @dev What changes by its owner's hand, or by a maintainer who leaves.
    function _change(bytes32 kind, Name storage name, address by, bytes memory data) private {
        bool leaves = kind == R.MaintainerRemoved.selector && by == _account(data);
        assertTrue(leaves || by == name.owner, "the owner changes a name");
        if (kind == R.MaintainerAdded.selector) name.maintains[name.epoch][_account(data)] = true;
        else if (kind == R.MaintainerRemoved.selector) name.maintains[name.epoch][_account(data)] = false;
        else if (kind == R.TransferOffered.selector) name.pendingOwner = _account(data);
        else if (kind == R.TransferCancelled.selector) name.pendingOwner = address(0);
        else if (kind == R.NameDeprecated.selector) name.deprecated = true;
        else if (kind == R.NameUndeprecated.selector) name.deprecated = false;
        else if (kind == R.Renounced.selector) _handOver(name, address(0));
        else assertTrue(false, "an event that is known");
    }

    function _publish(bytes32 id, address publisher, bytes memory data) private {
        (, string memory capUri, string memory semver, string memory cid, bytes32 sha256_) =
            abi.decode(data, (uint64, string, string, string, bytes32));
        string memory text = Reference.nameIn(capUri);
        assertEq(capUri, string.concat("did:nuwa:cap:", text, "@", semver), "the URI is of name and version");
        assertEq(keccak256(bytes(text)), id, "the id is the name's");
        Name storage name = names[id];
        if (!name.claimed) _claim(id, text, publisher);
        assertTrue(maintained(name, publisher), "an owner or maintainer publishes");
        bytes32 semverId = keccak256(bytes(semver));
        assertEq(name.places[semverId], 0, "a version is published once");
        name.releases.push(Entry(semver, cid, sha256_, false, false));
        name.places[semverId] = name.releases.length;
    }

    function _claim(bytes32 id, string memory text, address owner) private {
        assertTrue(!names[id].claimed, "a name is claimed once");
        bytes32 skeletonId = keccak256(bytes(Reference.skeleton(bytes(text))));
        assertEq(nameOfSkeleton[skeletonId], 0, "a skeleton has one name");
        nameOfSkeleton[skeletonId] = id;
        names[id].claimed = true;
        names[id].owner = owner;
    }

    function _sponsor(address publisher, bytes memory data) private {
        (,,, uint256 nonce) = abi.decode(data, (uint64, string, address, uint256));
        assertEq(nonce, nonces[publisher]++, "nonces are used in order");
    }

    function _transfer(Name storage name, address owner, bytes memory data) private {
        assertEq(name.pendingOwner, owner, "an offer is accepted by its recipient");
        assertEq(name.owner, _account(data), "the former owner");
        _handOver(name, owner);
    }

    function _handOver(Name storage name, address owner) private {
        name.pendingOwner = address(0);
        name.owner = owner;
        ++name.epoch;
    }

    function _vote(Name storage name, address voter, bytes memory data) private {
        (,, int8 vote, uint256 weight) = abi.decode(data, (uint64, string, int8, uint256));
        int8 former = name.votes[voter];
        if (former == 1) name.upvotes -= int256(weight);
        if (former == -1) name.downvotes -= int256(weight);
        if (vote == 1) name.upvotes += int256(weight);
        if (vote == -1) name.downvotes += int256(weight);
        name.votes[voter] = vote;
    }

    /// @notice Says whether `account` may publish under a name.
    function maintained(Name storage name, address account) internal view returns (bool) {
        return name.owner == account || name.maintains[name.epoch][account];
    }

    function _entry(Name storage name, address by, bytes memory data) private view returns (Entry storage) {
        assertTrue(maintained(name, by), "an owner or maintainer changes a release");
        (,, string memory semver) = abi.decode(data, (uint64, string, string));
        return name.releases[name.places[keccak256(bytes(semver))] - 1];
    }

    function _account(bytes memory data) private pure returns (address account) {
        (,, account) = abi.decode(data, (uint64, string, address));
    }
}
