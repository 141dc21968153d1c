// One message on the page: its text, thoughts, tokens, speed and actions.

import { el, grow, icon, iconButton } from './dom.js';
import { codeText } from './code.js';
import { pictureList } from './pictures.js';
import { soundList } from './sounds.js';
import { attachedTo } from './tree.js';
import { Renderer } from './render.js';
import { TokenView } from './tokens.js';
import { promptText, seconds, speedText } from './answer.js';

const WHO = { user: 'You', assistant: 'Assistant' };
const FINISH = {
    length: 'The answer ended at the limit of tokens or of the context.',
    stopped: 'Stopped.',
    '': 'This answer is not complete.',
};

/** A text that grows, and begins again when it is another one. */
class Text {
    constructor(element) {
        this.element = element;
        this.restart();
    }

    restart() {
        this.element.replaceChildren();
        this.renderer = new Renderer(this.element);
        this.shown = '';
        this.ended = false;
    }

    /** `grown`: the text is known to begin with what is shown. */
    show(text, running, grown) {
        if ((this.ended && text !== this.shown) || (!grown && !text.startsWith(this.shown))) {
            this.restart();
        }
        if (text.length > this.renderer.length) {
            this.renderer.write(text.slice(this.renderer.length));
        }
        this.shown = text;
        if (!running && !this.ended) {
            this.renderer.end();
            this.ended = true;
        }
    }
}

export class MessageView {
    /** act(name, message, view): called for actions. */
    constructor(message, act) {
        this.message = message;
        this.act = act;
        this.tokenView = null;
        this.assistant = message.role === 'assistant';
        this.build();
    }

    build() {
        const { message } = this;
        this.body = el('div', { class: this.assistant ? 'body md' : 'body' });
        this.note = el('div', { class: 'note' });
        this.speed = el('span', { class: 'speed' });
        this.actions = el('div', { class: 'actions', role: 'group', 'aria-label': 'Actions' });
        this.element = el(
            'article',
            { class: 'message ' + message.role, 'data-id': message.id, tabIndex: -1, 'aria-label': WHO[message.role] },
            el('div', { class: 'who' }, WHO[message.role]),
        );
        if (this.assistant) {
            this.text = new Text(this.body);
            this.buildThoughts();
        }
        this.element.append(this.body, this.note, el('div', { class: 'foot' }, this.actions, this.speed));
    }

    buildThoughts() {
        this.thoughtsTitle = el('summary', {}, 'Thoughts');
        const inside = el('div', { class: 'md' });
        this.thoughts = el('details', { class: 'thoughts', hidden: true }, this.thoughtsTitle, inside);
        this.thoughtsText = new Text(inside);
        this.element.append(this.thoughts);
    }

    /** Shows the message as it is now. place: {siblings, index}; running: it is being written. */
    show(message, place, running) {
        this.message = message;
        this.showText(running, false);
        this.showNote(running);
        this.showActions(place, running);
        this.element.setAttribute('aria-busy', String(running));
    }

    /** Shows what has arrived since the last call. */
    showText(running, grown = true) {
        const { message } = this;
        if (!this.assistant) {
            this.body.textContent = message.content;
            this.body.hidden = !message.content && Object.keys(attachedTo(message)).length > 0;
            this.showAttached();
            return;
        }
        this.text.show(message.content, running, grown);
        this.thoughts.hidden = !message.reasoning;
        if (message.reasoning) {
            this.thoughtsText.show(message.reasoning, running, grown);
            const thinking = running && !message.content;
            this.thoughtsTitle.textContent = thinking
                ? 'Thinking…'
                : message.stats?.thought > 0
                  ? `Thought for ${seconds(message.stats.thought)}`
                  : 'Thoughts';
        }
        this.element.classList.toggle('waiting', running && !message.content && !message.reasoning);
        this.speed.textContent = message.stats ? speedText(message.stats) : '';
        this.speed.title = message.stats ? promptText(message.stats) : '';
        if (this.tokenView) {
            this.tokenView.show(message.tokens ?? []);
        }
    }

    /** Shows the pictures and sounds of a question above its text. Those of a message never change. */
    showAttached() {
        const { pictures = [], sounds = [] } = attachedTo(this.message);
        if ((pictures.length || sounds.length) && !this.attached) {
            this.attached = el('div', { class: 'seen' }, ...pictureList(pictures), ...soundList(sounds));
            this.body.before(this.attached);
        }
    }

    showNote(running) {
        const { message } = this,
            kids = [];
        for (const call of message.calls ?? []) {
            kids.push(
                el(
                    'div',
                    { class: 'call' },
                    'The model calls ',
                    el('code', {}, `${call.name}(${call.arguments})`),
                    ', which this page cannot do.',
                ),
            );
        }
        if (message.error) {
            kids.push(
                el(
                    'div',
                    { class: 'failed', role: 'alert' },
                    el('span', {}, message.error),
                    el('button', { type: 'button', onclick: () => this.act('retry', message, this) }, 'Try again'),
                ),
            );
        } else if (!running && this.assistant && FINISH[message.finish ?? '']) {
            kids.push(el('div', {}, FINISH[message.finish ?? '']));
        } else if (!running && this.assistant && !message.content && !message.calls?.length) {
            kids.push(el('div', {}, 'The answer is empty.'));
        }
        this.note.replaceChildren(...kids);
    }

