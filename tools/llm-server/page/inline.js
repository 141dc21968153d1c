// Inline Markdown: a text becomes a list of nodes in one pass and time linear in its length, whatever the text is.
//
// Nodes: {type: 'text' | 'code' | 'math', text}, {type: 'br'}, {type: 'em' | 'strong' | 'del', nodes},
// {type: 'link', url, title, nodes}, {type: 'image', url, text}.
// HTML is not interpreted: it stays text. What keeps hostile text linear and shallow: at most MAX_OPEN openers of
// emphasis and brackets wait for their end (the oldest becomes text), a longer run than MAX_RUN is text, and a URL has
// at most MAX_URL characters.

/** Steps of all parsing since the start; tests compare them with the length of the text. */
export const work = { steps: 0 };

const MAX_OPEN = 32,
    MAX_RUN = 3,
    MAX_URL = 2048,
    MAX_PARENS = 8;
const ENTITIES = {
    amp: '&',
    lt: '<',
    gt: '>',
    quot: '"',
    apos: "'",
    nbsp: '\u00a0',
    hellip: '…',
    mdash: '—',
    ndash: '–',
    copy: '©',
    times: '×',
    rarr: '→',
    larr: '←',
};
const PLAIN = /[^\\`*_~[\]<!&\n$h]+/y; // a run of characters that mean nothing
const PUNCTUATION = /[\p{P}\p{S}]/u;
const ESCAPABLE = /[!-/:-@[-`{-~]/;

/** The URL if its scheme is harmless (http, https, mailto), else null. */
export function safeUrl(url) {
    return /^(https?:\/\/|mailto:)[^\s\u0000-\u0020]+$/i.test(url) ? url : null;
}

/** Parses text (a paragraph, a heading, a cell) and returns its nodes. */
export function parseInline(text) {
    return new Inline(text).run();
}

/** The text of nodes, without their marks. */
export function plainText(nodes) {
    return nodes.map((n) => (n.nodes ? plainText(n.nodes) : n.type === 'br' ? '\n' : n.text)).join('');
}

class Inline {
    constructor(text) {
        this.s = text;
        this.i = 0;
        this.nodes = [];
        this.brackets = []; // {at: index in nodes, image}: those that are open
        this.noClose = new Set(); // ends of formulas that the rest of the text does not have
        this.ticks = null; // length of a run of backticks -> its positions, ascending
    }

    run() {
        while (this.i < this.s.length) {
            work.steps++;
            PLAIN.lastIndex = this.i;
            const plain = PLAIN.exec(this.s);
            if (plain) {
                work.steps += plain[0].length >> 4;
                this.text(plain[0]);
            } else {
                const c = this.s[this.i];
                if (!HANDLERS[c].call(this, c)) {
                    this.text(c);
                }
            }
        }
        return emphasis(this.nodes);
    }

    /** Appends t as text and steps over it. */
    text(t, length = t.length) {
        const last = this.nodes.at(-1);
        if (last?.type === 'text') {
            last.text += t;
        } else {
            this.nodes.push({ type: 'text', text: t });
        }
        this.i += length;
        return true;
    }

    node(node, length) {
        this.nodes.push(node);
        this.i += length;
        return true;
    }

    backslash() {
        const next = this.s[this.i + 1];
        if (next === '(' || next === '[') {
            return this.math(next === '(' ? '\\)' : '\\]') || this.text(next, 2);
        }
        if (next === '\n') {
            return this.node({ type: 'br' }, 2);
        }
        return next !== undefined && ESCAPABLE.test(next) && this.text(next, 2);
    }

    /** A formula is shown as it is written, marks included, so that no emphasis is found in it. */
    math(close) {
        if (this.noClose.has(close)) {
            return false;
        }
        const end = this.s.indexOf(close, this.i + 2);
        work.steps += (end < 0 ? this.s.length : end) - this.i;
        if (end < 0) {
            this.noClose.add(close);
            return false;
        }
        const length = end + 2 - this.i;
        return this.node({ type: 'math', text: this.s.slice(this.i, this.i + length) }, length);
    }

    dollar() {
        return this.s[this.i + 1] === '$' && this.math('$$');
    }

    code() {
        const n = this.runLength('`');
        this.ticks ??= tickRuns(this.s);
        const runs = this.ticks.get(n);
        while (runs?.at[runs.next] <= this.i) {
            runs.next++;
            work.steps++;
        }
        const end = runs?.at[runs.next]; // there may be no such run: a backslash has taken one from this
        if (end === undefined) {
            return this.text('`'.repeat(n));
        }
        let text = this.s.slice(this.i + n, end).replaceAll('\n', ' ');
        work.steps += text.length;
        if (text.length > 2 && text.startsWith(' ') && text.endsWith(' ') && text.trim()) {
            text = text.slice(1, -1);
        }
        return this.node({ type: 'code', text }, end + n - this.i);
    }

    runLength(c) {
        let n = 1;
        while (this.s[this.i + n] === c) {
            n++;
        }
        work.steps += n;
        return n;
    }

    /** A run of `*`, `_` or `~` that may open or close emphasis. */
    delimiter(c) {
        const n = this.runLength(c),
            run = c.repeat(n);
        if (n > MAX_RUN || (c === '~' && n !== 2)) {
            return this.text(run);
        }
        const before = this.s[this.i - 1] ?? ' ',
            after = this.s[this.i + n] ?? ' ';
        const left = flanks(after, before),
            right = flanks(before, after);
        const open = left && (c !== '_' || !right || PUNCTUATION.test(before));
        const close = right && (c !== '_' || !left || PUNCTUATION.test(after));
        return this.node({ type: 'run', c, text: run, total: n, open, close }, n);
    }

    openBracket() {
        return this.bracket('[', false);
    }

    bang() {
        return this.s[this.i + 1] === '[' && this.bracket('![', true);
    }

    bracket(text, image) {
        this.brackets.push({ at: this.nodes.length, image });
        if (this.brackets.length > MAX_OPEN) {
            this.brackets.shift();
        }
        return this.node({ type: 'mark', text }, text.length);
    }

    closeBracket() {
        const bracket = this.brackets.pop();
        const target = bracket && this.target(this.i + 1);
        if (!target) {
            return false;
        }
        const nodes = emphasis(this.nodes.splice(bracket.at).slice(1));
        work.steps += nodes.length;
        if (!bracket.image) {
            this.brackets.length = 0; // a link contains no link
        }
        const node = bracket.image
            ? { type: 'image', url: target.url, text: plainText(nodes) }
            : { type: 'link', url: target.url, title: target.title, nodes };
        return this.node(node, target.end - this.i);
    }

    /** Reads `(url "title")` at position i; returns {url, title, end} or null. */
    target(i) {
        if (this.s[i] !== '(') {
            return null;
        }
        const start = this.skipSpace(i + 1),
            angle = this.s[start] === '<';
        const end = angle ? this.angleEnd(start + 1) : this.urlEnd(start);
        if (end < 0) {
            return null;
        }
        const url = this.s.slice(start + (angle ? 1 : 0), end);
        let at = this.skipSpace(angle ? end + 1 : end),
            title = '';
        const quote = this.s[at];
        if ((quote === '"' || quote === "'") && at > end) {
            const close = this.s.slice(at + 1, at + MAX_URL).indexOf(quote);
            work.steps += close < 0 ? MAX_URL : close;
            if (close < 0) {
                return null;
            }
            title = this.s.slice(at + 1, at + 1 + close);
            at = this.skipSpace(at + close + 2);
        }
        return this.s[at] === ')' ? { url, title, end: at + 1 } : null;
    }

    skipSpace(i) {
        const limit = i + 64;
        while (i < limit && (this.s[i] === ' ' || this.s[i] === '\n')) {
            i++;
        }
        return i;
    }

    angleEnd(i) {
        for (const limit = i + MAX_URL; i < limit && i < this.s.length; i++, work.steps++) {
            if (this.s[i] === '>') {
                return i;
            }
            if (this.s[i] === '<' || this.s[i] === '\n') {
                break;
            }
        }
        return -1;
    }

    /** The end of a URL with balanced parentheses that starts at i, or -1. */
    urlEnd(i) {
        let depth = 0,
            n = 0;
        for (const limit = i + MAX_URL; i < limit; i++, work.steps++) {
            const c = this.s[i];
            if (c === undefined || c <= ' ' || (c === ')' && depth === 0)) {
                return i;
            }
            depth += c === '(' ? 1 : c === ')' ? -1 : 0;
            n += c === '(' ? 1 : 0;
            if (n > MAX_PARENS) {
                break;
            }
        }
        return -1;
    }

    /** `<https://..>` is a link; any other `<` is text. */
    angle() {
        const end = this.angleEnd(this.i + 1),
            url = end < 0 ? null : safeUrl(this.s.slice(this.i + 1, end));
        return url !== null && this.node(link(url), url.length + 2);
    }

    /** A URL without marks around it is a link, too, up to the punctuation that ends the sentence. */
    bareUrl() {
        if (!this.s.startsWith('http', this.i) || /\w/.test(this.s[this.i - 1] ?? ' ')) {
            return false;
        }
        const found = /^https?:\/\/[^\s<>"`*]+/.exec(this.s.slice(this.i, this.i + MAX_URL));
        if (!found) {
            return false;
        }
        work.steps += found[0].length;
        const last = found[0].includes('(') ? ".,;:!?'_~]" : ".,;:!?'_~])";
        let end = found[0].length;
        while (last.includes(found[0][end - 1])) {
            end--;
        }
        const url = found[0].slice(0, end);
        return !url.endsWith('/') || url.length > 8 ? this.node(link(url), end) : false;
    }

    entity() {
        const found = /^&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/.exec(this.s.slice(this.i, this.i + 12));
        if (!found) {
            return false;
        }
        const code = found[3] ? ENTITIES[found[3]]?.codePointAt(0) : parseInt(found[1] ?? found[2], found[1] ? 10 : 16);
        const valid = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
        return valid && this.text(String.fromCodePoint(code), found[0].length);
    }

    /** Lines stay lines: people who chat expect it, and poems need it. */
    newline() {
        const last = this.nodes.at(-1);
        if (last?.type === 'text') {
            last.text = last.text.trimEnd();
        }
        return this.node({ type: 'br' }, 1);
    }
}

const P = Inline.prototype;
const HANDLERS = {
    '\\': P.backslash,
    '`': P.code,
    '*': P.delimiter,
    _: P.delimiter,
    '~': P.delimiter,
    '[': P.openBracket,
    ']': P.closeBracket,
    '<': P.angle,
    '!': P.bang,
    '&': P.entity,
    '\n': P.newline,
    $: P.dollar,
    h: P.bareUrl,
};

function link(url) {
    return { type: 'link', url, title: '', nodes: [{ type: 'text', text: url }] };
}

/** True if a run beside `inner` can be the edge of emphasis that contains it; `outer` is the character opposite. */
function flanks(inner, outer) {
    return !/\s/.test(inner) && (!PUNCTUATION.test(inner) || /\s/.test(outer) || PUNCTUATION.test(outer));
}

function tickRuns(s) {
    const runs = new Map();
    for (const found of s.matchAll(/`+/g)) {
        const n = found[0].length;
        if (!runs.has(n)) {
            runs.set(n, { at: [], next: 0 });
        }
        runs.get(n).at.push(found.index);
        work.steps += n;
    }
    return runs;
}

const TAGS = { '*': ['em', 'strong'], _: ['em', 'strong'], '~': ['del', 'del'] };

/** Pairs the runs among nodes, by CommonMark's rules, and returns the nodes with emphasis around what is inside. */
function emphasis(nodes) {
    const out = [],
        open = []; // open: {run, at}: runs in `out` that may still be closed
    for (const node of nodes) {
        work.steps++;
        if (node.type !== 'run') {
            out.push(node.type === 'mark' ? { type: 'text', text: node.text } : node);
            continue;
        }
        while (node.close && node.text && closeRun(node, out, open)) {
            continue;
        }
        if (node.text) {
            if (node.open) {
                open.push({ run: node, at: out.length });
            }
            if (open.length > MAX_OPEN) {
                open.shift();
            }
            out.push({ type: 'text', text: node.text });
        }
    }
    return out;
}

/** Closes the nearest opener that fits the run; false if there is none. */
function closeRun(run, out, open) {
    let k = open.length - 1;
    for (; k >= 0 && !fits(open[k].run, run); k--) {
        work.steps++;
    }
    if (k < 0) {
        return false;
    }
    const opener = open[k],
        n = opener.run.text.length >= 2 && run.text.length >= 2 ? 2 : 1;
    const inner = out.splice(opener.at + 1);
    work.steps += inner.length;
    opener.run.text = opener.run.text.slice(n);
    run.text = run.text.slice(n);
    open.length = k;
    out.length = opener.at;
    if (opener.run.text) {
        out.push({ type: 'text', text: opener.run.text });
        open.push(opener);
    }
    out.push({ type: TAGS[run.c][n - 1], nodes: inner });
    return true;
}

function fits(opener, closer) {
    if (opener.c !== closer.c || (opener.c === '~' && opener.text.length !== closer.text.length)) {
        return false;
    }
    const both = opener.close || closer.open;
    return !both || (opener.total + closer.total) % 3 !== 0 || (opener.total % 3 === 0 && closer.total % 3 === 0);
}
