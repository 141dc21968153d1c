#!/bin/sh
# Vercel's AI SDK, asked for openai('model'), uses /v1/responses, and names texts and reasoning of earlier answers by their ids in place of sending them, as if the server kept all answers;
# calls of tools it sends whole. With `store: false` in providerOptions it sends all. An answer that says "store": false changes nothing.
# Seen with ai 6.0.326 and @ai-sdk/openai 3.0.141 (npm), asking a local server that plays the model: the lines at the end, the input of the second request.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
npm install --silent --no-fund --no-audit ai@6.0.326 @ai-sdk/openai@3.0.141 >/dev/null
cat >run.mjs <<'END'
import { createServer } from "node:http";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { createOpenAI } from "@ai-sdk/openai";

let bodies = [];
const text = (id, s) => ({ type: "message", id, status: "completed", role: "assistant", content: [{ type: "output_text", text: s, annotations: [] }] });
const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "now", arguments: "{}", status: "completed" };
const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    bodies.push(JSON.parse(body));
    const output = bodies.length % 2 ? [text("msg_1", "I look."), call] : [text("msg_2", "Noon.")];
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: `resp_${bodies.length}`, object: "response", created_at: 1, model: "m", status: "completed", store: false, output,
        usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } } }));
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const model = createOpenAI({ apiKey: "none", baseURL: `http://127.0.0.1:${server.address().port}/v1` })("m");
const tools = { now: tool({ description: "Tells the time.", inputSchema: jsonSchema({ type: "object", properties: {} }), execute: async () => "12:00" }) };
for (const store of [undefined, false]) {
    bodies = [];
    await generateText({ model, prompt: "What time is it?", tools, stopWhen: stepCountIs(3), providerOptions: { openai: { store } } });
    console.log(`store ${store}:`, bodies[1].input.map((x) => x.type ?? x.role).join(" "));
}
server.close();
END
node run.mjs >got.txt
cat got.txt
cat >want.txt <<'END'
store undefined: user item_reference function_call function_call_output
store false: user assistant function_call function_call_output
END
diff want.txt got.txt