    showActions(place, running) {
        const state = [running, place.index, place.siblings.length, this.message.tokens?.length > 0].join();
        if (state === this.actionsShown) {
            return; // buttons that are replaced while they are pressed do nothing
        }
        this.actionsShown = state;
        const focused = this.actions.contains(document.activeElement) ? document.activeElement.dataset.do : null;
        const kids = [];
        if (place.siblings.length > 1) {
            kids.push(this.branches(place));
        }
        if (!running) {
            kids.push(this.action('copy', 'copy', 'Copy'), this.action('edit', 'edit', 'Edit'));
            if (this.assistant) {
                kids.push(this.action('regenerate', 'redo', 'Answer again'));
            }
            if (this.message.tokens?.length) {
                const button = this.action('tokens', 'tokens', 'Tokens and probabilities');
                button.setAttribute('aria-pressed', String(this.tokenView !== null));
                kids.push(button);
            }
            kids.push(this.action('delete', 'trash', 'Delete'));
        }
        this.actions.replaceChildren(...kids);
        if (focused) {
            this.actions.querySelector(`[data-do="${focused}"]:not(:disabled)`)?.focus();
        }
    }

    action(name, drawing, label) {
        return iconButton(drawing, label, { 'data-do': name, onclick: () => this.act(name, this.message, this) });
    }

    branches({ siblings, index }) {
        const previous = this.action('previous', 'left', 'Previous branch'),
            next = this.action('next', 'right', 'Next branch');
        previous.disabled = index === 0;
        next.disabled = index === siblings.length - 1;
        const label = `Branch ${index + 1} of ${siblings.length}`;
        return el(
            'span',
            { class: 'branches', role: 'group', 'aria-label': label },
            previous,
            el('span', { class: 'count' }, `${index + 1}/${siblings.length}`),
            next,
        );
    }

    /** Switches between the text and its tokens. */
    toggleTokens() {
        if (this.tokenView) {
            this.tokenView.element.replaceWith(this.body);
            this.tokenView = null;
        } else {
            this.tokenView = new TokenView();
            this.tokenView.show(this.message.tokens);
            this.body.replaceWith(this.tokenView.element);
        }
        this.actions.querySelector('[data-do="tokens"]').setAttribute('aria-pressed', String(this.tokenView !== null));
    }

    /** Lets the user edit the text; save(text) is called if it is kept. */
    edit(save) {
        if (this.editor) {
            return;
        }
        if (this.tokenView) {
            this.toggleTokens();
        }
        const area = el('textarea', {
            value: this.message.content,
            'aria-label': 'Edit the message',
            oninput: () => grow(area),
        });
        const close = () => {
            this.editor.remove();
            this.editor = null;
            this.element.classList.remove('editing');
        };
        const keep = () => {
            close();
            save(area.value);
        };
        const cancel = () => {
            close();
            this.actions.querySelector('[data-do="edit"]')?.focus();
        };
        area.addEventListener('keydown', (event) => this.editKey(event, keep, cancel));
        this.editor = el(
            'div',
            { class: 'editor' },
            area,
            el(
                'div',
                { class: 'row' },
                el('button', { type: 'button', class: 'filled', onclick: keep }, this.assistant ? 'Save' : 'Send'),
                el('button', { type: 'button', onclick: cancel }, 'Cancel'),
            ),
        );
        this.element.classList.add('editing');
        this.body.after(this.editor);
        grow(area);
        area.focus();
    }

    /** Enter sends a question; in an answer, which has lines, it takes Ctrl. */
    editKey(event, keep, cancel) {
        const enter = event.key === 'Enter' && !event.isComposing;
        if (enter && (event.ctrlKey || event.metaKey || (!event.shiftKey && !this.assistant))) {
            event.preventDefault();
            keep();
        } else if (event.key === 'Escape') {
            event.preventDefault();
            event.stopPropagation();
            cancel();
        }
    }
}

/** The code of the code block whose button was clicked, or null if it was not such a button. */
export function codeOf(target) {
    const button = target.closest?.('.copy-code');
    return button ? codeText(button.closest('.code').querySelector('code')) : null;
}

/** Shows on a button for a moment that it has done its work. */
export function flashDone(button) {
    const kids = [...button.childNodes];
    if (button.classList.contains('done')) {
        return;
    }
    button.classList.add('done');
    button.replaceChildren(button.classList.contains('icon') ? icon('check') : 'Copied');
    setTimeout(() => {
        button.classList.remove('done');
        button.replaceChildren(...kids);
    }, 1500);
}
