// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {EventLog} from "./libraries/EventLog.sol";
import {NameRecord} from "./libraries/NameRecord.sol";
import {ReleaseWord} from "./libraries/ReleaseWord.sol";

/// @notice What the registry keeps, and where: all that `eth_getProof` is asked for. The layout is part of the
/// protocol, so new state goes behind `_longSemVers`, and a base contract with state of its own is named after this
/// one in the list of bases.
///
/// `k(key, slot)` is Solidity's rule for mappings, `keccak256(key ‖ slot)`, both as 32 bytes. With
/// `nameId = keccak256(bytes(name))` and `semverId = keccak256(bytes(semver))`:
///
/// | what | slot |
/// |---|---|
/// | head and count of the log | `0` |
/// | owner, count of releases, epoch, flags of a name | `k(nameId, 1)` |
/// | name that has a skeleton | `k(keccak256(bytes(skeleton)), 2)`, a Solidity string |
/// | digest of a release, zero when there is none | `k(semverId, k(nameId, 3))` |
/// | flags and version of the release at an index | `k(index, k(nameId, 4))` |
/// | version longer than 30 bytes at an index | `k(index, k(nameId, 5))`, a Solidity string |
/// | one, if an account is a maintainer | `k(account, k(epoch, k(nameId, 6)))` |
/// | who may accept a name on offer | `k(nameId, 7)` |
/// | time of a commitment | `k(commitment, 8)` |
/// | next nonce of a publisher's signatures | `k(account, 9)` |
abstract contract RegistryStorage {
    /// @dev Slot 0: `head (24 bytes) ‖ count (8)`.
    EventLog.Log internal _log;

    /// @dev Slot 1, by name id.
    mapping(bytes32 nameId => NameRecord) internal _names;

    /// @dev Slot 2, by the hash of the skeleton.
    mapping(bytes32 skeletonId => string name) internal _nameOfSkeleton;

    /// @dev Slot 3, by name id and hash of the version. Never zero for a release that exists.
    mapping(bytes32 nameId => mapping(bytes32 semverId => bytes32 sha256)) internal _digests;

    /// @dev Slot 4, by name id and index. Never zero for a release that exists.
    mapping(bytes32 nameId => mapping(uint256 index => ReleaseWord word)) internal _releases;

    /// @dev Slot 5, by name id and index; empty when the version fits into its release word.
    mapping(bytes32 nameId => mapping(uint256 index => string semver)) internal _longSemVers;

    /// @dev Slot 6, by name id, epoch and account.
    mapping(bytes32 nameId => mapping(uint256 epoch => mapping(address account => bool))) internal
        _maintainers;

    /// @dev Slot 7, by name id. Never the owner; zero when the name is not on offer.
    mapping(bytes32 nameId => address recipient) internal _pendingOwners;

    /// @dev Slot 8. Never cleared: what the logs say of a commitment stays true.
    mapping(bytes32 commitment => uint256 madeAt) internal _commitments;

    /// @dev Slot 9.
    mapping(address publisher => uint256 nonce) internal _nonces;
}
