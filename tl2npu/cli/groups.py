"""The help of commands with many options, in groups; a command that has few of them shows one list."""

from __future__ import annotations

import click

GROUPS = {
    "Output": "diff check output partial notes explain unsafe allow_dirty keep_expert fixed_core "
    "self_check pass_config_policy watch",
    "Passes": "print_after print_all bisect",
    "Target": "target grid2d threads rows_per_block tuned fp8 device ascend_version compare",
    "Execution": "verify verify_timeout backend generator platform python device_id repeat sanitize time max_elements "
    "arithmetic",
    "Inputs": "calls case seed inputs symbols shrink script_args reference",
    "Comparison": "rtol atol standard golden check_new",
    "Files": "stdin_filename kernels include exclude force_exclude shard jobs timeout cache cache_dir",
    "Reports": "select ignore baseline write_baseline exit_zero style report color summary quiet table debug help",
}
"""Title -> names of parameters, in the order of the help."""


class Grouped(click.Command):
    """A command whose options stand in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every option once: below its group, or below the last one."""
        left = {
            parameter.name: record
            for parameter in self.get_params(ctx)
            if (record := parameter.get_help_record(ctx)) is not None
        }
        for title, names in GROUPS.items():
            records = [left.pop(name) for name in names.split() if name in left]
            records += left.values() if title == "Reports" else []
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
