"""Worker groups and machines in a file: each is taken whole or refused with everything that is wrong with it."""

from pathlib import Path

import pytest

from malbox_tui.model.machine import MachineSpec
from tests.config.files import faults, load

WINDOWS = '[[workers]]\nname = "win"\n'
BATCH = 'execution_mode = "Batch"\nmax_batch_size = 8\n'
MACHINE = '[[machines]]\nname = "m1"\nprovider = "simulated"\nplatform = "windows"\n'
LIBVIRT = 'name = "m1"\nprovider = "libvirt"\nplatform = "linux"\nuri = "qemu:///system"\nsnapshot = "clean"\n'


def test_a_group_needs_nothing_but_a_name(tmp_path: Path) -> None:
    assert [worker.name for worker in load(tmp_path, WINDOWS).workers] == ["win"]


def test_a_machine_becomes_what_the_engine_knows_of_it(tmp_path: Path) -> None:
    (machine,) = load(tmp_path, f'{MACHINE}arch = "x86"\ntags = ["office", "de"]\nmax_failures = 5\n').machines
    assert machine.spec() == MachineSpec(
        name="m1", provider="simulated", platform="windows", arch="x86", tags=("office", "de"), max_failures=5
    )


def test_a_machine_is_x64_and_may_fail_three_times_unless_it_says_otherwise(tmp_path: Path) -> None:
    (machine,) = load(tmp_path, MACHINE).machines
    assert machine.spec() == MachineSpec(name="m1", provider="simulated", platform="windows", arch="x64", max_failures=3)


def test_a_machine_of_libvirt_is_whole_with_where_it_is_and_its_snapshot(tmp_path: Path) -> None:
    (machine,) = load(tmp_path, f"[[machines]]\n{LIBVIRT}").machines
    assert machine.spec() == MachineSpec(
        name="m1", provider="libvirt", platform="linux", uri="qemu:///system", snapshot="clean", channel="qga"
    )
    assert machine.spec().domain_name == "m1"


def test_a_machine_of_libvirt_says_what_its_domain_and_its_guest_are_like(tmp_path: Path) -> None:
    more = (
        'domain = "Windows 10 (clean)"\nchannel = "qga"\naddress = "fd00::1"\nfolder = "/samples"\ndisk_folder = "/data"\n'
        'watch = ["/samples", "/home"]\ndisk_kib_s = 1024\nnetwork_kbps = 0\n'
    )
    (machine,) = load(tmp_path, f"[[machines]]\n{LIBVIRT}{more}").machines
    spec = machine.spec()
    assert (spec.domain_name, spec.channel, spec.address) == ("Windows 10 (clean)", "qga", "fd00::1")
    assert (spec.folder, spec.disk_folder, spec.watch) == ("/samples", "/data", ("/samples", "/home"))
    assert (spec.disk_kib_s, spec.network_kbps) == (1024, 0)


def test_a_windows_guest_has_windows_paths(tmp_path: Path) -> None:
    paths = "folder = 'C:\\samples'\nwatch = ['d:/drop']\n"
    (machine,) = load(tmp_path, f"[[machines]]\n{LIBVIRT.replace('linux', 'windows')}{paths}").machines
    assert (machine.folder, machine.watch) == ("C:\\samples", ("d:/drop",))


def test_what_holds_for_all_machines_has_a_section(tmp_path: Path) -> None:
    machinery = load(tmp_path, "[machinery]\nstart_timeout_s = 20\n").machinery
    assert (machinery.max_starting, machinery.start_timeout_s) == (2, 20.0)
    assert (machinery.probe_interval_s, machinery.max_attempts) == (300.0, 3)


def test_a_file_written_for_malbox_may_say_that_there_are_no_batches(tmp_path: Path) -> None:
    no_batches = 'execution_mode = "Single"\nbatch_processing = false\nmax_batch_size = 1\nbatch_timeout_ms = 500\n'
    assert load(tmp_path, f"{WINDOWS}{no_batches}[workers.resource_limits]\n").groups() == load(tmp_path, WINDOWS).groups()


def test_a_group_may_run_batches(tmp_path: Path) -> None:
    _, group = load(tmp_path, f"{WINDOWS}{BATCH}batch_timeout_ms = 250\nbatch_processing = true\n").groups()
    assert (group.batch_size, group.batch_wait_s, group.slots) == (8, 0.25, 1)


