// Runs an ONNX file with ONNX Runtime on rows given as raw float32, in batches of the sizes given, in one session,
// and writes every output as raw float64 in DIR/NAME.bin.
//   node onnx_run.js FILE.onnx rows.bin ROWSHAPE DIR SIZES
// ONNX Runtime is looked for in $ORT_DIR/node_modules.
const path = require('path'), fs = require('fs');
const ort = require(path.join(process.env.ORT_DIR || '.', 'node_modules', 'onnxruntime-node'));
async function main() {
  const [file, rows, shape, dir, sizes] = process.argv.slice(2);
  const row = shape.split('x').map(Number), each = row.reduce((a, b) => a * b, 1);
  const raw = fs.readFileSync(rows), x = new Float32Array(raw.buffer, raw.byteOffset, raw.length / 4);
  const n = x.length / each, session = await ort.InferenceSession.create(file, {logSeverityLevel: 3});
  const out = {};
  for (const name of session.outputNames) out[name] = [];
  const wanted = sizes.split(',').map(Number);
  for (let at = 0, i = 0; at < n; i++) {
    const size = Math.min(wanted[i % wanted.length], n - at);
    const feeds = {x: new ort.Tensor('float32', x.slice(at * each, (at + size) * each), [size, ...row])};
    const result = await session.run(feeds);
    for (const name of session.outputNames) for (const v of result[name].data) out[name].push(Number(v));
    at += size;
  }
  for (const name of session.outputNames) fs.writeFileSync(path.join(dir, name + '.bin'), Buffer.from(Float64Array.from(out[name]).buffer));
}
main().catch(e => { console.error(String(e)); process.exit(1); });
