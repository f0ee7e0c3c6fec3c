// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Votes} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Votes.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

/// @notice A token with voting power (ERC-5805), that anybody may mint. Its clock is the number of the block.
contract Token is ERC20Votes {
    constructor() ERC20("Token", "TKN") EIP712("Token", "1") {}

    function mint(address account, uint256 amount) external {
        _mint(account, amount);
    }
}
