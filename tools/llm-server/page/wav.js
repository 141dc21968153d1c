// Sounds as numbers: WAV files of 16 bits, and times as they are shown.

const RATE = 16000; // what models that hear read

/** The mean of channels, each an array of numbers from -1 to 1. */
export function mixed(channels) {
    if (channels.length === 1) {
        return channels[0];
    }
    return Float32Array.from(channels[0], (_, i) => channels.reduce((sum, c) => sum + c[i], 0) / channels.length);
}

/** The bytes of a WAV file with one channel. Numbers beyond -1 and 1 are cut off. */
export function encodeWav(samples, rate) {
    const bytes = new DataView(new ArrayBuffer(44 + 2 * samples.length));
    const put = (at, text) => [...text].forEach((c, i) => bytes.setUint8(at + i, c.charCodeAt(0)));
    put(0, 'RIFF');
    bytes.setUint32(4, 36 + 2 * samples.length, true);
    put(8, 'WAVEfmt ');
    bytes.setUint32(16, 16, true); // what follows of this part
    bytes.setUint16(20, 1, true); // integers
    bytes.setUint16(22, 1, true); // channels
    bytes.setUint32(24, rate, true);
    bytes.setUint32(28, 2 * rate, true); // bytes for each second
    bytes.setUint16(32, 2, true); // and for each sample of all channels
    bytes.setUint16(34, 16, true); // bits
    put(36, 'data');
    bytes.setUint32(40, 2 * samples.length, true);
    samples.forEach((x, i) => {
        const whole = Math.round(Math.max(-1, Math.min(1, x)) * 32768);
        bytes.setInt16(44 + 2 * i, Math.min(32767, whole), true);
    });
    return bytes.buffer;
}

/** What the browser can play becomes a WAV file with the rate that models hear. */
export async function toWav(blob) {
    const context = new OfflineAudioContext(1, 1, RATE),
        sound = await context.decodeAudioData(await blob.arrayBuffer());
    const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
    return new Blob([encodeWav(mixed(channels), sound.sampleRate)], { type: 'audio/wav' });
}

/** 65.3 -> "1:05", 3661 -> "1:01:01". */
export function clock(seconds) {
    const whole = Math.max(0, Math.floor(seconds || 0)),
        two = (n) => String(n).padStart(2, '0');
    const minutes = Math.floor(whole / 60);
    return whole < 3600
        ? `${minutes}:${two(whole % 60)}`
        : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
}

/** The pieces of an answer in the form verbose_json: [{time, text}]; without pieces, its whole text. */
export function pieces(answer) {
    const list = Array.isArray(answer?.segments) ? answer.segments : [];
    const shown = list
        .map((s) => ({ time: `${clock(s.start)} – ${clock(s.end)}`, text: String(s.text ?? '').trim() }))
        .filter((s) => s.text);
    const text = String(answer?.text ?? '').trim();
    return shown.length || !text ? shown : [{ time: '', text }];
}
