"""The demo prints its table in 80 columns and saves its plot."""

from __future__ import annotations

import flipcert.demo


def test_demo(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    flipcert.demo.main(str(tmp_path))
    printed = capsys.readouterr().out
    for word in ("SVM", "ridge, 10 parts", "ridge, 50 parts", "accuracy", "white-box", "@50", "exact"):
        assert word in printed
    assert "…" not in printed
    assert (tmp_path / "certified-accuracy.png").read_bytes().startswith(b"\x89PNG")
