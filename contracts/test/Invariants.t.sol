// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {Test, Vm} from "./Test.sol";

/// @notice A few people who do anything to a few names, and a memory of what must have become of them.
contract People is Test {
    struct Remembered {
        string name;
        string semver;
        bytes32 digest;
        bool yanked;
    }

    ICapabilityRegistry public immutable registry;

    string[] public names = ["note", "n0te", "memo", "weather-reporter"];
    string[] private _semvers =
        ["1.0.0", "2.0.0-rc.1", "0.0.1", "1.0.0-abcdefghijklmnopqrstuvwxy-0123456789"];

    mapping(string name => address) public owners;
    mapping(string name => uint256[]) private _releasesOf;
    Remembered[] private _remembered;

    /// @dev The head and the count, folded from the logs alone.
    bytes32 public logWord;

    constructor(ICapabilityRegistry registry_) {
        registry = registry_;
    }

    function publish(uint8 who, uint8 name_, uint8 semver_, bytes32 digest) external {
        (address person, string memory name, string memory semver) = _choose(who, name_, semver_);
        vm.recordLogs();
        vm.prank(person);
        try registry.publish(name, semver, Reference.rawCid(digest), digest) {
            assertTrue(owners[name] == address(0) || owners[name] == person, "only the owner publishes");
            owners[name] = person;
            _releasesOf[name].push(_remembered.length);
            _remembered.push(Remembered(name, semver, digest, false));
            _fold(1);
        } catch {
            _fold(0);
        }
    }

    function yank(uint8 who, uint8 name_, uint8 semver_, uint8 index) external {
        (address person, string memory name, string memory semver) = _choose(who, name_, semver_);
        index %= 4;
        vm.recordLogs();
        vm.prank(person);
        try registry.yank(name, semver, index, "because") {
            _flip(person, name, semver, index, true);
        } catch {
            _fold(0);
        }
    }

    function unyank(uint8 who, uint8 name_, uint8 semver_, uint8 index) external {
        (address person, string memory name, string memory semver) = _choose(who, name_, semver_);
        index %= 4;
        vm.recordLogs();
        vm.prank(person);
        try registry.unyank(name, semver, index) {
            _flip(person, name, semver, index, false);
        } catch {
            _fold(0);
        }
    }

    /// @dev An owner who gets everything right, so that yanks are not all refused.
    function yankOrUnyankWell(uint256 which) external {
        if (_remembered.length == 0) return;
        Remembered storage one = _remembered[which % _remembered.length];
        uint256 index = registry.indexOf(one.name, one.semver);
        address owner = owners[one.name];
        bool yanked = one.yanked;
        vm.recordLogs();
        vm.prank(owner);
        if (yanked) registry.unyank(one.name, one.semver, index);
        else registry.yank(one.name, one.semver, index, "because");
        _flip(owner, one.name, one.semver, index, !yanked);
    }

    function rememberedOf(string memory name) external view returns (Remembered[] memory all) {
        uint256[] storage indices = _releasesOf[name];
        all = new Remembered[](indices.length);
        for (uint256 i; i < all.length; ++i) {
            all[i] = _remembered[indices[i]];
        }
    }

    function _choose(uint8 who, uint8 name_, uint8 semver_)
        private
        view
        returns (address, string memory, string memory)
    {
        return (
            address(uint160(0xA11CE) + who % 3),
            names[name_ % names.length],
            _semvers[semver_ % _semvers.length]
        );
    }

    function _flip(address person, string memory name, string memory semver, uint256 index, bool yanked)
        private
    {
        assertEq(owners[name], person, "only the owner yanks");
        Remembered storage one = _remembered[_releasesOf[name][index]];
        assertEq(one.semver, semver, "the release meant is the release yanked");
        assertTrue(one.yanked != yanked, "a flag that changes");
        one.yanked = yanked;
        _fold(1);
    }

    function _fold(uint256 expected) private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, expected, "one event for a change, none for a refusal");
        for (uint256 i; i < logs.length; ++i) {
            bytes32[] memory topics = logs[i].topics;
            uint64 sequence = abi.decode(logs[i].data, (uint64));
            bytes32 entry = keccak256(bytes.concat(topics[0], topics[1], topics[2], keccak256(logs[i].data)));
            bytes24 head = bytes24(keccak256(bytes.concat(logWord, entry)));
            assertEq(sequence, uint64(uint256(logWord)) + 1, "contiguous sequence");
            logWord = head | bytes32(uint256(sequence));
        }
    }
}

contract InvariantsTest is Test {
    People private people;
    ICapabilityRegistry private registry;

    function setUp() public {
        registry = newRegistry(0, 0);
        people = new People(registry);
    }

    /// @dev Asked by forge: whom to call at random.
    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(people);
    }

    function invariant_ReleasesNeverChangeButForTheirYank() public view {
        for (uint256 n; n < 4; ++n) {
            string memory name = people.names(n);
            People.Remembered[] memory expected = people.rememberedOf(name);
            ICapabilityRegistry.Release[] memory found = registry.releases(name, 0, type(uint256).max);
            assertEq(found.length, expected.length, "count of releases");
            assertEq(registry.releaseCount(name), expected.length, "release count");
            for (uint256 i; i < found.length; ++i) {
                assertEq(found[i].semver, expected[i].semver, "semver");
                assertEq(found[i].sha256, expected[i].digest, "sha256");
                assertEq(found[i].cid, Reference.rawCid(expected[i].digest), "cid");
                assertTrue(found[i].yanked == expected[i].yanked, "yanked");
                assertTrue(!found[i].deprecated, "deprecated");
                assertEq(registry.indexOf(name, found[i].semver), i, "index");
            }
        }
    }

    function invariant_OwnersNeverChange() public view {
        for (uint256 n; n < 4; ++n) {
            string memory name = people.names(n);
            assertEq(registry.ownerOf(name), people.owners(name), name);
        }
    }

    function invariant_ASkeletonHasOneName() public view {
        bool both = registry.ownerOf("note") != address(0) && registry.ownerOf("n0te") != address(0);
        assertTrue(!both, "lookalikes side by side");
    }

    function invariant_TheHeadIsTheFoldOfAllEvents() public view {
        (bytes24 head, uint64 count) = registry.log();
        assertEq(head | bytes32(uint256(count)), people.logWord(), "head and count");
    }

    function invariant_NoEtherIsHeld() public view {
        assertEq(address(registry).balance, 0, "balance");
    }
}
