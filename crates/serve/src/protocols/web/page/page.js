// Tests the line between this browser and the server that the page came from.
'use strict';
// An all-clear needs 188 probes of the idle line, of which there are 20 a second (`echoes.js`).
const IDLE_MS = 10000, LOAD_MS = 15000, COUNT_MS = 100, STREAMS = 4;
const PATIENCE_MS = 30000;    // how long others are waited for
const OBJECT_BYTES = 1e11;    // of a download: more than any line carries in its time
const BODY_BYTES = 1 << 25;   // of an upload; another follows it

const element = (id) => document.getElementById(id);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const rate = (bps) => bps >= 1e9 ? (bps / 1e9).toFixed(2) + ' Gbit/s'
  : bps >= 1e6 ? (bps / 1e6).toFixed(bps >= 1e8 ? 0 : 1) + ' Mbit/s' : (bps / 1e3).toFixed(0) + ' kbit/s';
const time = (s) => (s * 1000).toFixed(s >= 0.1 ? 0 : 1) + ' ms';
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

let began;                    // of the test, by performance.now()
let echoes;                   // the worker that measures round trips

function say(text, progress) {
  element('state').textContent = text;
  if (progress !== undefined) element('progress').value = progress;
}

// The next message of the worker that has a field.
function heard(field) {
  return new Promise((done, fail) => {
    const listen = ({ data }) => {
      if (!(field in data) && !data.failed) return;
      echoes.removeEventListener('message', listen);
      if (data.failed) fail(new Error('the server does not echo: no WebSocket passes'));
      else done(data[field]);
    };
    echoes.addEventListener('message', listen);
  });
}

// The smallest step of the clock that can be seen.
function resolution() {
  let least = Infinity;
  for (let tries = 0; tries < 50; tries++) {
    const from = performance.now();
    let to = from;
    while (to === from) to = performance.now();
    least = Math.min(least, to - from);
  }
  return least / 1000;
}

// Measures round trips while `load` runs, for so long.
async function part(letter, ms, label, share, load) {
  const start = performance.now();
  const seconds = () => (performance.now() - start) / 1000;
  echoes.postMessage({ begin: letter });
  const counted = { counted_s: [], streams: [] };
  const stop = new AbortController();
  const loading = load ? load(stop.signal, seconds, counted) : Promise.resolve();
  const ticking = setInterval(() => say(label, share[0] + (share[1] - share[0]) * Math.min(1, seconds() * 1000 / ms)), 200);
  try {
    await Promise.race([wait(ms), loading.then(() => wait(ms))]);
  } finally {
    clearInterval(ticking);
    stop.abort();
  }
  const duration_s = seconds();
  const ended = heard('ended');
  echoes.postMessage({ end: true });
  await loading.catch(() => {});   // it was ended
  return { began_s: (start - began) / 1000, duration_s, ...await ended, ...counted };
}

// Waits for the turn where others are measured: a small download, which is no part of the test, needs one as well.
async function turn() {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = await fetch('/__down?bytes=2000', { cache: 'no-store' });
    if (answer.ok) return answer.arrayBuffer();
    const after = Number(answer.headers.get('retry-after') || 0) * 1000;
    const why = (await answer.text()).trim();
    if (answer.status !== 503 || !after || performance.now() + after > until) throw new Error(why || 'HTTP ' + answer.status);
    say('others are being measured: waiting');
    await wait(after);
  }
}

function download(id) {
  return async (signal, seconds, counted) => {
    const bytes = Array(STREAMS).fill(0);
    counted.streams = bytes.map(() => []);
    const count = () => {
      counted.counted_s.push(seconds());
      bytes.forEach((all, stream) => counted.streams[stream].push(all));
    };
    count();
    const counting = setInterval(count, COUNT_MS);
    const one = async (stream) => {
      const url = `/__down?bytes=${OBJECT_BYTES}&visit=${id}&stream=${stream}`;
      const answer = await fetch(url, { signal, cache: 'no-store' });
      if (!answer.ok) throw new Error((await answer.text()).trim());
      const reader = answer.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) throw new Error('the server ended the download');
        bytes[stream] += value.length;
      }
    };
    try {
      await Promise.all(bytes.map((_, stream) => one(stream)));
    } finally {
      clearInterval(counting);
      count();
    }
  };
}

