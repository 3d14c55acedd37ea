"""NDT7 by the specification, on a WebSocket library that plumb has nothing of.

    ndt7.py download|upload URL SECONDS    a client: prints what it counted, and the server's last report
    ndt7.py serve PORT                     a server
"""

import asyncio
import json
import sys
import time

import websockets

PROTOCOL = "net.measurementlab.ndt.v7"
MESSAGE = bytes(1 << 16)


def report(origin, test, begun, count):
    app = {"ElapsedTime": int((time.monotonic() - begun) * 1e6), "NumBytes": count}
    return json.dumps({"AppInfo": app, "Origin": origin, "Test": test})


async def receive(socket, seconds):
    """What came, and the last report; as long as the other end sends, or so many seconds."""
    begun, count, last = time.monotonic(), 0, None
    try:
        while time.monotonic() < begun + seconds:
            message = await asyncio.wait_for(socket.recv(), seconds)
            if isinstance(message, str):
                last = json.loads(message)
            else:
                count += len(message)
    except (websockets.ConnectionClosed, asyncio.TimeoutError):
        pass
    return count, time.monotonic() - begun, last


async def send(socket, seconds, origin, test):
    begun, count, said = time.monotonic(), 0, 0.0
    try:
        while time.monotonic() < begun + seconds:
            await socket.send(MESSAGE)
            count += len(MESSAGE)
            if time.monotonic() - said > 0.1:
                said = time.monotonic()
                await socket.send(report(origin, test, begun, count))
    except websockets.ConnectionClosed:
        pass
    return count


async def client(test, url, seconds):
    options = {"subprotocols": [PROTOCOL], "max_size": 1 << 24, "compression": None}
    async with websockets.connect(f"{url}/ndt/v7/{test}", write_limit=1 << 16, **options) as socket:
        if test == "download":
            count, took, last = await receive(socket, seconds)
        else:
            sending = asyncio.create_task(send(socket, seconds, "client", test))
            _, took, last = await receive(socket, seconds)
            count = await sending
    print(json.dumps({"bytes": count, "seconds": took, "last": last}))


async def serve(port):
    async def served(socket, path):
        test = path.split("?")[0].rsplit("/", 1)[1]
        if test == "download":
            await send(socket, 10, "server", test)
        else:
            await receive(socket, 13)

    options = {"subprotocols": [PROTOCOL], "max_size": 1 << 24, "compression": None}
    async with websockets.serve(served, None, port, write_limit=1 << 16, **options):
        await asyncio.Future()


if sys.argv[1] == "serve":
    asyncio.run(serve(int(sys.argv[2])))
else:
    asyncio.run(client(sys.argv[1], sys.argv[2], float(sys.argv[3])))
