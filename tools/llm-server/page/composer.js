// The field where messages are written.

import { $, grow } from './dom.js';

export class Composer {
    /** send(text): returns false if it cannot be sent now; stop(): ends the answer; editLast(): arrow up in an empty field; attachments: what
     * goes with the message. */
    constructor(send, stop, editLast, attachments) {
        Object.assign(this, { send, editLast, attachments });
        this.area = $('text');
        this.area.addEventListener('input', () => this.typed());
        this.area.addEventListener('keydown', (event) => this.key(event));
        $('composer').addEventListener('submit', (event) => {
            event.preventDefault();
            this.submit();
        });
        $('stop').addEventListener('click', () => {
            stop();
            this.focus();
        });
        this.typed();
    }

    key(event) {
        if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) {
            return;
        }
        if (event.key === 'Enter' && !event.shiftKey) {
            event.preventDefault();
            this.submit();
        } else if (event.key === 'ArrowUp' && this.area.value === '') {
            event.preventDefault();
            this.editLast();
        }
    }

    submit() {
        const text = this.area.value.trim();
        if (this.isComplete() && this.send(text) !== false) {
            this.area.value = '';
            this.typed();
        }
    }

    typed() {
        grow(this.area);
        $('send').disabled = !this.isComplete();
    }

    /** True if there is something to send, and all files have been read. */
    isComplete() {
        const { items, reading } = this.attachments;
        return !reading && (this.area.value.trim() !== '' || items.length > 0);
    }

    /** Shows the button that stops instead of the one that sends. */
    running(on) {
        $('stop').hidden = !on;
        $('send').hidden = on;
    }

    /** Puts text where the cursor is. */
    insert(text) {
        const { selectionStart: at, value } = this.area;
        const gap = at > 0 && !/\s/.test(value[at - 1]) ? ' ' : '';
        this.area.setRangeText(gap + text, at, this.area.selectionEnd, 'end');
        this.typed();
        this.focus();
    }

    /** What the empty field says. */
    hint(text) {
        this.area.placeholder = text;
    }

    focus() {
        this.area.focus({ preventScroll: true });
    }
}
