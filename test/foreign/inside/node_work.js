// The work of the Node.js test: node_work.js SCALE SEED prints `check: hash` lines.
'use strict';
const crypto = require('crypto');
const zlib = require('zlib');
const { fork } = require('child_process');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

function generator(seed) {  // xorshift: the same numbers in every run
  let x = (seed | 0) || 1;
  return () => { x ^= x << 13; x ^= x >>> 17; x ^= x << 5; return x >>> 0; };
}

const hash = (data) => crypto.createHash('sha256').update(data).digest('hex');
const show = (what, value) => console.log(`${what}: ${value}`);

function objects(count, seed) {
  const next = generator(seed);
  const byName = new Map();
  for (let i = 0; i < count; i++)
    byName.set(`key-${next() % (count * 4)}`,
               { id: i, name: `name ${next().toString(36)}`, parts: [next(), i, { deep: next() % 100 }] });
  return byName;
}

function churn(map, rounds, seed) {  // garbage of all ages, while the map lives
  const next = generator(seed);
  const keys = [...map.keys()];
  for (let i = 0; i < rounds; i++) {
    const key = keys[next() % keys.length];
    const value = map.get(key);
    const parts = value.parts.map((part) => typeof part === 'number' ? part ^ i : part);
    map.set(key, { ...value, name: value.name + (i % 10), parts });
  }
  return map;
}

function digest(map) {
  const sha = crypto.createHash('sha256');
  for (const key of [...map.keys()].sort()) sha.update(key + JSON.stringify(map.get(key)));
  return sha.digest('hex');
}

function arrays(elements, seed) {
  const next = generator(seed);
  const numbers = new Float64Array(elements).map(() => next());
  const sorted = Float64Array.from(numbers).sort();
  const bytes = Buffer.from(numbers.buffer);
  const back = zlib.gunzipSync(zlib.gzipSync(bytes, { level: 1 }));
  if (!back.equals(bytes)) throw new Error('gzip does not give back what went in');
  return hash(Buffer.from(sorted.buffer)) + hash(back);
}

function work(scale, seed, what) {
  if (what === 'arrays') return arrays(1500000 * scale, seed);
  return digest(churn(objects(120000 * scale, seed), 150000 * scale, seed + 1));
}

const inWorker = (data) => new Promise((resolve, reject) => {
  new Worker(__filename, { workerData: data }).on('message', resolve).on('error', reject);
});
const inChild = (data) => new Promise((resolve, reject) => {
  const child = fork(__filename, ['child']);
  child.on('message', resolve).on('error', reject);
  child.on('exit', (code) => code && reject(new Error(`child: ${code}`)));
  child.send(data);
});

async function main(scale, seed) {
  const map = churn(objects(250000 * scale, seed), 300000 * scale, seed + 1);
  show('map', digest(map));
  show('arrays', arrays(3000000 * scale, seed));
  const text = JSON.stringify([...map.values()]);
  show('JSON', hash(text));
  show('parsed', hash(JSON.stringify(JSON.parse(text).map((value) => value.name))));
  const pieces = [];
  for (let i = 0; i < text.length; i += 4096) pieces.push(text.slice(i, i + 4096));
  show('pieces', hash(pieces.reverse().join('')));
  global.gc();
  show('map after a collection', digest(map));
  const results = await Promise.all([inWorker([scale, seed, 'objects']), inWorker([scale, seed, 'arrays']),
                                     inChild([scale, seed, 'objects'])]);
  results.forEach((result, index) => show(`thread or child ${index}`, result));
  show('map at the end', digest(map));
}

function answerParent() {
  process.once('message', (data) => process.send(work(...data), () => process.disconnect()));
}

if (!isMainThread) parentPort.postMessage(work(...workerData));
else if (process.argv[2] === 'child') answerParent();
else main(Number(process.argv[2]), Number(process.argv[3])).catch((error) => { console.error(error); process.exit(1); });
