// Pictures of messages.

import { el } from './dom.js';

const SIDE = 2048, // of larger ones, which are made smaller; models see less
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

/** A picture as a data URI that the server reads: as it is, or drawn anew if it is large or of another kind. */
export async function pictureOf(file) {
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
