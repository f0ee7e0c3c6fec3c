// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {RegistryStorage} from "./RegistryStorage.sol";
import {ICapabilityRegistry} from "./interfaces/ICapabilityRegistry.sol";
import {EventLog} from "./libraries/EventLog.sol";
import {Names} from "./libraries/Names.sol";
import {RawCid} from "./libraries/RawCid.sol";
import {ReleaseWord, ReleaseWords} from "./libraries/ReleaseWord.sol";
import {SemVer} from "./libraries/SemVer.sol";

/// @title CapabilityRegistry
/// @notice See `ICapabilityRegistry` for what it does and `RegistryStorage` for what it keeps.
contract CapabilityRegistry is ICapabilityRegistry, RegistryStorage {
    using EventLog for EventLog.Log;

    /// @dev Room for a sentence or two; the reason lives in the log, not in storage.
    uint256 private constant MAX_REASON_BYTES = 500;

    string private constant URI_PREFIX = "did:nuwa:cap:";

    // ------------------------------------------------------------------------------------------ publishing, yanking

    /// @inheritdoc ICapabilityRegistry
    function publish(string calldata name, string calldata semver, string calldata cid, bytes32 sha256)
        external
    {
        bytes32 nameId = keccak256(bytes(name));
        NameRecord memory record = _names[nameId];
        if (record.owner == address(0)) {
            _claim(name);
            record.owner = msg.sender;
        } else if (record.owner != msg.sender) {
            revert NotOwner(name, msg.sender);
        }
        if (!SemVer.isValid(semver)) revert InvalidSemVer(semver);
        if (sha256 == 0) revert ZeroDigest();
        if (!_equal(cid, RawCid.encode(sha256))) revert CidMismatch(cid, sha256);

        mapping(bytes32 semverId => bytes32 digest) storage digests = _digests[nameId];
        bytes32 semverId = keccak256(bytes(semver));
        if (digests[semverId] != 0) revert VersionAlreadyPublished(name, semver);

        digests[semverId] = sha256;
        ReleaseWord word = ReleaseWords.pack(semver);
        _releases[nameId][record.releaseCount] = word;
        if (!word.isInline()) _longSemVers[nameId][record.releaseCount] = semver;
        ++record.releaseCount;
        _names[nameId] = record;
        _log.append(
            Published.selector,
            nameId,
            msg.sender,
            abi.encode(_log.next(), _capUri(name, semver), semver, cid, sha256)
        );
    }

    /// @inheritdoc ICapabilityRegistry
    function yank(string calldata name, string calldata semver, uint256 index, string calldata reason)
        external
    {
        if (bytes(reason).length > MAX_REASON_BYTES) revert ReasonTooLong(bytes(reason).length);
        bytes32 nameId = keccak256(bytes(name));
        ReleaseWord word = _ownRelease(nameId, name, semver, index);
        if (word.has(ReleaseWords.YANKED)) revert AlreadyYanked(name, semver);

        _releases[nameId][index] = word.flip(ReleaseWords.YANKED);
        _log.append(Yanked.selector, nameId, msg.sender, abi.encode(_log.next(), name, semver, reason));
    }

    /// @inheritdoc ICapabilityRegistry
    function unyank(string calldata name, string calldata semver, uint256 index) external {
        bytes32 nameId = keccak256(bytes(name));
        ReleaseWord word = _ownRelease(nameId, name, semver, index);
        if (!word.has(ReleaseWords.YANKED)) revert NotYanked(name, semver);

        _releases[nameId][index] = word.flip(ReleaseWords.YANKED);
        _log.append(Unyanked.selector, nameId, msg.sender, abi.encode(_log.next(), name, semver));
    }

    // ------------------------------------------------------------------------------------------ views

    /// @inheritdoc ICapabilityRegistry
    function release(string calldata name, string calldata semver) external view returns (Release memory) {
        return _releaseAt(keccak256(bytes(name)), name, indexOf(name, semver));
    }

    /// @inheritdoc ICapabilityRegistry
    function releases(string calldata name, uint256 from, uint256 count)
        external
        view
        returns (Release[] memory found)
    {
        bytes32 nameId = keccak256(bytes(name));
        uint256 total = _names[nameId].releaseCount;
        if (from > total) from = total;
        if (count > total - from) count = total - from;
        found = new Release[](count);
        for (uint256 i; i < count; ++i) {
            found[i] = _releaseAt(nameId, name, from + i);
        }
    }

    /// @inheritdoc ICapabilityRegistry
    function releaseCount(string calldata name) external view returns (uint256) {
        return _names[keccak256(bytes(name))].releaseCount;
    }

    /// @inheritdoc ICapabilityRegistry
    function indexOf(string calldata name, string calldata semver) public view returns (uint256) {
        bytes32 nameId = keccak256(bytes(name));
        uint256 total = _names[nameId].releaseCount;
        for (uint256 index; index < total; ++index) {
            if (_isAt(nameId, semver, index, _releases[nameId][index])) return index;
        }
        revert NoSuchRelease(name, semver);
    }

    /// @inheritdoc ICapabilityRegistry
    function ownerOf(string calldata name) external view returns (address) {
        return _names[keccak256(bytes(name))].owner;
    }

    /// @inheritdoc ICapabilityRegistry
    function nameOfSkeleton(string calldata skeleton) external view returns (string memory) {
        return _nameOfSkeleton[keccak256(bytes(skeleton))];
    }

    /// @inheritdoc ICapabilityRegistry
    function log() external view returns (bytes24 head, uint64 count) {
        return (_log.head(), _log.count());
    }

    // ------------------------------------------------------------------------------------------ inside

    /// @dev Checks that `name` may exist beside the names there are, and gives it its skeleton. Grammar is looked at
    /// here only: a name that has an owner has passed.
    function _claim(string calldata name) private {
        bytes32 skeletonId = keccak256(bytes(Names.skeletonOf(name)));
        string memory takenBy = _nameOfSkeleton[skeletonId];
        if (bytes(takenBy).length != 0) revert NameTaken(name, takenBy);
        _nameOfSkeleton[skeletonId] = name;
    }

    /// @dev The word of the release that `name`, `semver` and `index` agree on, if it is the caller's.
    function _ownRelease(bytes32 nameId, string calldata name, string calldata semver, uint256 index)
        private
        view
        returns (ReleaseWord word)
    {
        word = _releases[nameId][index];
        if (!_isAt(nameId, semver, index, word)) revert NoSuchRelease(name, semver);
        if (_names[nameId].owner != msg.sender) revert NotOwner(name, msg.sender);
    }

    /// @dev Whether `word`, the one at `index`, is of the release `semver`.
    function _isAt(bytes32 nameId, string calldata semver, uint256 index, ReleaseWord word)
        private
        view
        returns (bool)
    {
        if (!word.exists()) return false; // else the empty version would be found where there is nothing
        if (bytes(semver).length <= ReleaseWords.MAX_INLINE_LENGTH) {
            return word.sameSemVer(ReleaseWords.pack(semver));
        }
        return !word.isInline() && _equal(semver, _longSemVers[nameId][index]);
    }

    function _releaseAt(bytes32 nameId, string calldata name, uint256 index)
        private
        view
        returns (Release memory)
    {
        ReleaseWord word = _releases[nameId][index];
        string memory semver = word.isInline() ? word.inlineSemVer() : _longSemVers[nameId][index];
        bytes32 sha256 = _digests[nameId][keccak256(bytes(semver))];
        return Release({
            capUri: _capUri(name, semver),
            semver: semver,
            cid: RawCid.encode(sha256),
            sha256: sha256,
            yanked: word.has(ReleaseWords.YANKED),
            deprecated: word.has(ReleaseWords.DEPRECATED)
        });
    }

    function _capUri(string memory name, string memory semver) private pure returns (string memory) {
        return string.concat(URI_PREFIX, name, "@", semver);
    }

    function _equal(string memory a, string memory b) private pure returns (bool) {
        return keccak256(bytes(a)) == keccak256(bytes(b));
    }
}
