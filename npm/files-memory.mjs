// Files that a program for WASI gets from JavaScript, to read: bytes, a Blob (such as a file that somebody picked), or a file that the browser
// keeps. One folder has all of them.
import { KIND, SystemError } from "./wasi.mjs";

const PART = 1 << 24; // bytes that are copied at once

class Given {
    constructor(size) {
        this.size = size;
        this.place = 0;
    }
    /** watch(done), if there is one, is told how far the reading is, and may end it by an error. */
    read(bytes, at) {
        const from = at ?? this.place, n = Math.max(0, Math.min(bytes.length, this.size - from));
        for (let done = 0; done < n; done += PART) {
            this.watch?.(from + done);
            this.copy(bytes.subarray(done, Math.min(n, done + PART)), from + done);
        }
        if (at === null) this.place += n;
        return n;
    }
    seek(offset, whence) {
        const to = (whence === 0 ? 0 : whence === 1 ? this.place : this.size) + offset;
        if (to < 0) throw new SystemError("EINVAL");
        return (this.place = to);
    }
    stat() {
        return { kind: KIND.file, size: this.size };
    }
}

/** Bytes that came in parts, as Uint8Arrays. */
export class Parts extends Given {
    constructor(parts) {
        super(parts.reduce((sum, p) => sum + p.length, 0));
        this.parts = parts;
        let end = 0;
        this.end = parts.map((p) => (end += p.length));
    }
    copy(to, from) {
        let i = this.end.findIndex((end) => end > from);
        for (let done = 0; done < to.length; i++) {
            const begin = from + done - (this.end[i] - this.parts[i].length);
            const part = this.parts[i].subarray(begin, begin + to.length - done);
            to.set(part, done);
            done += part.length;
        }
    }
}

/** A Blob, in a worker of a browser. */
export class Picked extends Given {
    constructor(blob) {
        super(blob.size);
        this.blob = blob;
        this.reader = new FileReaderSync();
    }
    copy(to, from) {
        to.set(new Uint8Array(this.reader.readAsArrayBuffer(this.blob.slice(from, from + to.length))));
    }
}

/** A file of the browser's own (OPFS), by its handle for synchronous access. */
export class Kept extends Given {
    constructor(handle) {
        super(handle.getSize());
        this.handle = handle;
    }
    copy(to, from) {
        for (let at = 0; at < to.length; ) {
            const n = this.handle.read(to.subarray(at), { at: from + at });
            if (n === 0) throw new SystemError("EIO");
            at += n;
        }
    }
}

/** A folder with files that are given by name. */
export class GivenFolder {
    constructor(path) {
        this.path = path;
        this.files = new Map();
    }
    find(path) {
        const file = this.files.get(path);
        if (!file) throw new SystemError("ENOENT");
        return file;
    }
    open(path, how) {
        if (path === "." || path === "") return this;
        if (how.writes || how.creates) throw new SystemError("EROFS");
        const file = this.find(path);
        file.place = 0;
        return Object.assign(Object.create(Object.getPrototypeOf(file)), file);
    }
    statAt(path) {
        return path === "." || path === "" ? this.stat() : this.find(path).stat();
    }
    stat() {
        return { kind: KIND.folder };
    }
    list() {
        return [...this.files.keys()].map((name) => ({ name, kind: KIND.file }));
    }
}

/** A standard stream that has nothing to read, and whose lines go to `line`. */
export class Lines {
    constructor(line = () => {}) {
        this.line = line;
        this.rest = "";
        this.decoder = new TextDecoder();
    }
    read() {
        return 0;
    }
    write(bytes) {
        const lines = (this.rest + this.decoder.decode(bytes.slice(), { stream: true })).split("\n");
        this.rest = lines.pop();
        for (const line of lines) this.line(line);
        return bytes.length;
    }
    stat() {
        return { kind: KIND.character };
    }
}
