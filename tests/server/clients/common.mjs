// What the tests of all clients share. The server's address and key come from the environment.
import assert from 'node:assert/strict';

export const url = process.env.LLM_SERVER_URL;
export const key = process.env.LLM_SERVER_KEY;

export const question = 'Who lives in the old house?';
export const schema = {
    type: 'object',
    properties: {name: {type: 'string', enum: ['Ann', 'Ben']}, age: {type: 'integer', minimum: 3, maximum: 9}},
    required: ['name', 'age'],
    additionalProperties: false,
};

/** Checks a value that was made by the schema above. */
export function checkPerson(value) {
    assert.deepEqual(Object.keys(value).sort(), ['age', 'name']);
    assert.ok(['Ann', 'Ben'].includes(value.name), `the name is ${value.name}`);
    assert.ok(Number.isInteger(value.age) && value.age >= 3 && value.age <= 9, `the age is ${value.age}`);
}

const get = (path) => fetch(url + path, {headers: {authorization: `Bearer ${key}`}});

async function until(what, isSo) {
    for (let i = 0; i < 200; i++) {
        if (await isSo()) return;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.fail(what);
}

/** Waits until the server runs nothing any more. */
const untilIdle = () => until('the server still works', async () => !(await (await get('/slots')).json()).some((s) => s.is_processing));

/** How many clients went before their answer was complete. */
const countGone = async () => Number(/^llm_clients_gone_total (\d+)/m.exec(await (await get('/metrics')).text())[1]);

/** Runs what cuts a stream, and waits until the server has noticed: it then works no longer. */
export async function checkCut(cut) {
    const before = await countGone();
    await cut();
    await until('the server has not noticed that a client has gone', async () => await countGone() > before);
    await untilIdle();
}

/** Sends more requests at once than the server's queue takes; at least one must be refused, and at least one answered. */
export async function crowd(send, refused) {
    const results = await Promise.allSettled(Array.from({length: 24}, send));
    const errors = results.filter((r) => r.status === 'rejected').map((r) => r.reason);
    assert.ok(errors.length > 0 && errors.length < results.length, `${errors.length} of ${results.length} were refused`);
    for (const e of errors) refused(e);
    await untilIdle();
}
