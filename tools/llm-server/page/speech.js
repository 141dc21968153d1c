// Sounds, from the microphone or a file, that a model of the server writes down.

import { $, announce, copyText, el, icon, notice } from './dom.js';
import { clock, pieces, toWav } from './wav.js';

const LABELS = {
    idle: ['microphone', 'Record from the microphone'],
    records: ['stop', 'Stop recording, and write it down'],
    works: ['close', 'Give up the sound'],
};

const NO_MICROPHONE =
    'The browser lets this page record only at http://localhost or 127.0.0.1, or behind https. ' +
    'A sound file can be chosen all the same.';

export class Speech {
    /** model(): the name of the model that hears, '' if the server has only one; done(text): takes what was said, or
     * returns false: it is to be shown with its times. */
    constructor(api, model, done) {
        Object.assign(this, { api, model, done });
        $('record').addEventListener('click', () => this.press());
        $('sound').addEventListener('click', () => $('sound-file').click());
        $('sound-file').addEventListener('change', () => this.choose());
        $('close-heard').addEventListener('click', () => ($('heard').hidden = true));
        $('copy-heard').addEventListener('click', () => this.copy());
        this.state('idle');
    }

    /** Shows the buttons if there is a model that hears. */
    offer(on) {
        $('record').hidden = $('sound').hidden = !on;
    }

    state(name) {
        const [drawing, label] = LABELS[name],
            button = $('record');
        this.is = name;
        button.replaceChildren(icon(drawing));
        button.title = label;
        button.setAttribute('aria-label', label);
        button.classList.toggle('recording', name === 'records');
        $('sound').disabled = name !== 'idle';
        if (name !== 'records') {
            clearInterval(this.ticks);
            $('sound-state').textContent = name === 'works' ? 'The sound is being written down…' : '';
        }
        announce(name === 'records' ? 'Recording.' : $('sound-state').textContent);
    }

    press() {
        return { idle: () => this.record(), records: () => this.finish(), works: () => this.stop() }[this.is]();
    }

    /** Gives up what is recorded or written down; false if nothing is. */
    stop() {
        const busy = this.is !== 'idle';
        this.abort?.abort();
        this.dropped = true;
        this.finish();
        return busy;
    }

    /** Begins a recording. Browsers allow that to pages of this machine, and to those that come by https. */
    async record() {
        if (!navigator.mediaDevices?.getUserMedia) {
            notice(NO_MICROPHONE, { error: true });
            return;
        }
        if (this.asks) {
            return; // the browser has not been answered yet; two microphones would be open, and one of them for ever
        }
        this.asks = true;
        try {
            const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } }),
                recorder = new MediaRecorder(stream),
                parts = [];
            recorder.addEventListener('dataavailable', (event) => parts.push(event.data));
            recorder.addEventListener('stop', () => {
                stream.getTracks().forEach((track) => track.stop());
                this.recorded(new Blob(parts, { type: recorder.mimeType }));
            });
            this.recorder = recorder;
            this.dropped = false;
            recorder.start(1000);
            this.state('records');
            this.begun = Date.now();
            this.tick();
            this.ticks = setInterval(() => this.tick(), 500);
        } catch (error) {
            const why = error.name === 'NotAllowedError' ? 'the browser does not allow it' : error.message;
            notice(`Nothing can be recorded: ${why}.`, { error: true });
        }
        this.asks = false;
    }

    tick() {
        $('sound-state').textContent = `Recording, ${clock((Date.now() - this.begun) / 1000)}`;
    }

    /** Ends the recording. */
    finish() {
        if (this.recorder?.state === 'recording') {
            this.recorder.stop();
        }
    }

    /** The recording has ended. It becomes a WAV file, which any server reads. */
    async recorded(blob) {
        this.recorder = null;
        this.state('idle');
        if (this.dropped) {
            return;
        }
        try {
            await this.write(await toWav(blob), 'recording.wav', false);
        } catch {
            notice('The browser cannot read what it has recorded.', { error: true });
        }
    }

    choose() {
        const file = $('sound-file').files[0];
        $('sound-file').value = '';
        return file && this.is === 'idle' && !this.asks ? this.write(file, file.name, true) : undefined;
    }

    /** Has a sound written down. converts: if the server does not read its kind, the browser may. */
    async write(blob, name, converts) {
        this.abort = new AbortController();
        this.state('works');
        try {
            this.show(await this.ask(blob, name, converts));
        } catch (error) {
            if (error.name !== 'AbortError') {
                notice(error.message, { error: true });
            }
        }
        this.abort = null;
        this.state('idle');
    }

    async ask(blob, name, converts) {
        try {
            return await this.api.transcribe(blob, name, this.model(), this.abort.signal);
        } catch (error) {
            const wav = converts && error.code === 'unsupported' ? await toWav(blob).catch(() => null) : null;
            if (!wav) {
                throw error;
            }
            return this.api.transcribe(wav, name, this.model(), this.abort.signal);
        }
    }

    show(answer) {
        const list = pieces(answer),
            text = list.map((p) => p.text).join(' ');
        if (!text) {
            notice('Nothing was said in this sound, as far as the model hears.');
        } else if (!this.done(text)) {
            $('heard-lines').replaceChildren(
                ...list.map((p) => el('li', {}, el('span', { class: 'time' }, p.time), el('span', {}, p.text))),
            );
            $('heard').hidden = false;
            announce(text);
        }
    }

    async copy() {
        const lines = [...$('heard-lines').children].map((li) => [...li.children].map((c) => c.textContent).join('  '));
        announce((await copyText(lines.join('\n'))) ? 'Copied.' : 'The browser does not allow copying.');
    }
}
