"""A LUN that two hosts see under different names: a server tells which of them wrote where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lab.hosts import shared_lun
from lab.hosts.namespaces import NamespaceHosts

if TYPE_CHECKING:
    from pathlib import Path

WHY_NOT = shared_lun.missing()


@pytest.mark.root
@pytest.mark.nightly
@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_hosts_write_a_shared_lun_only_divided_and_each_with_its_consent(tmp_path: Path) -> None:
    with NamespaceHosts(2, name="lun") as hosts, shared_lun.SharedLun(hosts, tmp_path) as lun:
        assert shared_lun.wrong(lun) == []
