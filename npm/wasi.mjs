// WASI (preview 1) for the programs and the library: the calls of wasi-libc, over descriptors that are JavaScript objects. A machine's own
// files come from node (files-node.mjs); in a browser there are only standard streams, and what was given as a file in memory.
//
// A descriptor is an object with some of these functions. They return a number, or throw an Error with a `code` as node's have it.
//     read(bytes, at), write(bytes, at)    at: the place, or null: where it is; return how many bytes
//     seek(offset, whence), sync(), truncate(size), close()
//     stat()                               {kind, size, modified, id, disk, names}
// A folder also has, with paths relative to it:
//     open(path, flags), statAt(path, follows), list(), makeFolder(path), remove(path), removeFolder(path), rename(from, to)

export const KIND = { unknown: 0, block: 1, character: 2, folder: 3, file: 4, socket: 6, link: 7 };

const ERRNO = {
    EACCES: 2, EAGAIN: 6, EBADF: 8, EBUSY: 10, EDQUOT: 19, EEXIST: 20, EFAULT: 21, EFBIG: 22, EINTR: 27, EINVAL: 28, EIO: 29, EISDIR: 31, ELOOP: 32,
    EMFILE: 33, EMLINK: 34, ENAMETOOLONG: 37, ENFILE: 41, ENODEV: 43, ENOENT: 44, ENOMEM: 48, ENOSPC: 51, ENOSYS: 52, ENOTDIR: 54,
    ENOTEMPTY: 55, ENOTSUP: 58, ENXIO: 60, EPERM: 63, EPIPE: 64, EROFS: 69, ESPIPE: 70, ETXTBSY: 74,
    EXDEV: 75,
};
const CREATE = 1, FOLDER = 2, NEW = 4, EMPTY = 8; // flags of path_open
const MAY_READ = 1 << 1, MAY_WRITE = 1 << 6;
const APPEND = 1;

/** Whether a module's addresses have 64 bits. All numbers that it gives to WASI then have, and so have addresses and sizes in its memory. */
export function isWide(module) {
    const features = WebAssembly.Module.customSections(module, "target_features");
    return features.some((f) => new TextDecoder().decode(f).includes("memory64"));
}

/** Whether the engine has such modules: this empty one has memory and a table with addresses of 64 bits. */
export function hasWide() {
    return WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 4, 4, 1, 112, 4, 0, 5, 3, 1, 4, 0]));
}

/** An address, a size or a flag that a module gives, as a number: those of 32 bits come with a sign, which they do not have, and those of 64 bits as BigInts. */
export function toNumber(given) {
    return typeof given === "number" ? given >>> 0 : Number(given);
}

/** What proc_exit() throws. */
export class Exit {
    constructor(code) {
        this.code = code;
    }
}

export class SystemError extends Error {
    constructor(code) {
        super(code);
        this.code = code;
    }
}

export class Wasi {
    /** descriptors: those of standard input, output and errors, and then folders, each with the `path` by which the program knows it.
     * wide: what isWide() says of the module. */
    constructor({ args = [], env = {}, descriptors = [], wide = false }) {
        this.wide = wide;
        this.addressSize = wide ? 8 : 4;
        this.args = args;
        this.env = Object.entries(env).map(([name, value]) => `${name}=${value}`);
        this.descriptors = [...descriptors];
        this.memory = null;
        this.encoder = new TextEncoder();
        this.decoder = new TextDecoder();
    }

    view() {
        return new DataView(this.memory.buffer);
    }

    bytes(at, n) {
        return new Uint8Array(this.memory.buffer, at, n);
    }

    /** An address or a size in memory. */
    address(at) {
        return this.wide ? Number(this.view().getBigUint64(at, true)) : this.view().getUint32(at, true);
    }

    putAddress(at, n) {
        if (this.wide) this.view().setBigUint64(at, BigInt(n), true);
        else this.view().setUint32(at, n, true);
    }

    text(at, n) {
        return this.decoder.decode(this.bytes(at, n).slice());
    }

    at(fd) {
        const d = this.descriptors[fd];
        if (!d) throw new SystemError("EBADF");
        return d;
    }

    call(fd, name, ...args) {
        const d = this.at(fd);
        if (!d[name]) throw new SystemError(name === "seek" ? "ESPIPE" : "ENOTSUP");
        return d[name](...args);
    }

