// What this browser remembers besides conversations: theme, API key, settings of new conversations. In localStorage, so
// that all tabs have the same.

const KEY = 'llm-server.preferences';

/** The browser's storage; one that keeps nothing if the user does not allow it. */
function localStorageOrNone() {
    try {
        return window.localStorage;
    } catch {
        return { getItem: () => null, setItem: () => {} };
    }
}

export class Preferences extends EventTarget {
    constructor(storage = localStorageOrNone()) {
        super();
        this.storage = storage;
        this.values = this.read();
        window.addEventListener('storage', (event) => {
            if (event.key === KEY || event.key === null) {
                this.values = this.read();
                this.dispatchEvent(new Event('change'));
            }
        });
    }

    read() {
        try {
            const value = JSON.parse(this.storage.getItem(KEY) ?? '{}');
            return value && typeof value === 'object' ? value : {};
        } catch {
            return {};
        }
    }

    get(name, otherwise) {
        return this.values[name] ?? otherwise;
    }

    /** Remembers a value; returns false if the browser refuses to keep it longer than this page is open. */
    set(name, value) {
        this.values = { ...this.values, ...this.read(), [name]: value };
        this.dispatchEvent(new Event('change'));
        try {
            this.storage.setItem(KEY, JSON.stringify(this.values));
            return true;
        } catch {
            return false;
        }
    }
}
