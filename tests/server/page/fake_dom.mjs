// A stand-in for the browser's document, as far as the page's renderers use it. It counts what is done to it.

class FakeNode {
    constructor(document) {
        Object.assign(this, { document, parent: null });
    }

    replaceWith(node) {
        this.parent.insert(node, this.parent.kids.lastIndexOf(this), 1);
    }

    remove() {
        const { kids } = this.parent;
        this.document.steps++;
        kids.splice(kids.lastIndexOf(this), 1); // it is near the end
        this.parent = null;
    }
}

class FakeText extends FakeNode {
    constructor(document, data) {
        super(document);
        this.text = data;
    }

    get data() {
        return this.text;
    }

    set data(text) {
        this.text = text;
        this.document.steps++;
    }

    get textContent() {
        return this.text;
    }
}

export class FakeElement extends FakeNode {
    constructor(document, tag) {
        super(document);
        Object.assign(this, { tag, kids: [], attributes: {} });
    }

    set className(name) {
        this.attributes.class = name;
        this.document.steps++;
    }

    setAttribute(name, value) {
        this.attributes[name] = value;
        this.document.steps++;
    }

    append(...kids) {
        for (const kid of kids) {
            this.insert(kid, this.kids.length, 0);
        }
    }

    insert(kid, at, n) {
        this.document.steps++;
        const node = typeof kid === 'string' ? new FakeText(this.document, kid) : kid;
        node.parent?.kids.splice(node.parent.kids.lastIndexOf(node), 1);
        node.parent = this;
        this.kids.splice(at, n, node).forEach((old) => (old.parent = null));
    }

    get childNodes() {
        return this.kids;
    }

    get children() {
        return this.kids.filter((k) => k.kids);
    }

    get lastChild() {
        return this.kids.at(-1);
    }

    get className() {
        return this.attributes.class ?? '';
    }

    removeAttribute(name) {
        delete this.attributes[name];
        this.document.steps++;
    }

    replaceChildren(...kids) {
        this.document.steps += this.kids.length;
        this.kids = [];
        this.append(...kids);
    }

    get textContent() {
        return this.kids.map((k) => k.textContent).join('');
    }

    /** Calls visit(element, depth) for this and all below. */
    walk(visit, depth = 0) {
        visit(this, depth);
        this.children.forEach((k) => k.walk(visit, depth + 1));
    }

    /** The tree as text: tag[attributes](children); adjacent texts are one. */
    outline() {
        const attributes = Object.entries(this.attributes)
            .filter(([k, v]) => k !== 'class' || v)
            .map(([k, v]) => ` ${k}=${v}`)
            .join('');
        let inside = '',
            text = '';
        for (const kid of [...this.kids, null]) {
            if (kid instanceof FakeText) {
                text += kid.data;
                continue;
            }
            inside += text && JSON.stringify(text);
            text = '';
            inside += kid ? kid.outline() : '';
        }
        return `${this.tag}${attributes}(${inside})`;
    }
}

export class FakeDocument {
    constructor() {
        this.steps = 0;
    }

    createElement(tag) {
        this.steps++;
        return new FakeElement(this, tag);
    }

    createTextNode(data) {
        this.steps++;
        return new FakeText(this, data);
    }
}

/** A generator of numbers that a seed determines (mulberry32): random(n) is a whole number below n. */
export function randomFrom(seed) {
    let a = seed >>> 0;
    const next = () => {
        a = (a + 0x6d2b79f5) >>> 0;
        let t = Math.imul(a ^ (a >>> 15), a | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return (t ^ (t >>> 14)) >>> 0;
    };
    return Object.assign((n) => next() % n, { pick: (list) => list[next() % list.length] });
}
