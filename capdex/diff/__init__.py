"""Changes between two releases of a capability, and the SemVer step they require (P2)."""
