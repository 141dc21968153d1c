// The messages of a conversation, and where the page is scrolled to.

import { $, oncePerFrame } from './dom.js';
import { MessageView } from './message.js';
import { path } from './tree.js';

const NEAR = 64; // pixels from the end at which the page follows new text

export class Thread {
    /** act(name, message, view): called for actions of messages. */
    constructor(act) {
        this.act = act;
        this.views = [];
        this.element = $('thread');
        this.scroll = $('scroll');
        this.follows = true;
        this.top = 0; // where the page was scrolled to when it was last looked at
        this.flush = oncePerFrame(() => this.showRunning());
        this.running = null; // the message that is being written
        this.scroll.addEventListener('scroll', () => this.scrolled());
        $('to-end').addEventListener('click', () => this.toEnd());
        new ResizeObserver(() => this.follow()).observe(this.scroll);
    }

    /** Shows the path of a conversation; running: the id of the message that is being written, or null. */
    show(talk, running) {
        const shown = path(talk);
        this.running = running;
        let k = 0;
        while (k < shown.length && this.views[k]?.message.id === shown[k].message.id) {
            k++;
        }
        this.views.splice(k).forEach((view) => view.element.remove());
        for (; k < shown.length; k++) {
            const view = new MessageView(shown[k].message, this.act);
            this.views.push(view);
            this.element.append(view.element);
        }
        shown.forEach((place, i) => this.views[i].show(place.message, place, place.message.id === running));
        $('empty').hidden = shown.length > 0;
        this.follow();
    }

    /** Text of the running message has arrived. */
    grown() {
        this.flush();
    }

    showRunning() {
        const view = this.views.find((v) => v.message.id === this.running);
        if (view) {
            view.showText(true);
            this.follow();
        }
    }

    view(id) {
        return this.views.find((v) => v.message.id === id);
    }

    scrolled() {
        const { scrollHeight, scrollTop, clientHeight } = this.scroll;
        this.top = scrollTop;
        this.follows = scrollHeight - scrollTop - clientHeight < NEAR;
        $('to-end').hidden = this.follows;
    }

    /** Scrolls to the end, unless the reader has scrolled up; the event that says so may still be under way. */
    follow() {
        if (this.scroll.scrollTop < this.top) {
            this.scrolled();
        }
        if (this.follows) {
            this.scroll.scrollTop = this.scroll.scrollHeight;
            this.top = this.scroll.scrollTop;
        }
    }

    /** Goes to the end with the next text, wherever the page is scrolled to. */
    stick() {
        this.follows = true;
        this.top = 0;
    }

    toEnd() {
        this.stick();
        this.follow();
    }

    /** Moves the focus to the message `step` places from the focused one, or to the last. */
    moveFocus(step) {
        const at = this.views.findIndex((v) => v.element.contains(document.activeElement));
        const to = at < 0 ? this.views.length - 1 : Math.max(0, Math.min(this.views.length - 1, at + step));
        const view = this.views[to];
        if (view) {
            view.element.focus();
            view.element.scrollIntoView({ block: 'nearest' });
        }
    }

    /** The view of the message that has the focus itself, or null. */
    focused() {
        return this.views.find((v) => v.element === document.activeElement) ?? null;
    }
}
