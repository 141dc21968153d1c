// A block of code with a bar and a copy button. Its lines are elements of their own, which are made once: code that
// arrives line by line costs no more than code that is there at once. highlight.js, if the build found it, colours each
// line, beginning in the state in which the line before ended.

import hljs from './highlight-js.js';

const LONG = 1000; // longer lines are not coloured: regular expressions may take the square of this in steps
const DEEP = 40; // code that opens more modes than this is not coloured any further

/** The classes of style.css for those of highlight.js; a class that is missing here has the colour of what contains it. */
const KINDS = {
    keyword: 'keyword literal type built_in built_in-name selector-tag meta-keyword template-tag',
    string: 'string regexp meta-string char link',
    comment: 'comment quote doctag meta',
    number: 'number symbol bullet',
    name: 'title section name attr attribute variable selector-id selector-class selector-attr property',
    added: 'addition',
    removed: 'deletion',
};
const KIND_OF = new Map(
    Object.entries(KINDS).flatMap(([kind, names]) => names.split(' ').map((name) => ['hljs-' + name, kind])),
);
const ENTITIES = { '&lt;': '<', '&gt;': '>', '&amp;': '&', '&quot;': '"', '&#x27;': "'" };
const MARKUP = /<span class="([^"]*)">|<\/span>|[^<]+/g;

/** True if code of this language is coloured. */
export function knows(language) {
    return Boolean(language && hljs?.getLanguage(language));
}

/** Splits a line of code into [[kind, text]..]; state: what the call for the line before returned, or null. Returns
 * {parts, state}. The texts joined are the line. */
export function paint(line, language, state) {
    if (!knows(language) || state === 'off' || line.length > LONG) {
        return { parts: [['', line]], state };
    }
    const { value, top } = hljs.highlight(language, line, true, state ?? undefined);
    let depth = 0;
    for (let mode = top; mode?.parent; mode = mode.parent) {
        depth++;
    }
    return { parts: partsOf(value), state: depth > DEEP ? 'off' : (top ?? null) };
}

/** Reads the markup that highlight.js makes, which is spans and escaped text. */
function partsOf(html) {
    const parts = [],
        open = [''];
    for (const [piece, names] of html.matchAll(MARKUP)) {
        if (piece === '</span>') {
            open.pop();
        } else if (names !== undefined) {
            open.push(KIND_OF.get(names) ?? open.at(-1));
        } else {
            const text = piece.replace(/&(?:lt|gt|amp|quot|#x27);/g, (entity) => ENTITIES[entity]);
            if (parts.at(-1)?.[0] === open.at(-1)) {
                parts.at(-1)[1] += text;
            } else {
                parts.push([open.at(-1), text]);
            }
        }
    }
    return parts;
}

/** The word after the marks that open a block of code. */
export function languageOf(info) {
    return info
        .trim()
        .split(/[\s{,]/, 1)[0]
        .toLowerCase()
        .slice(0, 32);
}

export class CodeBox {
    constructor(doc, info) {
        this.doc = doc;
        this.info = info;
        this.language = languageOf(info);
        this.text = ''; // all lines that are complete
        this.state = null;
        this.last = null; // the element of the line that is not complete
        const pre = this.make('pre'),
            copy = this.make('button', 'copy-code', 'Copy');
        this.code = this.make('code');
        pre.append(this.code);
        pre.setAttribute('tabindex', '0'); // scrolls by keyboard
        pre.setAttribute('role', 'region');
        pre.setAttribute('aria-label', (this.language || 'plain') + ' code');
        copy.setAttribute('type', 'button');
        const bar = this.make('div', 'code-bar', this.make('span', '', this.language || 'text'), copy);
        this.element = this.make('div', 'code', bar, pre);
    }

    make(tag, className = '', ...kids) {
        const element = this.doc.createElement(tag);
        if (className) {
            element.className = className;
        }
        element.append(...kids);
        return element;
    }

    /** Shows this code; what it has in common with what is shown stays. `rest` may end within a line. */
    show(code) {
        if (!code.startsWith(this.text)) {
            Object.assign(this, { text: '', state: null, last: null });
            this.code.replaceChildren();
        }
        this.append(code.slice(this.text.length));
    }

    /** Shows further code after the complete lines; replaces a line that was not complete. */
    append(rest) {
        this.last?.remove();
        this.last = null;
        let at = 0;
        for (let end; (end = rest.indexOf('\n', at)) >= 0; at = end + 1) {
            const { parts, state } = paint(rest.slice(at, end + 1), this.language, this.state);
            this.state = state;
            this.code.append(this.line('line', parts));
        }
        this.text += rest.slice(0, at);
        if (at < rest.length) {
            this.last = this.line('part', paint(rest.slice(at), this.language, this.state).parts);
            this.code.append(this.last);
        }
    }

    line(className, parts) {
        const shown = parts.map(([kind, text]) => [kind, text.replace(/\n$/, '')]).filter(([, text]) => text);
        const kids = shown.map(([kind, text]) => (kind ? this.make('span', kind, text) : text));
        return this.make('span', className, ...(kids.length ? kids : [this.make('br')]));
    }
}

/** The text of a <code> of a CodeBox. */
export function codeText(code) {
    return [...code.children].map((line) => line.textContent + (line.className === 'line' ? '\n' : '')).join('');
}
