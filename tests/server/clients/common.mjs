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

/** Waits until the server runs nothing any more. A stream that was cut must not go on. */
export async function untilIdle() {
    for (let i = 0; i < 200; i++) {
        const slots = await (await fetch(`${url}/slots`, {headers: {authorization: `Bearer ${key}`}})).json();
        if (!slots.some((s) => s.is_processing)) return;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.fail('the server still works for a client that has gone');
}

/** Sends more requests at once than the server's queue takes; at least one must be refused, and at least one answered. */
export async function crowd(send, refused) {
    const results = await Promise.allSettled(Array.from({length: 24}, send));
    const errors = results.filter((r) => r.status === 'rejected').map((r) => r.reason);
    assert.ok(errors.length > 0 && errors.length < results.length, `${errors.length} of ${results.length} were refused`);
    for (const e of errors) refused(e);
    await untilIdle();
}
