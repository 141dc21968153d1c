// Markdown on the page while it arrives. Blocks before the last are final; only what follows them is parsed again when
// text arrives, and only the elements that differ are changed. Lines of an open block of code are not parsed at all.

import { CodeBox } from './code.js';
import { LONG, parse } from './markdown.js';
import { drawMath } from './math.js';

const LARGE = 32768; // characters; a longer list, quote or table ends there

/** Shows Markdown in an element. `doc` is the document, or a stand-in for tests. */
export class Markdown {
    constructor(element, doc = document) {
        Object.assign(this, { element, doc });
        this.length = 0; // characters written
        this.text = ''; // what is not final; begins with a line
        this.nFinal = 0; // children of the element
        this.fence = null; // the open block of code: {box, markup, indent}
        this.half = ''; // a carriage return, whose line feed may follow
        this.made = new WeakMap(); // DOM node -> what it shows: {text}, {box, info}, {math} or {tag, attributes}
    }

    /** Appends text and shows it. */
    write(text) {
        this.length += text.length;
        const whole = this.half + text;
        this.half = whole.endsWith('\r') ? '\r' : '';
        this.text += whole.slice(0, whole.length - this.half.length).replace(/\r\n?/g, '\n').replaceAll('\0', '\ufffd');
        this.show();
    }

    /** Ends the text: the last line is complete. */
    end() {
        this.half = '';
        if (this.text && !this.text.endsWith('\n')) {
            this.text += '\n';
            this.show();
        }
    }

    show() {
        if (!this.fence || this.continueFence()) {
            this.showBlocks();
        }
    }

    showBlocks() {
        const { kids, blocks } = parse(this.text),
            lines = lineStarts(this.text);
        this.patch(this.element, kids, this.nFinal);
        // The last that is sure to begin where it does: the second line decides whether the first is a table's.
        const n = blocks.findLastIndex(({ map }) => map[0] + 2 < lines.length);
        const most = blocks[0]?.type === 'paragraph_open' ? 2 * LONG : LARGE;
        if (this.text.length > most && blocks.length === 1) {
            this.nFinal += blocks.length;
            this.text = '';
        } else if (n >= 0) {
            this.nFinal += n;
            this.text = this.text.slice(lines[blocks[n].map[0]]);
            if (n === blocks.length - 1 && blocks[n].type === 'fence' && !isClosed(blocks[n], lines, this.text)) {
                this.openFence(blocks[n]);
            }
        }
    }

    /** From here on, lines go to the box of the code until one closes it. */
    openFence({ markup }) {
        const { box } = this.made.get(this.element.childNodes[this.nFinal++]);
        this.fence = { box, markup, indent: new RegExp(`^ {0,${/^ */.exec(this.text)[0].length}}`) };
        this.text = this.text.slice(this.text.lastIndexOf('\n') + 1);
        this.continueFence();
    }

    /** Shows lines of code; true: the code has ended. */
    continueFence() {
        const { box, markup, indent } = this.fence,
            lines = this.text.split('\n');
        const end = lines.slice(0, -1).findIndex((line) => closes(line, markup));
        const code = (end < 0 ? lines.slice(0, -1) : lines.slice(0, end)).map((line) => line.replace(indent, '') + '\n');
        if (end >= 0) {
            box.append(code.join(''));
            this.text = lines.slice(end + 1).join('\n');
            this.fence = null;
            return true;
        }
        this.text = lines.at(-1);
        const isEnd = closes(this.text, markup[0]); // an unfinished line of marks is probably the end
        box.append(code.join('') + (isEnd ? '' : this.text.replace(indent, '')));
        return false;
    }

    /** Makes the children of an element, from number `from` on, what the tree says. */
    patch(parent, kids, from = 0) {
        kids.forEach((kid, k) => {
            const node = parent.childNodes[from + k];
            if (!node) {
                parent.append(this.create(kid));
            } else if (!this.update(node, kid)) {
                node.replaceWith(this.create(kid));
            }
        });
        while (parent.childNodes.length > from + kids.length) {
            parent.lastChild.remove();
        }
    }

    /** Changes a node so that it shows what `kid` says; false if it cannot. */
    update(node, kid) {
        const shown = this.made.get(node);
        if (typeof kid === 'string') {
            if (shown.text !== undefined && shown.text !== kid) {
                node.data = shown.text = kid;
            }
            return shown.text !== undefined;
        }
        if (kid.math) {
            return shown.math?.content === kid.math.content && shown.math.markup === kid.math.markup;
        }
        if (kid.tag === undefined) {
            const same = shown.box && shown.info === kid.info;
            same && shown.box.show(kid.code);
            return same;
        }
        if (shown.tag !== kid.tag) {
            return false;
        }
        this.setAttributes(node, shown.attributes, kid.attributes);
        shown.attributes = kid.attributes;
        this.patch(node, kid.kids);
        return true;
    }

    create(kid) {
        let node, shown;
        if (typeof kid === 'string') {
            node = this.doc.createTextNode(kid);
            shown = { text: kid };
        } else if (kid.math) {
            node = this.doc.createElement(kid.math.block ? 'div' : 'span');
            drawMath(node, kid.math);
            shown = { math: kid.math };
        } else if (kid.tag === undefined) {
            const box = new CodeBox(this.doc, kid.info);
            box.show(kid.code);
            node = box.element;
            shown = { box, info: kid.info };
        } else {
            node = this.doc.createElement(kid.tag);
            this.setAttributes(node, {}, kid.attributes);
            shown = { tag: kid.tag, attributes: kid.attributes };
            this.patch(node, kid.kids);
        }
        this.made.set(node, shown);
        return node;
    }

    setAttributes(node, old, attributes) {
        for (const name of Object.keys(old)) {
            if (attributes[name] === undefined) {
                node.removeAttribute(name);
            }
        }
        for (const [name, value] of Object.entries(attributes)) {
            if (old[name] !== value) {
                node.setAttribute(name, value);
            }
        }
    }
}

/** Where the lines of a text begin. If it ends with a line feed, the last is empty. */
function lineStarts(text) {
    const starts = [0];
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) {
        starts.push(at + 1);
    }
    return starts;
}

/** True if a line closes code that `markup` opened: as many of its marks, or more. */
function closes(line, markup) {
    const marks = line.trim();
    return /^ {0,3}\S/.test(line) && marks.startsWith(markup) && marks === markup[0].repeat(marks.length);
}

/** True if the last line of a block of code, with which the text begins, closes it. */
function isClosed({ map, markup }, lines, text) {
    const last = text.slice(lines[map[1] - 1] - lines[map[0]], (lines[map[1]] ?? Infinity) - lines[map[0]]);
    return map[1] - map[0] > 1 && closes(last.replace(/\n$/, ''), markup);
}
