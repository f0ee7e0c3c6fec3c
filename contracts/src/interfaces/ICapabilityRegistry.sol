// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @title Registry of agent capabilities
/// @notice Names belong to whoever claims them first, and a release, once published, never changes: it can only be
/// yanked (hidden from new users) and unyanked. The registry has no administrator, cannot be upgraded and holds no
/// ether.
///
/// Words used below
///
/// - `name`: `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`, 2 to 64 characters.
/// - `skeleton` of a name: the name without `-`, and with `0` read as `o`, `1` and `i` read as `l`. Two names with
///   one skeleton are too easy to mistake for one another, so a skeleton belongs to one name only.
/// - `semver`: strict Semantic Versioning 2.0.0 without build metadata, 5 to 64 characters, and no numeric identifier
///   longer than 15 digits (so that every one is exact in an IEEE double).
/// - `cid`: CIDv1, raw codec, sha2-256, base32 in lower case: `bafkrei…`, 59 characters. It spells the digest that
///   stands beside it, so the two cannot disagree.
/// - `nameId`: `keccak256(bytes(name))`.
/// - `index`: the position of a release in the list of its name's releases, from 0, in order of publication.
///
/// The log
///
/// Every change of state emits exactly one event. The events of all names share one sequence, 1, 2, 3 …, and are
/// folded into a head that `log()` returns. With slot 0 as a 32-byte word `head (24 bytes) ‖ count (8 bytes)`, all
/// zero before the first event:
///
///     entry     = keccak256(topic0 ‖ topic1 ‖ topic2 ‖ keccak256(data))
///     new head  = the first 24 bytes of keccak256(old word ‖ entry)
///     new count = old count + 1 = the sequence in the event
///
/// So whoever holds all the logs can show that none is missing, false or out of order.
///
/// Storage is laid out for `eth_getProof`: see `RegistryStorage`.
interface ICapabilityRegistry {
    /// @notice Thrown when `name` does not follow the grammar of names.
    error InvalidName(string name);

    /// @notice Thrown when `name` is free but its skeleton belongs to another name.
    /// @param takenBy The name that has the skeleton.
    error NameTaken(string name, string takenBy);

    /// @notice Thrown when `caller` does not own `name`.
    error NotOwner(string name, address caller);

    /// @notice Thrown when `semver` does not follow the grammar of versions.
    error InvalidSemVer(string semver);

    /// @notice Thrown when `cid` is anything but the CIDv1 (raw, sha2-256, base32) of `sha256`.
    error CidMismatch(string cid, bytes32 sha256);

    /// @notice Thrown when a digest is zero, which stands for absence in storage.
    error ZeroDigest();

    /// @notice Thrown when `name` already has a release `semver`, yanked or not: a version is never used twice.
    error VersionAlreadyPublished(string name, string semver);

    /// @notice Thrown when `name` has no release `semver`, or has it at another index than the one given.
    error NoSuchRelease(string name, string semver);

    /// @notice Thrown when a release is to be yanked that is yanked.
    error AlreadyYanked(string name, string semver);

    /// @notice Thrown when a release is to be unyanked that is not yanked.
    error NotYanked(string name, string semver);

    /// @notice Thrown when a reason is longer than 500 bytes.
    /// @param length The length of the reason that was given, in bytes.
    error ReasonTooLong(uint256 length);

    /// @notice Emitted when a release is published. The first one of a name also gives the name to `publisher`.
    /// @param nameId The hash of the name.
    /// @param publisher The account that published.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param capUri `did:nuwa:cap:<name>@<semver>`.
    /// @param semver The version.
    /// @param cid Where the bytes of the package are found.
    /// @param sha256 The digest of those bytes.
    event Published(
        bytes32 indexed nameId,
        address indexed publisher,
        uint64 sequence,
        string capUri,
        string semver,
        string cid,
        bytes32 sha256
    );

    /// @notice Emitted when a release is yanked.
    /// @param nameId The hash of the name.
    /// @param by The account that yanked.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    /// @param semver The version.
    /// @param reason Why, for people to read; may be empty.
    event Yanked(
        bytes32 indexed nameId, address indexed by, uint64 sequence, string name, string semver, string reason
    );

