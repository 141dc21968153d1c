// Markdown as a tree of plain objects, made of the tokens of markdown-it: {tag, attributes, kids}, {code, info} for a block
// of code, {math: token} and texts. The tags and attributes made here are all that an answer can bring onto the page.

import MarkdownIt from './markdown-it.js';
import { readMath } from './math.js';

export const LONG = 4096; // characters; longer paragraphs are text, as marks that fit no other may cost the square of this
const DEEP = 24; // levels of quotes and lists (a list has two); more are text
const NESTED = 40; // levels of elements

/** Elements of tokens that need no function of Tree. */
const TAGS = { blockquote: 'blockquote', bullet_list: 'ul', ordered_list: 'ol', list_item: 'li', paragraph: 'p' };
for (const tag of ['thead', 'tbody', 'tr', 'th', 'td', 'em', 'strong']) {
    TAGS[tag] = tag;
}
TAGS.s = 'del';

/** The URL if its scheme is harmless (http, https, mailto), else null. */
export function safeUrl(url) {
    return /^(https?:\/\/|mailto:)[^\s\u0000-\u0020]+$/i.test(url) ? url : null;
}

let parser = null;

/** The parser, made when it is needed first. */
function markdownIt() {
    if (!parser) {
        const md = MarkdownIt({ html: false, linkify: true, breaks: true });
        md.disable(['code', 'reference', 'html_block', 'html_inline']);
        md.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false }).add('ftp:', null).add('//', null);
        md.normalizeLink = md.normalizeLinkText = (url) => url;
        md.validateLink = () => true; // link() decides
        md.core.ruler.before('inline', 'limits', limitInline);
        for (const [name, alt] of [
            ['blockquote', ['paragraph', 'reference', 'blockquote', 'list']],
            ['list', ['paragraph', 'reference', 'blockquote']],
        ]) {
            const { fn } = md.block.ruler.__rules__.find((rule) => rule.name === name);
            md.block.ruler.at(name, (state, ...more) => state.level < DEEP && fn(state, ...more), { alt });
        }
        readMath(md);
        parser = md;
    }
    return parser;
}

/** Before texts are parsed: those that are too long stay text, and boxes of tasks are taken from items. */
function limitInline({ tokens }) {
    tokens.forEach((token, k) => {
        if (token.type !== 'inline') {
            return;
        }
        const task = tokens[k - 2]?.type === 'list_item_open' && /^\[([ xX])\]\s/.exec(token.content);
        if (task) {
            tokens[k - 2].meta = { done: task[1] !== ' ' };
            token.content = token.content.slice(4);
        }
        if (token.content.length > LONG) {
            token.type = 'plain';
        }
    });
}

/** Adds up tokens, which open and close elements. */
class Tree {
    constructor() {
        this.kids = [];
        this.open = [{ kids: this.kids }]; // elements that are not closed, from the root
        this.links = 0; // of them
    }

    add(tokens) {
        for (const token of tokens) {
            if (token.nesting < 0) {
                this.links -= this.open.pop().tag === 'a' ? 1 : 0;
            } else if (token.nesting > 0) {
                this.enter(this.opened(token));
            } else {
                this.leaf(token);
            }
        }
        return this;
    }

    top() {
        return this.open.at(-1);
    }

    put(tag, attributes = {}, kids = []) {
        const node = { tag, attributes, kids };
        this.top().kids.push(node);
        return node;
    }

    enter(node) {
        this.links += node.tag === 'a' ? 1 : 0;
        this.open.push(node);
    }

    /** The element for a token that opens one; where elements are too deep, the one around it. */
    opened(token) {
        const type = token.type.replace(/_open$/, '');
        if (this.open.length > NESTED) {
            return this.same();
        }
        if (MADE.has(type)) {
            return this[type](token);
        }
        if (type === 'paragraph' && !token.hidden && this.top().tag === 'li') {
            this.open.at(-2).attributes.class = 'loose';
        }
        const align = /^text-align:(right|center)$/.exec(token.attrGet('style') ?? '');
        return TAGS[type] ? this.put(TAGS[type], align ? { class: align[1] } : {}) : this.same();
    }

    same() {
        return { tag: '', attributes: {}, kids: this.top().kids };
    }

    /** A heading of an answer is below those of the page. */
    heading(token) {
        const level = Number(token.tag[1]);
        return this.put('h' + Math.min(6, level + 1), { class: 'level' + level });
    }

    ordered_list(token) {
        const start = token.attrGet('start');
        return this.put('ol', start === null ? {} : { start: String(start) });
    }

    list_item({ meta }) {
        if (!meta) {
            return this.put('li');
        }
        const box = { type: 'checkbox', disabled: '', 'aria-label': meta.done ? 'done' : 'to do' };
        return this.put('li', { class: 'task' }, [
            { tag: 'input', attributes: meta.done ? { ...box, checked: '' } : box, kids: [] },
        ]);
    }

    table() {
        const table = { tag: 'table', attributes: {}, kids: [] };
        this.put('div', { class: 'table', tabindex: '0' }, [table]);
        return table;
    }

    /** A link, or only its text if the URL is not harmless or it is in a link already. */
    link(token) {
        const url = this.links ? null : safeUrl(token.attrGet('href') ?? '');
        if (url === null) {
            return this.put('span', this.links ? {} : { class: 'no-link' });
        }
        const title = token.attrGet('title');
        const attributes = { href: url, rel: 'noopener noreferrer', target: '_blank' };
        return this.put('a', title ? { ...attributes, title } : attributes);
    }

    leaf(token) {
        switch (token.type) {
            case 'inline':
                return this.add(token.children);
            case 'plain':
                token.content.split('\n').forEach((line, k) => this.top().kids.push(...(k ? [BREAK, line] : [line])));
                break;
            case 'softbreak':
            case 'hardbreak':
                this.put('br');
                break;
            case 'hr':
                this.put('hr');
                break;
            case 'code_inline':
                this.put('code', {}, [token.content]);
                break;
            case 'image': // pictures are not fetched; the link to it is
                this.enter(this.link({ attrGet: (name) => (name === 'href' ? token.attrGet('src') : null) }));
                this.top().kids.push(token.content || 'image');
                this.links -= this.open.pop().tag === 'a' ? 1 : 0;
                break;
            case 'fence':
                this.top().kids.push({ code: token.content, info: token.info });
                break;
            case 'math':
                this.top().kids.push({ math: token });
                break;
            default:
                this.top().kids.push(token.content);
        }
    }
}
const MADE = new Set(['heading', 'ordered_list', 'list_item', 'table', 'link']);
const BREAK = { tag: 'br', attributes: {}, kids: [] };

/** Parses a text. Returns {kids, blocks}: the tree, and for each of its kids the token that opens it, whose `map` has its
 * lines. */
export function parse(text) {
    const tokens = markdownIt().parse(text, {});
    return { kids: new Tree().add(tokens).kids, blocks: tokens.filter((t) => t.level === 0 && t.nesting >= 0) };
}