@pytest.mark.parametrize(
    ("content", "key", "problem"),
    [
        (
            'execution_mode = "Batch"',
            "max_batch_size",
            "1 is no batch. Set it to 2 or more",
        ),
        ('execution_mode = "single"', "execution_mode", "expected one of 'Single', 'Batch', got the string \"single\""),
        ("batch_processing = true", "batch_processing", 'true contradicts execution_mode, which is "Single"'),
        ("batch_processing = 0", "batch_processing", "expected true or false, got 0"),
        (f"{BATCH}batch_processing = false", "batch_processing", 'false contradicts execution_mode, which is "Batch"'),
        (f"{BATCH}max_concurrent_tasks = 2", "max_concurrent_tasks", "a worker in Batch mode runs one batch at a time"),
        ('execution_mode = "Batch"\nmax_batch_size = 257', "max_batch_size", "at least 1 and at most 256, got 257"),
        ("max_batch_size = 2", "max_batch_size", 'no effect without execution_mode = "Batch"'),
        ("batch_timeout_ms = 400", "batch_timeout_ms", 'no effect without execution_mode = "Batch"'),
        ("resource_limits = {memory_mb = 1}", "resource_limits.memory_mb", "at least 64 and at most 1048576, got 1"),
        ("resource_limits = {cpu_cores = 0}", "resource_limits.cpu_cores", "at least 0.1 and at most 1024, got 0"),
        ("resource_limits = {disk_mb = 0}", "resource_limits.disk_mb", "above 0 and at most 1048576, got 0"),
        (
            "resource_limits = {network_kbps = 100}",
            "resource_limits.network_kbps",
            "nothing but 0 (plugins on this host have no network; that of a machine is bounded by its own network_kbps), got 100",
        ),
        ("resource_limits = {memory_gb = 1}", "resource_limits.memory_gb", "Did you mean workers[0].resource_limits.memory_mb?"),
        ("resource_limits = 1", "resource_limits", "a table"),
        ("max_concurrent_tasks = 65", "max_concurrent_tasks", "at least 1 and at most 64, got 65"),
        ("priority = 256", "priority", "at least 0 and at most 255, got 256"),
        ("idle_timeout_ms = 0", "idle_timeout_ms", "at least 1"),
        ('compatible_platforms = ["Windows"]', "compatible_platforms[0]", "a lower-case name"),
        ("compatible_platforms = []", "compatible_platforms", "with which no task would fit. Leave the key out to take all."),
        ("compatible_tasks = []", "compatible_tasks", "Leave the key out to take all."),
        ('compatible_tasks = "static"', "compatible_tasks", "a list, each entry a lower-case name of letters"),
        ("max_worker = 1", "max_worker", "unknown key. Did you mean workers[0].max_workers?"),
        (
            "plugin_restrictions = {forbid = []}",
            "plugin_restrictions.forbid",
            "unknown key. Known here: allow, deny.",
        ),
        ("plugin_restrictions = {allow = [1]}", "plugin_restrictions.allow[0]", "a string, got 1"),
        (
            "min_workers = 3\nmax_workers = 2",
            "min_workers",
            "3 is above workers[0].max_workers, which is 2. Lower the one or raise the other.",
        ),
        ("min_workers = 5", "min_workers", "5 is above general.max_workers, which is 4."),
    ],
)
def test_a_fault_of_a_group_names_the_key_and_the_group(tmp_path: Path, content: str, key: str, problem: str) -> None:
    ((found_key, found),) = faults(tmp_path, f"{WINDOWS}{content}\n")
    assert found_key == f"workers[0].{key}"
    assert found.startswith("group win: ")
    assert problem in found


@pytest.mark.parametrize(
    ("content", "key", "problem"),
    [
        (
            'name = "m1"\nprovider = "xen"\nplatform = "a"',
            "provider",
            "expected one of 'libvirt', 'simulated', got the string \"xen\"",
        ),
        ('name = "m1"\nplatform = "a"', "provider", "missing. Expected one of 'libvirt', 'simulated'"),
        ('name = "m1"\nprovider = "simulated"', "platform", "missing."),
        ('name = "m1"\nprovider = "simulated"\nplatform = "a"\narch = "arm"', "arch", "one of 'x64', 'x86', 'arm64'"),
        ('name = "m1"\nprovider = "simulated"\nplatform = "a"\nmax_failures = 0', "max_failures", "at least 1 and at most 100"),
        ('name = "m1"\nprovider = "simulated"\nplatform = "a"\ntags = ["a b"]', "tags[0]", "a name of letters, digits"),
        ('name = "m1"\nprovider = "libvirt"\nplatform = "a"\nsnapshot = "s"', "uri", "missing. A libvirt machine needs it"),
        (
            'name = "m1"\nprovider = "libvirt"\nplatform = "a"\nuri = "qemu:///session"',
            "snapshot",
            "missing. A libvirt machine is reverted to it; `malbox-tui machines discover qemu:///session` lists those there are.",
        ),
        (LIBVIRT.replace("clean", "save:win.save"), "snapshot", '"save:" is followed by the absolute path of the image'),
        (f'{LIBVIRT}channel = "simulated"', "channel", 'reached by "qga", not by "simulated". Leave the key out.'),
        (f'{LIBVIRT}channel = "ssh"', "channel", "one of 'qga', 'simulated', got the string \"ssh\""),
        (f'{LIBVIRT}address = "10.0.0.256"', "address", '"10.0.0.256" is no IP address. Write one such as'),
        (f'{LIBVIRT}folder = "tmp"', "folder", '"tmp" is no absolute path of a linux guest. Write one such as /analysis.'),
        (f'{LIBVIRT}disk_folder = "C:\\\\x"', "disk_folder", "no absolute path of a linux guest"),
        (f'{LIBVIRT}watch = ["/tmp", "home"]', "watch[1]", '"home" is no absolute path'),
        (f'{LIBVIRT}domain = " a"', "domain", "doesn't begin with a space"),
        (f'{LIBVIRT}domain = ""', "domain", "a string on one line"),
        (f"{LIBVIRT}disk_kib_s = 0", "disk_kib_s", "above 0 and at most"),
        (f"{LIBVIRT}network_kbps = -1", "network_kbps", "at least 0 and at most"),
        (f'{LIBVIRT}snapshots = "x"', "snapshots", "unknown key. Did you mean machines[0].snapshot?"),
        (
            'name = "m1"\nprovider = "libvirt"\nplatform = "a"\nsnapshot = "s"\nuri = "system"',
            "uri",
            'a libvirt URI, such as "qemu:///system", got the string "system"',
        ),
        (
            'name = "m1"\nprovider = "simulated"\nplatform = "a"\nuri = "qemu:///system"',
            "uri",
            'a simulated machine has no use for it. Leave the key out, or set provider = "libvirt".',
        ),
        ('name = "m1"\nprovider = "simulated"\nplatform = "a"\nsnapshot = "s"', "snapshot", "has no use for it"),
        ('name = "m1"\nprovider = "simulated"\nplatform = "a"\nchannel = "qga"', "channel", 'reached by "simulated"'),
    ],
)
def test_a_fault_of_a_machine_names_the_key_and_the_machine(tmp_path: Path, content: str, key: str, problem: str) -> None:
    ((found_key, found),) = faults(tmp_path, f"[[machines]]\n{content}\n")
    assert found_key == f"machines[0].{key}"
    assert found.startswith("machine m1: ")
    assert problem in found


