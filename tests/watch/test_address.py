"""`--watch`: who is watched, and that no secret stands where others can read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadstone.errors import InputError
from loadstone.watch.address import WatchedAddress, addresses


def one(word: str, secrets: Path | None = None) -> WatchedAddress:
    return addresses([word], environment={}, secrets=secrets)[0]


def written(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    path = tmp_path / "secrets.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_each_way_is_read() -> None:
    ssh = one("nas=ssh://admin@10.0.0.5:2222")
    assert (ssh.name, ssh.kind, ssh.host, ssh.port, ssh.user) == ("nas", "ssh", "10.0.0.5", 2222, "admin")
    assert one("nas=ssh://nas").url == "ssh://nas"
    http = one("nas=https://nas:9100")
    assert (http.kind, http.url, http.port) == ("http", "https://nas:9100/metrics", 9100)
    assert one("nas=http://nas:9100/x?collect[]=cpu").url == "http://nas:9100/x?collect[]=cpu"
    assert one("me=local").kind == "local"
    snmp = one("nas=snmp://public@nas")
    assert (snmp.url, snmp.port, snmp.secrets.community, snmp.user) == ("snmp://nas", 161, "public", None)
    assert one("nas=ssh://admin@[fe80::1]:22").host == "fe80::1"


@pytest.mark.parametrize(
    "word",
    ["nas", "nas=", "nas=ssh://x:99999", "=ssh://x", "a b=ssh://x", "../x=ssh://x", "nas=ftp://x",
     "nas=ssh://", "nas=10.0.0.5", "nas=ssh://-oProxyCommand=x", "nas=ssh://-l@x", "nas=ssh://x/etc",
     "nas=ssh://x?y", "nas=snmp://public@x/y", "nas=snmp://public@x?y=z", "nas=http://x/metrics#y",
     f"{'n' * 33}=local"],
)  # fmt: skip
def test_what_means_nothing_is_refused(word: str) -> None:
    with pytest.raises(InputError, match="--watch"):
        one(word)


@pytest.mark.parametrize(
    "word",
    ["n=ssh://u:s3cret@x", "n=http://u:s3cret@x:91", "n=http://s3cret@x:91", "n=snmp://s3cret@x",
     "n=http://x/metrics?token=s3cret", "n=https://x?collect[]=cpu&s3cret", "n=http://x?s3cret=",
     "n=http://u:1/s3cret@x", "n=ssh://u:1/s3cret@x"],
)  # fmt: skip
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(word: str) -> None:
    with pytest.raises(InputError) as caught:
        one(word)
    assert "s3cret" not in str(caught.value) + str(caught.value.hint)
    assert "--watch-secrets" in str(caught.value.hint)


def test_a_community_comes_from_the_environment_or_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no community"):
        one("nas=snmp://nas")
    found = addresses(["nas=snmp://nas"], environment={"LOADSTONE_SNMP_COMMUNITY": "s3cret"})[0]
    assert found.secrets.community == "s3cret"
    path = written(tmp_path, '[nas]\ncommunity = "of-file"\n')
    found = addresses(["nas=snmp://nas"], secrets=path, environment={"LOADSTONE_SNMP_COMMUNITY": "s3cret"})[0]
    assert found.secrets.community == "of-file"
    assert "of-file" not in repr(found)
    assert "of-file" not in found.url


def test_what_an_address_must_not_show_comes_from_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, '[nas]\nquery = "token=s3cret"\n')
    found = one("nas=http://nas/metrics?collect[]=cpu", path)
    assert found.secrets.query == "token=s3cret"
    assert "s3cret" not in repr(found) + found.url


@pytest.mark.parametrize(
    ("word", "key"),
    [("nas=ssh://x", "password"), ("nas=local", "community"), ("nas=http://x", "community"),
     ("nas=snmp://x", "token")],
)  # fmt: skip
def test_a_secret_that_a_way_does_not_use_is_refused(tmp_path: Path, word: str, key: str) -> None:
    with pytest.raises(InputError, match=f"{key} has no effect") as caught:
        one(word, written(tmp_path, f'[nas]\n{key} = "s3cret"\n'))
    assert "s3cret" not in str(caught.value) + str(caught.value.hint)


def test_the_file_of_secrets_is_held_to_its_shape(tmp_path: Path) -> None:
    user = '[nas]\nuser = "u"\nauth_password = "a"\nauthentication = "sha256"\nprivacy_password = "p"\n'
    assert one("nas=snmp://nas", secrets=written(tmp_path, user)).secrets.privacy_password == "p"
    for text, says in (
        ('[nas]\ncomunity = "x"\n', "comunity"),
        ("[nas]\ncommunity = 5\n", "is not a text"),
        ("community", "not TOML"),
        ('nas = "x"\n', "is not a table"),
        ('[other]\ncommunity = "x"\n', r"\[other\]"),
        ('[nas]\nuser = "u"\nauthentication = "rot13"\nauth_password = "x"\n', "rot13"),
        ('[nas]\nuser = "u"\nprivacy_password = "x"\n', "auth_password"),
    ):
        with pytest.raises(InputError, match=says):
            one("nas=snmp://nas", secrets=written(tmp_path, text))
    with pytest.raises(InputError, match="other users"):
        one("nas=snmp://nas", secrets=written(tmp_path, user, 0o644))
    with pytest.raises(InputError, match="cannot be read"):
        one("nas=snmp://nas", secrets=tmp_path / "nothing")


def test_names_are_given_once_and_intervals_are_bounded() -> None:
    with pytest.raises(InputError, match="twice"):
        addresses(["a=local", "a=ssh://x"])
    for interval_s in (0.5, 0.0, 4000.0):
        with pytest.raises(InputError, match="1 s to 1 h"):
            addresses(["a=local"], interval_s=interval_s)
    with pytest.raises(InputError, match="no effect"):
        addresses([], secrets=Path("x"))
