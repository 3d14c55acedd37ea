// Measures round trips over a WebSocket of its own, in a thread that the transfers do not hold up.
'use strict';
const EVERY_MS = 50;
let socket, timer, number = 0;
let part = null;              // { letter, began, sent_s, rtt_s, waiting }

function begin(letter) {
  part = { letter, began: performance.now(), sent_s: [], rtt_s: [], waiting: new Map() };
  clearInterval(timer);
  timer = setInterval(send, EVERY_MS);
}

function send() {
  // What waits in the browser itself says nothing of the line.
  if (socket.readyState !== WebSocket.OPEN || socket.bufferedAmount > 0) return;
  number += 1;
  part.waiting.set(number, performance.now());
  socket.send(part.letter + number);
}

function came(event) {
  const now = performance.now();
  const text = String(event.data);
  const sent = part && text[0] === part.letter && part.waiting.get(Number(text.slice(1)));
  if (!sent) return;
  part.waiting.delete(Number(text.slice(1)));
  part.sent_s.push((sent - part.began) / 1000);
  part.rtt_s.push((now - sent) / 1000);
  postMessage({ rtt_s: (now - sent) / 1000 });
}

function end() {
  clearInterval(timer);
  const { sent_s, rtt_s, waiting } = part;
  part = null;
  postMessage({ ended: { sent_s, rtt_s, missing: waiting.size } });
}

onmessage = ({ data }) => {
  if (data.open) {
    socket = new WebSocket(data.open);
    socket.onopen = () => postMessage({ open: true });
    socket.onmessage = came;
    socket.onerror = () => postMessage({ failed: true });
  } else if (data.begin) {
    begin(data.begin);
  } else if (data.end) {
    end();
  } else if (data.close) {
    socket.close();
  }
};
