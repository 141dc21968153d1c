// Sounds of messages: WAV files, which any server reads.

import { el } from './dom.js';
import { toWav } from './wav.js';

const BYTES = 3 << 20, // of a WAV file that is sent as it is; of others the rate becomes what models hear
    BEGIN = 'data:audio/wav;base64,';

/** True for a sound as messages keep it: {name, url}, a data URI. */
export function isSound(value) {
    const { name, url } = value ?? {};
    return typeof name === 'string' && typeof url === 'string' && url.startsWith(BEGIN) && /^[A-Za-z0-9+/]+={0,2}$/.test(url.slice(BEGIN.length));
}

/** Its part of a content, in OpenAI's form. */
export function soundPart(sound) {
    return { type: 'input_audio', input_audio: { data: sound.url.slice(BEGIN.length), format: 'wav' } };
}

/** How a message shows its sounds. */
export function soundList(sounds) {
    return sounds.map((s) => el('figure', { class: 'sound' }, el('audio', { src: s.url, controls: true, preload: 'metadata', 'aria-label': s.name }), el('figcaption', {}, s.name)));
}

/** A file as a sound: as it is, or as a WAV file that the browser makes of it. */
export async function soundOf(file) {
    const wav = await toWav(file), // also of one that is sent as it is: the browser must be able to play it
        isWav = /^audio\/(x-|vnd\.)?wave?$/.test(file.type) && file.size <= BYTES;
    const bytes = new Uint8Array(await (isWav ? file : wav).arrayBuffer());
    let text = '';
    for (let k = 0; k < bytes.length; k += 8192) {
        text += String.fromCharCode(...bytes.subarray(k, k + 8192));
    }
    return { name: file.name || 'Sound', url: BEGIN + btoa(text) };
}
