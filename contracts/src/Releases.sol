// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {NameOwnership} from "./NameOwnership.sol";
import {ICapabilityRegistry} from "./interfaces/ICapabilityRegistry.sol";
import {EventLog} from "./libraries/EventLog.sol";
import {NameRecord} from "./libraries/NameRecord.sol";
import {RawCid} from "./libraries/RawCid.sol";
import {ReleaseWord, ReleaseWords} from "./libraries/ReleaseWord.sol";
import {SemVer} from "./libraries/SemVer.sol";
import {Text} from "./libraries/Text.sol";

/// @notice The releases of a name: publishing one, and the two flags that may change afterwards. See
/// `ICapabilityRegistry`.
abstract contract Releases is NameOwnership {
    using EventLog for EventLog.Log;

    string private constant URI_PREFIX = "did:nuwa:cap:";

    /// @dev Publishes for `publisher`, who gets the name if nobody ever had it; see `claimAndPublish`.
    function _publish(
        string calldata name,
        string calldata semver,
        string calldata cid,
        bytes32 sha256,
        bytes32 secret,
        address publisher
    ) internal {
        bytes32 nameId = Text.hash(name);
        NameRecord record = _names[nameId];
        if (record.isClaimed()) _checkMaintainer(nameId, name, record, publisher);
        else record = _claim(nameId, name, publisher, secret);
        if (!SemVer.isValid(semver)) revert InvalidSemVer(semver);
        if (sha256 == 0) revert ZeroDigest();
        if (!RawCid.spells(cid, sha256)) revert CidMismatch(cid, sha256);
        bytes32 semverId = Text.hash(semver);
        if (_digests[nameId][semverId] != 0) revert VersionAlreadyPublished(name, semver);

        uint256 index = record.releaseCount();
        _names[nameId] = record.withOneMoreRelease();
        _digests[nameId][semverId] = sha256;
        ReleaseWord word = ReleaseWords.pack(semver);
        _releases[nameId][index] = word;
        if (!word.isInline()) _longSemVers[nameId][index] = semver;
        string memory capUri = string.concat(URI_PREFIX, name, "@", semver);
        bytes memory data = abi.encode(EventLog.SEQUENCE, capUri, semver, cid, sha256);
        _log.append(Published.selector, nameId, publisher, data);
    }

    // ------------------------------------------------------------------------------------------ life cycle

    /// @inheritdoc ICapabilityRegistry
    function yank(string calldata name, string calldata semver, uint256 index, string calldata reason)
        external
    {
        _checkReason(reason);
        (bytes32 nameId, ReleaseWord word) = _ownRelease(name, semver, index);
        if (word.has(ReleaseWords.YANKED)) revert AlreadyYanked(name, semver);

        _releases[nameId][index] = word.flip(ReleaseWords.YANKED);
        bytes memory data = abi.encode(EventLog.SEQUENCE, name, semver, reason);
        _log.append(Yanked.selector, nameId, msg.sender, data);
    }

    /// @inheritdoc ICapabilityRegistry
    function unyank(string calldata name, string calldata semver, uint256 index) external {
        (bytes32 nameId, ReleaseWord word) = _ownRelease(name, semver, index);
        if (!word.has(ReleaseWords.YANKED)) revert NotYanked(name, semver);

        _releases[nameId][index] = word.flip(ReleaseWords.YANKED);
        _log.append(Unyanked.selector, nameId, msg.sender, abi.encode(EventLog.SEQUENCE, name, semver));
    }

    /// @inheritdoc ICapabilityRegistry
    function deprecate(string calldata name, string calldata semver, uint256 index, string calldata message)
        external
    {
        _checkReason(message);
        (bytes32 nameId, ReleaseWord word) = _ownRelease(name, semver, index);
        if (word.has(ReleaseWords.DEPRECATED)) revert AlreadyDeprecated(name, semver);

        _releases[nameId][index] = word.flip(ReleaseWords.DEPRECATED);
        bytes memory data = abi.encode(EventLog.SEQUENCE, name, semver, message);
        _log.append(Deprecated.selector, nameId, msg.sender, data);
    }

    /// @inheritdoc ICapabilityRegistry
    function undeprecate(string calldata name, string calldata semver, uint256 index) external {
        (bytes32 nameId, ReleaseWord word) = _ownRelease(name, semver, index);
        if (!word.has(ReleaseWords.DEPRECATED)) revert NotDeprecated(name, semver);

        _releases[nameId][index] = word.flip(ReleaseWords.DEPRECATED);
        _log.append(Undeprecated.selector, nameId, msg.sender, abi.encode(EventLog.SEQUENCE, name, semver));
    }

    // ------------------------------------------------------------------------------------------ views

    /// @inheritdoc ICapabilityRegistry
    function release(string calldata name, string calldata semver) external view returns (Release memory) {
        return _releaseAt(Text.hash(name), name, indexOf(name, semver));
    }

    /// @inheritdoc ICapabilityRegistry
    function releases(string calldata name, uint256 from, uint256 count)
        external
        view
        returns (Release[] memory found)
    {
        bytes32 nameId = Text.hash(name);
        uint256 total = _names[nameId].releaseCount();
        if (from > total) from = total;
        if (count > total - from) count = total - from;
        found = new Release[](count);
        for (uint256 i; i < count; ++i) {
            found[i] = _releaseAt(nameId, name, from + i);
        }
    }

    /// @inheritdoc ICapabilityRegistry
    function releaseCount(string calldata name) external view returns (uint256) {
        return _names[Text.hash(name)].releaseCount();
    }

    /// @inheritdoc ICapabilityRegistry
    function indexOf(string calldata name, string calldata semver) public view returns (uint256) {
        bytes32 nameId = Text.hash(name);
        uint256 total = _names[nameId].releaseCount();
        for (uint256 index; index < total; ++index) {
            if (_isAt(nameId, semver, index, _releases[nameId][index])) return index;
        }
        revert NoSuchRelease(name, semver);
    }

    // ------------------------------------------------------------------------------------------ inside

    /// @dev The release that `name`, `semver` and `index` agree on, if the caller may change it.
    function _ownRelease(string calldata name, string calldata semver, uint256 index)
        private
        view
        returns (bytes32 nameId, ReleaseWord word)
    {
        nameId = Text.hash(name);
        word = _releases[nameId][index];
        if (!_isAt(nameId, semver, index, word)) revert NoSuchRelease(name, semver);
        _checkMaintainer(nameId, name, _names[nameId], msg.sender);
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
        return !word.isInline() && Text.hash(semver) == keccak256(bytes(_longSemVers[nameId][index]));
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
            capUri: string.concat(URI_PREFIX, name, "@", semver),
            semver: semver,
            cid: RawCid.encode(sha256),
            sha256: sha256,
            yanked: word.has(ReleaseWords.YANKED),
            deprecated: word.has(ReleaseWords.DEPRECATED)
        });
    }
}
