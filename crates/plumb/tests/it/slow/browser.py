"""Runs the page of a responder in a real browser, and prints what it shows as JSON.

browser.py chromium|firefox URL WIDTH SECONDS [SCREENSHOT]

Chromium is driven by its DevTools protocol, Firefox by WebDriver BiDi, each over a WebSocket.
"""
import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

import websockets

SHOWN = """JSON.stringify({
  state: document.getElementById('state').textContent,
  headline: document.getElementById('headline').textContent,
  grade: document.getElementById('grade').textContent,
  outcomes: [...document.querySelectorAll('#outcomes li')].map((li) => li.textContent),
  open: document.getElementById('not-excluded').textContent,
  findings: [...document.querySelectorAll('#findings h3')].map((h) => h.textContent),
  figures: Object.fromEntries([...document.querySelectorAll('dd')].map((d) => [d.id, d.textContent])),
  wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
  links: [...document.querySelectorAll('#result a')].map((a) => a.href),
})"""


class Chromium:
    program = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               "--ignore-certificate-errors", "--remote-debugging-port={port}", "--user-data-dir={home}",
               "--window-size={width},900", "about:blank"]

    def __init__(self, port):
        self.port, self.number = port, 0

    async def connect(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/json/list") as pages:
            page = next(p for p in json.load(pages) if p["type"] == "page")
        self.socket = await websockets.connect(page["webSocketDebuggerUrl"], max_size=None)

    async def call(self, method, **params):
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            answer = json.loads(await self.socket.recv())
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]

    async def open(self, url, width):
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        await self.call("Page.navigate", url=url)

    async def evaluate(self, script):
        result = await self.call("Runtime.evaluate", expression=script)
        return result["result"].get("value")

    async def screenshot(self):
        return (await self.call("Page.captureScreenshot", captureBeyondViewport=True))["data"]


class Firefox:
    program = ["firefox-esr", "--headless", "--no-remote", "--remote-debugging-port={port}", "--profile", "{home}"]

    def __init__(self, port):
        self.port, self.number = port, 0

    async def connect(self):
        self.socket = await websockets.connect(f"ws://127.0.0.1:{self.port}/session", max_size=None)
        await self.call("session.new", capabilities={"alwaysMatch": {"acceptInsecureCerts": True}})
        tree = await self.call("browsingContext.getTree")
        self.context = tree["contexts"][0]["context"]

    async def call(self, method, **params):
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            answer = json.loads(await self.socket.recv())
            if answer.get("id") == self.number:
                if answer.get("type") == "error":
                    raise RuntimeError(answer)
                return answer["result"]

    async def open(self, url, width):
        await self.call("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": 900})
        await self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")

    async def evaluate(self, script):
        result = await self.call("script.evaluate", expression=script, target={"context": self.context}, awaitPromise=False)
        return result["result"].get("value")

    async def screenshot(self):
        return (await self.call("browsingContext.captureScreenshot", context=self.context, origin="document"))["data"]


async def drive(browser, url, width, seconds, picture):
    for _ in range(100):
        try:
            await browser.connect()
            break
        except (OSError, StopIteration, websockets.WebSocketException):
            await asyncio.sleep(0.3)
    # A fragment begins nothing: a link from another page could have it.
    await browser.open(url + "#start", width)
    for _ in range(20):
        await asyncio.sleep(0.1)
        if json.loads(await browser.evaluate(SHOWN) or "{}").get("state"):
            raise RuntimeError("the page began without a click")
    await browser.evaluate("document.getElementById('start').click()")
    for _ in range(seconds * 2):
        await asyncio.sleep(0.5)
        shown = json.loads(await browser.evaluate(SHOWN) or "{}")
        if shown.get("state") == "done" or shown.get("state", "").startswith("The test failed"):
            break
    if picture:
        with open(picture, "wb") as file:
            file.write(base64.b64decode(await browser.screenshot()))
    print(json.dumps(shown))


def main():
    name, url, width, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    picture = sys.argv[5] if len(sys.argv) > 5 else None
    browser = {"chromium": Chromium, "firefox": Firefox}[name](9222)
    home = tempfile.mkdtemp()
    command = [word.format(port=browser.port, home=home, width=width) for word in browser.program]
    with open(os.path.join(home, "said"), "wb") as said:
        program = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True, env={**os.environ, "HOME": home})
    try:
        asyncio.run(asyncio.wait_for(drive(browser, url, width, seconds, picture), seconds + 60))
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        shutil.rmtree(home, ignore_errors=True)


main()
