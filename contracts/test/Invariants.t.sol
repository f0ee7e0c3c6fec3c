// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IERC5805} from "@openzeppelin/contracts/interfaces/IERC5805.sol";

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {People} from "./People.sol";
import {Test} from "./Test.sol";
import {Token} from "./Token.sol";

/// @notice Whatever people do, in whatever order, the registry is what its logs say. What that comes to is in `Ledger`
/// (what can follow what: an owner changes by claim, transfer and renouncing alone, a version is published once, a
/// skeleton has one name, releases are only added) and in `People` (what is compared, and when).
contract InvariantsTest is Test {
    People private people;

    function setUp() public {
        vm.warp(1_800_000_000);
        Token token = new Token();
        uint256 timepoint = vm.getBlockNumber();
        ICapabilityRegistry registry = newRegistry(60, 1 days);
        for (uint256 key = 1; key < 5; ++key) {
            vm.prank(vm.addr(key));
            token.delegate(vm.addr(key));
            token.mint(vm.addr(key), 10 ** key); // and nothing for the fifth
        }
        vm.roll(timepoint + 1);
        people = new People(registry, newVotes(registry, IERC5805(address(token)), timepoint));
    }

    /// @dev Asked by forge: whom to call at random.
    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(people);
    }

    function invariant_TheRegistryIsWhatItsLogsSay() public view {
        people.checkLog();
    }

    /// @dev Called by forge when a run is over.
    function afterInvariant() public view {
        people.checkAll();
    }

    /// @dev A run in which nothing happens proves nothing; here is a history of 5 000 deeds in which everything does.
    function test_EveryKindOfChangeHappens() public {
        for (uint256 i; i < 5_000; ++i) {
            _deed(i % 17, keccak256(abi.encode(i)));
        }
        people.checkLog();
        people.checkAll();
        uint256[] memory times = people.happened();
        for (uint256 i; i < times.length; ++i) {
            assertTrue(times[i] > 2, string.concat("a change of kind ", vm.toString(i)));
        }
    }

    function _deed(uint256 what, bytes32 luck) private {
        (uint8 who, uint8 name, uint8 other) = (uint8(luck[0]), uint8(luck[1]), uint8(luck[2]));
        uint8 more = uint8(luck[3]);
        if (what == 0) people.passTime(uint32(bytes4(luck)));
        else if (what == 1) people.commit(who, other, name);
        else if (what == 2) people.claimWell(who, name);
        else if (what == 3) people.publish(who, name, other, luck);
        else if (what == 4) people.publishWell(who, name, other, luck);
        else if (what == 5) people.publishBatch(who, name, [other, more, who, name], luck);
        else if (what == 6) people.publishWithSignature(who, other, name, more, luck, more % 2 == 0);
        else if (what == 7) people.setFlag(who, name, other, more % 2 == 0, uint8(luck[4]));
        else if (what == 8) people.deprecateName(who, name, other);
        else if (what == 9) people.undeprecateName(who, name);
        else if (what == 10) people.addMaintainer(who, name, other);
        else if (what == 11) people.removeMaintainer(who, name, other);
        else if (what == 12) people.offerTransfer(who, name, other);
        else if (what == 13) people.cancelTransfer(who, name);
        else if (what == 14) people.acceptTransfer(who, name);
        else if (what == 15) people.renounce(who, name, other);
        else people.vote(who, name, int8(other));
    }
}
