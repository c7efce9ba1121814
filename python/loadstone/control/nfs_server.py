"""Threads of this host's NFS server (nfsd(7))."""

from __future__ import annotations

from loadstone.control.control_kind import NUMBER
from loadstone.control.file_controls import HostFile


class NfsServerThreads(HostFile):
    """Threads that serve NFS; 0 stops the server."""

    name, title, source = "nfs_server_threads", "threads of the NFS server", "nfsd(7)"
    file, takes = "fs/nfsd/threads", NUMBER
