"""Certificates for the words between coordinator and hosts: one authority, one certificate for each.

Whoever holds a certificate of the authority may give orders, so keys are readable by their owner
only, travel on standard streams and never stand on a command line. Knows X.509; speaks with nobody.
"""

from __future__ import annotations

import datetime
import os
import stat
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from loadstone import input_file, output
from loadstone.errors import InputError, RefusedError
from loadstone.messages import make_error, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

AUTHORITY: Final = "ca"
COORDINATOR: Final = "coordinator"
DASK_SETTINGS: Final = "dask.yaml"
"""What Dask must not do beside a load: a file of this room, and of every directory of certificates."""
MOST_NAME: Final = 64
"""Characters of a common name (X.520)."""
DAYS: Final = 825
"""The longest that browsers and others accept of a certificate."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What one end needs, as PEM."""

    authority: str
    certificate: str
    key: str

    def document(self) -> dict[str, str]:
        """As JSON, to travel on a stream."""
        return {"authority": self.authority, "certificate": self.certificate, "key": self.key}


class Authority:
    """Signs certificates, as long as it lives in memory."""

    def __init__(self, days: float = DAYS) -> None:
        try:
            from cryptography import x509  # noqa: PLC0415 # an extra
            from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 # an extra
        except ImportError as error:
            raise RefusedError(
                say("hosts.certificates.package"), hint=say("hosts.certificates.package_hint")
            ) from error
        self._days = days
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Loadstone hosts")])
        self._certificate = self._signed("Loadstone hosts", self._key, authority=True)

    def issue(self, name: str) -> Credentials:
        """Return a new key and its certificate."""
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 # an extra

        key = ec.generate_private_key(ec.SECP256R1())
        return Credentials(_pem(self._certificate), _pem(self._signed(name, key)), _key_pem(key))

    def _signed(self, name: str, key: EllipticCurvePrivateKey, *, authority: bool = False) -> Certificate:
        from cryptography import x509  # noqa: PLC0415 # an extra
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 # an extra

        now = datetime.datetime.now(datetime.UTC)
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:MOST_NAME])])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            # A host's clock may be behind.
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=self._days))
            .add_extension(
                x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True
            )
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(_dns(name))]), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256())


def write(directory: Path, names: Sequence[str]) -> list[Path]:
    """Write an authority's certificate and those of the coordinator and the hosts; return the files.

    Beside them are Dask's settings, for a scheduler and workers that others start (`DASK_CONFIG`).
    The authority's own key is not kept: who needs another host's certificate makes all anew.
    Raises InputError where they cannot be written; then none is left.
    """
    for name in (AUTHORITY, COORDINATOR):
        if name in names:
            raise make_error(InputError, "hosts.certificates.taken", name=name)
    files: list[Path] = []
    with output.naming_file(directory):
        if directory.exists() and not directory.is_dir():
            raise RefusedError(
                say("hosts.certificates.file", path=str(directory)), hint=say("hosts.certificates.new")
            )
        if directory.exists() and any(directory.iterdir()):
            raise InputError(
                say("hosts.certificates.full", path=str(directory)), hint=say("hosts.certificates.new")
            )
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            _issue(directory, (COORDINATOR, *names), files)
        except OSError:
            # Half of them are of no use, and would be in the way of the next attempt.
            for path in files:
                path.unlink(missing_ok=True)
            raise
    return files


def _issue(directory: Path, names: Sequence[str], files: list[Path]) -> None:
    """Write certificates of authority and names, and Dask's settings; add each file begun to `files`."""
    authority = Authority()
    certificates = [(name, authority.issue(name)) for name in names]
    texts = [(f"{AUTHORITY}.pem", certificates[0][1].authority, 0o644)]
    for name, one in certificates:
        texts += [(f"{name}.pem", one.certificate, 0o600), (f"{name}.key", one.key, 0o600)]
    texts.append((DASK_SETTINGS, dask_settings(), 0o644))
    for file_name, text, mode in texts:
        path = directory / file_name
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        files.append(path)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)


def dask_settings() -> str:
    """Return what Dask must not do beside a load, as YAML."""
    return (resources.files("loadstone.hosts") / DASK_SETTINGS).read_text(encoding="utf-8")


def names_told(peer: Mapping[str, Any] | None) -> list[str]:
    """Return who a certificate is of, as `ssl` tells it of the other end of a connection."""
    subject = (peer or {}).get("subject", ())
    return [value for part in subject for key, value in part if key == "commonName"]


def is_of(expected: Iterable[str], names: Iterable[str]) -> bool:
    """Return whether a certificate is of one of these names."""
    return not {name[:MOST_NAME] for name in names}.isdisjoint(expected)


def read(directory: Path, name: str, *also: str) -> Credentials:
    """Read what one end needs; `also`: other names it is known by.

    Raises `InputError` for a file that cannot be used, and says why.
    """
    texts = []
    for file in (f"{AUTHORITY}.pem", f"{name}.pem", f"{name}.key"):
        path = directory / file
        try:
            texts.append(input_file.start(path, input_file.MOST_BYTES).decode())
            if file.endswith(".key") and stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise make_error(InputError, "hosts.certificates.readable", path=str(path))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else say("hosts.file.binary")
            raise InputError(
                f"{path}: {reason}", hint=say("hosts.certificates.make", path=str(directory))
            ) from error
    credentials = Credentials(*texts)
    _check(directory, (name, *also), credentials)
    return credentials


def _unusable(path: Path, reason: str) -> InputError:
    return InputError(f"{path}: {reason}", hint=say("hosts.certificates.make_new"))


def _check(directory: Path, names: Sequence[str], credentials: Credentials) -> None:
    """Refuse now what the hosts' libraries would only say `does not match` of, if they answered at all."""
    name = names[0]
    from cryptography import exceptions, x509  # noqa: PLC0415 # an extra
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 # an extra

    certificates = {}
    for file, text in ((f"{AUTHORITY}.pem", credentials.authority), (f"{name}.pem", credentials.certificate)):
        try:
            certificates[file] = x509.load_pem_x509_certificate(text.encode())
        except ValueError as error:
            raise _unusable(directory / file, say("hosts.certificates.not_one")) from error
    now = datetime.datetime.now(datetime.UTC)
    for file, one in certificates.items():
        if not one.not_valid_before_utc <= now <= one.not_valid_after_utc:
            days = [f"{at:%Y-%m-%d}" for at in (one.not_valid_before_utc, one.not_valid_after_utc)]
            reason = say("hosts.certificates.days", since=days[0], until=days[1])
            raise _unusable(directory / file, reason)
    authority, own = certificates.values()
    try:
        own.verify_directly_issued_by(authority)
    except (ValueError, TypeError, exceptions.InvalidSignature) as error:
        reason = say("hosts.certificates.authority", path=str(directory / f"{AUTHORITY}.pem"))
        raise _unusable(directory / f"{name}.pem", reason) from error
    common = own.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    if not is_of(told_names := [str(one.value) for one in common], names):
        reason = say("hosts.certificates.other", names=", ".join(told_names) or "nobody", name=name)
        raise _unusable(directory / f"{name}.pem", reason)
    try:
        matches = load_pem_private_key(credentials.key.encode(), None).public_key() == own.public_key()
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm):
        matches = False
    if not matches:
        reason = say("hosts.certificates.key", path=str(directory / f"{name}.pem"))
        raise _unusable(directory / f"{name}.key", reason)


def _dns(name: str) -> str:
    return "".join(one if one.isalnum() or one in "-." else "-" for one in name.lower())[:63] or "host"


def _pem(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 # an extra

    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 # an extra
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
