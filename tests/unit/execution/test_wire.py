"""Frames arrive whole, and a worker cannot block or fool the coordinator."""

import socket
import threading

import pytest

from farthing.execution import wire
from farthing.execution.executor import Checkpointed
from farthing.execution.messages import (
    Finished,
    Ready,
    Unready,
    message_from_json,
    message_to_json,
)
from farthing.execution.wire import HEADER, BrokenWire, Mailbox, to_bytes
from farthing.trials import Failure, Measurement, Outcome, State
from farthing.trials.prefixes import Eviction


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Mailbox(ours), theirs


def test_a_message_that_comes_in_pieces_is_read_when_it_is_whole(ends):
    mailbox, worker = ends
    frame = HEADER.pack(4) + b"[42]"
    for byte in frame[:-1]:
        worker.send(bytes([byte]))
        assert list(mailbox.messages()) == []
    worker.send(frame[-1:] + frame)
    assert list(mailbox.messages()) == [[42], [42]]


def test_posting_more_than_fits_does_not_block(ends):
    mailbox, worker = ends
    payload = b"x" * 5_000_000
    mailbox.post(payload)
    assert mailbox.has_mail_to_send
    received = []
    reader = threading.Thread(target=lambda: received.append(wire.receive_bytes(worker)))
    reader.start()
    while mailbox.has_mail_to_send:
        mailbox.flush()
    reader.join()
    assert received == [payload]


def test_a_worker_that_is_gone_is_noticed_and_not_complained_about(ends):
    mailbox, worker = ends
    wire.send(worker, ["last words"])
    worker.close()
    mailbox.post(to_bytes("go on"))
    assert list(mailbox.messages()) == [["last words"]]
    assert mailbox.is_closed


def test_a_worker_sees_when_the_coordinator_hangs_up(ends):
    mailbox, worker = ends
    mailbox.hang_up()
    with pytest.raises(EOFError):
        wire.receive(worker)


@pytest.mark.parametrize("frame", [HEADER.pack(1 << 40), HEADER.pack(3) + b"\x80\x04.", HEADER.pack(1) + b"{"])
def test_what_is_no_message_is_refused(ends, frame):
    mailbox, worker = ends
    worker.send(frame)
    with pytest.raises(BrokenWire, match="A message must be"):
        list(mailbox.messages())


@pytest.mark.parametrize(
    "form", [None, [], ["ready"], ["nonsense", 1], ["reported", {"worth": 3}], ["evicted", "all"], ["finished", {}], 3]
)
def test_a_form_that_no_worker_sends_is_refused(form):
    with pytest.raises(BrokenWire, match="A worker must send"):
        message_from_json(form)


@pytest.mark.parametrize(
    "message",
    [
        Ready(),
        Unready(Failure("no module", "Traceback")),
        Measurement(0.5, {"training": 1.0}, fidelity={"epochs": 3}, metrics={"auc": None}, sequence=4),
        Checkpointed("000001/attempt-1.checkpoint-1"),
        Eviction('{"denoise":{}}', 1, "unwritable", "No space left on device"),
        Finished(None),
        Finished(Outcome(State.DONE, 0.5, (Measurement(0.5, gradient={"lr": 2.0}),), checkpoint="name")),
        Finished(Outcome(State.FAILED, failure=Failure("bad", "Traceback"))),
    ],
)
def test_messages_survive_the_journey(ends, message):
    mailbox, worker = ends
    wire.send(worker, message_to_json(message))
    (form,) = mailbox.messages()
    assert message_from_json(form) == message
