// The files and standard streams of this machine, for wasi.mjs.
import * as fs from "node:fs";
import { isatty } from "node:tty";
import { join } from "node:path";
import { KIND, SystemError } from "./wasi.mjs";

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

/** A folder of the machine; `path` is given if the program knows it from its start. */
export class Folder {
    constructor(real, path) {
        this.real = real;
        if (path !== undefined) this.path = path;
    }
    open(path, how) {
        const real = join(this.real, path), c = fs.constants;
        const is = how.creates ? null : fs.statSync(real);
        if (how.isFolder && is && !is.isDirectory()) throw new SystemError("ENOTDIR");
        if (is?.isDirectory() && !how.writes) return new Folder(real);
        const flags = (how.writes ? (how.reads ? c.O_RDWR : c.O_WRONLY) : c.O_RDONLY)
            | (how.creates ? c.O_CREAT : 0) | (how.isNew ? c.O_EXCL : 0) | (how.empties ? c.O_TRUNC : 0)
            | (how.appends ? c.O_APPEND : 0) | (how.follows ? 0 : c.O_NOFOLLOW ?? 0);
        return new File(fs.openSync(real, flags, 0o666), how.appends);
    }
    statAt(path, follows) {
        const real = join(this.real, path);
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
        fs.mkdirSync(join(this.real, path));
    }
    removeFolder(path) {
        fs.rmdirSync(join(this.real, path));
    }
    remove(path) {
        fs.unlinkSync(join(this.real, path));
    }
    rename(from, to) {
        fs.renameSync(join(this.real, from), join(this.real, to));
    }
}

/** Standard streams, and all files of the machine. */
export function descriptors() {
    return [new Stream(0), new Stream(1), new Stream(2), new Folder("/", "/")];
}
