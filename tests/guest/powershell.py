"""Scripts of PowerShell taken apart, and command lines as Windows reads them: what is sent to Windows guests is checked by these here,
where nothing runs it."""

from __future__ import annotations

QUOTES = "'\u2018\u2019\u201a\u201b"
"""All of these begin and end a literal (about_Quoting_Rules), and two of them in one are one."""


def taken_apart(script: str) -> tuple[str, list[str]]:
    """A script with `?` in the place of each literal in single quotes, and these literals. It has to end outside of any."""
    skeleton, literals, at = "", [], 0
    while at < len(script):
        character = script[at]
        if character in QUOTES:
            literal, at = _literal(script, at + 1)
            literals.append(literal)
            skeleton += "?"
        elif character == '"':
            end = script.index('"', at + 1) + 1
            skeleton, at = skeleton + script[at:end], end
        else:
            skeleton, at = skeleton + character, at + 1
    return skeleton, literals


def is_balanced(skeleton: str) -> bool:
    """Whether each bracket of it is closed by its own kind."""
    closes, opened = {")": "(", "]": "[", "}": "{"}, []
    for character in skeleton:
        if character in closes.values():
            opened.append(character)
        elif character in closes and (not opened or opened.pop() != closes[character]):
            return False
    return not opened


def words_of(line: str) -> list[str]:
    """The arguments of a command line but for the program, as `CommandLineToArgvW` and the C runtime take them apart."""
    words: list[str] = []
    at = 0
    while True:
        while at < len(line) and line[at] in " \t":
            at += 1
        if at == len(line):
            return words
        word, at = _word(line, at)
        words.append(word)


def _literal(script: str, at: int) -> tuple[str, int]:
    literal = ""
    while True:
        character = script[at]
        if character in QUOTES:
            at += 1
            if at == len(script) or script[at] not in QUOTES:
                return literal, at
        literal += script[at]
        at += 1


def _word(line: str, at: int) -> tuple[str, int]:
    word, quoted = "", False
    while at < len(line) and (quoted or line[at] not in " \t"):
        backslashes = 0
        while at < len(line) and line[at] == "\\":
            backslashes, at = backslashes + 1, at + 1
        if at < len(line) and line[at] == '"':
            word += "\\" * (backslashes // 2)
            if backslashes % 2:
                word += '"'
            else:
                quoted = not quoted
            at += 1
        else:
            word += "\\" * backslashes
            if at < len(line) and not backslashes:
                word, at = word + line[at], at + 1
    return word, at
