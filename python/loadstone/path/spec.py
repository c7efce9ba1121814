"""What a data sheet says of the storage under test, and what follows from it for the whole.

Knows the file of `--spec` (docs/spec.md) and a model of arrays: every drive does its share, a small
write costs as many drive writes as the RAID level has it, a long one fills whole stripes. Knows no
measured number. What the file does not say is not known and gives no ceiling.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    model_validator,
)

from loadstone import input_file, toml_text
from loadstone.errors import InputError, Where
from loadstone.frozen_model import FrozenModel
from loadstone.messages import make_error
from loadstone.messages.suggest import nearest
from loadstone.path import quantity
from loadstone.path.ceilings import nearest_link, parse_link
from loadstone.path.layers import Ceiling, DataPath, Layer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRITES_PER_WRITE: Final = {"jbod": 1, "0": 1, "1": 2, "10": 2, "5": 4, "50": 4, "6": 6, "60": 6}
"""Drive I/Os for one small write: with parity, old data and parity are read before both are written."""
PARITY_DRIVES: Final = {"5": 1, "50": 1, "6": 2, "60": 2}
SMALL: Final = "4k"

Op = Literal["read", "write"]


def _quantity(read: Callable[[str], float]) -> BeforeValidator:
    def check(value: object) -> object:
        # A number is what a bundle keeps; a file has text, so that its unit is said.
        return read(value) if isinstance(value, str) else value

    return BeforeValidator(check)


def _link(text: str) -> str:
    if parse_link(text) is None:
        raise make_error(ValueError, "path.spec.link", found=repr(text[:40]), nearest=nearest_link(text))
    return text


Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]
Iops = Annotated[float, Field(gt=0, le=1e12)]
Bandwidth = Annotated[float, Field(gt=0), _quantity(quantity.bandwidth_bytes_per_s)]


class SpecFigures(FrozenModel):
    """Lines of a data sheet. IOPS are of random I/O of up to `block`, bandwidth is of sequential I/O."""

    read_iops: Iops | None = None
    write_iops: Iops | None = None
    read_bandwidth: Bandwidth | None = None
    write_bandwidth: Bandwidth | None = None
    block: Annotated[int, Field(gt=0), _quantity(quantity.block_bytes)] = quantity.block_bytes(SMALL)
    """Bytes. IOPS are printed for 4k where nothing else is said."""

    @property
    def any(self) -> bool:
        """Whether there is a figure at all."""
        return any((self.read_iops, self.write_iops, self.read_bandwidth, self.write_bandwidth))


class Spec(FrozenModel):
    """The file. `drive` is of one drive, `array` of the whole; where both speak the lower one holds."""

    format: Literal[1]
    name: str
    media: Literal["hdd", "ssd", "nvme", "memory"] | None = None
    drives: Count | None = None
    spindles: Count | None = None
    """Drives that hold data, spares left out; all of them where it is not said."""
    raid: Literal["jbod", "0", "1", "10", "5", "6", "50", "60"] | None = None
    group_drives: Count | None = None
    """Drives of one parity group; all of them where it is not said."""
    cache: Annotated[int, Field(gt=0), _quantity(quantity.size_bytes)] | None = None
    """Bytes of write cache in front of the drives."""
    capacity: Annotated[int, Field(gt=0), _quantity(quantity.size_bytes)] | None = None
    links: tuple[Annotated[str, AfterValidator(_link)], ...] = ()
    drive: SpecFigures = SpecFigures()
    array: SpecFigures = SpecFigures()

    @model_validator(mode="after")
    def _makes_sense(self) -> Spec:
        if self.spindles and self.drives and self.spindles > self.drives:
            raise make_error(ValueError, "path.spec.spindles", spindles=self.spindles, drives=self.drives)
        working, parity = self.working_drives, PARITY_DRIVES.get(self.raid or "", 0)
        if self.drive.any and working is None:
            raise make_error(ValueError, "path.spec.no_drives")
        if self.drive.any and self.raid is None and (working or 0) > 1:
            raise make_error(ValueError, "path.spec.no_raid", drives=working)
        if working and parity and not parity + 2 <= (self.group_drives or working) <= working:
            raise make_error(ValueError, "path.spec.group", raid=self.raid, least=parity + 2)
        if working and self.raid in {"1", "10"} and working % 2:
            raise make_error(ValueError, "path.spec.pairs", raid=self.raid, drives=working)
        if self.group_drives and not parity:
            raise make_error(ValueError, "path.spec.group_drives", raid=self.raid)
        if not (self.links or self.drive.any or self.array.any or self.cache):
            raise make_error(ValueError, "path.spec.nothing")
        return self

    @property
    def working_drives(self) -> int | None:
        """Drives that hold data."""
        return self.spindles or self.drives

    @property
    def rotational(self) -> bool | None:
        """Whether the media turn."""
        return None if self.media is None else self.media == "hdd"

    def link_ceilings(self) -> list[Ceiling]:
        """Return what each kind of link carries, all ports of it together."""
        return [ceiling for text in self.links if (ceiling := parse_link(text)) is not None]

    def bandwidth(self, op: Op) -> Ceiling | None:
        """Return what sequential I/O should reach."""
        return self._lower(
            self._stated(op, "bandwidth"), None if self.working_drives is None else self._streams(op)
        )

    def iops(self, op: Op) -> Ceiling | None:
        """Return what random I/O of up to `small_block_bytes` should reach."""
        return self._lower(self._stated(op, "iops"), self._small(op))

    def mixed_iops(self, read_share: float) -> Ceiling | None:
        """Return what random reads and writes together should reach, `read_share` of them reads."""
        reads, writes = self.iops("read"), self.iops("write")
        if reads is None or writes is None:
            return None
        # Every drive is busy all the time: the times for one I/O of each kind add up.
        value = 1 / (read_share / reads.per_s + (1 - read_share) / writes.per_s)
        source = f"{read_share * 100:.0f} % of {reads.source}; the rest of {writes.source}"
        return writes.model_copy(update={"op": "both", "per_s": value, "source": source})

    @property
    def small_block_bytes(self) -> int:
        """Up to which size of an I/O the figures in IOPS hold."""
        block_sizes = [one.block for one in (self.drive, self.array) if one.read_iops or one.write_iops]
        return min(block_sizes, default=quantity.block_bytes(SMALL))

    def layer(self) -> Layer:
        """Return it all as the lowest layer of a data path."""
        figures = [self.bandwidth("read"), self.bandwidth("write"), self.iops("read"), self.iops("write")]
        facts: dict[str, Any] = {
            "media": self.media,
            "drives": self.drives,
            "spindles": self.spindles,
            "raid": self.raid,
            "cache_bytes": self.cache,
            "capacity_bytes": self.capacity,
            "links": list(self.links) or None,
        }
        return Layer(
            name=self.name,
            kind="array",
            facts={name: value for name, value in facts.items() if value is not None},
            ceilings=(*self.link_ceilings(), *(one for one in figures if one is not None)),
        )

    def under(self, path: DataPath) -> DataPath:
        """Return a data path that ends in what the data sheet describes."""
        layer = self.layer()
        ends = [
            one.model_copy(update={"below": (layer.name,)})
            if not one.below and one.kind not in {"memory", "char"}
            else one
            for one in path.layers
        ]
        return path.model_copy(update={"layers": (*ends, layer)})

    def _stated(self, op: Op, what: Literal["iops", "bandwidth"]) -> Ceiling | None:
        value = getattr(self.array, f"{op}_{what}")
        source = f"data sheet of {self.name}"
        return None if value is None else self._specified(op, what, value, source)

    def _streams(self, op: Op) -> Ceiling | None:
        """All drives read; parity and mirrors take their part of whole stripes that are written."""
        one = getattr(self.drive, f"{op}_bandwidth")
        drives = self.working_drives or 1
        if one is None:
            return None
        useful: float = drives
        if op == "write" and self.raid in {"1", "10"}:
            useful = drives / 2
        elif op == "write" and self.raid in PARITY_DRIVES:
            group = self.group_drives or drives
            useful = drives * (group - PARITY_DRIVES[self.raid]) / group
        laid_out = f", raid {self.raid}: {useful:g} carry data" if useful != drives else ""
        source = f"{drives} x {one / 1e6:g} MB/s of the drives' data sheet{laid_out}"
        return self._specified(op, "bandwidth", one * useful, source)

    def _small(self, op: Op) -> Ceiling | None:
        one = getattr(self.drive, f"{op}_iops")
        if one is None or self.working_drives is None:
            return None
        each = WRITES_PER_WRITE[self.raid] if op == "write" and self.raid else 1
        source = f"{self.working_drives} x {one:,.0f} IOPS of the drives' data sheet"
        if each > 1:
            source += f", raid {self.raid}: {each} drive I/Os for a write"
        return self._specified(op, "iops", one * self.working_drives / each, source)

    def _specified(self, op: Op, what: Literal["iops", "bandwidth"], value: float, source: str) -> Ceiling:
        return Ceiling(
            quantity="iops" if what == "iops" else "bytes_per_s",
            op=op,
            per_s=value,
            kind="specified",
            source=source,
            access="random" if what == "iops" else "sequential",
            block_bytes_at_most=self.small_block_bytes if what == "iops" else None,
        )

    def _lower(self, *ceilings: Ceiling | None) -> Ceiling | None:
        return min((one for one in ceilings if one is not None), key=lambda one: one.per_s, default=None)


def read(path: Path) -> Spec:
    """Read and check a file. Raises `InputError` with line, key, what was found and what is near."""
    return parse(input_file.read(path, "data sheet"), path)


def parse(raw: bytes, path: Path) -> Spec:
    """Check the content of a file. Raises `InputError` as `read` does."""
    try:
        content = toml_text.decoded(raw)
        return Spec.model_validate(toml_text.parsed(content))
    except UnicodeDecodeError as error:
        raise make_error(InputError, "path.spec.not_text", where=Where(str(path))) from error
    except toml_text.TomlError as error:
        raise make_error(
            InputError, "path.spec.not_toml", where=Where(str(path), error.line), reason=str(error)
        ) from error
    except ValidationError as error:
        raise _explained(path, content, error) from error


def _explained(path: Path, content: str, error: ValidationError) -> InputError:
    first = error.errors(include_url=False)[0]
    loc = [str(part) for part in first["loc"]]
    tables = {"drive": SpecFigures, "array": SpecFigures}
    model = tables.get(loc[0], Spec) if len(loc) > 1 else Spec
    key = next((part for part in reversed(loc) if not part.isdecimal()), "")
    where = Where(
        str(path),
        _line(content, loc[0] if len(loc) > 1 and loc[0] in tables else "", key),
        ".".join(part for part in loc if not part.isdecimal()) or None,
    )
    if first["type"] == "extra_forbidden":
        hint = nearest(key, model.model_fields, limit=len(model.model_fields))
        return make_error(InputError, "path.spec.no_key", where=where, hint=hint)
    if first["type"] == "missing":
        return make_error(InputError, "path.spec.missing", where=where)
    return InputError(toml_text.wrong_value(first), where=where, hint=toml_text.near_choice(first))


def _line(content: str, table: str, key: str) -> int | None:
    """Find where a key stands, for an editor to go to; tomllib does not tell."""
    current_table = ""
    for number, line in enumerate(content.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*([\w.]+)", line)
        if header:
            current_table = header[1]
            if key == current_table:
                return number
        elif current_table == table and key and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return number
    return None
