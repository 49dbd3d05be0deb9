"""Plans: who waits for whom, and what can't be planned is refused with names."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malbox_tui.model.plan import Execution, Plan, PlanFault, PlannedPlugin, plan_of

UNPACKER = PlannedPlugin(name="unpacker", gives=("unpacked",))
SCANNER = PlannedPlugin(name="scanner", needs=("unpacked",))


def waits(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {step.plugin: step.after for step in plan.steps}


def fault(*plugins: PlannedPlugin) -> PlanFault:
    with pytest.raises(PlanFault) as caught:
        plan_of(plugins)
    return caught.value


def test_without_needs_all_begin_at_once() -> None:
    assert waits(plan_of([PlannedPlugin(name="b"), PlannedPlugin(name="a")])) == {"a": (), "b": ()}


def test_who_needs_a_result_waits_for_who_gives_it() -> None:
    plan = plan_of([SCANNER, UNPACKER])
    assert waits(plan) == {"unpacker": (), "scanner": ("unpacker",)}
    assert plan.step("scanner").needs == {"unpacked": "unpacker"}
    assert str(plan.step("scanner")) == "with unpacked of unpacker, after unpacker"


def test_who_is_for_certain_kinds_waits_for_who_tells_kinds() -> None:
    plan = plan_of([PlannedPlugin(name="pe", kinds=("pe",)), PlannedPlugin(name="types")], identifying="types")
    assert waits(plan) == {"types": (), "pe": ("types",)}
    assert str(plan.step("pe")) == "for pe only, after types"
    assert waits(plan_of([PlannedPlugin(name="pe", kinds=("pe",))], identifying="types")) == {"pe": ()}


def test_sequential_ones_run_one_at_a_time_after_the_parallel_ones_and_nobody_waits_for_unrestricted_ones() -> None:
    plan = plan_of(
        [
            PlannedPlugin(name="s2", execution=Execution.SEQUENTIAL),
            PlannedPlugin(name="s1", execution=Execution.SEQUENTIAL),
            PlannedPlugin(name="p"),
            PlannedPlugin(name="u", execution=Execution.UNRESTRICTED),
            PlannedPlugin(name="x", execution=Execution.EXCLUSIVE),
        ]
    )
    assert waits(plan) == {"p": (), "u": (), "x": (), "s1": ("p",), "s2": ("p", "s1")}
    assert str(plan.step("x")) == "at once, alone"


def test_a_sequential_one_does_not_wait_for_a_parallel_one_that_waits_for_it() -> None:
    plan = plan_of(
        [
            PlannedPlugin(name="s1", execution=Execution.SEQUENTIAL),
            PlannedPlugin(name="s2", execution=Execution.SEQUENTIAL, gives=("thing",)),
            PlannedPlugin(name="p", needs=("thing",)),
            PlannedPlugin(name="q"),
        ]
    )
    assert waits(plan) == {"q": (), "s1": ("q",), "s2": ("q", "s1"), "p": ("s2",)}


def test_a_need_that_nobody_gives_is_refused_with_its_name() -> None:
    refused = fault(SCANNER, PlannedPlugin(name="other", gives=("strings",)))
    assert (refused.plugin, refused.key) == ("scanner", "needs")
    assert refused.problem == "no plugin that takes part gives 'unpacked'; there is strings"


def test_two_that_give_one_thing_are_refused_with_their_names() -> None:
    refused = fault(UNPACKER, PlannedPlugin(name="other", gives=("unpacked",)))
    assert (refused.plugin, refused.key) == ("other", "gives")
    assert refused.problem == "'unpacked' is given by unpacker too; disable all but one"


@pytest.mark.parametrize("length", [1, 2, 3, 50])
def test_a_circle_is_refused_with_all_of_its_names(length: int) -> None:
    names = [f"p{number:02}" for number in range(length)]
    circle = [
        PlannedPlugin(name=name, gives=(f"of-{name}",), needs=(f"of-{names[index - 1]}",)) for index, name in enumerate(names)
    ]
    outside = [PlannedPlugin(name="a", needs=(f"of-{names[0]}",)), PlannedPlugin(name="z")]
    refused = fault(*circle, *outside)
    assert refused.plugin == "p00"
    assert refused.problem.startswith("plugins wait for each other in a circle: p00 → ")
    assert sorted(refused.problem.partition(": ")[2].split(" → ")) == sorted([*names, "p00"])


def test_a_kind_can_be_part_of_a_circle() -> None:
    with pytest.raises(PlanFault, match="pe → types → pe"):
        plan_of(
            [
                PlannedPlugin(name="types", needs=("hint",)),
                PlannedPlugin(name="pe", gives=("hint",), kinds=("pe",)),
            ],
            identifying="types",
        )


def test_what_a_plugin_waits_for_is_needed_by_it() -> None:
    plan = plan_of(
        [
            UNPACKER,
            PlannedPlugin(name="scanner", needs=("unpacked",), gives=("matches",), kinds=("pe",)),
            PlannedPlugin(name="judge", needs=("matches",)),
            PlannedPlugin(name="types"),
            PlannedPlugin(name="aside"),
        ],
        identifying="types",
    )
    assert plan.needed_by(["judge", "not there"]) == {"judge", "scanner", "unpacker", "types"}
    assert plan.needed_by([]) == frozenset()


@st.composite
def plugins_without_circle(draw: st.DrawFn) -> list[PlannedPlugin]:
    count = draw(st.integers(1, 9))
    return draw(
        st.permutations(
            [
                PlannedPlugin(
                    name=f"p{number}",
                    execution=draw(st.sampled_from(Execution)),
                    gives=(f"of-{number}",),
                    needs=tuple(f"of-{other}" for other in (draw(st.sets(st.integers(0, number - 1))) if number else ())),
                    kinds=("pe",) if number and draw(st.booleans()) else (),
                )
                for number in range(count)
            ]
        )
    )


@given(plugins_without_circle())
def test_every_plan_comes_to_an_end_and_keeps_sequential_ones_apart(plugins: list[PlannedPlugin]) -> None:
    plan = plan_of(plugins, identifying="p0")
    before: dict[str, set[str]] = {}
    for step in plan.steps:
        assert set(step.after) <= before.keys()
        assert set(step.needs.values()) <= set(step.after)
        before[step.plugin] = {*step.after, *(name for other in step.after for name in before[other])}
    assert len(plan.steps) == len(plugins)
    in_turn = [step.plugin for step in plan.steps if step.execution is Execution.SEQUENTIAL]
    for name, following in pairwise(in_turn):
        assert name in before[following]
