"""Parameter files drawn by seed: each about one kind of option, on SDs or in trees.

Knows vdbench's keywords and no other program. Sizes are small and runs are short: the files are for looking
at what is run and how it is told, not at speed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

APART: Final = frozenset(("hotband", "streams", "dedup", "skewed files", "totalsize", "deletes"))
"""Kinds that are looked at only at the end."""
_TIMES: Final = "elapsed=3,interval=1"


@dataclass(frozen=True, slots=True)
class DrawnParameterFile:
    """One parameter file. `apart`: it is not for tuning by."""

    name: str
    kind: str
    on_files: bool
    apart: bool
    text: str


class _Raw:
    """Pieces of files about SDs."""

    def __init__(self, rng: random.Random, place: str) -> None:
        self.rng = rng
        self.place = place

    def sds(self, count: int, more: str = "") -> str:
        """Return some SDs."""
        return "".join(
            f"sd=sd{n},lun={self.place}/f{n},size=16m,threads=4{more}\n" for n in range(1, count + 1)
        )

    def size(self) -> str:
        """Return a transfer size."""
        return self.rng.choice(("512", "4k", "8k", "16k", "64k"))

    def rate(self) -> int:
        """Return a rate that any host can do."""
        return self.rng.randrange(100, 400, 50)

    def reads(self) -> int:
        """Return a percentage."""
        return self.rng.choice((0, 30, 50, 70, 100))

    def one(self, wd: str = "", rd: str = "", sd: str = "") -> str:
        """Return a file with one workload."""
        size = "" if "xfersize" in wd else f",xfersize={self.size()}"
        reads = "" if "rdpct" in wd else f",rdpct={self.reads()}"
        rate = "" if "iorate" in rd else f",iorate={self.rate()}"
        times = "" if "elapsed" in rd else f",{_TIMES}"
        return f"{self.sds(1, sd)}wd=wd1,sd=sd1{size}{reads}{wd}\nrd=rd1,wd=wd1{rate}{times}{rd}\n"


def _two(raw: _Raw) -> str:
    share = raw.rng.randrange(20, 81, 10)
    return (
        f"{raw.sds(2)}wd=wd1,sd=sd1,xfersize=4k,rdpct=100,skew={share}\nwd=wd2,sd=sd2,xfersize=8k,rdpct=0\n"
        f"rd=rd1,wd=wd*,iorate={raw.rate()},{_TIMES}\n"
    )


def _defaults(raw: _Raw) -> str:
    return (
        f"sd=default,size=16m,threads=4\nsd=sd,lun={raw.place}/f*,count=(1,2)\nwd=default,xfersize=8k\n"
        f"wd=wd1,sd=sd*,rdpct={raw.reads()}\nrd=default,{_TIMES}\nrd=rd1,wd=wd1,iorate={raw.rate()}\n"
    )


_RAW: Final[dict[str, Callable[[_Raw], str]]] = {
    "plain": lambda raw: raw.one(),
    "sizes": lambda raw: raw.one(",xfersize=(4k,40,8k,35,64k,25)"),
    "size range": lambda raw: raw.one(",xfersize=(4k,32k,4k)", sd=",align=4k"),
    "some random": lambda raw: raw.one(f",seekpct={raw.rng.choice((10, 50, 90))}"),
    "sequential": lambda raw: raw.one(",seekpct=seq"),
    "seqnz": lambda raw: raw.one(",seekpct=seqnz"),
    "hits": lambda raw: raw.one(f",rhpct={raw.rng.choice((20, 60))},rdpct=100"),
    "range": lambda raw: raw.one(",range=(25,75)"),
    "stride": lambda raw: raw.one(",stride=(8k,64k),rdpct=100,xfersize=4k"),
    "hotband": lambda raw: raw.one(",hotband=(10,40)"),
    "streams": lambda raw: raw.one(",streams=2,seekpct=seq,rdpct=100", rd=",iorate=max"),
    "two workloads": _two,
    "defaults": _defaults,
    "sizes in a loop": lambda raw: raw.one(rd=",forxfersize=(4k,16k)"),
    "threads in a loop": lambda raw: raw.one(rd=",forthreads=(1-4,d)"),
    "loops": lambda raw: raw.one(rd=",forrdpct=(0,100),forthreads=(1,4)"),
    "rates": lambda raw: raw.one(rd=",iorate=(100,300)"),
    "curve": lambda raw: raw.one(rd=",iorate=curve,curve=(50,100)"),
    "warmup": lambda raw: raw.one(rd=",elapsed=4,interval=2,warmup=2"),
    "even arrivals": lambda raw: raw.one(rd=",distribution=deterministic"),
    "uniform arrivals": lambda raw: raw.one(rd=",distribution=uniform"),
    "buckets": lambda raw: "histogram=(default,100u,1m,10m,100m)\n" + raw.one(),
    "compression": lambda raw: "compratio=2\n" + raw.one(",rdpct=0"),
    "dedup": lambda raw: "dedupratio=2,dedupunit=4k\n" + raw.one(",rdpct=0,xfersize=8k"),
    "direct": lambda raw: raw.one(sd=",openflags=o_sync"),
    "single": lambda raw: (
        f"{raw.sds(2)}wd=wd1,sd=sd*,xfersize=4k\nrd=rd1,wd=wd1,sd=single,iorate={raw.rate()},{_TIMES}\n"
    ),
}


class _Files:
    """Pieces of files about trees."""

    def __init__(self, rng: random.Random, place: str) -> None:
        self.rng = rng
        self.place = place

    def tree(self, name: str = "fsd1", more: str = "") -> str:
        """Return an FSD."""
        shape = f"depth={self.rng.choice((1, 2))},width=2,files={self.rng.choice((5, 8))}"
        size = "" if "sizes" in more else ",sizes=16k"
        return f"fsd={name},anchor={self.place}/{name},{shape}{size}{more}\n"

    def one(self, fwd: str, rd: str = "", fsd: str = "") -> str:
        """Return a file with one workload in one tree."""
        size = "" if "xfersize" in fwd else ",xfersize=4k"
        form = "" if "format" in rd else ",format=yes"
        rate = "" if "fwdrate" in rd else f",fwdrate={self.rng.randrange(50, 200, 50)}"
        return (
            f"{self.tree(more=fsd)}fwd=fwd1,fsd=fsd1,threads=2{size}{fwd}\n"
            f"rd=rd1,fwd=fwd1{rate}{form},{_TIMES}{rd}\n"
        )


def _two_trees(files: _Files) -> str:
    return (
        f"{files.tree('fsd1')}{files.tree('fsd2')}"
        "fwd=fwd1,fsd=fsd1,operation=read,xfersize=4k,threads=2,skew=60\n"
        "fwd=fwd2,fsd=fsd2,operation=write,xfersize=8k,threads=2,skew=40\n"
        f"rd=rd1,fwd=fwd*,fwdrate=200,format=yes,{_TIMES}\n"
    )


_FILES: Final[dict[str, Callable[[_Files], str]]] = {
    "read files": lambda files: files.one(",operation=read,fileio=random"),
    "write files": lambda files: files.one(",operation=write,fileio=sequential"),
    "read whole": lambda files: files.one(",operation=read,fileio=sequential,fileselect=random"),
    "mixed files": lambda files: files.one(f",rdpct={files.rng.choice((30, 70))},fileio=random"),
    "getattr": lambda files: files.one(",operation=getattr,fileselect=random"),
    "setattr": lambda files: files.one(",operation=setattr"),
    "access": lambda files: files.one(",operation=access"),
    "open": lambda files: files.one(",operation=open"),
    "close": lambda files: files.one(",operation=close"),
    "sizes of files": lambda files: files.one(",operation=read", fsd=",sizes=(4k,50,16k,50)"),
    "two trees": _two_trees,
    "operations": lambda files: files.one("", rd=",foroperations=(read,getattr)"),
    "shapes": lambda files: files.one(",operation=read", rd=",forfiles=(3,6)"),
    "format only": lambda files: files.one(",operation=read", rd=",format=only"),
    "stop": lambda files: files.one(",operation=read,fileio=random,stopafter=2"),
    "files in all": lambda files: files.one(",operation=read", fsd=",distribution=all"),
    "skewed files": lambda files: files.one(",operation=read,fileio=random,fileselect=poisson"),
    "totalsize": lambda files: files.one(",operation=read", fsd=",totalsize=64k"),
    "deletes": lambda files: files.one(",operation=delete"),
}


def drawn(seed: int, count: int, place: str) -> list[DrawnParameterFile]:
    """Return files; every kind comes before one comes again, a third of each round is apart."""
    kinds = [(kind, False) for kind in _RAW] + [(kind, True) for kind in _FILES]
    files: list[DrawnParameterFile] = []
    while len(files) < count:
        number = len(files)
        kind, on_files = kinds[number % len(kinds)]
        rng = random.Random(f"{seed} {number}")
        directory = f"{place}/{number:03d}"
        text = _FILES[kind](_Files(rng, directory)) if on_files else _RAW[kind](_Raw(rng, directory))
        apart = kind in APART or rng.random() < 1 / 4
        files.append(DrawnParameterFile(f"{number:03d}", kind, on_files, apart, text))
    return files
