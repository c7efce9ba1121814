"""Rule `unit_mixup`: IOPS, bandwidth and block size differ by the factor between two units.

MB and MiB differ by 4.9 %, GB and GiB by 7.4 %, bits and bytes by 8: where three numbers that
belong together are apart by just such a factor, one of them has the wrong unit. Only what a source
printed itself is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loadstone.audit.rule import Answer, Clear, Finding, NotMine, Rule, cannot_tell
from loadstone.messages import say
from loadstone.path import quantity

if TYPE_CHECKING:
    from loadstone.audit.case import Case

FACTORS: Final = (
    (1.024, "kB against KiB"),
    (1.024**2, "MB against MiB"),
    (1.024**3, "GB against GiB"),
    (1.024**4, "TB against TiB"),
    (8.0, "bits against bytes"),
    (1000.0, "a prefix too much"),
    (1024.0, "a prefix too much"),
)
COUNTED: Final = ("bundle", "fio", "diskspd")
"""Both numbers come from the same counters there: they cannot be of two units."""
ROUNDED: Final = 0.015
"""Printed numbers of three digits agree within this."""
FITS: Final = 0.006


def _judge(case: Case) -> Answer:
    if case.source in COUNTED:
        return NotMine()
    slip = _sheet(case)
    agrees = _agreement(case)
    if agrees is None:
        return slip or cannot_tell("audit.unit_mixup.printed")
    if isinstance(agrees, Finding):
        return (agrees, *slip)
    return slip or Clear()


def _agreement(case: Case) -> Finding | bool | None:
    printed = case.printed
    sizes = {size for job in case.jobs for size in job.block_bytes}
    total = case.total
    if not printed.iops or not printed.bandwidth or len(sizes) != 1:
        return None
    if total.iops is None or total.bandwidth is None or not total.iops.value or not total.bandwidth.value:
        return None
    block = sizes.pop()
    ratio = total.bandwidth.value / (total.iops.value * block)
    if abs(ratio - 1) <= ROUNDED:
        return True
    apart = max(ratio, 1 / ratio)
    name = next((name for factor, name in FACTORS if abs(apart / factor - 1) <= FITS), None)
    if name is None:
        return True
    return Finding(
        effect="not_valid" if apart > 2 else "suspect",
        confidence=0.85 if apart > 2 else 0.7,
        text=(
            say(
                "audit.unit_mixup.slip.text",
                total_iops=total.iops.value,
                block_bytes=block,
                computed_si_bytes_per_s=total.iops.value * block,
                printed_si_bytes_per_s=total.bandwidth.value,
                factor=f"{apart:.3g}",
                units=name,
            )
        ),
        evidence={
            "iops": total.iops.value,
            "block_bytes": block,
            "printed_bytes_per_s": total.bandwidth.value,
            "worked_out_bytes_per_s": total.iops.value * block,
            "apart_factor": apart,
        },
        advice=say("audit.unit_mixup.slip.advice"),
    )


def _sheet(case: Case) -> tuple[Finding, ...]:
    """Tell a bandwidth printed in MiB/s that stands beside a data sheet in MB/s."""
    printed = [text for text in case.printed.bandwidth if isinstance(text, str)]
    specified = [
        ceiling
        for ceiling in (case.declared.ceilings if case.declared else ())
        if ceiling.kind == "specified" and ceiling.quantity == "bytes_per_s" and ceiling.op in case.ops
    ]
    if len(printed) != 1 or "iB" not in quantity.unit(printed[0]) or not specified:
        return ()
    value, per_s = quantity.bandwidth_bytes_per_s(printed[0]), specified[0].per_s
    slipped = value / (1024 / 1000) ** _power(quantity.unit(printed[0]))
    return (
        Finding(
            effect="note",
            confidence=0.9,
            text=(
                say(
                    "audit.unit_mixup.sheet.text",
                    printed=printed[0],
                    printed_si_bytes_per_s=value,
                    true_percent=100 * value / per_s,
                    sheet_si_bytes_per_s=per_s,
                    slipped=printed[0].replace("iB", "B"),
                    slipped_percent=100 * slipped / per_s,
                )
            ),
            evidence={
                "printed": printed[0],
                "printed_bytes_per_s": value,
                "data_sheet_bytes_per_s": per_s,
                "of_the_data_sheet_percent": 100 * value / per_s,
                "with_the_units_mixed_up_percent": 100 * slipped / per_s,
            },
            advice=say("audit.unit_mixup.sheet.advice"),
        ),
    )


def _power(unit: str) -> int:
    return {"K": 1, "M": 2, "G": 3, "T": 4}.get(unit[:1], 2)


RULE: Final = Rule(
    name="unit_mixup",
    asks="Do IOPS, bandwidth and block size agree in their units?",
    basis="MB/MiB 4.9 %, GB/GiB 7.4 %, bits/bytes 8: a difference of just that size is a slip of units",
    judge=_judge,
)
