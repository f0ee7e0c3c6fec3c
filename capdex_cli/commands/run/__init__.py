"""Commands that run or maintain a node, a local network, a mirror or a contract."""
