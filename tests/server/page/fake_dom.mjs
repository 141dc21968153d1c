// A stand-in for the browser's document, as far as render.js uses it. It counts what is done to it.

export class FakeElement {
    constructor(document, tag) {
        Object.assign(this, { document, tag, kids: [], attributes: {}, parent: null });
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
            this.document.steps++;
            if (typeof kid !== 'string') {
                kid.parent = this;
            }
            this.kids.push(kid);
        }
    }

    replaceChildren(...kids) {
        this.document.steps += this.kids.length;
        this.kids = [];
        this.append(...kids);
    }

    remove() {
        const { kids } = this.parent;
        const at = kids.lastIndexOf(this); // what is removed is near the end
        this.document.steps += kids.length - at;
        kids.splice(at, 1);
    }

    get textContent() {
        return this.kids.map((k) => (typeof k === 'string' ? k : k.textContent)).join('');
    }

    /** Calls visit(element, depth) for this and all below. */
    walk(visit, depth = 0) {
        visit(this, depth);
        this.kids.forEach((k) => typeof k !== 'string' && k.walk(visit, depth + 1));
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
            if (typeof kid === 'string') {
                text += kid;
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
