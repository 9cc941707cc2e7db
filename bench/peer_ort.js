/*
 * One process of the ONNX Runtime side of an inference benchmark: a session on the CPU with all graph optimisations, run
 * again and again on the same batch.
 *
 *     node peer_ort.js --package DIR --version
 *     node peer_ort.js --package DIR --model FILE.onnx --input CxHxW --batch N --threads T --seconds S
 *
 * The protocol is that of peer_torch.py: print "ready" after the warm-up, wait for a line on standard input, measure,
 * print one JSON object. DIR holds the package onnxruntime-node.
 */
"use strict";
const path = require("path");

const WARM_UP = 3, STEPS_MIN = 3;

function parse(words) {
    const out = {};
    for (let i = 0; i < words.length; i++)
        out[words[i].replace(/^--/, "")] = i + 1 < words.length && !words[i + 1].startsWith("--") ? words[++i] : true;
    return out;
}

async function open(ort, model, threads) {
    return ort.InferenceSession.create(model, {
        executionProviders: ["cpu"],
        executionMode: "sequential",
        graphOptimizationLevel: "all",
        intraOpNumThreads: threads,
        interOpNumThreads: 1,
        extra: {session: {set_denormal_as_zero: "1"}}, // as on the other sides
    });
}

function signal() {
    return new Promise((resolve) => process.stdin.once("data", resolve));
}

async function measure(step, seconds) {
    const times = [];
    const end = process.hrtime.bigint() + BigInt(Math.round(seconds * 1e9));
    while (times.length < STEPS_MIN || process.hrtime.bigint() < end) {
        const t = process.hrtime.bigint();
        await step();
        times.push(Number(process.hrtime.bigint() - t) * 1e-9);
    }
    return times.sort((a, b) => a - b);
}

function median(sorted) {
    const n = sorted.length;
    return n % 2 ? sorted[(n - 1) / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

async function main() {
    const a = parse(process.argv.slice(2));
    const home = path.join(path.resolve(a.package), "node_modules", "onnxruntime-node");
    const ort = require(home);
    const version = require(path.join(home, "package.json")).version;
    if (a.version) {
        console.log(version);
        return;
    }
    const batch = Number(a.batch), shape = [batch, ...a.input.split("x").map(Number)];
    const session = await open(ort, a.model, Number(a.threads));
    const data = Float32Array.from({length: shape.reduce((p, d) => p * d, 1)}, () => Math.random() - 0.5);
    const feeds = {[session.inputNames[0]]: new ort.Tensor("float32", data, shape)};
    const step = () => session.run(feeds);
    for (let i = 0; i < WARM_UP; i++)
        await step();
    const go = signal();
    console.log("ready");
    await go;
    const times = await measure(step, Number(a.seconds));
    console.log(JSON.stringify({
        samples_per_s: batch / median(times),
        samples_per_s_best: batch / times[0],
        steps: times.length,
        peak_rss_bytes: process.resourceUsage().maxRSS * 1024,
        onnxruntime: version,
    }));
    process.stdin.destroy();
}

main().catch((e) => {
    console.error(String(e.message).split("\n")[0]);
    process.exitCode = 1;
    process.stdin.destroy();
});
