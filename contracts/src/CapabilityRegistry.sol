// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";

import {NameOwnership} from "./NameOwnership.sol";
import {ICapabilityRegistry} from "./interfaces/ICapabilityRegistry.sol";
import {EventLog} from "./libraries/EventLog.sol";
import {RawCid} from "./libraries/RawCid.sol";
import {ReleaseWord, ReleaseWords} from "./libraries/ReleaseWord.sol";
import {SemVer} from "./libraries/SemVer.sol";

/// @title CapabilityRegistry
/// @notice See `ICapabilityRegistry` for what it does, `RegistryStorage` for what it keeps, and `NameOwnership` for
/// the half of it that is about names.
contract CapabilityRegistry is NameOwnership, EIP712 {
    using EventLog for EventLog.Log;

    bytes32 private constant PUBLICATION_TYPEHASH = keccak256(
        "Publication(string name,string semver,string cid,bytes32 sha256,bytes32 secret,address publisher,uint256 nonce,uint256 deadline)"
    );

    string private constant URI_PREFIX = "did:nuwa:cap:";

    /// @param minCommitmentAge How old a commitment has to be, in seconds; zero lets names be claimed without one.
    /// @param maxCommitmentAge How old a commitment may be, in seconds.
    constructor(uint256 minCommitmentAge, uint256 maxCommitmentAge)
        NameOwnership(minCommitmentAge, maxCommitmentAge)
        EIP712("capdex", "1")
    {}

    // ------------------------------------------------------------------------------------------ publishing

    /// @inheritdoc ICapabilityRegistry
    function publish(string calldata name, string calldata semver, string calldata cid, bytes32 sha256)
        external
    {
        _publish(name, semver, cid, sha256, 0, msg.sender);
    }

    /// @inheritdoc ICapabilityRegistry
    function claimAndPublish(
        string calldata name,
        string calldata semver,
        string calldata cid,
        bytes32 sha256,
        bytes32 secret
    ) external {
        _publish(name, semver, cid, sha256, secret, msg.sender);
    }

    /// @inheritdoc ICapabilityRegistry
    function publishBatch(Publication[] calldata publications) external {
        for (uint256 i; i < publications.length; ++i) {
            Publication calldata one = publications[i];
            _publish(one.name, one.semver, one.cid, one.sha256, one.secret, msg.sender);
        }
    }

    /// @inheritdoc ICapabilityRegistry
    function publishWithSignature(
        Publication calldata publication,
        address publisher,
        uint256 deadline,
        bytes calldata signature
    ) external {
        if (block.timestamp > deadline) revert SignatureExpired(deadline);
        uint256 nonce = _nonces[publisher]++; // before a contract is asked, so that it cannot use it twice
        bytes32 digest = _hashTypedDataV4(
            keccak256(
                abi.encode(
                    PUBLICATION_TYPEHASH,
                    keccak256(bytes(publication.name)),
                    keccak256(bytes(publication.semver)),
                    keccak256(bytes(publication.cid)),
                    publication.sha256,
                    publication.secret,
                    publisher,
                    nonce,
                    deadline
                )
            )
        );
        if (!SignatureChecker.isValidSignatureNowCalldata(publisher, digest, signature)) {
            revert InvalidSignature(publisher, nonce);
        }
        _log.append(
            Sponsored.selector,
            keccak256(bytes(publication.name)),
            publisher,
            abi.encode(_log.next(), publication.name, msg.sender, nonce)
        );
        _publish(
            publication.name,
            publication.semver,
            publication.cid,
            publication.sha256,
            publication.secret,
            publisher
        );
    }

    function _publish(
        string calldata name,
        string calldata semver,
        string calldata cid,
        bytes32 sha256,
        bytes32 secret,
        address publisher
    ) private {
        bytes32 nameId = keccak256(bytes(name));
        NameRecord memory record = _names[nameId];
        if (_isClaimed(record)) {
            _checkMaintainer(nameId, name, record, publisher);
        } else {
            _claim(nameId, name, publisher, secret);
            record.owner = publisher;
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
            publisher,
            abi.encode(_log.next(), _capUri(name, semver), semver, cid, sha256)
        );
    }

    // ------------------------------------------------------------------------------------------ life cycle

    /// @inheritdoc ICapabilityRegistry
    function yank(string calldata name, string calldata semver, uint256 index, string calldata reason)
        external
    {
        if (bytes(reason).length > MAX_REASON_BYTES) revert ReasonTooLong(bytes(reason).length);
        (bytes32 nameId, ReleaseWord word) = _ownRelease(name, semver, index);
        if (word.has(ReleaseWords.YANKED)) revert AlreadyYanked(name, semver);

        _releases[nameId][index] = word.flip(ReleaseWords.YANKED);
        _log.append(Yanked.selector, nameId, msg.sender, abi.encode(_log.next(), name, semver, reason));
    }

    /// @inheritdoc ICapabilityRegistry
    function unyank(string calldata name, string calldata semver, uint256 index) external {
        (bytes32 nameId, ReleaseWord word) = _ownRelease(name, semver, index);
        if (!word.has(ReleaseWords.YANKED)) revert NotYanked(name, semver);

        _releases[nameId][index] = word.flip(ReleaseWords.YANKED);
        _log.append(Unyanked.selector, nameId, msg.sender, abi.encode(_log.next(), name, semver));
    }

    /// @inheritdoc ICapabilityRegistry
    function deprecate(string calldata name, string calldata semver, uint256 index, string calldata message)
        external
    {
        if (bytes(message).length > MAX_REASON_BYTES) revert ReasonTooLong(bytes(message).length);
        (bytes32 nameId, ReleaseWord word) = _ownRelease(name, semver, index);
        if (word.has(ReleaseWords.DEPRECATED)) revert AlreadyDeprecated(name, semver);

        _releases[nameId][index] = word.flip(ReleaseWords.DEPRECATED);
        _log.append(Deprecated.selector, nameId, msg.sender, abi.encode(_log.next(), name, semver, message));
    }

    /// @inheritdoc ICapabilityRegistry
    function undeprecate(string calldata name, string calldata semver, uint256 index) external {
        (bytes32 nameId, ReleaseWord word) = _ownRelease(name, semver, index);
        if (!word.has(ReleaseWords.DEPRECATED)) revert NotDeprecated(name, semver);

        _releases[nameId][index] = word.flip(ReleaseWords.DEPRECATED);
        _log.append(Undeprecated.selector, nameId, msg.sender, abi.encode(_log.next(), name, semver));
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
    function nonces(address publisher) external view returns (uint256) {
        return _nonces[publisher];
    }

    /// @inheritdoc ICapabilityRegistry
    function log() external view returns (bytes24 head, uint64 count) {
        return (_log.head(), _log.count());
    }

    // ------------------------------------------------------------------------------------------ inside

    /// @dev The release that `name`, `semver` and `index` agree on, if the caller may change it.
    function _ownRelease(string calldata name, string calldata semver, uint256 index)
        private
        view
        returns (bytes32 nameId, ReleaseWord word)
    {
        nameId = keccak256(bytes(name));
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
