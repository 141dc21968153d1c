// Text as it is written, for a page without markdown-it: lines stay lines, and code between fences stands in a box.

import { CodeBox } from './code.js';

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;

/** Shows text that arrives in pieces; the interface is that of Markdown. */
export class Plain {
    constructor(element, doc = document) {
        Object.assign(this, { element, doc, length: 0, rest: '', last: null, box: null, fence: '' });
    }

    write(text) {
        this.length += text.length;
        const lines = (this.rest + text).split('\n');
        this.rest = lines.pop();
        this.last?.remove();
        this.last = null;
        lines.forEach((line) => this.line(line.replace(/\r$/, '')));
        if (this.box) {
            this.box.append(this.rest);
        } else if (this.rest) {
            this.last = this.paragraph(this.rest);
        }
    }

    end() {
        if (this.rest) {
            this.write('\n');
        }
    }

    line(text) {
        const found = FENCE.exec(text);
        if (this.box && found && !found[2].trim() && found[1].startsWith(this.fence)) {
            this.box.append('');
            this.box = null;
        } else if (this.box) {
            this.box.append(text + '\n');
        } else if (found) {
            this.box = new CodeBox(this.doc, found[2]);
            this.fence = found[1];
            this.element.append(this.box.element);
        } else {
            this.paragraph(text);
        }
    }

    /** Every line is a block of its own, so that none is laid out again when another arrives. */
    paragraph(text) {
        const line = this.doc.createElement('div');
        line.className = 'plain';
        line.append(text || this.doc.createElement('br'));
        this.element.append(line);
        return line;
    }
}
