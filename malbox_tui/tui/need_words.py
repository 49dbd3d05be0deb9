"""What a waiting task asks for as one line of words that a person changes, and what comes of them."""

from __future__ import annotations

from malbox_tui.model.commands import ChangeTasks
from malbox_tui.model.task import Task

NAMES = ("type", "platform", "arch", "tags", "timeout")


def words_of(task: Task) -> str:
    """`type=dynamic platform=windows arch= tags=de,office timeout=300`."""
    return " ".join(f"{name}={value}" for name, value in _values(task).items())


def change_of(text: str, task: Task) -> ChangeTasks | None:
    """The change that the words ask for; None when they ask for nothing else than there is. Raises ValueError, with a sentence."""
    has, asked = _values(task), {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if name not in NAMES or not equals:
            raise ValueError(f"{word}: write {', '.join(f'{name}=' for name in NAMES)}, without blanks in what follows.")
        if name in asked:
            raise ValueError(f"{name}= stands there twice.")
        asked[name] = value
    changed = {name: value for name, value in asked.items() if value != has[name]}
    if not changed:
        return None
    if changed.get("type") == "":
        raise ValueError("type= needs a word behind it: static or dynamic.")
    tags = changed.get("tags")
    return ChangeTasks(
        task_ids=(task.id,),
        task_type=changed.get("type"),
        platform=changed.get("platform"),
        arch=changed.get("arch"),
        tags=None if tags is None else tuple(tag for tag in tags.split(",") if tag),
        timeout_s=_seconds(changed["timeout"]) if "timeout" in changed else None,
    )


def _values(task: Task) -> dict[str, str]:
    requires = task.requires
    values = (requires.task_type, requires.platform or "", requires.arch or "", ",".join(requires.tags), f"{task.timeout_s:g}")
    return dict(zip(NAMES, values, strict=True))


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"timeout={text}: write how many seconds, such as 120.") from None
