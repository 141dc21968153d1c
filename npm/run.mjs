#!/usr/bin/env node
// Runs a program of the build for WebAssembly, with the files of this machine: node npm/run.mjs PROGRAM.wasm ARGUMENTS..
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Wasi } from "./wasi.mjs";
import { descriptors, toProgram } from "./files-node.mjs";

/** Ends this program with one line on standard error. */
function fail(code, line) {
    console.error(line.replaceAll("\n", " "));
    process.exit(code);
}

const [program, ...args] = process.argv.slice(2);
if (!program || program.startsWith("-")) fail(2, "usage: node run.mjs PROGRAM.wasm ARGUMENTS..");
let wasi, instance;
try {
    // PWD: where relative paths begin
    wasi = new Wasi({
        args: [toProgram(resolve(program)), ...args],
        env: { ...process.env, PWD: toProgram(process.cwd()) },
        descriptors: descriptors(),
    });
    const bytes = await readFile(program);
    instance = await WebAssembly.instantiate(await WebAssembly.compile(bytes), wasi.imports());
    if (typeof instance.exports._start !== "function") throw new Error("it has no function _start");
} catch (e) {
    fail(1, `${program}: cannot be run as a program of WebAssembly (${e.message})`);
}
process.exitCode = wasi.start(instance);