@pytest.mark.parametrize("name", ["", "a b", "-x", "..", "a/b", "ä", "a\\n", "\\u001b", "x" * 65])
def test_a_name_is_plain(tmp_path: Path, name: str) -> None:
    ((key, problem),) = faults(tmp_path, f'[[workers]]\nname = "{name}"\n')
    assert key == "workers[0].name"
    assert "expected a name of letters, digits, - _ . that begins with a letter or digit (at most 64)" in problem
    assert "\x1b" not in problem


def test_a_group_without_a_name_is_told_what_is_missing(tmp_path: Path) -> None:
    ((key, problem),) = faults(tmp_path, "[[workers]]\npriority = 1\n")
    assert key == "workers[0].name"
    assert problem.startswith("missing. Expected a name of letters")


def test_the_name_of_the_group_of_general_is_taken(tmp_path: Path) -> None:
    assert faults(tmp_path, '[[workers]]\nname = "default"\n') == [
        ("workers[0].name", 'group default: "default" is the group that [general] describes. Choose another name.')
    ]


def test_a_name_that_is_there_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    assert faults(tmp_path, f'{WINDOWS}[[workers]]\nname = "b"\n{WINDOWS}') == [
        ("workers[2].name", "group win: workers[0] already has this name. Choose another."),
    ]


def test_names_that_differ_in_case_are_two(tmp_path: Path) -> None:
    assert faults(tmp_path, f'{WINDOWS}[[workers]]\nname = "Win"\n') == []


def test_a_single_table_is_told_how_to_be_written(tmp_path: Path) -> None:
    assert faults(tmp_path, '[workers]\nname = "a"\n[machines.m1]\n') == [
        ("workers", "expected a list of tables, got a table. Write [[workers]], with double brackets, once for each group."),
        ("machines", "expected a list of tables, got a table. Write [[machines]], with double brackets, once for each machine."),
    ]


def test_an_entry_that_is_no_table_is_refused(tmp_path: Path) -> None:
    assert faults(tmp_path, "workers = [1, [2]]\n") == [
        ("workers[0]", "expected a table, got 1."),
        ("workers[1]", "expected a table, got a list."),
    ]


def test_wrong_values_of_one_group_hide_no_contradiction_of_another(tmp_path: Path) -> None:
    found = faults(tmp_path, f'{WINDOWS}priority = "x"\n[[workers]]\nname = "b"\nmin_workers = 2\nmax_workers = 1\n{WINDOWS}')
    assert [key for key, _ in found] == ["workers[0].priority", "workers[1].min_workers", "workers[2].name"]


def test_every_fault_of_a_group_is_found(tmp_path: Path) -> None:
    found = faults(
        tmp_path, f"{WINDOWS}max_worker = 3\nmax_batch_size = 0\n[workers.resource_limits]\ncpu_cores = -1\ndisk_mb = 0\n"
    )
    last = "resource_limits.cpu_cores", "resource_limits.disk_mb"
    assert [key for key, _ in found] == [f"workers[0].{key}" for key in ("max_worker", "max_batch_size", *last)]


def test_a_ceiling_that_cant_be_read_is_not_held_against_a_group(tmp_path: Path) -> None:
    found = faults(tmp_path, f'[general]\nmax_workers = "x"\n{WINDOWS}min_workers = 100\n')
    assert [key for key, _ in found] == ["general.max_workers"]
