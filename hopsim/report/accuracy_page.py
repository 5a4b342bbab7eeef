"""The page of accuracy and its picture: Markdown, and a scatter plot as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

from hopsim.report.accuracy import (
    Row,
    by_size,
    clear_kendall,
    counter_errors,
    figure_lines,
    figures,
    kendall,
    measured_again,
    regret,
    size_words,
)
from hopsim.report.quantities import grouped

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 640, 560, 76, 40, 44, 28
"""Of the plot, in pixels; left and right there is room for `10,000,000`."""
ALT = "Predicted against measured cycles"
COLOURS: Final = {"calibration": "#888888", "judging": "#1f6fb4"}
BAND: Final = 0.1
"""Errors that the plot shades."""


def page(rows: Sequence[Row], about: Sequence[str], picture: str) -> str:
    """Return the page.

    Args:
        about: paragraphs: where the numbers are from, and how to make the page again.
        picture: path of the plot, from the page.
    """
    parts = [
        "# Accuracy",
        "",
        "<!-- made by `hopsim compare --recorded --page`; do not edit -->",
        "",
    ]
    for one in about:
        parts += [one, ""]
    parts += told_earlier([row.is_earlier for row in rows])
    parts += [f"![{ALT}]({picture})", ""]
    for role in sorted({row.role for row in rows}):
        chosen = [row for row in rows if row.role == role]
        parts += [f"## {role.capitalize()} set", ""]
        parts += [f"- {line}" for line in figure_lines(figures(chosen))]
        parts += _again(chosen)
        parts += ["", *_sizes(chosen), *_counters(chosen), *_rows(chosen)]
    return "\n".join(parts).rstrip("\n") + "\n"


def told_earlier(are_earlier: Sequence[bool]) -> list[str]:
    """Return a paragraph that tells how many predictions are of an earlier model, if any."""
    count = sum(are_earlier)
    if not count:
        return []
    told = f"† {count} of these {len(are_earlier)} predictions are of an earlier model"
    return [f"{told}: to simulate all anew takes hours.", ""]


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return ["| " + " | ".join(line) + " |" for line in (head, rule, *lines)] + [""]


def _again(rows: Sequence[Row]) -> list[str]:
    """Return the figures of another device in the place of the predictions."""
    others = measured_again(rows)
    if not others:
        return []
    told = [f"- {line}" for line in figure_lines(figures(others))]
    return ["", "The same programs on another H100, in the place of the predictions:", "", *told]


def _tau(rows: Sequence[Row]) -> float:
    return kendall([row.measured for row in rows], [row.predicted or 0.0 for row in rows])


def _sizes(rows: Sequence[Row]) -> list[str]:
    lines: list[list[str]] = []
    for size, group in by_size(row for row in rows if row.predicted is not None).items():
        found, others = figures(group), measured_again(group)
        again = [f"{figures(others).mape:.1f} %", f"{_tau(others):.2f}"] if others else ["", ""]
        lines.append(
            [
                size_words(size), str(len(group)), f"{found.mape:.1f} %", f"{found.bias:+.1f} %",
                f"{found.worst.error:+.1f} %" if found.worst else "", f"{_tau(group):.2f}",
                f"{clear_kendall(group):.2f}", f"{regret(group):.1f} %", *again,
            ]
        )  # fmt: skip
    head = (
        "M x N x K",
        "kernels",
        "MAPE",
        "mean error",
        "worst",
        "Kendall",
        "of clear pairs",
        "regret",
        "another H100: MAPE",
        "Kendall",
    )
    return _table(head, lines)


def _counters(rows: Sequence[Row]) -> list[str]:
    lines = [
        [words, str(count), f"{size:.1f} %", f"{bias:+.1f} %"]
        for words, count, size, bias in counter_errors(rows)
    ]
    head = ("counter, against Nsight Compute's", "cases", "mean absolute error", "mean error")
    return _table(head, lines) if lines else []


def _rows(rows: Sequence[Row]) -> list[str]:
    lines: list[list[str]] = []
    for row in sorted(rows, key=lambda row: (row.program, math.prod(row.size))):
        spread = "" if row.spread is None else f"{100 * row.spread:.1f} %"
        if row.predicted is None:
            told = ["-", grouped(row.measured), row.note, spread]
        else:
            told = [row.predicted_words, grouped(row.measured), f"{row.error:+.1f} %", spread]
        again = "" if row.again is None else f"{100 * (row.again / row.measured - 1):+.1f} %"
        lines.append([f"`{row.program}`", size_words(row.size), *told, again])
    head = (
        "kernel",
        "M x N x K",
        "predicted",
        "measured",
        "error",
        "spread of the measurement",
        "another H100",
    )
    return _table(head, lines)


def scatter(rows: Sequence[Row]) -> str:
    """Return an SVG: predicted against measured cycles, both on logarithmic axes, with a band of 10 %."""
    points = [row for row in rows if row.predicted]
    values = [value for row in points for value in (row.measured, row.predicted or 0.0)]
    low = 10 ** math.floor(math.log10(min(values, default=1e3)))
    high = 10 ** math.ceil(math.log10(max(values, default=1e6)))
    span = math.log10(high / low)
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM - TOP

    def x(value: float) -> float:
        return LEFT + width * math.log10(value / low) / span

    def y(value: float) -> float:
        return TOP + height * (1 - math.log10(value / low) / span)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="{ALT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    corners = [
        (low, low * (1 + BAND)), (high / (1 + BAND), high), (high, high), (high, high * (1 - BAND)),
        (low / (1 - BAND), low), (low, low),
    ]  # fmt: skip
    band = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in corners)
    out.append(f'<polygon points="{band}" fill="#e4eef7"/>')
    for exponent in range(round(math.log10(low)), round(math.log10(high)) + 1):
        tick = 10.0**exponent
        out += [
            f'<line x1="{x(tick):.1f}" y1="{TOP}" x2="{x(tick):.1f}" y2="{TOP + height}" stroke="#ddd"/>',
            f'<line x1="{LEFT}" y1="{y(tick):.1f}" x2="{LEFT + width}" y2="{y(tick):.1f}" stroke="#ddd"/>',
            f'<text x="{x(tick):.1f}" y="{TOP + height + 16}" text-anchor="middle">{grouped(tick)}</text>',
            f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{grouped(tick)}</text>',
        ]
    out.append(
        f'<line x1="{x(low):.1f}" y1="{y(low):.1f}" x2="{x(high):.1f}" y2="{y(high):.1f}" stroke="#666"/>'
    )
    for row in points:
        title = f"{row.program}, {size_words(row.size)}: {row.error:+.1f} %"
        out.append(
            f'<circle cx="{x(row.measured):.1f}" cy="{y(row.predicted or low):.1f}" r="3.5" fill-opacity="0.65" '
            f'fill="{COLOURS.get(row.role, "#000000")}"><title>{escape(title)}</title></circle>'
        )
    for number, (role, colour) in enumerate(COLOURS.items()):
        top = TOP + 18 + 18 * number
        out += [
            f'<circle cx="{LEFT + 14}" cy="{top - 4}" r="4" fill="{colour}"/>',
            f'<text x="{LEFT + 24}" y="{top}">{role}</text>',
        ]
    out += [
        f'<text x="{LEFT + width / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">measured cycles, H100 SXM</text>',
        f'<text x="{LEFT}" y="16">predicted cycles (band: 10 %)</text>',
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def html(rows: Sequence[Row]) -> str:
    """Return a page with the plot alone."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{ALT}</title></head><body>\n{scatter(rows)}</body></html>\n"
    )
