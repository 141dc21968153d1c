// The list of conversations.

import { $, el, iconButton, openMenu } from './dom.js';

export class Sidebar {
    /** store: the history; act(name, id): 'open', 'rename', 'export' or 'delete'. */
    constructor(store, act) {
        this.store = store;
        this.act = act;
        this.current = null;
        this.entries = [];
        this.found = null; // ids that the search has found; null: all
        this.searches = 0;
        this.drawn = '';
        $('search').addEventListener('input', () => this.search());
        $('search').addEventListener('keydown', (event) => this.key(event));
        $('talks').addEventListener('keydown', (event) => this.key(event));
        store.addEventListener('list', () => this.refresh());
    }

    /** Reads the list again. */
    async refresh() {
        this.entries = await this.store.list();
        await this.search();
    }

    async search() {
        const query = $('search').value.trim(),
            number = ++this.searches;
        const found = query ? await this.store.search(query) : null;
        if (number === this.searches) {
            // else a later search is on its way
            this.found = found;
            this.show();
        }
    }

    /** Marks a conversation as the one that is shown. */
    mark(id) {
        this.current = id;
        this.show();
    }

    show() {
        const shown = this.entries.filter((e) => !this.found || this.found.has(e.id));
        const drawn = JSON.stringify([this.current, this.found === null, shown.map((e) => [e.id, e.title])]);
        if (drawn === this.drawn) {
            return; // a button that is replaced while it is pressed does nothing
        }
        this.drawn = drawn;
        const focused = document.activeElement?.closest?.('#talks li')?.dataset.id;
        const part = document.activeElement?.className;
        $('talks').replaceChildren(...shown.map((e) => this.entry(e)));
        $('no-talks').hidden = shown.length > 0;
        $('no-talks').textContent = this.found ? 'Nothing found.' : 'No conversations yet.';
        if (focused) {
            $('talks')
                .querySelector(`li[data-id="${focused}"] .${part.split(' ')[0]}`)
                ?.focus();
        }
    }

    entry({ id, title }) {
        const open = el('button', { type: 'button', class: 'open', title, onclick: () => this.act('open', id) }, title);
        if (id === this.current) {
            open.setAttribute('aria-current', 'page');
        }
        const more = iconButton('more', `Actions for “${title}”`, {
            class: 'icon more',
            'aria-haspopup': 'menu',
            'aria-expanded': 'false',
            onclick: () =>
                openMenu(more, [
                    { label: 'Rename', icon: 'edit', run: () => this.act('rename', id) },
                    { label: 'Export', icon: 'down', run: () => this.act('export', id) },
                    { label: 'Delete', icon: 'trash', run: () => this.act('delete', id) },
                ]),
        });
        return el('li', { 'data-id': id }, open, more);
    }

    /** Arrow keys go through the list; F2 renames, Delete deletes. */
    key(event) {
        const opens = [...$('talks').querySelectorAll('.open')],
            at = opens.indexOf(document.activeElement);
        const id = event.target.closest('li')?.dataset.id;
        if (event.key === 'ArrowDown') {
            opens[Math.min(at + 1, opens.length - 1)]?.focus();
        } else if (event.key === 'ArrowUp') {
            (opens[at - 1] ?? $('search')).focus();
        } else if (event.key === 'F2' && id) {
            this.act('rename', id);
        } else if (event.key === 'Delete' && id) {
            this.act('delete', id);
        } else {
            return;
        }
        event.preventDefault();
    }
}
