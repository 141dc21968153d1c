// Checks what callers pass: the arguments and options of each function with their types, in one table. An option that is undefined is not given.

/** A short text of a value, for messages. */
function show(value) {
    if (typeof value === "string") return value.length > 40 ? "a text" : JSON.stringify(value);
    if (typeof value === "function") return "a function";
    if (Array.isArray(value)) return "an array";
    if (typeof value === "object" && value !== null) return value.constructor?.name ? `of type ${value.constructor.name}` : "an object";
    return typeof value === "bigint" ? `${value}n` : String(value);
}

function refuse(name, wanted, value, Kind = TypeError) {
    throw new Kind(`${name} must be ${wanted}, not ${show(value)}`);
}

/** A type by what is wanted, and whether a value is that. */
const type = (wanted, is) => (value, name) => is(value) || refuse(name, wanted, value);
const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v);

const text = type("a string", (v) => typeof v === "string");
const bool = type("true or false", (v) => typeof v === "boolean");
const callback = type("a function", (v) => typeof v === "function");
const object = type("an object", isObject);
const signal = type("an AbortSignal", (v) => isObject(v) && typeof v.aborted === "boolean" && typeof v.addEventListener === "function");
const schema = type("an object or a string", (v) => isObject(v) || typeof v === "string");
const content = type("a string, an array of parts, or null", (v) => v === null || v === undefined || typeof v === "string" || Array.isArray(v));

function integer(most) {
    const wanted = `an integer from 0 to ${most}`;
    return (value, name) => {
        if (typeof value !== "number") refuse(name, wanted, value);
        if (!Number.isInteger(value) || value < 0 || value > most) refuse(name, wanted, value, RangeError);
    };
}

function finite(value, name) {
    if (typeof value !== "number") refuse(name, "a number", value);
    if (!Number.isFinite(value)) refuse(name, "a finite number", value, RangeError);
}

function texts(value, name) {
    if (!Array.isArray(value)) refuse(name, "an array of strings", value);
    value.forEach((v, i) => text(v, `${name}[${i}]`));
}

function messages(value, name) {
    if (!Array.isArray(value)) refuse(name, "an array of messages {role, content}", value);
    value.forEach((m, i) => {
        if (!isObject(m)) refuse(`${name}[${i}]`, "a message {role, content}", m);
        text(m.role, `${name}[${i}].role`);
        content(m.content, `${name}[${i}].content`);
    });
}

/** Tokens, which come as an Array. */
function tokens(value, name, { nVocab }) {
    value.forEach((id, i) => integer(nVocab - 1)(id, `${name}[${i}]`));
}

function source(value, name) {
    const isBytes = value instanceof ArrayBuffer || ArrayBuffer.isView(value);
    if (!(isBytes || value instanceof URL || value instanceof Blob || typeof value === "string"))
        refuse(name, "an address, a path, the name of a model, a Blob, or bytes", value);
    if (value === "") refuse(name, "an address, a path, or the name of a model", value, RangeError);
}

function sampling(value, name, { samplerNumbers }) {
    if (!isObject(value)) refuse(name, "an object of numbers", value);
    for (const [key, v] of Object.entries(value)) {
        if (!samplerNumbers.includes(key)) throw unknown(`${name}.${key}`, samplerNumbers.map((n) => `${name}.${n}`));
        if (v !== undefined) finite(v, `${name}.${key}`);
    }
}

const MOST_TOKENS = 2 ** 30, MOST_THREADS = 64;
const generating = {
    maxTokens: integer(Number.MAX_SAFE_INTEGER), seed: integer(Number.MAX_SAFE_INTEGER), stop: texts, grammar: text, jsonSchema: schema,
    sampling, signal, progress: callback,
};
const FUNCTIONS = {
    load: {
        source,
        options: {
            progress: callback, note: callback, signal, nCtx: integer(MOST_TOKENS), nUbatch: integer(MOST_TOKENS), nThreads: integer(MOST_THREADS), mmproj: source,
            chatTemplate: text, cacheType: text, embeddings: bool, fileSampling: bool, cache: bool, addressBits: type("32 or 64", (v) => v === 32 || v === 64),
        },
    },
    generate: { prompt: text, options: generating },
    chat: { messages, options: { ...generating, template: object } },
    encode: { text, options: { special: bool } },
    decode: { ids: tokens },
    logits: { ids: tokens },
    embed: { text },
};

