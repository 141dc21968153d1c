// Keyboard shortcuts. One table makes them work and explains them.

import { $, el } from './dom.js';

/** keys: as people write them; name: of the action; always: also while a text is edited; message: on a focused message. */
export const SHORTCUTS = [
    { keys: 'Enter', help: 'Send the message' },
    { keys: 'Shift Enter', help: 'Begin a new line' },
    { keys: 'Escape', name: 'stop', always: true, help: 'Stop the answer' },
    { keys: 'Arrow up', help: 'In an empty message field: edit your last message' },
    { keys: 'Ctrl Shift O', name: 'new', always: true, help: 'New conversation' },
    { keys: 'Ctrl K', name: 'search', always: true, help: 'Search conversations' },
    { keys: 'Ctrl ,', name: 'settings', always: true, help: 'Settings' },
    { keys: '/', name: 'write', help: 'Go to the message field' },
    { keys: 'Alt Arrow up', name: 'up', always: true, help: 'Go to the message above' },
    { keys: 'Alt Arrow down', name: 'down', always: true, help: 'Go to the message below' },
    { keys: 'Arrow left', name: 'previous', message: true, help: 'On a message: the branch before' },
    { keys: 'Arrow right', name: 'next', message: true, help: 'On a message: the branch after' },
    { keys: 'C', name: 'copy', message: true, help: 'On a message: copy it' },
    { keys: 'E', name: 'edit', message: true, help: 'On a message: edit it, as a branch' },
    { keys: 'R', name: 'regenerate', message: true, help: 'On an answer: answer again, as a branch' },
    { keys: 'T', name: 'tokens', message: true, help: 'On an answer: tokens and probabilities' },
    { keys: 'Delete', name: 'delete', message: true, help: 'On a message: delete it and what follows' },
    { keys: '?', name: 'help', help: 'This help' },
];

/** How an event's keys are written in the table. */
export function written(event) {
    const key = event.key.startsWith('Arrow')
        ? 'Arrow ' + event.key.slice(5).toLowerCase()
        : event.key.length === 1
          ? event.key.toUpperCase()
          : event.key;
    const shift = event.shiftKey && (event.key.length > 1 || /[a-z]/i.test(event.key));
    return [event.ctrlKey || event.metaKey ? 'Ctrl ' : '', event.altKey ? 'Alt ' : '', shift ? 'Shift ' : '', key].join(
        '',
    );
}

/** Listens; act(name) returns false if there was nothing to do. onMessage(): a message has the focus itself. */
export function listen(act, onMessage) {
    document.addEventListener('keydown', (event) => {
        if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) {
            return;
        }
        const keys = written(event),
            typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
        const shortcut = SHORTCUTS.find((s) => s.name && s.keys === keys && (!s.message || onMessage()));
        if (shortcut && (shortcut.always || !typing) && act(shortcut.name) !== false) {
            event.preventDefault();
        }
    });
    for (const { keys, help } of SHORTCUTS) {
        const parts = keys.split(/ (?=[A-Z,])/).map((k) => el('kbd', {}, k));
        $('keys').append(el('dt', {}, ...parts), el('dd', {}, help));
    }
}
