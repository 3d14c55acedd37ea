"""All that a stranger does to a responder, at once and until it is ended: places taken, nonsense, floods, loads that nothing
takes. Arguments: the responder's address, and the port at which this says that it runs."""

import os
import random
import socket
import ssl
import sys
import threading
import time

server, ready = sys.argv[1], int(sys.argv[2])
NATIVE, WEB, IPERF3, STAMP, IRTT = 7586, 4043, 5201, 862, 2112
dice = random.Random(1)


def connect(port):
    return socket.create_connection((server, port), timeout=5)


def again(pause_s):
    """Calls a function again and again; what the responder does about it is its own."""

    def decorate(function):
        def forever():
            while True:
                try:
                    function()
                except OSError:
                    pass
                time.sleep(pause_s)

        threading.Thread(target=forever, daemon=True).start()
        return function

    return decorate


held = []


def hold(connection, most=400):
    held.append(connection)
    if len(held) > most:
        held.pop(0).close()


@again(0.02)
def half_a_request():
    connection = connect(WEB)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nA: " + b"a" * 1000)
    hold(connection)


@again(0.02)
def half_a_test_of_iperf3():
    connection = connect(IPERF3)
    connection.sendall(bytes(dice.randrange(97, 123) for _ in range(36)) + b"\0")
    hold(connection)


@again(0.01)
def noise():
    connection = connect(dice.choice([NATIVE, WEB, IPERF3]))
    connection.sendall(dice.randbytes(200))
    connection.close()


@again(0.02)
def wrong_keys():
    connection = connect(NATIVE)
    for text in (b'{"type":"hello","version":1}', b'{"type":"answer","proof":"00"}'):
        connection.sendall(len(text).to_bytes(4, "big") + text)
    connection.close()


@again(0.5)
def a_download_that_nothing_takes():
    connection = connect(WEB)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(b"GET /__down?bytes=1000000000000 HTTP/1.1\r\nHost: here\r\n\r\n")
    hold(connection)


@again(0.1)
def a_message_without_end():
    connection = connect(WEB)
    connection.sendall(
        b"GET /ndt/v7/upload HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n"
    )
    connection.recv(12)
    connection.sendall(b"\x82\xff\0\0\0\0\1\0\0\0\0\0\0\0" + bytes(20_000))
    hold(connection)


def frame(kind, flags, stream, payload=b""):
    """RFC 9113, section 4.1."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


@again(0.1)
def http2_that_keeps_to_no_rule():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    connection = context.wrap_socket(connect(WEB), server_hostname="here")
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    # A window of 0, and a header table of 4 GB.
    connection.sendall(frame(4, 0, 0, b"\0\4\0\0\0\0" + b"\0\1\xff\xff\xff\xff"))
    for number in range(1, 200, 2):
        # GET / by the static table, and taken back at once.
        connection.sendall(frame(1, 5, number, b"\x82\x84\x87\x41\x04here") + frame(3, 0, number, b"\0\0\0\x08"))
    for kind in range(16):
        connection.sendall(frame(kind, dice.randrange(256), dice.randrange(1 << 31), dice.randbytes(40)))
    # Headers that go on.
    connection.sendall(frame(1, 0, 201, b"\x82\x84\x87") + frame(9, 0, 201, b"\x40\x01a\x01b" * 1000))
    hold(connection)


udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


@again(0.004)
def datagrams():
    # Opens of irtt, probes of STAMP, and neither.
    udp.sendto(b"\x14\x5b\x30\x01" + dice.randbytes(12), (server, IRTT))
    udp.sendto(bytes(44), (server, STAMP))
    udp.sendto(dice.randbytes(100), (server, dice.choice([IRTT, STAMP, NATIVE])))


time.sleep(2)
listener = socket.create_server(("", ready))
print(os.getpid(), "attacks", flush=True)
while True:
    listener.accept()[0].close()
