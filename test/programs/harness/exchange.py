"""Sends requests and gathers replies at the same time, so that neither side blocks the other with full buffers."""

import select
import time

from . import endings


def exchange(link, request, ending):
    """Sends `request`; returns all bytes that come until they end with `ending`. EOFError, TimeoutError."""
    view, sent, reply = memoryview(request), 0, bytearray()
    end = time.monotonic() + (link.gettimeout() or 60)
    while not (sent == len(view) and reply.endswith(ending)):
        writing = [link] if sent < len(view) else []
        with endings.waiting:
            readable, writable, _ = select.select([link], writing, [], max(0, end - time.monotonic()))
        if not readable and not writable:
            raise TimeoutError("no answer")
        if readable:
            data = link.recv(1 << 18)
            if not data:
                raise EOFError("the server closed the connection")
            reply += data
        if writable:
            sent += _send(link, view[sent:sent + (1 << 18)])
    return reply


def _send(link, data):
    timeout = link.gettimeout()
    link.setblocking(False)
    try:
        return link.send(data)
    except BlockingIOError:
        return 0
    finally:
        link.settimeout(timeout)
