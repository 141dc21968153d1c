// Pictures that go with the next message: chosen, pasted or dropped, and shown small until it is sent.

import { $, announce, el, icon, notice } from './dom.js';

const MOST = 20, // of a message
    SIDE = 2048, // of larger ones, which are made smaller; models see less
    BYTES = 3 << 20,
    KEPT = ['image/png', 'image/jpeg', 'image/webp']; // what the server reads; others are drawn anew

/** True for the data URI of a picture, as messages keep them. */
export function isPicture(value) {
    return typeof value === 'string' && /^data:image\/[\w.+-]{1,40};base64,[A-Za-z0-9+/]+={0,2}$/.test(value);
}

/** How a message shows its pictures; a click shows one larger. */
export function pictureList(pictures) {
    return pictures.map((url, i) => {
        const picture = el('img', { src: url, alt: '' }),
            label = `Picture ${i + 1} of ${pictures.length}`;
        const button = el('button', { type: 'button', class: 'picture', 'aria-label': label, 'aria-pressed': 'false' }, picture);
        button.addEventListener('click', () => {
            const large = button.classList.toggle('large');
            button.setAttribute('aria-pressed', String(large));
        });
        return button;
    });
}

export class Pictures {
    /** changed(): there are other pictures now. */
    constructor(changed) {
        this.changed = changed;
        this.urls = [];
        this.sees = false;
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

    /** Shows the button if the model sees. */
    offer(sees) {
        this.sees = sees;
        $('picture').hidden = !sees;
    }

    over(event) {
        if ([...(event.dataTransfer?.types ?? [])].includes('Files')) {
            event.preventDefault();
            this.mark(this.sees);
        }
    }

    mark(on) {
        $('composer').classList.toggle('dropping', on);
    }

    /** Takes the pictures of what was pasted or dropped; text is left to the browser. */
    take(event, data) {
        const files = [...(data?.files ?? [])].filter((f) => f.type.startsWith('image/'));
        if (files.length) {
            event.preventDefault();
            this.add(files);
        } else if (event.type === 'drop' && data?.files?.length) {
            event.preventDefault(); // or the browser would leave the page and show the file
            notice('Only pictures can be dropped here.', { error: true });
        }
    }

    async add(files) {
        if (!this.sees) {
            notice('This model sees no pictures.', { error: true });
            return;
        }
        this.reading++;
        this.changed();
        for (const file of files) {
            if (this.urls.length === MOST) {
                notice(`A message has at most ${MOST} pictures.`, { error: true });
                break;
            }
            try {
                this.urls.push(await toUrl(file));
            } catch {
                notice(`${file.name || 'The picture'} cannot be read as a picture.`, { error: true });
            }
        }
        this.reading--;
        this.show();
        announce(this.urls.length === 1 ? 'One picture.' : `${this.urls.length} pictures.`);
    }

    /** The pictures of the message that is sent; there are none afterwards. */
    takeAll() {
        const urls = this.urls;
        this.urls = [];
        this.show();
        return urls;
    }

    /** Shows them, each with a button that takes it away. */
    show() {
        $('pictures').hidden = !this.urls.length;
        $('pictures').replaceChildren(
            ...this.urls.map((url, i) =>
                el(
                    'li',
                    {},
                    el('img', { src: url, alt: `Picture ${i + 1}` }),
                    el('button', { type: 'button', class: 'icon', 'aria-label': `Remove picture ${i + 1}`, onclick: () => this.remove(i) }, icon('close')),
                ),
            ),
        );
        this.changed();
    }

    remove(i) {
        this.urls.splice(i, 1);
        this.show();
        $('text').focus();
    }
}

/** A picture as a data URI that the server reads: as it is, or drawn anew if it is large or of another kind. */
async function toUrl(file) {
    const bitmap = await createImageBitmap(file),
        larger = Math.max(bitmap.width, bitmap.height) / SIDE;
    try {
        return KEPT.includes(file.type) && larger <= 1 && file.size <= BYTES ? await asIs(file) : drawn(bitmap, Math.max(larger, 1), file.type);
    } finally {
        bitmap.close();
    }
}

function asIs(file) {
    return new Promise((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => (isPicture(reader.result) ? resolve(reader.result) : reject(new Error('empty')));
        reader.onerror = () => reject(reader.error);
        reader.readAsDataURL(file);
    });
}

function drawn(bitmap, smaller, type) {
    const canvas = el('canvas', { width: Math.max(1, Math.round(bitmap.width / smaller)), height: Math.max(1, Math.round(bitmap.height / smaller)) });
    const context = canvas.getContext('2d'),
        photo = type === 'image/jpeg' || smaller > 1;
    if (photo) {
        context.fillStyle = '#fff'; // JPEG has no transparency
        context.fillRect(0, 0, canvas.width, canvas.height);
    }
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    return photo ? canvas.toDataURL('image/jpeg', 0.92) : canvas.toDataURL('image/png');
}
