// Proves to the server that its key is known here: HMAC-SHA-256 of a challenge. Browsers have it only where the page is secure.
'use strict';
const PURPOSE = 'plumb page 1';

// Roots of primes: the constants of SHA-256 (FIPS 180-4, sections 4.2.2 and 5.3.3).
const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
const fraction = (root) => Math.floor((root - Math.floor(root)) * 2 ** 32) | 0;
const ROUNDS = primes.map((p) => fraction(Math.cbrt(p)));
const START = primes.slice(0, 8).map((p) => fraction(Math.sqrt(p)));

function sha256(bytes) {
  const padded = new Uint8Array(((bytes.length + 72) >> 6) << 6);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 4, bytes.length * 8);
  const turn = (x, n) => (x >>> n) | (x << (32 - n));
  const state = [...START];
  const w = new Int32Array(64);
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) { w[i] = view.getInt32(at + 4 * i); continue; }
      const [x, y] = [w[i - 15], w[i - 2]];
      w[i] = w[i - 16] + (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + w[i - 7] + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10));
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
      const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => { state[i] = (state[i] + value) | 0; });
  }
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((value, i) => out.setInt32(4 * i, value));
  return new Uint8Array(out.buffer);
}

const joined = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));

function hmac(secret, message) {
  const key = new Uint8Array(64);
  key.set(secret.length > 64 ? sha256(secret) : secret);
  const inner = sha256(joined(key.map((byte) => byte ^ 0x36), message));
  return sha256(joined(key.map((byte) => byte ^ 0x5c), inner));
}

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const bytes = (digits) => Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));
const text = (words) => new TextEncoder().encode(words);

async function prove(secret) {
  const asked = await fetch('/__key', { cache: 'no-store' });
  if (asked.status === 404) return location.replace('/');   // it was proved meanwhile
  const { challenge } = await asked.json();
  const nonce = crypto.getRandomValues(new Uint8Array(16));
  const code = hmac(text(secret.trim()), joined(text(PURPOSE), bytes(challenge), nonce));
  const answer = await fetch('/__key', { method: 'POST', body: JSON.stringify({ challenge, nonce: hex(nonce), code: hex(code) }) });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  location.replace('/');
}

const state = document.getElementById('state');
const begin = (secret) => prove(secret).catch((error) => { state.textContent = error.message; });
document.getElementById('form').addEventListener('submit', (event) => {
  event.preventDefault();
  state.textContent = '';
  begin(document.getElementById('key').value);
});
// A link may have the key behind '#', which no browser sends.
const linked = location.hash.slice(1);
const decoded = () => { try { return decodeURIComponent(linked); } catch { return linked; } };
if (linked) begin(decoded());