    /** Moves bytes between the parts of memory that a list names and a descriptor, until one is not filled. */
    move(fd, name, list, n, at, moved) {
        let total = 0;
        for (let i = 0; i < n; i++) {
            const part = list + 2 * this.addressSize * i;
            const from = this.address(part), size = this.address(part + this.addressSize);
            if (size === 0) continue;
            const got = this.call(fd, name, this.bytes(from, size), at === null ? null : at + total);
            total += got;
            if (got < size) break;
        }
        this.putAddress(moved, total);
    }

    putStrings(strings, list, to) {
        for (const s of strings) {
            const bytes = this.encoder.encode(s + "\0");
            this.putAddress(list, to);
            this.bytes(to, bytes.length).set(bytes);
            list += this.addressSize;
            to += bytes.length;
        }
    }

    putSizes(strings, n, size) {
        this.putAddress(n, strings.length);
        this.putAddress(size, strings.reduce((sum, s) => sum + this.encoder.encode(s).length + 1, 0));
    }

    putStat(to, s) {
        const v = this.view(), time = BigInt(Math.round((s.modified ?? 0) * 1e6));
        v.setBigUint64(to, BigInt(s.disk ?? 1), true);
        v.setBigUint64(to + 8, BigInt(s.id ?? 0), true);
        v.setBigUint64(to + 16, BigInt(s.kind), true);
        v.setBigUint64(to + 24, BigInt(s.names ?? 1), true);
        v.setBigUint64(to + 32, BigInt(s.size ?? 0), true);
        for (let i = 0; i < 3; i++) v.setBigUint64(to + 40 + 8 * i, time, true);
    }

