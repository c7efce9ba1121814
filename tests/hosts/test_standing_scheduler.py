"""What ends the agents of a coordinator on a Dask scheduler that outlives it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("distributed", reason="the extra `hosts` is not installed")
from loadstone.hosts.dask_worker import CoordinatorIsThere, HostAgent, plugin_of


def removed_after(gone: str, *, known: bool = True) -> list[str]:
    """Let a client be gone; return which plugins of workers and of the scheduler are taken away."""
    removed: list[str] = []

    async def unregister(*, comm: None, name: str) -> None:
        _ = comm
        removed.append(f"worker's {name}")

    async def lose() -> None:
        mine = CoordinatorIsThere("client-1")
        scheduler = SimpleNamespace(
            worker_plugins={mine.name: b""} if known else {},
            unregister_worker_plugin=unregister,
            remove_plugin=lambda name: removed.append(f"scheduler's {name}"),
        )
        mine.remove_client(scheduler, gone)
        await asyncio.sleep(0.01)

    asyncio.run(lose())
    return removed


def test_only_the_end_of_its_own_coordinator_takes_an_agent_away() -> None:
    name = plugin_of("client-1")
    assert removed_after("client-1") == [f"worker's {name}", f"scheduler's {name}"]
    assert removed_after("client-2") == []


def test_a_coordinator_that_left_in_order_has_no_agents_any_more() -> None:
    assert removed_after("client-1", known=False) == [f"scheduler's {plugin_of('client-1')}"]


def test_an_order_to_an_agent_that_is_gone_is_a_loss() -> None:
    """It may have gone before anybody listened: the coordinator waited for its answer in vain."""

    async def lose() -> None:
        told: list[dict[str, object]] = []
        worker = SimpleNamespace(name="h2", log_event=lambda _, event: told.append(event["message"]))
        agent = HostAgent("client-1", straight=False)
        await agent.setup(worker)
        assert agent._process is not None
        agent._process.kill()
        await agent._process.wait()
        with pytest.raises(ConnectionError):
            await agent.tell({"do": "hello"})
        assert agent._reading is not None
        await agent._reading
        assert told[-1]["type"] == "lost"
        await agent.teardown(worker)

    asyncio.run(lose())
