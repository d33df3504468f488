"""What README shows for Python runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def test_the_example_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    program = next(body for kind, body in blocks if kind == "" and "tile adder" in body)
    script = next(body for kind, body in blocks if kind == "python")
    (tmp_path / "adder.dfl").write_text(program, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(script, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert re.fullmatch(r"\[ 1\.  2\.  3\. .* 32\.\] \d+\n", printed, re.DOTALL), printed
