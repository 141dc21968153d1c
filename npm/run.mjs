#!/usr/bin/env node
// Runs a program of the build for WebAssembly, with the files of this machine: node npm/run.mjs PROGRAM.wasm ARGUMENTS..
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Wasi } from "./wasi.mjs";
import { descriptors, toProgram } from "./files-node.mjs";

const [program, ...args] = process.argv.slice(2);
if (!program) {
    console.error("usage: node run.mjs PROGRAM.wasm ARGUMENTS..");
    process.exit(2);
}
// PWD: where relative paths begin
const wasi = new Wasi({
    args: [toProgram(resolve(program)), ...args],
    env: { ...process.env, PWD: toProgram(process.cwd()) },
    descriptors: descriptors(),
});
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.imports());
process.exitCode = wasi.start(instance);
