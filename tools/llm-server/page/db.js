// Where conversations are kept: IndexedDB, or memory if the browser has none to give.
//
// Both have: list() -> [{id, title, updated}]; get(id) -> conversation or undefined; remove(id); each(f): f(conversation)
// for all, until it returns false; update(id, f): f(stored or undefined) returns the entry {talk, title, updated} to store or
// null, and nothing else happens to the record in between, in any tab.

const NAME = 'llm-server',
    STORES = ['conversations', 'index'];

/** Opens the database; rejects if the browser does not allow it. */
export function openDatabase(factory = globalThis.indexedDB) {
    return new Promise((resolve, reject) => {
        if (!factory) {
            reject(new Error('this browser has no IndexedDB'));
            return;
        }
        const request = factory.open(NAME, 1);
        request.onupgradeneeded = () => {
            STORES.forEach((name) => request.result.createObjectStore(name, { keyPath: 'id' }));
        };
        request.onsuccess = () => resolve(new Database(request.result));
        request.onerror = () => reject(request.error);
        request.onblocked = () => reject(new Error('another tab has an older version of this page open'));
    });
}

class Database {
    constructor(db) {
        this.db = db;
        this.lasting = true;
        db.onversionchange = () => db.close();
    }

    list() {
        return this.run('readonly', (index) => result(index.getAll()), 'index');
    }

    get(id) {
        return this.run('readonly', (talks) => result(talks.get(id)), 'conversations');
    }

    remove(id) {
        return this.run(
            'readwrite',
            (talks, index) => {
                talks.delete(id);
                index.delete(id);
            },
            ...STORES,
        );
    }

    update(id, change) {
        return this.run(
            'readwrite',
            (talks, index) =>
                new Promise((resolve, reject) => {
                    const request = talks.get(id);
                    request.onerror = () => reject(request.error);
                    request.onsuccess = () => {
                        const entry = change(request.result);
                        if (entry) {
                            talks.put(entry.talk);
                            index.put({ id, title: entry.title, updated: entry.updated });
                        }
                        resolve(entry);
                    };
                }),
            ...STORES,
        );
    }

    each(visit) {
        return this.run(
            'readonly',
            (talks) =>
                new Promise((resolve, reject) => {
                    const request = talks.openCursor();
                    request.onerror = () => reject(request.error);
                    request.onsuccess = () => {
                        const cursor = request.result;
                        if (cursor && visit(cursor.value) !== false) {
                            cursor.continue();
                        } else {
                            resolve();
                        }
                    };
                }),
            'conversations',
        );
    }

    /** Runs a transaction; resolves with what `body` gave once everything is on the disk. */
    run(mode, body, ...names) {
        return new Promise((resolve, reject) => {
            const transaction = this.db.transaction(names, mode);
            let value;
            transaction.oncomplete = () => resolve(value);
            transaction.onabort = () => reject(transaction.error ?? new Error('the browser cancelled the transaction'));
            Promise.resolve(body(...names.map((n) => transaction.objectStore(n)))).then((v) => {
                value = v;
            }, reject);
        });
    }
}

function result(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}

/** Keeps conversations until the page is closed. */
export class Memory {
    constructor() {
        this.lasting = false;
        this.talks = new Map(); // id -> JSON: what is stored is not what others go on changing
        this.index = new Map();
    }

    async list() {
        return [...this.index.values()];
    }

    async get(id) {
        return this.copy(id);
    }

    copy(id) {
        return this.talks.has(id) ? JSON.parse(this.talks.get(id)) : undefined;
    }

    async remove(id) {
        this.talks.delete(id);
        this.index.delete(id);
    }

    async update(id, change) {
        const entry = change(this.copy(id));
        if (entry) {
            this.talks.set(id, JSON.stringify(entry.talk));
            this.index.set(id, { id, title: entry.title, updated: entry.updated });
        }
        return entry;
    }

    async each(visit) {
        for (const json of this.talks.values()) {
            if (visit(JSON.parse(json)) === false) {
                return;
            }
        }
    }
}
