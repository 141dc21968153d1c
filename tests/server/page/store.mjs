// unit.page.store: what is stored, with a backend in memory; browser.mjs has the real one.

import assert from 'node:assert/strict';
import test from 'node:test';
import { Memory } from '../../../tools/llm-server/page/db.js';
import { Store } from '../../../tools/llm-server/page/store.js';
import * as tree from '../../../tools/llm-server/page/tree.js';

/** Channels that are connected as those of tabs are. */
function channels(n) {
    const all = Array.from({ length: n }, () => {
        const own = { postMessage: (data) => all.forEach((c) => c !== own && c.onmessage?.({ data })) };
        return own;
    });
    return all;
}

function talkOf(text, settings = {}) {
    const talk = tree.newConversation(settings);
    tree.addMessage(talk, tree.ROOT, 'user', text);
    return talk;
}

test('what was saved is loaded; the list has the latest first', async () => {
    const store = new Store(new Memory(), null),
        one = talkOf('first\nline'),
        two = talkOf('x'.repeat(100));
    assert.equal(await store.save(one), true);
    assert.equal(await store.save(two), true);
    assert.deepEqual(await store.load(one.id), one);
    assert.equal(await store.load('nothing'), undefined);
    assert.deepEqual(
        (await store.list()).map((e) => e.title),
        ['x'.repeat(59) + '…', 'first'],
    );
    tree.setField(one, 'title', 'Named');
    tree.addMessage(one, tree.ROOT, 'user', 'later');
    await store.save(one);
    assert.equal((await store.list())[0].title, 'Named');
});

test('two tabs add to a conversation; both find everything', async () => {
    const backend = new Memory(),
        [c1, c2] = channels(2),
        a = new Store(backend, c1),
        b = new Store(backend, c2),
        heard = [];
    b.addEventListener('talk', (event) => heard.push(event.detail));
    const mine = talkOf('begin');
    await a.save(mine);
    const theirs = await b.load(mine.id),
        root = tree.path(mine)[0].message.id;
    tree.addMessage(mine, root, 'assistant', 'from a');
    tree.addMessage(theirs, root, 'assistant', 'from b');
    await Promise.all([a.save(mine), b.save(theirs)]);
    const stored = await a.load(mine.id);
    assert.deepEqual(
        Object.values(stored.messages)
            .map((m) => m.content)
            .sort(),
        ['begin', 'from a', 'from b'],
    );
    assert.ok(heard.includes(mine.id));
});

test('a conversation that one tab has deleted stays deleted while another goes on saving it, until it is restored', async () => {
    const backend = new Memory(),
        a = new Store(backend, null),
        b = new Store(backend, null),
        talk = talkOf('x');
    await a.save(talk);
    const other = await b.load(talk.id),
        removed = await a.remove(talk.id);
    assert.equal(await b.save(other), false);
    assert.deepEqual(await a.list(), []);
    assert.equal(await a.restore(removed), true);
    assert.equal((await b.list()).length, 1);
    assert.equal(await b.save(other), true);
});

test('search finds all words, in titles and messages', async () => {
    const store = new Store(new Memory(), null),
        one = talkOf('Red apples'),
        two = talkOf('green pears');
    tree.setField(two, 'title', 'Fruit');
    await store.save(one);
    await store.save(two);
    assert.deepEqual([...(await store.search('APPLES red'))], [one.id]);
    assert.deepEqual([...(await store.search('fruit pear'))], [two.id]);
    assert.deepEqual([...(await store.search('red pears'))], []);
});

test('an exported file brings everything back, and merges with what is there', async () => {
    const store = new Store(new Memory(), null),
        one = talkOf('one', { system: 'S' }),
        two = talkOf('two');
    await store.save(one);
    await store.save(two);
    const file = await store.export(),
        single = JSON.parse(await store.export([two.id]));
    assert.deepEqual(
        single.conversations.map((c) => c.id),
        [two.id],
    );
    tree.addMessage(one, tree.ROOT, 'user', 'newer than the file');
    await store.save(one);
    await store.remove(two.id);
    assert.equal(await store.import(file), 2);
    assert.equal(Object.keys((await store.load(one.id)).messages).length, 2);
    assert.deepEqual(await store.load(two.id), two);
    const empty = new Store(new Memory(), null);
    await empty.import(file);
    assert.deepEqual((await empty.list()).map((e) => e.title).sort(), ['one', 'two']);
});

test('a wrong file changes nothing', async () => {
    const store = new Store(new Memory(), null),
        good = talkOf('x');
    const file = (conversations) => JSON.stringify({ format: 'llm-server conversations', version: 1, conversations });
    await assert.rejects(store.import('{'), /not JSON/);
    await assert.rejects(store.import('{}'), /not exported by this page/);
    await assert.rejects(store.import('null'), /not exported by this page/);
    await assert.rejects(store.import(file([good, { version: 1 }])), /valid "id"/);
    assert.deepEqual(await store.list(), []);
});

test('what is stored does not change when the conversation does', async () => {
    const store = new Store(new Memory(), null),
        talk = talkOf('x');
    await store.save(talk);
    tree.addMessage(talk, tree.ROOT, 'user', 'y');
    assert.equal(Object.keys((await store.load(talk.id)).messages).length, 1);
});
