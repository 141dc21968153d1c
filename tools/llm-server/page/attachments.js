// Pictures and sounds that go with the next message: chosen, pasted or dropped, and shown small until it is sent.

import { $, announce, el, icon, notice } from './dom.js';
import { pictureOf } from './pictures.js';
import { soundOf } from './sounds.js';

const MOST = 20; // of a message

// By the part of the files' type before the "/". A model has an eye or an ear, and not both.
const KINDS = {
    image: { one: 'picture', many: 'pictures', drawing: 'picture', lacks: 'This model sees no pictures.', read: pictureOf },
    audio: { one: 'sound', many: 'sounds', drawing: 'sound', lacks: 'This model hears no sounds in messages.', read: soundOf },
};

function kindOf(file) {
    return file.type.split('/')[0];
}

export class Attachments {
    /** changed(): there are others now. */
    constructor(changed) {
        this.changed = changed;
        this.items = []; // {kind, value}
        this.kind = ''; // of KINDS, that the model notices
        this.reading = 0; // files that are read
        $('picture').addEventListener('click', () => $('picture-file').click());
        $('picture-file').addEventListener('change', () => {
            this.add([...$('picture-file').files]);
            $('picture-file').value = '';
        });
        $('text').addEventListener('paste', (event) => this.take(event, event.clipboardData));
        for (const name of ['dragenter', 'dragover']) {
            document.addEventListener(name, (event) => this.over(event));
        }
        document.addEventListener('dragleave', (event) => event.relatedTarget || this.mark(false));
        document.addEventListener('drop', (event) => {
            this.mark(false);
            this.take(event, event.dataTransfer);
        });
    }

    /** Shows the button for what the model notices: 'image', 'audio' or ''. */
    offer(kind) {
        this.kind = kind;
        $('picture').hidden = !kind;
        if (kind) {
            const { one, drawing } = KINDS[kind];
            $('picture').replaceChildren(icon(drawing));
            $('picture').title = `Add a ${one}; or drop or paste one`;
            $('picture').setAttribute('aria-label', `Add a ${one}`);
            $('picture-file').accept = kind + '/*';
        }
    }

    over(event) {
        if ([...(event.dataTransfer?.types ?? [])].includes('Files')) {
            event.preventDefault();
            this.mark(Boolean(this.kind));
        }
    }

    mark(on) {
        $('composer').classList.toggle('dropping', on);
    }

    /** Takes the pictures and sounds of what was pasted or dropped; text is left to the browser. */
    take(event, data) {
        const files = [...(data?.files ?? [])].filter((f) => KINDS[kindOf(f)]);
        if (files.length) {
            event.preventDefault();
            this.add(files);
        } else if (event.type === 'drop' && data?.files?.length) {
            event.preventDefault(); // or the browser would leave the page and show the file
            notice('Only pictures and sounds can be dropped here.', { error: true });
        }
    }

    async add(files) {
        const lacks = files.find((f) => kindOf(f) !== this.kind);
        if (lacks) {
            notice(KINDS[kindOf(lacks)]?.lacks ?? `${lacks.name} is no ${KINDS[this.kind].one}.`, { error: true });
            return;
        }
        const { one, many, read } = KINDS[this.kind],
            { kind } = this;
        this.reading++;
        this.changed();
        for (const file of files) {
            if (this.items.length === MOST) {
                notice(`A message has at most ${MOST} ${many}.`, { error: true });
                break;
            }
            try {
                this.items.push({ kind, value: await read(file) });
            } catch {
                notice(`${file.name || 'The ' + one} cannot be read as a ${one}.`, { error: true });
            }
        }
        this.reading--;
        this.show();
        announce(this.items.length === 1 ? `One ${one}.` : `${this.items.length} ${many}.`);
    }

    /** What goes with the message that is sent, {pictures, sounds}, without those that it has none of. Afterwards there is nothing. */
    takeAll() {
        const all = {};
        for (const { kind, value } of this.items) {
            (all[KINDS[kind].many] ??= []).push(value);
        }
        this.items = [];
        this.show();
        return all;
    }

    /** Shows them, each with a button that takes it away. */
    show() {
        $('pictures').hidden = !this.items.length;
        $('pictures').replaceChildren(
            ...this.items.map(({ kind, value }, i) => {
                const name = `${KINDS[kind].one} ${i + 1}`;
                return el(
                    'li',
                    {},
                    kind === 'image' ? el('img', { src: value, alt: name }) : el('span', { class: 'sound' }, icon('sound'), value.name),
                    el('button', { type: 'button', class: 'icon', 'aria-label': `Remove ${name}`, onclick: () => this.remove(i) }, icon('close')),
                );
            }),
        );
        this.changed();
    }

    remove(i) {
        this.items.splice(i, 1);
        this.show();
        $('text').focus();
    }
}
