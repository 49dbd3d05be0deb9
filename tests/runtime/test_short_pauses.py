"""What the garbage collector looks at while an engine runs."""

from __future__ import annotations

import gc

import pytest

from malbox_tui.runtime.short_pauses import short_pauses


def test_what_was_loaded_before_is_left_out_of_collections_until_the_end() -> None:
    loaded = [object()]
    before = gc.get_freeze_count()
    with pytest.raises(ZeroDivisionError), short_pauses():
        assert gc.get_freeze_count() > before
        assert not any(there is loaded for there in gc.get_objects())
        raise ZeroDivisionError
    assert gc.get_freeze_count() == 0
    assert any(there is loaded for there in gc.get_objects())
