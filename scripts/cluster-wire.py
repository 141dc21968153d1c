#!/usr/bin/env python3
"""Carries Ethernet frames between a TAP device and another device of this namespace, those that leave later: what the kernel's netem does,
for kernels that do not have it. cluster-here.sh starts it.

    cluster-wire.py TAP DEVICE DELAY      DELAY: 100us, 1ms

It runs with the priority of real-time programs, if it may, so that other work does not make frames later than they should be."""
import collections
import fcntl
import os
import select
import socket
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
MOST = 65536


def seconds(text):
    for unit, times in (("us", 1e-6), ("ms", 1e-3), ("s", 1)):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * times
    raise SystemExit(f"cluster-wire.py: '{text}' is no time, as 100us")


def main():
    if len(sys.argv) != 4:
        raise SystemExit("cluster-wire.py TAP DEVICE DELAY")
    delay = seconds(sys.argv[3])
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    except OSError:
        pass
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", sys.argv[1].encode(), IFF_TAP | IFF_NO_PI))
    far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    far.bind((sys.argv[2], 0))
    far.setblocking(False)
    # what one side has sent, and when it is due at the other
    out, back = collections.deque(), collections.deque()
    poll = select.poll()
    poll.register(tap, select.POLLIN)
    poll.register(far.fileno(), select.POLLIN)
    while True:
        now = time.monotonic()
        for queue, send in ((out, far.send), (back, lambda b: os.write(tap, b))):
            while queue and queue[0][0] <= now:
                frame = queue[0][1]
                try:
                    send(frame)
                except BlockingIOError:
                    break
                except OSError:
                    pass
                queue.popleft()
        due = min((q[0][0] for q in (out, back) if q), default=None)
        if due is None:
            poll.poll()
        else:
            left = due - time.monotonic()
            if left > 0:
                select.select([tap, far], [], [], left)
        now = time.monotonic()
        for _ in range(16):
            try:
                out.append((now + delay, os.read(tap, MOST)))
            except BlockingIOError:
                break
        for _ in range(16):
            try:
                frame, address = far.recvfrom(MOST)
            except BlockingIOError:
                break
            if address[2] != socket.PACKET_OUTGOING:
                back.append((now, frame))


if __name__ == "__main__":
    main()