/** How many characters have to be changed, added or left out to make one word the other. */
function distance(a, b) {
    let row = Array.from({ length: b.length + 1 }, (_, i) => i);
    for (let i = 1; i <= a.length; i++) {
        const next = [i];
        for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
        row = next;
    }
    return row[b.length];
}

/** The error of an option that is not there: it names the nearest one, or all. Other APIs write max_tokens for maxTokens, which is the same word. */
function unknown(name, known) {
    const word = (n) => n.split(".").pop().replaceAll("_", "").toLowerCase().slice(0, 64);
    const asked = word(name);
    const [near] = known.map((n) => ({ n, far: distance(asked, word(n)) })).sort((a, b) => a.far - b.far);
    const is = near && near.far <= Math.max(1, Math.floor(asked.length / 3));
    return new TypeError(`unknown option '${name}'; ${is ? `did you mean ${near.n}?` : `there are ${known.join(", ") || "none"}`}`);
}

/** The library's names of options and functions, and those that users of this package write. */
const OWN_NAMES = new Map([
    ...Object.values(FUNCTIONS).flatMap(({ options = {} }) => Object.keys(options)).map((own) => [own.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`), own]),
    ["cache_type_k", "cacheType"], ["cache_type_v", "cacheType"], ["n_max", "maxTokens"],
    ...["generate", "embed", "encode", "decode"].map((own) => [`llm_${own}`, own]),
    ["llm_begin", "generate"], ["llm_open", "Model.load"], ["llm_eval", "logits"],
].filter(([name, own]) => name !== own));

/** A text of the library with the names of this package, and without the flags of programs that stand beside them. Parts of paths stay as they are, and so do what is quoted, lines of sources, and what a template says: these
 * are the user's. */
export function withOwnNames(text) {
    const [own, ...said] = text.split(/(?<=the template refuses this conversation: )/);
    return own.split("\n").map((line) => (/^[ \d]*\|/.test(line) ? line : line.replace(/(?<!\w)(['"`]).{0,300}?\1(?!\w)| \(--?[a-z][\w-]*\)(?![\w./\\])|, or --?[a-z][\w-]*(?=\))|\bcache_type_k and cache_type_v\b|(?<![\w./\\-])[a-z]+_\w+(?![\w/\\-]|\.\w)/g,
        (name) => (name.startsWith("cache_type_k and") ? "cacheType" : /^(?: \(|, or )/.test(name) ? "" : OWN_NAMES.get(name) ?? name)))).join("\n") + said.join("");
}

/** Tokens of any kind of list as an Array, of which `check` looks at each. */
export function listOf(ids) {
    if (typeof ids !== "object" || typeof ids?.[Symbol.iterator] !== "function") refuse("ids", "a list of tokens", ids);
    return Array.from(ids);
}

/** Checks the arguments of a function of Model, in the order of the table. `facts`: nVocab and samplerNumbers of the model, where the function needs them. */
export function check(what, args, facts) {
    Object.entries(FUNCTIONS[what]).forEach(([name, wanted], i) => {
        if (name !== "options") return wanted(args[i], name, facts);
        object(args[i], name);
        for (const [key, value] of Object.entries(args[i])) {
            if (!Object.hasOwn(wanted, key))
                throw unknown(key, [...Object.keys(wanted), ...("sampling" in wanted ? facts.samplerNumbers.map((n) => `sampling.${n}`) : [])]);
            if (value !== undefined) wanted[key](value, key, facts);
        }
    });
}
