"""A Celery broker of plain files, for one machine without Redis.

kombu's own filesystem transport writes a message under its final name, so a reader can take half of it. It removes
a message when it is taken, so the message is lost if the worker is killed. Here a complete message is renamed into
place, and stays in `taken/` until it is acknowledged:

    <folder>/writing/<name>          not complete yet
    <folder>/queues/<queue>/<name>   waiting; names sort by the time of sending
    <folder>/taken/<queue>/<name>    with a consumer; `return_taken` puts them back after a crash

A rename inside one file system is atomic, and exactly one of several readers succeeds.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import virtual

PATIENCE = 0.3  # seconds of waiting for a message

Payload = dict[str, Any]


class QoS(virtual.QoS):
    """Quality of service that removes the file of a message after its acknowledgement or rejection."""

    def ack(self, delivery_tag: str) -> None:
        super().ack(delivery_tag)
        self.channel.forget(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        super().reject(delivery_tag, requeue=requeue)
        self.channel.forget(delivery_tag)


class Channel(virtual.Channel):
    """A channel of one consumer or producer to the folder in the transport option `folder`."""

    QoS = QoS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.folder = Path(self.connection.client.transport_options["folder"])
        self._files: dict[str, Path] = {}
        self._without_ack: set[str] = set()

    def basic_consume(self, queue: str, no_ack: bool, *args: Any, **kwargs: Any) -> None:
        if no_ack:
            self._without_ack.add(queue)
        super().basic_consume(queue, no_ack, *args, **kwargs)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        message = super().basic_get(queue, no_ack=no_ack, **kwargs)
        if message is not None and no_ack:
            self.forget(message.delivery_tag)
        return message

    def forget(self, delivery_tag: str) -> None:
        """Remove the file of a message that must not be delivered again."""
        if (file := self._files.pop(delivery_tag, None)) is not None:
            file.unlink(missing_ok=True)

    def _put(self, queue: str, message: Payload, **_: Any) -> None:
        write_message(self.folder, queue, message)

    def _get(self, queue: str, timeout: float | None = None) -> Payload:
        taken = _make_folder(self.folder / "taken" / queue)
        for name in _list_names(self.folder / "queues" / queue):
            try:
                (self.folder / "queues" / queue / name).rename(taken / name)
            except FileNotFoundError:
                continue  # another reader was faster
            payload: Payload = json.loads((taken / name).read_text(encoding="utf-8"))
            tag = payload["properties"]["delivery_tag"]
            self._files[tag] = taken / name
            if queue in self._without_ack:
                self.forget(tag)
            return payload
        raise Empty

    def _restore(self, message: Any) -> None:
        """Put a message back. The base class copies it; the copy comes first, so that nothing can be lost."""
        # Celery gives up on a job that lost its worker twice; it reads this flag.
        message.properties["delivery_info"]["redelivered"] = True
        super()._restore(message)
        self.forget(message.delivery_tag)

    def _size(self, queue: str) -> int:
        return len(_list_names(self.folder / "queues" / queue))

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        for place in ("queues", "taken"):
            shutil.rmtree(self.folder / place / queue, ignore_errors=True)

    def _purge(self, queue: str) -> int:
        names = _list_names(self.folder / "queues" / queue)
        for name in names:
            (self.folder / "queues" / queue / name).unlink(missing_ok=True)
        return len(names)


class Transport(virtual.Transport):
    """Named by the setting CELERY_BROKER_TRANSPORT."""

    Channel = Channel
    # Bindings are declared once per process and must outlive a connection.
    global_state = virtual.BrokerState()
    driver_type = "filesystem"
    driver_name = "files"

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.state = self.global_state

    def drain_events(self, connection: Any, timeout: float | None = None, **kwargs: Any) -> None:
        """Return after at most `PATIENCE`: a Celery worker checks between two calls whether it was asked to stop."""
        patience = None if timeout is None else min(timeout, PATIENCE)
        super().drain_events(connection, timeout=patience, **kwargs)

    def driver_version(self) -> str:
        return "1"


def write_message(folder: Path, queue: str, payload: Payload) -> None:
    """Append one message to a queue; it becomes visible when all of it is on the disk."""
    name = f"{time.time_ns():020d}_{payload['properties']['delivery_tag']}.json"
    part = _make_folder(folder / "writing") / name
    with part.open("w", encoding="utf-8") as stream:
        json.dump(payload, stream)
        stream.flush()
        os.fsync(stream.fileno())
    part.rename(_make_folder(folder / "queues" / queue) / name)


def return_taken(folder: Path) -> int:
    """Return unacknowledged messages to their queues, and their number. Call it only while no consumer runs."""
    files = sorted((folder / "taken").glob("*/*.json"))
    for file in files:
        payload: Payload = json.loads(file.read_text(encoding="utf-8"))
        payload["properties"]["delivery_info"]["redelivered"] = True
        write_message(folder, file.parent.name, payload)
        file.unlink()
    return len(files)


def _make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _list_names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names only, many times a second
    except FileNotFoundError:
        return []
