#!/usr/bin/env node
// Runs a program of the build for WebAssembly, with the files of this machine: node npm/run.mjs [--threads N] PROGRAM.wasm ARGUMENTS..
// With more than one thread, which is usual, it runs PROGRAM.threads.wasm, which is built beside it.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Worker } from "node:worker_threads";
import { sharedMemory, startThreads, usualThreads } from "./threads.mjs";
import { hasWide, isWide, Wasi } from "./wasi.mjs";
import { descriptors, toProgram } from "./files-node.mjs";

/** Ends this program with one line on standard error. */
function fail(code, line) {
    console.error(line.replaceAll("\n", " "));
    process.exit(code);
}

const USAGE = "usage: node run.mjs [--threads N] PROGRAM.wasm ARGUMENTS..", MOST = 64;
const given = process.argv.slice(2);
const isAsked = given[0] === "--threads";
let n = await usualThreads();
if (isAsked) {
    n = Number(given[1]);
    if (!(Number.isInteger(n) && n >= 1 && n <= MOST)) fail(2, `--threads${given[1] === undefined ? "" : ` ${given[1]}`}: an integer from 1 to ${MOST} is expected`);
    given.splice(0, 2);
}
const [program, ...args] = given;
if (program === "--help") {
    console.log(`${USAGE}\nruns a program of the build for WebAssembly, with the files of this machine; N: threads that it can have, 1 to ${MOST} (default ${n})`);
    process.exit(0);
}
if (!program || program.startsWith("-")) fail(2, program ? `unknown flag '${program}'; ${USAGE}` : USAGE);
const threaded = program.replace(/\.wasm$/, ".threads.wasm");
if (isAsked && n > 1 && !existsSync(threaded) && existsSync(program)) fail(1, `${threaded}: No such file; this is the program for more than one thread`);
const file = n > 1 && threaded !== program && existsSync(threaded) ? threaded : program;
let wasi, instance;
try {
    const module = await WebAssembly.compile(await readFile(file)), wide = isWide(module);
    wasi = new Wasi({
        wide,
        args: [toProgram(resolve(program)), ...args],
        env: { ...process.env, PWD: toProgram(process.cwd()) }, // where relative paths begin
        descriptors: descriptors(),
    });
    const imports = wasi.imports(), takesMemory = WebAssembly.Module.imports(module).some((i) => i.kind === "memory");
    if (takesMemory) imports.env = { memory: sharedMemory(undefined, wide) };
    instance = await WebAssembly.instantiate(module, imports);
    if (typeof instance.exports._start !== "function") throw new Error("it has no function _start");
    const start = (workerData) => new Worker(new URL("./thread.mjs", import.meta.url), { workerData }).unref(); // it never ends; the program can begin before it is there
    if (takesMemory) await startThreads(module, instance, n, start);
} catch (e) {
    fail(1, e.code === "ENOENT" ? `${file}: no such file` : `${file}: cannot be run as a program of WebAssembly (${e.message})${e instanceof WebAssembly.CompileError && !hasWide() ? "; those with addresses of 64 bits need node 24 or later" : ""}`);
}
process.exitCode = wasi.start(instance);
