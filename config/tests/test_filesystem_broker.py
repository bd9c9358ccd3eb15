"""The broker of files loses nothing, delivers nothing twice, and gives back what a killed worker held."""

import json
import multiprocessing
from pathlib import Path
from queue import Empty

import pytest
from kombu import Connection, Queue

from config.filesystem_broker import return_taken

QUEUE = Queue("probe", routing_key="probe")
# Real processes, each with its own connection, as web server and worker have.
PROCESSES = multiprocessing.get_context("spawn")


def connect(folder):
    options = {"folder": str(folder), "polling_interval": 0.01}
    return Connection(
        "filesystem://localhost//", transport="config.filesystem_broker:Transport", transport_options=options
    )


def send(folder, *bodies):
    with connect(folder) as connection:
        producer = connection.Producer()
        for body in bodies:
            producer.publish(body, exchange="", routing_key="probe", declare=[QUEUE])


def receive(channel):
    message = QUEUE(channel).get()
    return None if message is None else message


def send_many(folder, sender, count):
    send(folder, *[f"{sender}-{number}-{'x' * 20_000}" for number in range(count)])


def receive_until_stopped(folder, stop, into):
    with connect(folder) as connection, Path(into).open("w") as seen:
        channel = connection.channel()
        while True:
            last_round = stop.is_set()  # looked at before the queue, or the last message could be missed
            while (message := receive(channel)) is not None:
                seen.write(message.payload[: message.payload.rindex("-")] + "\n")
                message.ack()
            if last_round:
                return


def test_several_processes_write_and_read_at_once_and_nothing_is_lost_or_doubled(tmp_path):
    stop, folder = PROCESSES.Event(), tmp_path / "broker"
    readers = [
        PROCESSES.Process(target=receive_until_stopped, args=(folder, stop, tmp_path / f"reader{n}")) for n in range(3)
    ]
    writers = [PROCESSES.Process(target=send_many, args=(folder, n, 150)) for n in range(3)]
    for process in readers + writers:
        process.start()
    for process in writers:
        process.join(60)
    stop.set()
    for process in readers:
        process.join(60)
    assert [process.exitcode for process in readers + writers] == [0] * 6
    seen = [line for n in range(3) for line in (tmp_path / f"reader{n}").read_text().splitlines()]
    assert sorted(seen) == sorted(f"{sender}-{number}" for sender in range(3) for number in range(150))
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_messages_arrive_in_the_order_in_which_they_were_sent(tmp_path):
    send(tmp_path, "first", "second", "third")
    with connect(tmp_path) as connection:
        channel = connection.channel()
        assert [receive(channel).payload for _ in range(3)] == ["first", "second", "third"]


def test_a_message_that_is_not_completely_written_is_not_seen(tmp_path):
    send(tmp_path, "whole")
    (tmp_path / "writing" / "00000000000000000000_half.json").write_text('{"body": "ha')
    with connect(tmp_path) as connection:
        channel = connection.channel()
        assert receive(channel).payload == "whole"
        assert receive(channel) is None


def test_a_message_that_was_not_acknowledged_comes_back_when_the_connection_ends(tmp_path):
    send(tmp_path, "again")
    with connect(tmp_path) as connection:
        assert receive(connection.channel()).payload == "again"
    with connect(tmp_path) as connection:
        message = receive(connection.channel())
        assert message.payload == "again"
        assert message.delivery_info["redelivered"] is True
        message.ack()
    assert return_taken(tmp_path) == 0


def test_a_rejected_message_comes_back_once_and_only_when_asked(tmp_path):
    send(tmp_path, "maybe")
    with connect(tmp_path) as connection:
        channel = connection.channel()
        receive(channel).requeue()
        receive(channel).reject()
        assert receive(channel) is None
    assert return_taken(tmp_path) == 0


def test_what_a_killed_consumer_held_is_given_back(tmp_path):
    send(tmp_path, "held")
    connection = connect(tmp_path)
    channel = connection.channel()
    receive(channel)
    channel.do_restore = False  # as after kill -9: nobody is left to put it back
    connection.close()
    assert return_taken(tmp_path) == 1
    with connect(tmp_path) as connection:
        message = receive(connection.channel())
        assert message.payload == "held"
        assert message.delivery_info["redelivered"] is True
        message.ack()


def test_a_queue_is_counted_and_emptied(tmp_path):
    send(tmp_path, "one", "two")
    with connect(tmp_path) as connection:
        queue = QUEUE(connection.channel())
        assert queue.queue_declare().message_count == 2
        assert queue.purge() == 2
        assert queue.get() is None


def test_a_consumer_without_acknowledgement_leaves_nothing_behind(tmp_path):
    send(tmp_path, "quick", "quicker")
    with connect(tmp_path) as connection:
        channel = connection.channel()
        assert QUEUE(channel).get(no_ack=True).payload == "quick"
        received = []
        with connection.Consumer([QUEUE], callbacks=[lambda body, message: received.append(body)], no_ack=True):
            connection.drain_events(timeout=2)
        assert received == ["quicker"]
    assert return_taken(tmp_path) == 0


def test_messages_on_the_disk_are_plain_json(tmp_path):
    send(tmp_path, {"task": "import"})
    (file,) = (tmp_path / "queues" / "probe").iterdir()
    assert json.loads(file.read_text())["properties"]["delivery_tag"] in file.name


def test_an_empty_queue_says_so_at_once(tmp_path):
    with connect(tmp_path) as connection, pytest.raises(Empty):
        connection.channel()._get("probe")
