"""Servers with TLS: a certificate of their own, for a name and an end."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Certified = Callable[..., tuple[ssl.SSLContext, str]]


@pytest.fixture
def certified(tmp_path: Path) -> Certified:
    """Return what makes a server's context, and the file that whoever trusts it names."""

    def make(name: str = "localhost", *, days: int = 1) -> tuple[ssl.SSLContext, str]:
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server of the tests")])
        certificate = (
            x509.CertificateBuilder(subject, subject, key.public_key(), serial_number=1)
            .not_valid_before(now - timedelta(days=9))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        secret = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        whole, public = tmp_path / "whole.pem", tmp_path / "public.pem"
        whole.write_bytes(secret + certificate.public_bytes(pem))
        public.write_bytes(certificate.public_bytes(pem))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(whole)
        return context, str(public)

    return make