function upload(id) {
  const chunk = new Uint8Array(65536);
  crypto.getRandomValues(chunk);
  const body = new Blob(Array(BODY_BYTES / chunk.length).fill(chunk));
  return async (signal) => {
    const one = async (stream) => {
      for (;;) {
        const url = `/__up?visit=${id}&stream=${stream}`;
        const answer = await fetch(url, { method: 'POST', body, signal, cache: 'no-store' });
        if (!answer.ok) throw new Error((await answer.text()).trim());
      }
    };
    await Promise.all([...Array(STREAMS).keys()].map(one));
  };
}

function draw(parent, tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  parent.append(made);
  return made;
}

function show({ run, shown, report }) {
  const carried = (direction) => run.measurements.find((m) => m.kind === 'throughput' && m.result.direction === direction);
  for (const direction of ['down', 'up']) {
    const result = carried(direction)?.result;
    if (result) element(direction).textContent = rate(result.steady_bps ?? result.bps);
  }
  element('headline').textContent = shown.headline;
  element('grade').textContent = shown.grade ? 'Latency under load, one direction at a time: ' + shown.grade : '';
  const outcomes = element('outcomes');
  outcomes.replaceChildren();
  for (const { what, fares, why } of shown.outcomes) draw(outcomes, 'li', `${what}: ${fares}. ${why}`).className = fares;
  const findings = element('findings');
  findings.replaceChildren();
  for (const finding of run.findings.filter((f) => f.severity !== 'info')) {
    if (finding.summary !== run.verdict?.headline) draw(findings, 'h3', finding.summary);
    const list = draw(findings, 'ul', '');
    for (const fix of finding.fixes) {
      const item = draw(list, 'li', fix.summary);
      if (fix.commands.length) draw(item, 'pre', fix.commands.join('\n'));
    }
  }
  const missing = element('not-excluded');
  missing.replaceChildren();
  if (shown.not_excluded.length) {
    draw(missing, 'p', 'What this does not exclude:');
    const list = draw(missing, 'ul', '');
    for (const sentence of shown.not_excluded) draw(list, 'li', sentence);
  }
  const link = (id, kind, text) => { element(id).href = URL.createObjectURL(new Blob([text], { type: kind })); };
  link('run', 'application/json', JSON.stringify(run, null, 2));
  link('report', 'text/html', report);
  element('result').hidden = false;
}

async function test() {
  const random = crypto.getRandomValues(new Uint8Array(16));
  const id = [...random].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  element('result').hidden = true;
  element('progress').hidden = false;
  for (const figure of ['down', 'up', 'idle', 'loaded-down', 'loaded-up']) element(figure).textContent = '–';
  began = performance.now();
  echoes = new Worker('/echoes.js');
  try {
    const opened = heard('open');
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    echoes.postMessage({ open: `${scheme}://${location.host}/__echo?visit=${id}&stream=0` });
    await opened;
    const resolution_s = resolution();
    const idle = await part('i', IDLE_MS, 'measuring the idle line', [0, 0.23]);
    if (!idle.rtt_s.length) throw new Error('no echo came back');
    element('idle').textContent = time(median(idle.rtt_s));
    await turn();
    const down = await part('d', LOAD_MS, 'downloading', [0.23, 0.59], download(id));
    const last = down.streams.reduce((all, stream) => all + (stream.at(-1) || 0), 0);
    element('down').textContent = rate(8 * last / down.duration_s);
    if (down.rtt_s.length) element('loaded-down').textContent = time(median(down.rtt_s));
    await wait(1000);           // until the queue is empty
    await turn();
    const up = await part('u', LOAD_MS, 'uploading', [0.59, 0.95], upload(id));
    if (up.rtt_s.length) element('loaded-up').textContent = time(median(up.rtt_s));
    say('judging', 0.97);
    const visit = { id, server: location.host, agent: navigator.userAgent.slice(0, 300), resolution_s, idle, down, up };
    const answer = await fetch('/__check', { method: 'POST', body: JSON.stringify(visit), headers: { 'content-type': 'application/json' } });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    show(await answer.json());
    say('done', 1);
  } finally {
    echoes.postMessage({ close: true });
    const worker = echoes;
    setTimeout(() => worker.terminate(), 1000);
  }
}

async function start() {
  element('start').disabled = true;
  try {
    await test();
  } catch (error) {
    say('The test failed: ' + error.message);
  }
  element('start').disabled = false;
}

element('server').textContent = location.host;
// By a click alone: no link of another page makes a visitor's line carry a test.
element('start').onclick = start;
