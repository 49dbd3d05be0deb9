"""The console. It knows a `Client` and nothing behind it.

News comes in through `feed.py`, becomes `live.py`'s picture of the moment, is turned into cells by `columns.py`, and is drawn by
`widgets/`. What a key does is said once, in `keys.py`.
"""
