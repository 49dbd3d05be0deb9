#!/usr/bin/env python3
"""Scans with YARA-X. The verdict follows from the metadata of the rules that matched: `classification`, `score` and `confidence`;
`technique` ("T1059.001 PowerShell") and `description` go to the report. A rule that says nothing is *suspicious*."""

import malbox_plugin_sdk as malbox
import yara_x
from matches import Match, matches_of, verdict_of
from ruleset import OWN_RULES, RuleSet

MAX_MATCHES_PER_PATTERN = 100
MAX_RULES_SHOWN = 200


class YaraX(malbox.Plugin):
    """Holds the compiled rules."""

    def on_start(self, config: dict[str, str]) -> None:
        self._rules = RuleSet()
        self._rules.add(OWN_RULES, "own")
        if config.get("rules"):
            self._rules.add_folder(config["rules"])
        self._scanner = yara_x.Scanner(self._rules.build())
        self._scanner.set_timeout(int(config.get("scan_timeout_s", "120")))
        self._scanner.max_matches_per_pattern(MAX_MATCHES_PER_PATTERN)

    def health_check(self) -> malbox.HealthStatus:
        problems = self._rules.problems
        return malbox.HealthStatus.Degraded("; ".join(problems)[:1000]) if problems else malbox.HealthStatus.Healthy()

    def on_task(self, ctx: malbox.Context) -> None:
        matches = matches_of(self._scanner.scan_file(str(ctx.task().sample_path)))
        ctx.results().push(malbox.PluginResult.json("matches", [match.to_json() for match in matches[:MAX_RULES_SHOWN]]))
        ctx.results().push(report(matches, self._rules))


def report(matches: list[Match], rules: RuleSet) -> malbox.PluginResult:
    """The report; without a match there is no verdict, for no rule says that a sample is clean."""
    builder = malbox.ReportBuilder("yara-x", "0.1.0").display_name("YARA-X")
    blocks = []
    if matches:
        builder.verdict(*verdict_of(matches))
        builder.labels([match.rule for match in matches[:MAX_RULES_SHOWN]])
        builder.summary(f"{len(matches)} rule{'s' if len(matches) > 1 else ''} matched: {', '.join(m.rule for m in matches[:5])}")
        blocks.append(_table(matches[:MAX_RULES_SHOWN]))
        for technique in dict.fromkeys(match.technique for match in matches if match.technique):
            builder.ttp(technique)
    else:
        builder.summary(f"None of {rules.files} rule files matched")
    blocks += [malbox.Block.callout("warn", problem) for problem in rules.problems[:50]]
    builder.section("matches", "Matches", blocks or [malbox.Block.markdown("No rule matched.")])
    return builder.build()


def _table(matches: list[Match]) -> malbox.Block:
    columns = [malbox.Column(key, label) for key, label in (("rule", "Rule"), ("file", "Rule file"), ("why", "Description"))]
    columns.append(malbox.Column("where", "Where", "string"))
    rows = [{"rule": match.rule, "file": match.namespace, "why": match.description, "where": match.where} for match in matches]
    return malbox.Block.table(columns, rows, sortable=True, searchable=True)


if __name__ == "__main__":
    malbox.run(YaraX())
