"""``dflowc conform`` of the package on the example that README shows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from conftest import tool

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_example_passes(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = tool(
        "dflowc", "conform", str(EXAMPLES), "--python", sys.executable, "--json", str(report)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(report.read_text())["results"]
    assert [(row["program"], row["target"]) for row in results] == [
        ("axpy", "wse2"),
        ("axpy", "wse3"),
    ]
    assert all(row["verdict"] == "pass" and row["cycles"] > 0 for row in results)
    assert not (EXAMPLES / "axpy/out").exists()
