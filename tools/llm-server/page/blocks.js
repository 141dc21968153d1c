// Blocks of Markdown, parsed line by line while the text arrives. A call costs time linear in what it was given (plus
// one unfinished line of at most LONG characters), however long the text before is, because closed blocks are final.
//
// Nodes: {type: 'root' | 'quote' | 'item', kids}, {type: 'list', kids: items, start: number or null, loose},
// {type: 'code', lang, kids: [{text}]: pieces whose texts joined are the code}, {type: 'table', align, kids: [{cells}]:
// rows, the heading first}, {type: 'p', text}, {type: 'heading', level, text}, {type: 'rule'}.
// An item may have `task`: true or false. Nodes grow only at their ends, until they are closed.

import { work } from './inline.js';

export const LONG = 8192; // longer lines and paragraphs are cut into pieces, each parsed once
const MAX_DEPTH = 12; // deeper quotes and lists are text

export class Blocks {
    constructor() {
        this.root = { type: 'root', kids: [] };
        this.open = [this.root]; // from the root to the deepest open node
        this.blank = false; // the last line was blank
        this.middle = false; // the last piece ended within a line
        this.pending = ''; // the unfinished line
        this.saved = null; // the state before the unfinished line was shown
    }

    /** Appends text. The unfinished last line is parsed as if it were complete, and again when more arrives. */
    write(text) {
        this.restore();
        const rest = this.pending + text;
        this.pending = '';
        let i = 0;
        for (;;) {
            const newline = rest.indexOf('\n', i),
                end = newline < 0 ? rest.length : newline;
            work.steps += Math.min(end - i, LONG);
            if (end - i > LONG) {
                const cut = i + LONG - (isHighSurrogate(rest, i + LONG - 1) ? 1 : 0);
                this.piece(rest.slice(i, cut), false);
                i = cut;
            } else if (newline < 0) {
                break;
            } else {
                this.piece(rest.slice(i, rest[end - 1] === '\r' && end > i ? end - 1 : end), true);
                i = newline + 1;
            }
        }
        this.pending = rest.slice(i);
        if (this.pending) {
            this.save();
            this.piece(this.pending, false, true);
        }
    }

    /** Ends the text: the last line is complete. */
    end() {
        this.restore();
        if (this.pending) {
            this.piece(this.pending, true);
            this.pending = '';
        }
    }

    piece(s, complete, tentative = false) {
        if (this.middle) {
            this.continueLine(s, complete);
        } else {
            this.line(s, complete, tentative);
        }
        this.middle = !complete;
    }

    /** Continues a line that was cut. */
    continueLine(s, complete) {
        const leaf = this.leaf();
        if (leaf.type === 'code') {
            leaf.kids.push({ text: complete ? s + '\n' : s });
        } else if (s) {
            this.closeLeaf();
            this.add({ type: 'p', text: s });
        }
    }

    line(s, complete, tentative) {
        const at = new Cursor(s),
            matched = this.match(at),
            leaf = this.leaf();
        const whole = matched === this.open.length;
        if (leaf.type === 'code' && whole) {
            this.codeLine(leaf, at, complete, tentative);
            return;
        }
        if (at.blank()) {
            if (!tentative) {
                this.closeTo(Math.min(matched, this.containers()));
                this.blank = true;
            }
            return;
        }
        const depth = whole && !isContainer(leaf) ? matched - 1 : matched;
        if (!this.start(at, depth, leaf, whole)) {
            this.paragraph(at.rest(), matched, leaf, whole);
        }
        this.blank = false;
    }

    /** Steps over the marks of the open containers; returns how many nodes of `open` go on. A leaf goes on if all
     * its containers do. */
    match(at) {
        let k = 1;
        for (; k < this.open.length; k++) {
            const node = this.open[k];
            work.steps++;
            if (node.type === 'quote' ? !at.quoteMark() : node.type === 'item' ? !at.enterItem(node) : false) {
                break;
            }
        }
        return k > 1 && k < this.open.length && this.open[k - 1].type === 'list' ? k - 1 : k;
    }

    /** Starts the blocks that begin at the cursor, below node number depth - 1; false: the rest is a paragraph's. */
    start(at, depth, leaf, whole) {
        let started = false;
        for (;;) {
            work.steps++;
            const inParagraph = leaf.type === 'p' && whole && !started;
            if (depth < MAX_DEPTH * 2 && at.quoteMark()) {
                depth = this.enter(depth, { type: 'quote', kids: [] });
            } else if (this.startLeaf(at, depth, leaf, whole && !started)) {
                return true;
            } else {
                const marker = depth < MAX_DEPTH * 2 ? at.listMarker(inParagraph) : null;
                if (!marker) {
                    break;
                }
                depth = this.item(depth, marker);
            }
            started = true;
        }
        if (!started) {
            return false;
        }
        if (!at.blank()) {
            this.add({ type: 'p', text: at.rest().trim() });
        }
        return true;
    }

