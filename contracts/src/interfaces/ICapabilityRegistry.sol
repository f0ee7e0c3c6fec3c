// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @title Registry of agent capabilities
/// @notice Names belong to whoever claims them first, and a release, once published, never changes: it can only be
/// yanked (hidden from new users), deprecated (advised against), and either taken back. The registry has no
/// administrator, cannot be upgraded and holds no ether.
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
    // ------------------------------------------------------------------------------------------ errors: names

    /// @notice Thrown when `name` does not follow the grammar of names.
    error InvalidName(string name);

    /// @notice Thrown when `name` is free but its skeleton belongs to another name.
    /// @param takenBy The name that has the skeleton.
    error NameTaken(string name, string takenBy);

    /// @notice Thrown when `name` has the skeleton of a word that nobody may claim.
    error NameReserved(string name);

    /// @notice Thrown when `name` is to be claimed and was claimed before, by whomever.
    /// @param owner Who owns it; zero when its owner has renounced it.
    error NameClaimed(string name, address owner);

    /// @notice Thrown when `caller` does not own `name`.
    error NotOwner(string name, address caller);

    /// @notice Thrown when `caller` neither owns `name` nor is a maintainer of it.
    error NotMaintainer(string name, address caller);

    /// @notice Thrown when `account` is to become a maintainer and is one, or is to be removed and is none.
    error MaintainerUnchanged(string name, address account);

    /// @notice Thrown when a name is offered to nobody or to its owner, or the owner made a maintainer.
    error InvalidRecipient(string name, address recipient);

    /// @notice Thrown when `caller` accepts or cancels an offer of `name` that there is not.
    error NoOffer(string name, address caller);

    // ------------------------------------------------------------------------------------------ errors: commitments

    /// @notice Thrown when the ages of commitments do not leave a time to reveal.
    error InvalidCommitmentAges(uint256 minAge, uint256 maxAge);

    /// @notice Thrown by `commit` in a registry where names are claimed without commitments.
    error CommitmentNotNeeded();

    /// @notice Thrown when `commitment` was made and has not expired.
    error CommitmentExists(bytes32 commitment, uint256 expiresAt);

    /// @notice Thrown when a name is claimed without the commitment that it takes.
    /// @param commitment The one that was looked for; see `commitmentOf`.
    error CommitmentMissing(bytes32 commitment);

    /// @notice Thrown when a commitment is younger than `MIN_COMMITMENT_AGE`.
    /// @param ripeAt The time, in seconds, of the first block in which it counts.
    error CommitmentTooYoung(bytes32 commitment, uint256 ripeAt);

    /// @notice Thrown when a commitment is older than `MAX_COMMITMENT_AGE`.
    /// @param expiredAt The time, in seconds, of the last block in which it counted.
    error CommitmentExpired(bytes32 commitment, uint256 expiredAt);

    // ------------------------------------------------------------------------------------------ errors: releases

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

    /// @notice Thrown when a release is to be deprecated that is deprecated; `semver` is empty for the name itself.
    error AlreadyDeprecated(string name, string semver);

    /// @notice Thrown when a release is to be undeprecated that is not deprecated; `semver` is empty for the name.
    error NotDeprecated(string name, string semver);

    /// @notice Thrown when a reason or message is longer than 500 bytes.
    /// @param length The length of the one that was given, in bytes.
    error ReasonTooLong(uint256 length);

    // ------------------------------------------------------------------------------------------ errors: signatures

    /// @notice Thrown when a signature is used after its deadline.
    error SignatureExpired(uint256 deadline);

    /// @notice Thrown when `publisher` did not sign this publication with its present nonce.
    error InvalidSignature(address publisher, uint256 nonce);

    // ------------------------------------------------------------------------------------------ events: releases

    /// @notice Emitted when a release is published. The first one of a name that nobody owns also gives the
    /// name to `publisher`.
    /// @param nameId The hash of the name.
    /// @param publisher The account that published, or that signed what another account sent.
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

    /// @notice Emitted when a release is deprecated: it works, and its owner advises against it.
    /// @param nameId The hash of the name.
    /// @param by The account that deprecated.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    /// @param semver The version.
    /// @param message What to do instead, for people to read; may be empty.
    event Deprecated(
        bytes32 indexed nameId,
        address indexed by,
        uint64 sequence,
        string name,
        string semver,
        string message
    );

    /// @notice Emitted when the deprecation of a release is taken back.
    /// @param nameId The hash of the name.
    /// @param by The account that undeprecated.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    /// @param semver The version.
    event Undeprecated(
        bytes32 indexed nameId, address indexed by, uint64 sequence, string name, string semver
    );

    /// @notice Emitted, just before `Published`, when `sender` publishes what `publisher` has signed.
    /// @param nameId The hash of the name.
    /// @param publisher The account that signed.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    /// @param sender The account that sent the transaction and paid for it.
    /// @param nonce The nonce that the signature has used up.
    event Sponsored(
        bytes32 indexed nameId,
        address indexed publisher,
        uint64 sequence,
        string name,
        address sender,
        uint256 nonce
    );

    // ------------------------------------------------------------------------------------------ events: names

    /// @notice Emitted when somebody commits to claiming a name that nobody can read out of the commitment.
    /// @param commitment See `commitmentOf`.
    /// @param by The account that sent it, which need not be the one that will claim.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param madeAt The time of the block, in seconds: from it the commitment's age is counted.
    event Committed(bytes32 indexed commitment, address indexed by, uint64 sequence, uint64 madeAt);

    /// @notice Emitted when a name is claimed without a release.
    /// @param nameId The hash of the name.
    /// @param owner The account that owns it from now on.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    event Claimed(bytes32 indexed nameId, address indexed owner, uint64 sequence, string name);

    /// @notice Emitted when an account is allowed to publish, yank and deprecate releases of a name.
    /// @param nameId The hash of the name.
    /// @param by The owner.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    /// @param account The new maintainer.
    event MaintainerAdded(
        bytes32 indexed nameId, address indexed by, uint64 sequence, string name, address account
    );

    /// @notice Emitted when a maintainer is removed, or leaves.
    /// @param nameId The hash of the name.
    /// @param by The owner, or the maintainer itself.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    /// @param account Who is a maintainer no longer.
    event MaintainerRemoved(
        bytes32 indexed nameId, address indexed by, uint64 sequence, string name, address account
    );

    /// @notice Emitted when the owner offers a name. It takes the place of an earlier offer.
    /// @param nameId The hash of the name.
    /// @param by The owner.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    /// @param recipient Who may accept.
    event TransferOffered(
        bytes32 indexed nameId, address indexed by, uint64 sequence, string name, address recipient
    );

    /// @notice Emitted when the owner takes an offer back.
    /// @param nameId The hash of the name.
    /// @param by The owner.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    event TransferCancelled(bytes32 indexed nameId, address indexed by, uint64 sequence, string name);

    /// @notice Emitted when an offer is accepted. The name has no maintainers and no offer after it.
    /// @param nameId The hash of the name.
    /// @param owner The account that owns it from now on.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    /// @param formerOwner The account that owned it.
    event Transferred(
        bytes32 indexed nameId, address indexed owner, uint64 sequence, string name, address formerOwner
    );

    /// @notice Emitted when an owner gives a name up for good: nobody can own, or change, it any more. It has no
    /// maintainers and no offer after it.
    /// @param nameId The hash of the name.
    /// @param by The account that owned it.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    event Renounced(bytes32 indexed nameId, address indexed by, uint64 sequence, string name);

    /// @notice Emitted when a name is deprecated as a whole.
    /// @param nameId The hash of the name.
    /// @param by The owner.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    /// @param message What to do instead, for people to read; may be empty.
    /// @param replacedBy The name to use instead; empty when there is none.
    event NameDeprecated(
        bytes32 indexed nameId,
        address indexed by,
        uint64 sequence,
        string name,
        string message,
        string replacedBy
    );

    /// @notice Emitted when the deprecation of a name is taken back.
    /// @param nameId The hash of the name.
    /// @param by The owner.
    /// @param sequence The position of this event among all events of the registry, from 1.
    /// @param name The name.
    event NameUndeprecated(bytes32 indexed nameId, address indexed by, uint64 sequence, string name);

    // ------------------------------------------------------------------------------------------ structures

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

    /// @notice A publication as one value: an entry of a batch, or what a publisher signs.
    /// @param name The name of the capability.
    /// @param semver The version.
    /// @param cid The CID of the package's bytes.
    /// @param sha256 The digest of the same bytes.
    /// @param secret The secret of the commitment if the name is to be claimed; else it is not looked at.
    struct Publication {
        string name;
        string semver;
        string cid;
        bytes32 sha256;
        bytes32 secret;
    }

    // ------------------------------------------------------------------------------------------ claiming names

    /// @notice Makes a commitment, so that a name can be claimed `MIN_COMMITMENT_AGE` later and up to
    /// `MAX_COMMITMENT_AGE` later. Whoever sees the claim then on its way cannot be first with it.
    /// @dev Reverts with `CommitmentNotNeeded` or `CommitmentExists`. Emits `Committed`.
    /// @param commitment See `commitmentOf`.
    function commit(bytes32 commitment) external;

    /// @notice Claims a name without publishing anything.
    /// @dev Reverts with `NameClaimed`, `InvalidName`, `NameReserved`, `NameTaken`, `CommitmentMissing`,
    /// `CommitmentTooYoung` or `CommitmentExpired`, looked for in this order. Emits `Claimed`.
    /// @param name The name.
    /// @param secret The secret of the caller's commitment; not looked at where none is needed.
    function claim(string calldata name, bytes32 secret) external;

    // ------------------------------------------------------------------------------------------ publishing

    /// @notice Publishes a release of `name`. A name that was never claimed becomes the caller's: where commitments
    /// are needed, by the one with the secret zero, out of which anybody can guess the name.
    /// @dev Reverts as `claim` does (names never claimed) or with `NotMaintainer` (all others), then with `InvalidSemVer`,
    /// `ZeroDigest`, `CidMismatch` or `VersionAlreadyPublished`, looked for in this order. Emits `Published`.
    /// @param name The name of the capability.
    /// @param semver The version. Any order is allowed: 1.2.1 may follow 2.0.0.
    /// @param cid The CID of the package's bytes.
    /// @param sha256 The digest of the same bytes.
    function publish(string calldata name, string calldata semver, string calldata cid, bytes32 sha256)
        external;

    /// @notice Publishes as `publish` does, claiming a free `name` by the caller's commitment with `secret`.
    /// @dev Reverts as `publish` does. Emits `Published`.
    /// @param name The name of the capability.
    /// @param semver The version.
    /// @param cid The CID of the package's bytes.
    /// @param sha256 The digest of the same bytes.
    /// @param secret The secret of the caller's commitment.
    function claimAndPublish(
        string calldata name,
        string calldata semver,
        string calldata cid,
        bytes32 sha256,
        bytes32 secret
    ) external;

    /// @notice Publishes several releases, in order, all or none.
    /// @dev Reverts as `claimAndPublish` does for the first that is refused. Emits `Published` for each.
    /// @param publications What to publish, of one name or of several.
    function publishBatch(Publication[] calldata publications) external;

    /// @notice Publishes what `publisher` has signed; whoever sends it pays. The release, and the name if it is
    /// claimed, are the publisher's.
    /// @dev The signature is over the EIP-712 type
    /// `Publication(string name,string semver,string cid,bytes32 sha256,bytes32 secret,address publisher,uint256 nonce,uint256 deadline)`
    /// in the domain `capdex`, version `1`; of an account, or of a contract by ERC-1271. Reverts with
    /// `SignatureExpired` or `InvalidSignature`, then as `claimAndPublish` does. Emits `Sponsored`, then `Published`.
    /// @param publication What to publish.
    /// @param publisher Who signed.
    /// @param deadline The time, in seconds, of the last block in which the signature counts.
    /// @param signature The signature.
    function publishWithSignature(
        Publication calldata publication,
        address publisher,
        uint256 deadline,
        bytes calldata signature
    ) external;

    // ------------------------------------------------------------------------------------------ life cycle

    /// @notice Yanks a release: it stays, but versions are no longer resolved to it unless asked for exactly.
    /// @dev Reverts with `ReasonTooLong`, `NoSuchRelease`, `NotMaintainer` or `AlreadyYanked`, looked for in this order.
    /// Emits `Yanked`.
    /// @param name The name of the capability.
    /// @param semver The version.
    /// @param index The index of that version. It saves the search, and as name, version and index have to agree, a
    /// reorganisation of the chain cannot turn the call to another release.
    /// @param reason Why, for people to read; at most 500 bytes, may be empty.
    function yank(string calldata name, string calldata semver, uint256 index, string calldata reason)
        external;

    /// @notice Takes back a yank.
    /// @dev Reverts with `NoSuchRelease`, `NotMaintainer` or `NotYanked`, looked for in this order. Emits `Unyanked`.
    /// @param name The name of the capability.
    /// @param semver The version.
    /// @param index The index of that version; see `yank`.
    function unyank(string calldata name, string calldata semver, uint256 index) external;

    /// @notice Deprecates a release: it is resolved as before, with the message.
    /// @dev Reverts with `ReasonTooLong`, `NoSuchRelease`, `NotMaintainer` or `AlreadyDeprecated`, looked for in this
    /// order. Emits `Deprecated`.
    /// @param name The name of the capability.
    /// @param semver The version.
    /// @param index The index of that version; see `yank`.
    /// @param message What to do instead, for people to read; at most 500 bytes, may be empty.
    function deprecate(string calldata name, string calldata semver, uint256 index, string calldata message)
        external;

    /// @notice Takes back the deprecation of a release.
    /// @dev Reverts with `NoSuchRelease`, `NotMaintainer` or `NotDeprecated`, looked for in this order. Emits
    /// `Undeprecated`.
    /// @param name The name of the capability.
    /// @param semver The version.
    /// @param index The index of that version; see `yank`.
    function undeprecate(string calldata name, string calldata semver, uint256 index) external;

    /// @notice Deprecates a name, with all its releases.
    /// @dev Reverts with `ReasonTooLong`, `NotOwner`, `AlreadyDeprecated` or, for `replacedBy`, `InvalidName`, looked
    /// for in this order. Emits `NameDeprecated`.
    /// @param name The name.
    /// @param message What to do instead, for people to read; at most 500 bytes, may be empty.
    /// @param replacedBy The name to use instead, which need not exist; empty when there is none.
    function deprecateName(string calldata name, string calldata message, string calldata replacedBy) external;

    /// @notice Takes back the deprecation of a name.
    /// @dev Reverts with `NotOwner` or `NotDeprecated`. Emits `NameUndeprecated`.
    /// @param name The name.
    function undeprecateName(string calldata name) external;

    // ------------------------------------------------------------------------------------------ ownership

    /// @notice Lets `account` publish, yank and deprecate releases of `name`.
    /// @dev Reverts with `NotOwner`, `InvalidRecipient` (zero, or the owner) or `MaintainerUnchanged`. Emits
    /// `MaintainerAdded`.
    /// @param name The name.
    /// @param account The new maintainer.
    function addMaintainer(string calldata name, address account) external;

    /// @notice Removes a maintainer. The owner may remove anyone, and a maintainer itself.
    /// @dev Reverts with `NotOwner` or `MaintainerUnchanged`. Emits `MaintainerRemoved`.
    /// @param name The name.
    /// @param account Who is to be a maintainer no longer.
    function removeMaintainer(string calldata name, address account) external;

    /// @notice Offers a name to `recipient`, who has to accept before anything changes.
    /// @dev Reverts with `NotOwner` or `InvalidRecipient` (zero, or the owner). Emits `TransferOffered`.
    /// @param name The name.
    /// @param recipient Who may accept. An offer made before is replaced.
    function offerTransfer(string calldata name, address recipient) external;

    /// @notice Takes an offer back.
    /// @dev Reverts with `NotOwner` or `NoOffer`. Emits `TransferCancelled`.
    /// @param name The name.
    function cancelTransfer(string calldata name) external;

    /// @notice Accepts an offer: the name becomes the caller's, and its maintainers cease to be.
    /// @dev Reverts with `NoOffer`. Emits `Transferred`.
    /// @param name The name.
    function acceptTransfer(string calldata name) external;

    /// @notice Gives a name up for good. Nobody can claim it again; its releases stay as they are.
    /// @dev Reverts with `NotOwner`. Emits `Renounced`.
    /// @param name The name.
    function renounce(string calldata name) external;

    // ------------------------------------------------------------------------------------------ views

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

    /// @notice Returns what is kept of a name; all zero when it was never claimed.
    /// @param name The name of the capability.
    /// @return owner Who owns it; zero when unclaimed, and when renounced (then `epoch` is not zero).
    /// @return pendingOwner Who may accept it; zero when it is not on offer.
    /// @return count How many releases it has.
    /// @return epoch How often it has changed hands.
    /// @return deprecated Whether it is deprecated as a whole.
    function nameRecord(string calldata name)
        external
        view
        returns (address owner, address pendingOwner, uint32 count, uint32 epoch, bool deprecated);

    /// @notice Says whether `account` may publish releases of `name` without owning it.
    /// @param name The name of the capability.
    /// @param account The account.
    function isMaintainer(string calldata name, address account) external view returns (bool);

    /// @notice Says whether `name` has the skeleton of a reserved word. Reverts with `InvalidName`.
    /// @param name The name of the capability.
    function isReserved(string calldata name) external pure returns (bool);

    /// @notice Returns the name that has `skeleton`; the empty string when the skeleton is free.
    /// @param skeleton The text of a skeleton, such as `noteslsts` for `notes-1sts`.
    function nameOfSkeleton(string calldata skeleton) external view returns (string memory);

    /// @notice Returns the commitment for a name: `keccak256(abi.encode(nameId, claimer, secret))`.
    /// @param name The name to be claimed.
    /// @param claimer The account that will claim it.
    /// @param secret 32 bytes that nobody can guess.
    function commitmentOf(string calldata name, address claimer, bytes32 secret)
        external
        pure
        returns (bytes32);

    /// @notice Returns the time, in seconds, of the block in which `commitment` was last made; zero when never.
    /// @param commitment See `commitmentOf`.
    function committedAt(bytes32 commitment) external view returns (uint256);

    /// @notice Returns how old a commitment has to be, in seconds; zero when names are claimed without one.
    function MIN_COMMITMENT_AGE() external view returns (uint256);

    /// @notice Returns how old a commitment may be, in seconds.
    function MAX_COMMITMENT_AGE() external view returns (uint256);

    /// @notice Returns the nonce that the next signature of `publisher` has to carry.
    /// @param publisher The account.
    function nonces(address publisher) external view returns (uint256);

    /// @notice Returns the head of the log, into which all events are folded, and the number of events.
    /// @return head The head; zero before the first event.
    /// @return count How many events there have been, which is the sequence of the last one.
    function log() external view returns (bytes24 head, uint64 count);
}
