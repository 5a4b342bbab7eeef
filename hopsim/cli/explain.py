"""`hopsim explain HS101`: a rule of the hazard checker in plain words, with a program that breaks it."""

from __future__ import annotations

from typing import Annotated

import typer

from hopsim.cli.options import JsonOption


def explain(
    rule: Annotated[
        str | None, typer.Argument(metavar="HSnnn|NAME", help="A rule; without one, list them.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Explain a rule: what is wrong, why, how to mend it, with a wrong and a mended program."""
    from hopsim.cli.output import Output
    from hopsim.errors import ConfigError
    from hopsim.hazards.rules import RULES
    from hopsim.report.explain import rule_content, rule_list, rule_page
    from hopsim.zoo.silicon import read_recording

    output = Output(json_file)
    if rule is None:
        output.show(rule_list(RULES.values()))
        content = [rule_content(one) for one in RULES.values()]
        output.finish({"command": "explain", "rules": content}, 0)
        return
    by_name = {one.name: one for one in RULES.values()}
    found = RULES.get(rule.upper()) or by_name.get(rule.lower())
    if found is None:
        near = [one.id for one in RULES.values() if rule.lower() in one.name]
        raise ConfigError(
            f"there is no rule {rule!r}",
            where="hopsim explain",
            hint=", ".join(near) if near else "hopsim explain lists them",
        )
    output.show(rule_page(found, read_recording()))
    output.finish({"command": "explain", "rules": [rule_content(found)]}, 0)
