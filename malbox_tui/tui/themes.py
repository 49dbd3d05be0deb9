"""The console's two themes: calm, with contrast enough for eight hours."""

from __future__ import annotations

from textual.theme import Theme

DARK = "malbox-dark"
LIGHT = "malbox-light"

THEMES = (
    Theme(
        name=DARK,
        primary="#5f9fff",
        secondary="#8fb4d9",
        accent="#8fb4d9",
        warning="#d7a75f",
        error="#e0706c",
        success="#79b77c",
        foreground="#d0d5db",
        background="#101418",
        surface="#171c22",
        panel="#2c343d",
        dark=True,
        variables={"footer-key-foreground": "#8fb4d9", "footer-background": "#101418", "input-cursor-background": "#d0d5db"},
    ),
    Theme(
        name=LIGHT,
        primary="#1557b0",
        secondary="#2b5d8f",
        accent="#2b5d8f",
        warning="#94600a",
        error="#b3261e",
        success="#2d7a32",
        foreground="#20262d",
        background="#fbfbf9",
        surface="#f1f1ec",
        panel="#cfd3d8",
        dark=False,
        variables={"footer-key-foreground": "#2b5d8f", "footer-background": "#fbfbf9"},
    ),
)