    /// @notice Emitted when a yank is taken back.
    /// @param nameId The hash of the name.
    /// @param by The account that unyanked.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    /// @param semver The version.
    event Unyanked(bytes32 indexed nameId, address indexed by, uint64 sequence, string name, string semver);

    /// @notice One version of one capability.
    /// @param capUri `did:nuwa:cap:<name>@<semver>`.
    /// @param semver The version.
    /// @param cid Where the bytes of the package are found.
    /// @param sha256 The digest of those bytes.
    /// @param yanked Whether the owner has withdrawn it from new use.
    /// @param deprecated Whether the owner advises against it.
    struct Release {
        string capUri;
        string semver;
        string cid;
        bytes32 sha256;
        bool yanked;
        bool deprecated;
    }

    /// @notice Publishes a release of `name`. A name nobody owns becomes the caller's.
    /// @dev Reverts with `InvalidName` or `NameTaken` (unowned names), `NotOwner` (owned names), `InvalidSemVer`,
    /// `ZeroDigest`, `CidMismatch` or `VersionAlreadyPublished`, looked for in this order. Emits `Published`.
    /// @param name The name of the capability.
    /// @param semver The version. Any order is allowed: 1.2.1 may follow 2.0.0.
    /// @param cid The CID of the package's bytes.
    /// @param sha256 The digest of the same bytes.
    function publish(string calldata name, string calldata semver, string calldata cid, bytes32 sha256)
        external;

    /// @notice Yanks a release: it stays, but versions are no longer resolved to it unless asked for exactly.
    /// @dev Reverts with `ReasonTooLong`, `NoSuchRelease`, `NotOwner` or `AlreadyYanked`, looked for in this order.
    /// Emits `Yanked`.
    /// @param name The name of the capability.
    /// @param semver The version.
    /// @param index The index of that version. It saves the search, and as name, version and index have to agree, a
    /// reorganisation of the chain cannot turn the call to another release.
    /// @param reason Why, for people to read; at most 500 bytes, may be empty.
    function yank(string calldata name, string calldata semver, uint256 index, string calldata reason)
        external;

    /// @notice Takes back a yank.
    /// @dev Reverts with `NoSuchRelease`, `NotOwner` or `NotYanked`, looked for in this order. Emits `Unyanked`.
    /// @param name The name of the capability.
    /// @param semver The version.
    /// @param index The index of that version; see `yank`.
    function unyank(string calldata name, string calldata semver, uint256 index) external;

    /// @notice Returns one release. Reverts with `NoSuchRelease` when there is none.
    /// @dev Finds the flags by a search through the name's list: for `eth_call`, not for other contracts.
    /// @param name The name of the capability.
    /// @param semver The version.
    function release(string calldata name, string calldata semver) external view returns (Release memory);

    /// @notice Returns up to `count` releases of `name`, in order of publication, from index `from` on.
    /// @dev Never reverts for its arguments: beyond the end of the list there is nothing, so the answer is shorter.
    /// @param name The name of the capability.
    /// @param from The index of the first release wanted.
    /// @param count How many releases are wanted.
    function releases(string calldata name, uint256 from, uint256 count)
        external
        view
        returns (Release[] memory);

    /// @notice Returns how many releases `name` has, yanked ones included; zero for an unknown name.
    /// @param name The name of the capability.
    function releaseCount(string calldata name) external view returns (uint256);

    /// @notice Returns the index of a release. Reverts with `NoSuchRelease` when there is none.
    /// @param name The name of the capability.
    /// @param semver The version.
    function indexOf(string calldata name, string calldata semver) external view returns (uint256);

    /// @notice Returns the owner of `name`; the zero address when nobody owns it.
    /// @param name The name of the capability.
    function ownerOf(string calldata name) external view returns (address);

    /// @notice Returns the name that has `skeleton`; the empty string when the skeleton is free.
    /// @param skeleton The text of a skeleton, such as `noteslsts` for `notes-1sts`.
    function nameOfSkeleton(string calldata skeleton) external view returns (string memory);

    /// @notice Returns the head of the log, into which all events are folded, and the number of events.
    /// @return head The head; zero before the first event.
    /// @return count How many events there have been, which is the sequence of the last one.
    function log() external view returns (bytes24 head, uint64 count);
}
