"""The engine: a queue, workers that compete for its tasks, and the life of each task. `engine.py` is the front door.

The way of one task: `engine.submit` → `lifecycle.create` → `queue` → `worker_pool` wakes a `worker` → `lifecycle.claim` →
`executor` (one attempt) → `lifecycle.settle`. News comes back as events through `bus`.
"""