    /** The calls, without what they do about errors. */
    calls() {
        const folder = (fd) => {
            const d = this.at(fd);
            if (!d.open) throw new SystemError("ENOTDIR");
            return d;
        };
        return {
            args_sizes_get: (n, size) => this.putSizes(this.args, n, size),
            args_get: (list, to) => this.putStrings(this.args, list, to),
            environ_sizes_get: (n, size) => this.putSizes(this.env, n, size),
            environ_get: (list, to) => this.putStrings(this.env, list, to),
            clock_time_get: (id, precision, to) => {
                const ms = id === 0 ? Date.now() : performance.now();
                this.view().setBigUint64(to, BigInt(Math.round(ms * 1e6)), true);
            },
            random_get: (to, n) => {
                for (let at = 0; at < n; at += 65536) {
                    const part = new Uint8Array(Math.min(65536, n - at));
                    crypto.getRandomValues(part);
                    this.bytes(to + at, part.length).set(part);
                }
            },
            proc_exit: (code) => {
                throw new Exit(code);
            },
            // a sleep: nothing else is waited for
            poll_oneoff: (list, to, n, done) => {
                const v = this.view();
                let count = 0;
                for (let i = 0; i < n; i++) {
                    const at = list + 48 * i, out = to + 32 * count++;
                    const kind = v.getUint8(at + 8), ns = Number(v.getBigUint64(at + 24, true));
                    if (kind === 0) {
                        const now = (v.getUint32(at + 16, true) === 0 ? Date.now() : performance.now()) * 1e6;
                        this.sleep((v.getUint16(at + 40, true) & 1 ? ns - now : ns) / 1e6);
                    }
                    v.setBigUint64(out, v.getBigUint64(at, true), true);
                    v.setUint16(out + 8, 0, true);
                    v.setUint8(out + 10, kind);
                }
                this.putAddress(done, count);
            },
            sched_yield: () => {},
            fd_close: (fd) => {
                this.at(fd).close?.();
                this.descriptors[fd] = undefined;
            },
            fd_sync: (fd) => void this.at(fd).sync?.(),
            fd_fdstat_get: (fd, to) => {
                const d = this.at(fd), v = this.view();
                v.setUint8(to, d.stat().kind);
                v.setUint16(to + 2, d.appends ? APPEND : 0, true);
                // a terminal is a device that cannot be searched (isatty() of wasi-libc)
                v.setBigUint64(to + 8, d.isTerminal ? BigInt(MAY_READ | MAY_WRITE) : ~0n, true);
                v.setBigUint64(to + 16, ~0n, true);
            },
            fd_fdstat_set_flags: (fd) => void this.at(fd),
            fd_filestat_get: (fd, to) => this.putStat(to, this.at(fd).stat()),
            fd_filestat_set_size: (fd, size) => this.call(fd, "truncate", size),
            fd_filestat_set_times: (fd) => void this.at(fd),
            fd_read: (fd, list, n, moved) => this.move(fd, "read", list, n, null, moved),
            fd_pread: (fd, list, n, at, moved) => this.move(fd, "read", list, n, at, moved),
            fd_write: (fd, list, n, moved) => this.move(fd, "write", list, n, null, moved),
            fd_pwrite: (fd, list, n, at, moved) => this.move(fd, "write", list, n, at, moved),
            fd_seek: (fd, offset, whence, to) =>
                this.view().setBigUint64(to, BigInt(this.call(fd, "seek", offset, whence)), true),
            fd_tell: (fd, to) => this.view().setBigUint64(to, BigInt(this.call(fd, "seek", 0, 1)), true),
            fd_prestat_get: (fd, to) => {
                const d = this.at(fd);
                if (d.path === undefined) throw new SystemError("EBADF");
                this.view().setUint32(to, 0, true);
                this.putAddress(to + this.addressSize, this.encoder.encode(d.path).length);
            },
            fd_prestat_dir_name: (fd, to, n) => {
                this.bytes(to, n).set(this.encoder.encode(this.at(fd).path).subarray(0, n));
            },
            fd_readdir: (fd, to, size, cookie, used) => {
                let at = 0;
                const names = folder(fd).list();
                for (let i = cookie; i < names.length && at < size; i++) {
                    const name = this.encoder.encode(names[i].name), entry = new Uint8Array(24 + name.length);
                    const v = new DataView(entry.buffer);
                    v.setBigUint64(0, BigInt(i + 1), true);
                    v.setUint32(16, name.length, true);
                    v.setUint8(20, names[i].kind);
                    entry.set(name, 24);
                    const part = entry.subarray(0, size - at); // what has no room is asked for again
                    this.bytes(to + at, part.length).set(part);
                    at += part.length;
                }
                this.putAddress(used, at);
            },
            path_open: (fd, follow, path, n, oflags, rights, inheriting, flags, to) => {
                const name = this.text(path, n);
                const d = folder(fd).open(name, {
                    follows: (follow & 1) !== 0,
                    reads: (rights & MAY_READ) !== 0,
                    writes: (rights & MAY_WRITE) !== 0,
                    creates: (oflags & CREATE) !== 0,
                    isNew: (oflags & NEW) !== 0,
                    empties: (oflags & EMPTY) !== 0,
                    isFolder: (oflags & FOLDER) !== 0,
                    appends: (flags & APPEND) !== 0,
                });
                let free = 3;
                while (this.descriptors[free]) free++;
                this.descriptors[free] = d;
                this.view().setUint32(to, free, true);
            },
            path_filestat_get: (fd, follow, path, n, to) =>
                this.putStat(to, folder(fd).statAt(this.text(path, n), (follow & 1) !== 0)),
            path_filestat_set_times: (fd) => void folder(fd),
            path_create_directory: (fd, path, n) => folder(fd).makeFolder(this.text(path, n)),
            path_remove_directory: (fd, path, n) => folder(fd).removeFolder(this.text(path, n)),
            path_unlink_file: (fd, path, n) => folder(fd).remove(this.text(path, n)),
            path_rename: (fd, from, n, fd2, to, n2) => folder(fd).rename(this.text(from, n), this.text(to, n2)),
            path_readlink: () => {
                throw new SystemError("EINVAL");
            },
        };
    }

    /** Waits without doing anything else, where the system lets a program do that: not on a page's own thread. */
    sleep(ms) {
        if (!(ms > 0)) return;
        try {
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
        } catch {
            for (const end = performance.now() + ms; performance.now() < end; );
        }
    }

    /** What a module of WebAssembly imports. An exception would leave the program's functions without their ends, so only what ends the program
     * is one: Exit, and a mistake of this file. What the system refuses is a number. */
    imports() {
        const wrapped = {};
        for (const [name, f] of Object.entries(this.calls()))
            wrapped[name] = (...args) => {
                try {
                    f(...args.map(toNumber));
                    return 0;
                } catch (e) {
                    if (e instanceof Exit || e?.code === undefined) throw e;
                    return ERRNO[e.code] ?? ERRNO.EIO; // also of node's own ERR_.., and of exceptions of a browser, whose codes are numbers
                }
            };
        return { wasi_snapshot_preview1: wrapped };
    }

    /** Runs a program to its end; returns its exit code. */
    start(instance) {
        this.memory = instance.exports.memory;
        try {
            instance.exports._start();
            return 0;
        } catch (e) {
            if (e instanceof Exit) return e.code;
            throw e;
        }
    }
}
