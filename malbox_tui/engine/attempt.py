"""One try at one task, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from malbox_tui.engine.attempt_time import AttemptTime
from malbox_tui.engine.batch import Batch
from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.engine.lifecycle import OwnedTask
from malbox_tui.engine.machine import MachineLease
from malbox_tui.model.launch import Launch
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.profile import Profile
from malbox_tui.model.report import Identification
from malbox_tui.model.task import Claim, Outcome, RequirementClass


@dataclass(slots=True)
class Attempt:
    """One try at one task. `token` ends it; `outcome` is None until it is decided. `lease` is the machine reserved for it, `launch` how
    its sample is started there, once that is known, `batch` the tasks that it shares its bench with.

    `owned` moves the task. `kept_out` maps plugins that the worker's group keeps out to the reason; `limits` bind the others.
    `handed_out_as`: what it was taken from the queue as; None: as it is stored. `profile`, once its sample is laid out, is the task's,
    and `identification` what is known of the kind of its content.
    """

    claim: Claim
    owned: OwnedTask
    token: CancelToken
    time: AttemptTime
    lease: MachineLease | None = None
    batch: Batch | None = None
    kept_out: Mapping[str, str] = field(default_factory=dict)
    limits: ResourceLimits = UNLIMITED
    outcome: Outcome | None = None
    launch: Launch | None = None
    handed_out_as: RequirementClass | None = None
    profile: Profile | None = None
    identification: Identification | None = None
