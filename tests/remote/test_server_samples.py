"""Samples out of a served engine, what it holds, and what it says when its disk has too little room."""

from __future__ import annotations

import hashlib
import io
from contextlib import aclosing, closing
from pathlib import Path

import pytest
import pyzipper

from malbox_tui.engine.clock import SystemClock
from malbox_tui.model.actions import SampleTaken
from malbox_tui.model.commands import CancelTasks, CommandOutcome, PurgeSample
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import LOW_DISK, Offer, Refused, SubmissionOptions
from malbox_tui.model.upkeep import SampleForm, StoreFigures
from malbox_tui.remote.client import RemoteClient, SocketWay
from malbox_tui.remote.protocol import ActionPage, Health, Order
from tests.remote.rig import MAX_SAMPLE_BYTES, ServerRig, served

CONTENT = bytes(range(256)) * (MAX_SAMPLE_BYTES // 256)
SHA = hashlib.sha256(CONTENT).hexdigest()


def client_of(rig: ServerRig) -> RemoteClient:
    return RemoteClient(SocketWay(str(rig.socket)), SystemClock())


async def test_a_sample_comes_as_it_is_asked_for_and_that_is_logged(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker(malbox_origin="ana@laptop") as asker:
        await asker.upload("name=one", CONTENT)
        reply = await asker.get(f"/v1/samples/{SHA}/content?form=raw")
        assert (reply.status, reply.body) == (200, CONTENT)
        assert reply.headers["content-disposition"] == f'attachment; filename="{SHA}.bin"'
        zipped = (await asker.get(f"/v1/samples/{SHA}/content")).body
        with pyzipper.AESZipFile(io.BytesIO(zipped)) as archive:
            archive.setpassword(b"infected")
            assert archive.read(SHA) == CONTENT
        page = (await asker.get("/v1/actions")).as_a(ActionPage)
        assert [record.action for record in page.rows[:2]] == [
            SampleTaken(sha256=SHA, form=SampleForm.ZIP),
            SampleTaken(sha256=SHA, form=SampleForm.RAW),
        ]
        assert page.rows[0].origin.startswith("ana@laptop (process ")
        assert list(rig.folders.scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (f"/v1/samples/{'0' * 64}/content", (404, "not_found")),
        ("/v1/samples/abc/content", (400, "malformed")),
        (f"/v1/samples/{'A' * 64}/content", (400, "malformed")),
        (f"/v1/samples/..%2f..%2f{'0' * 58}/content", (404, "not_found")),
        (f"/v1/samples/{SHA}/content?form=exe", (400, "malformed")),
        (f"/v1/samples/{SHA}/content?form=zip&form=raw", (400, "malformed")),
    ],
)
async def test_what_is_no_sample_is_not_given_out(tmp_path: Path, target: str, problem: tuple[int, str]) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        assert (await asker.get(target)).problem == problem


async def test_who_may_only_look_gets_none(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker(malbox_read_only="1") as asker:
        assert (await asker.get(f"/v1/samples/{SHA}/content")).problem == (403, "read_only")


async def test_a_damaged_sample_is_told_before_the_first_byte(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        await asker.upload("name=one", CONTENT)
        (cart,) = rig.folders.quarantine.rglob("*.cart")
        cart.write_bytes(cart.read_bytes()[:200])
        assert (await asker.get(f"/v1/samples/{SHA}/content")).problem == (409, "damaged")


async def test_one_who_leaves_a_sample_half_read_leaves_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as rig:
        async with rig.asker() as asker:
            await asker.upload("name=one", CONTENT)
        with closing(client_of(rig)) as client:
            async with aclosing(client.content(SHA, SampleForm.RAW)) as chunks:
                assert await anext(chunks)
            assert b"".join([chunk async for chunk in client.content(SHA, SampleForm.RAW)]) == CONTENT
            with pytest.raises(MalboxError, match="holds no sample"):
                await anext(client.content("0" * 64, SampleForm.ZIP))
        assert list(rig.folders.scratch.iterdir()) == []


async def test_the_store_is_counted_and_a_purged_sample_is_out_of_it(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        await asker.upload("name=one", CONTENT)
        figures = (await asker.get("/v1/store")).as_a(StoreFigures)
        assert (figures.samples, figures.sample_bytes, figures.results) == (1, len(CONTENT), 0)
        refused = (await asker.post("/v1/commands", Order(action=PurgeSample(sha256=SHA)))).as_a(CommandOutcome)
        assert not refused.done
        assert "task 1 waits or runs" in refused.message
        await asker.post("/v1/commands", Order(action=CancelTasks(task_ids=(1,))))
        done = (await asker.post("/v1/commands", Order(action=PurgeSample(sha256=SHA)))).as_a(CommandOutcome)
        assert [target.task_id for target in done.targets] == [1]
        assert (await asker.get("/v1/store")).as_a(StoreFigures).samples == 0
        assert list(rig.folders.quarantine.rglob("*.cart")) == []
        metrics = (await asker.get("/metrics")).body.decode().splitlines()
        assert 'malbox_samples_removed_total{cause="purge"} 1' in metrics
        assert 'malbox_samples_removed_total{cause="age"} 0' in metrics
        assert 'malbox_tasks{state="canceled"} 0' in metrics


async def test_a_disk_below_its_floor_is_told_everywhere_and_takes_nothing_until_there_is_room(tmp_path: Path) -> None:
    async with served(tmp_path) as rig:
        rig.free_bytes[0] = 10
        async with rig.asker() as asker:
            assert (await asker.upload("name=one", CONTENT)).problem == (507, LOW_DISK)
        async with rig.asker() as asker:
            health = (await asker.get("/health")).as_a(Health)
            assert health.status == "low_disk"
            assert "retention.min_free_mb" in health.troubles[0]
            metrics = (await asker.get("/metrics")).body.decode().splitlines()
            assert {"malbox_disk_low 1", "malbox_disk_floor_bytes 1073741824", "malbox_paused 1"} <= set(metrics)
        with closing(client_of(rig)) as client:
            account = await client.submit(offers(), SubmissionOptions())
            assert [receipt.refusal.code for receipt in account.receipts if isinstance(receipt, Refused)] == [LOW_DISK] * 3
            rig.free_bytes[0] = 10 << 30
            assert len((await client.submit(offers(), SubmissionOptions())).accepted) == 3
            assert (await client.health()).status == "ok"


async def offers():  # type: ignore[no-untyped-def]
    async def content(of: bytes):  # type: ignore[no-untyped-def]
        yield of

    for name in (b"a", b"b", b"c"):
        yield Offer(SampleName(name), content(name))