    startLeaf(at, depth, leaf, whole) {
        const s = at.rest().trim();
        const inParagraph = leaf.type === 'p' && whole;
        work.steps += s.length >> 3;
        const fence = fenceStart(s);
        if (fence) {
            this.enter(depth, { type: 'code', kids: [], indent: at.indent(), ...fence });
            return true;
        }
        if (inParagraph && /^(={3,}|-{3,})$/.test(s)) {
            this.replaceLeaf({ type: 'heading', level: s[0] === '=' ? 1 : 2, text: leaf.text });
            return true;
        }
        if (inParagraph && s.includes('-') && this.tableStart(leaf, s)) {
            return true;
        }
        const node = heading(s) ?? (isRule(s) ? { type: 'rule' } : null);
        if (node) {
            this.closeTo(depth);
            this.add(node);
            this.closeLeaf();
        }
        return node !== null;
    }

    /** The paragraph's last line is a table's heading if s is the line of dashes that fits it. */
    tableStart(leaf, s) {
        const align = splitRow(s).map(alignment);
        if (align.includes(null)) {
            return false;
        }
        const newline = leaf.text.lastIndexOf('\n'),
            cells = splitRow(leaf.text.slice(newline + 1));
        if (cells.length !== align.length || (align.length === 1 && !s.includes('|'))) {
            return false;
        }
        const table = { type: 'table', align, kids: [{ cells }] };
        if (newline < 0) {
            this.replaceLeaf(table);
        } else {
            leaf.text = leaf.text.slice(0, newline);
            this.closeLeaf();
            this.add(table);
        }
        return true;
    }

    paragraph(s, matched, leaf, whole) {
        const text = s.trimStart();
        if (leaf.type === 'table' && whole && s.includes('|')) {
            leaf.kids.push({ cells: splitRow(s).slice(0, leaf.align.length) });
        } else if (leaf.type === 'p' && leaf.text.length + text.length <= LONG) {
            leaf.text += '\n' + text; // also a line without the marks of its containers: CommonMark's lazy lines
        } else {
            this.closeTo(Math.min(matched, this.containers()));
            this.add({ type: 'p', text });
        }
    }

    codeLine(node, at, complete, tentative) {
        const s = at.rest(),
            t = s.trim();
        const fence = t.length > 0 && t === node.fence[0].repeat(t.length);
        if (fence && t.length >= node.fence.length && complete) {
            this.closeLeaf();
        } else if (!(fence && tentative)) {
            // an unfinished line of marks is probably the end
            node.kids.push({ text: at.without(node.indent) + (complete ? '\n' : '') });
        }
    }

    /** Opens an item, in the open list at this depth if it has the same kind of marker; returns the new depth. */
    item(depth, marker) {
        const list = this.open[depth];
        if (list?.type === 'list' && list.marker === marker.kind && depth < this.open.length) {
            list.loose ||= this.blank;
            depth += 1;
        } else {
            depth = this.enter(depth, {
                type: 'list',
                kids: [],
                marker: marker.kind,
                start: marker.start,
                loose: false,
            });
        }
        const item = { type: 'item', kids: [], indent: marker.indent, need: marker.need };
        if (marker.task !== undefined) {
            item.task = marker.task;
        }
        return this.enter(depth, item);
    }

    /** Closes what is deeper than depth, and opens the node there; returns the new depth. */
    enter(depth, node) {
        this.closeTo(depth);
        this.add(node);
        return this.open.length;
    }

    /** Adds a node to the deepest container and opens it. */
    add(node) {
        this.closeTo(this.containers());
        const parent = this.leaf(),
            list = this.open[this.open.length - 2];
        if (parent.type === 'item' && parent.kids.length && this.blank) {
            list.loose = true;
        }
        parent.kids.push(node);
        this.open.push(node);
    }

    replaceLeaf(node) {
        this.open.pop();
        this.leaf().kids.pop();
        this.leaf().kids.push(node);
        if (node.type === 'table') {
            this.open.push(node);
        }
    }

    leaf() {
        return this.open[this.open.length - 1];
    }

    /** How many of the open nodes are containers. */
    containers() {
        return isContainer(this.leaf()) ? this.open.length : this.open.length - 1;
    }

    closeLeaf() {
        this.closeTo(this.containers());
    }

    closeTo(n) {
        this.open.length = Math.max(1, Math.min(n, this.open.length));
    }

    /** Remembers the open nodes, the only ones that a line changes. */
    save() {
        this.saved = {
            blank: this.blank,
            middle: this.middle,
            open: this.open.slice(),
            nodes: this.open.map((n) => ({ n: n.kids?.length, last: n.kids?.at(-1), text: n.text, loose: n.loose })),
        };
    }

    restore() {
        if (!this.saved) {
            return;
        }
        const { blank, middle, open, nodes } = this.saved;
        open.forEach((node, k) => {
            const was = nodes[k];
            work.steps++;
            if (was.n !== undefined) {
                node.kids.length = was.n;
                if (was.n) {
                    node.kids[was.n - 1] = was.last;
                }
            }
            Object.assign(node, { text: was.text, loose: was.loose });
        });
        Object.assign(this, { blank, middle, open, saved: null });
    }
}

