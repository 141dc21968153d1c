// Markdown as DOM nodes, while the text arrives: each call updates only the end of the document. Text becomes text nodes
// and never markup; the elements and attributes made here are all that an answer can bring onto the page.

import { Blocks } from './blocks.js';
import { parseInline, safeUrl } from './inline.js';
import { highlight, language } from './highlight.js';

/** Shows Markdown in an element. `doc` is the document (or a stand-in for tests). */
export class Markdown {
    constructor(element, doc = document) {
        this.doc = doc;
        this.blocks = new Blocks();
        this.view = { node: this.blocks.root, into: element, kids: [] };
        this.length = 0; // characters written
    }

    /** Appends text and shows it. */
    write(text) {
        this.length += text.length;
        this.blocks.write(text);
        this.update(this.view);
    }

    /** Ends the text. */
    end() {
        this.blocks.end();
        this.update(this.view);
    }

    /** Brings a view up to its node. All children but the last that is shown are final; so only that one and those
     * after it are looked at. */
    update(view) {
        const { node, kids } = view;
        let k = Math.min(kids.length, node.kids.length);
        while (k > 0 && kids[k - 1].node !== node.kids[k - 1]) {
            k--;
        }
        for (const gone of kids.splice(k)) {
            gone.element.remove();
        }
        if (k > 0) {
            this.refresh(kids[k - 1]);
        }
        for (; k < node.kids.length; k++) {
            const kid = this.create(node.kids[k], view);
            kids.push(kid);
            (kid.place ?? view.into).append(kid.element);
            this.refresh(kid);
        }
    }

    /** Shows what has changed in a view whose node is still the same. */
    refresh(view) {
        const { node } = view;
        if (node.type === 'list' && view.loose !== node.loose) {
            view.loose = node.loose;
            view.element.className = node.loose ? 'loose' : '';
        }
        if (node.text !== undefined && node.type !== undefined && view.text !== node.text) {
            view.text = node.text;
            view.element.replaceChildren(...this.inline(parseInline(node.text), false));
        } else if (node.kids) {
            this.update(view);
        }
    }

    create(node, parent) {
        if (parent.node.type === 'code') {
            return this.codePiece(node, parent);
        }
        if (parent.node.type === 'table') {
            return this.row(node, parent);
        }
        return this[node.type](node);
    }

    el(tag, className, ...kids) {
        const element = this.doc.createElement(tag);
        if (className) {
            element.className = className;
        }
        element.append(...kids);
        return element;
    }

    container(node, element) {
        return { node, element, into: element, kids: [] };
    }

    quote(node) {
        return this.container(node, this.el('blockquote'));
    }

    list(node) {
        const element = this.el(node.start === null ? 'ul' : 'ol');
        if (node.start !== null && node.start !== 1) {
            element.setAttribute('start', String(node.start));
        }
        return { ...this.container(node, element), loose: false };
    }

    item(node) {
        const element = this.el('li');
        if (node.task !== undefined) {
            element.className = 'task';
            const box = this.el('input');
            box.setAttribute('type', 'checkbox');
            box.setAttribute('disabled', '');
            box.setAttribute('aria-label', node.task ? 'done' : 'to do');
            if (node.task) {
                box.setAttribute('checked', '');
            }
            element.append(box);
        }
        return this.container(node, element);
    }

    p(node) {
        return { node, element: this.el('p') };
    }

    /** A heading of an answer is below those of the page. */
    heading(node) {
        return { node, element: this.el('h' + Math.min(6, node.level + 1), 'level' + node.level) };
    }

    rule(node) {
        return { node, element: this.el('hr') };
    }

    code(node) {
        const code = this.el('code'),
            pre = this.el('pre', '', code);
        pre.setAttribute('tabindex', '0'); // scrolls by keyboard
        pre.setAttribute('role', 'region');
        pre.setAttribute('aria-label', (node.lang || 'plain') + ' code');
        const copy = this.el('button', 'copy-code', 'Copy');
        copy.setAttribute('type', 'button');
        const bar = this.el('div', 'code-bar', this.el('span', '', node.lang || 'text'), copy);
        return { ...this.container(node, this.el('div', 'code', bar, pre)), into: code, rules: language(node.lang) };
    }

    /** A line of code is a block of its own, so that the browser need not lay out the lines above it again. */
    codePiece(node, parent) {
        const state = parent.kids.at(-1)?.state ?? '',
            painted = highlight(node.text, parent.rules, state);
        const last = painted.parts.at(-1),
            complete = last[1].endsWith('\n');
        last[1] = complete ? last[1].slice(0, -1) : last[1];
        const parts = painted.parts
            .filter((p) => p[1])
            .map(([kind, text]) => (kind ? this.el('span', kind, text) : text));
        const inside = complete && !parts.length ? [this.el('br')] : parts;
        return { node, element: this.el('span', complete ? 'line' : 'part', ...inside), state: painted.state };
    }

    table(node) {
        const head = this.el('thead'),
            body = this.el('tbody');
        const box = this.el('div', 'table', this.el('table', '', head, body));
        box.setAttribute('tabindex', '0');
        return { ...this.container(node, box), head, body };
    }

    row(node, parent) {
        const first = parent.kids.length === 0;
        const cells = node.cells.map((text, k) =>
            this.el(first ? 'th' : 'td', parent.node.align[k] ?? '', ...this.inline(parseInline(text), false)),
        );
        return { node, element: this.el('tr', '', ...cells), place: first ? parent.head : parent.body };
    }

    inline(nodes, inLink) {
        return nodes.map((n) => this.inlineNode(n, inLink));
    }

    inlineNode(n, inLink) {
        switch (n.type) {
            case 'text':
                return n.text;
            case 'br':
                return this.el('br');
            case 'code':
                return this.el('code', '', n.text);
            case 'math':
                return this.el('span', 'math', n.text);
            case 'link':
                return this.link(n.url, this.inline(n.nodes, true), inLink, n.title);
            case 'image': // pictures are not fetched; the link to it is
                return this.link(n.url, [n.text || 'image'], inLink, '');
            default:
                return this.el(n.type, '', ...this.inline(n.nodes, inLink));
        }
    }

    /** A link, or only its text if the URL is not harmless or it is in a link already. */
    link(url, kids, inLink, title) {
        const safe = inLink ? null : safeUrl(url);
        if (safe === null) {
            return this.el('span', inLink ? '' : 'no-link', ...kids);
        }
        const a = this.el('a', '', ...kids);
        a.setAttribute('href', safe);
        a.setAttribute('rel', 'noopener noreferrer');
        a.setAttribute('target', '_blank');
        if (title) {
            a.setAttribute('title', title);
        }
        return a;
    }
}

/** The text of a <code> whose pieces codePiece() made. */
export function codeText(code) {
    return [...code.children].map((piece) => piece.textContent + (piece.className === 'line' ? '\n' : '')).join('');
}
