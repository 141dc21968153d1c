// The files and standard streams of this machine, for wasi.mjs.
import * as fs from "node:fs";
import { isatty } from "node:tty";
import { join, win32 } from "node:path";
import { KIND, SystemError } from "./wasi.mjs";

const isWindows = process.platform === "win32";

/** The path by which a program knows a file, of which `real` is the absolute path. Programs have the paths of POSIX: C:\a is /C:/a. */
export function toProgram(real, windows = isWindows) {
    if (!windows) return real;
    const [, drive, rest] = /^(?:[\\/]{2}[?.][\\/])?([a-z]:)[\\/](.*)$/is.exec(real) ?? [];
    if (!drive) throw new Error(`${real}: only files on a drive with a letter can be opened by their path; give the share one, or read the file and pass its bytes`);
    return `/${drive}/${rest.replaceAll("\\", "/")}`;
}

/** The other way round, for a path relative to the root; it has a drive, as the root of all drives is no folder of Windows. */
export function toReal(path, windows = isWindows) {
    if (!windows) return join("/", path);
    if (!/^[a-z]:([\\/]|$)/i.test(path)) throw new SystemError("ENOENT");
    return win32.join(path, path.length === 2 ? "\\" : "");
}

function toStat(s) {
    const kind = s.isFile() ? KIND.file
        : s.isDirectory() ? KIND.folder
        : s.isSymbolicLink() ? KIND.link
        : s.isCharacterDevice() ? KIND.character
        : s.isBlockDevice() ? KIND.block
        : s.isSocket() || s.isFIFO() ? KIND.socket // wasi-libc takes both for pipes
        : KIND.unknown;
    return { kind, size: s.size, modified: s.mtimeMs, id: s.ino, disk: s.dev, names: s.nlink };
}

/** Calls f again while the other end of a pipe or terminal, which was told not to wait, is not ready. */
function patiently(f) {
    for (;;)
        try {
            return f();
        } catch (e) {
            if (e.code === "EOF") return 0; // Windows, of a pipe that was closed
            if (e.code !== "EAGAIN") throw e;
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
        }
}

class File {
    constructor(fd, appends = false) {
        this.fd = fd;
        this.appends = appends;
        this.isTerminal = isatty(fd);
        this.place = fs.fstatSync(fd).isFile() ? 0 : null; // null: it has none, as a pipe
    }
    read(bytes, at) {
        const n = patiently(() => fs.readSync(this.fd, bytes, 0, bytes.length, at ?? this.place));
        if (at === null && this.place !== null) this.place += n;
        return n;
    }
    write(bytes, at) {
        const n = patiently(() => fs.writeSync(this.fd, bytes, 0, bytes.length, this.appends ? null : at ?? this.place));
        if (at === null && this.place !== null) this.place += n;
        return n;
    }
    seek(offset, whence) {
        if (this.place === null) throw new SystemError("ESPIPE");
        const from = whence === 0 ? 0 : whence === 1 ? this.place : fs.fstatSync(this.fd).size;
        if (from + offset < 0) throw new SystemError("EINVAL");
        return (this.place = from + offset);
    }
    truncate(size) {
        fs.ftruncateSync(this.fd, size);
    }
    sync() {
        fs.fsyncSync(this.fd);
    }
    stat() {
        return toStat(fs.fstatSync(this.fd));
    }
    close() {
        if (this.fd > 2) fs.closeSync(this.fd);
    }
}

/** Standard streams: they go on where they are, also in a file. */
class Stream extends File {
    constructor(fd) {
        super(fd);
        this.place = null;
    }
}

class Folder {
    constructor(real) {
        this.real = real;
    }
    at(path) {
        return join(this.real, path);
    }
    open(path, how) {
        const real = this.at(path), c = fs.constants;
        const is = how.creates ? null : fs.statSync(real);
        if (how.isFolder && is && !is.isDirectory()) throw new SystemError("ENOTDIR");
        if (is?.isDirectory() && !how.writes) return new Folder(real);
        const flags = (how.writes ? (how.reads ? c.O_RDWR : c.O_WRONLY) : c.O_RDONLY)
            | (how.creates ? c.O_CREAT : 0) | (how.isNew ? c.O_EXCL : 0) | (how.empties ? c.O_TRUNC : 0)
            | (how.appends ? c.O_APPEND : 0) | (how.follows ? 0 : c.O_NOFOLLOW ?? 0);
        return new File(fs.openSync(real, flags, 0o666), how.appends);
    }
    statAt(path, follows) {
        const real = this.at(path);
        return toStat(follows ? fs.statSync(real) : fs.lstatSync(real));
    }
    stat() {
        return toStat(fs.statSync(this.real));
    }
    list() {
        return fs.readdirSync(this.real, { withFileTypes: true })
            .map((e) => ({ name: e.name, kind: e.isDirectory() ? KIND.folder : e.isFile() ? KIND.file : KIND.unknown }));
    }
    makeFolder(path) {
        fs.mkdirSync(this.at(path));
    }
    removeFolder(path) {
        fs.rmdirSync(this.at(path));
    }
    remove(path) {
        fs.unlinkSync(this.at(path));
    }
    rename(from, to) {
        fs.renameSync(this.at(from), this.at(to));
    }
}

/** All files of the machine, which the program knows from its start. */
export class Root extends Folder {
    constructor() {
        super("/");
        this.path = "/";
    }
    at(path) {
        return toReal(path);
    }
}

/** Standard streams, and all files of the machine. */
export function descriptors() {
    return [new Stream(0), new Stream(1), new Stream(2), new Root()];
}
