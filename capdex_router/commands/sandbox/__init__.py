"""The sandbox of learned programs: bubblewrap, a seccomp filter and a session key ring."""