/** A position in a line, after the marks of containers. Columns count a tab as the way to the next multiple of four. */
class Cursor {
    constructor(s) {
        this.s = s;
        this.i = 0;
    }

    rest() {
        return this.s.slice(this.i);
    }

    blank() {
        return !/\S/.test(this.s.slice(this.i));
    }

    /** Columns of white space at the cursor. */
    indent() {
        let columns = 0;
        for (let i = this.i; this.s[i] === ' ' || this.s[i] === '\t'; i++) {
            columns += this.s[i] === '\t' ? 4 - (columns % 4) : 1;
        }
        work.steps += columns >> 2;
        return columns;
    }

    /** The position after at most n columns of white space. */
    after(n) {
        let i = this.i;
        for (let columns = 0; columns < n && (this.s[i] === ' ' || this.s[i] === '\t'); i++) {
            columns += this.s[i] === '\t' ? 4 - (columns % 4) : 1;
        }
        return i;
    }

    without(columns) {
        return this.s.slice(this.after(columns));
    }

    quoteMark() {
        const i = this.after(3);
        if (this.s[i] !== '>') {
            return false;
        }
        this.i = i + 1 + (this.s[i + 1] === ' ' ? 1 : 0);
        return true;
    }

    /** True if the line belongs to the item: it is indented as its text, or at least two columns more than its marker. */
    enterItem(item) {
        if (this.blank()) {
            return true;
        }
        if (this.indent() < item.need) {
            return false;
        }
        this.i = this.after(item.indent);
        return true;
    }

    /** Reads the marker of a list's item; returns {kind, start, indent, need, task} or null. */
    listMarker(inParagraph) {
        const lead = this.indent(),
            from = this.after(lead);
        const found = /^(?:([-+*])|(\d{1,9})([.)]))(?=[ \t]|$)/.exec(this.s.slice(from, from + 12));
        if (!found) {
            return null;
        }
        const start = found[2] === undefined ? null : Number(found[2]),
            after = from + found[0].length;
        const empty = !/\S/.test(this.s.slice(after));
        if (inParagraph && (empty || (start !== null && start !== 1))) {
            return null;
        }
        this.i = after;
        const space = this.indent(),
            pad = empty || space > 4 ? 1 : space;
        this.i = this.after(pad);
        const task = /^\[([ xX])\](?=\s)/.exec(this.s.slice(this.i, this.i + 4));
        this.i += task ? 4 : 0;
        return {
            kind: found[1] ?? found[3],
            start,
            indent: lead + found[0].length + pad,
            need: lead + 2,
            task: task ? task[1] !== ' ' : undefined,
        };
    }
}

function isContainer(node) {
    return node.type === 'root' || node.type === 'quote' || node.type === 'item' || node.type === 'list';
}

function isHighSurrogate(s, i) {
    const c = s.charCodeAt(i);
    return c >= 0xd800 && c < 0xdc00;
}

/** ```` ```lang ````: {fence, lang}, or null. */
function fenceStart(s) {
    const found = /^(`{3,}|~{3,})([^`]*)$/.exec(s);
    return (
        found && {
            fence: found[1],
            lang: found[2]
                .trim()
                .split(/[\s{,]/, 1)[0]
                .toLowerCase()
                .slice(0, 32),
        }
    );
}

function heading(s) {
    const found = /^#{1,6}(?=\s|$)/.exec(s);
    if (!found) {
        return null;
    }
    let end = s.length;
    while (s[end - 1] === '#') {
        end--;
    }
    const closed = end < s.length && (end === found[0].length || /\s/.test(s[end - 1] ?? ''));
    const text = s.slice(found[0].length, closed ? Math.max(end, found[0].length) : s.length).trim();
    return { type: 'heading', level: found[0].length, text };
}

/** Three or more of one of `-`, `*`, `_`, and spaces. */
function isRule(s) {
    const c = s[0];
    if (c !== '-' && c !== '*' && c !== '_') {
        return false;
    }
    let n = 0;
    for (const d of s) {
        work.steps++;
        if (d === c) {
            n++;
        } else if (d !== ' ' && d !== '\t') {
            return false;
        }
    }
    return n >= 3;
}

/** The cells of a table's row; `\|` is a bar in a cell. */
function splitRow(line) {
    const cells = [];
    const s = line.trim();
    let cell = '';
    for (let i = s[0] === '|' ? 1 : 0; i < s.length; i++) {
        work.steps++;
        if (s[i] === '\\' && s[i + 1] === '|') {
            cell += '|';
            i++;
        } else if (s[i] === '|') {
            cells.push(cell.trim());
            cell = '';
        } else {
            cell += s[i];
        }
    }
    if (cell.trim() || cells.length === 0) {
        cells.push(cell.trim());
    }
    return cells;
}

function alignment(cell) {
    if (!/^:?-+:?$/.test(cell)) {
        return null;
    }
    return cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'right') : '';
}
