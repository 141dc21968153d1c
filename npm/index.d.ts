/** What a model is read from: "builtin:stories" or another model of the library; an address (http, https; in a browser also relative to the page);
 * in node a path; a file that somebody picked; or its bytes. */
export type Source = string | URL | Blob | ArrayBuffer | ArrayBufferView;

export interface LoadOptions {
    /** Called while the file arrives, and while weights are prepared, with what is done and in total, each time from 0 on; at the end at least once, when all is done. */
    progress?(done: number, total: number): void;
    /** Called with sentences about what is opened, such as that nCtx is more than the model was trained for. */
    note?(text: string): void;
    signal?: AbortSignal;
    /** Most tokens of prompt and answer; 0: the model's own context, or what fits into memory. */
    nCtx?: number;
    /** Most tokens that are computed at once; 0: 512. With fewer, a signal has its effect sooner while a prompt is read, which may take longer. */
    nUbatch?: number;
    /** Threads that compute, up to 64; 0: one for each of up to four cores, of more cores half as many, up to 16. They change no bit of a text. More than one need
     * memory that can be shared: node has it, and so has a page that is isolated (crossOriginIsolated). On another page it is an error to ask for them. */
    nThreads?: number;
    /** The file of an eye or an ear: then messages may have pictures or sounds. */
    mmproj?: Source;
    /** A chat template (Jinja), or the name of a built-in one; otherwise the file's. */
    chatTemplate?: string;
    /** The type of the KV cache. */
    cacheType?: "f16" | "bf16" | "f32" | "q8_0" | "q4_0";
    /** False: what the model's file says about sampling is no default. */
    fileSampling?: boolean;
    /** Makes embed() available. */
    embeddings?: boolean;
    /** Whether the browser keeps files from the network (OPFS); true if nothing is said. */
    cache?: boolean;
    /** Bits of the machine's addresses: 32, or 64, which some 16 GB of memory need, and engines since 2025 have (Chrome 133, Firefox 134, node 24). Without this, 64 for files of more
     * than 1.75 GiB, where the engine and this package have them. They change no bit of a text. */
    addressBits?: 32 | 64;
}

export interface GenerateOptions {
    /** Most tokens; 0: until the text ends. */
    maxTokens?: number;
    /** The same seed gives the same text. */
    seed?: number;
    /** The text ends before one of these. */
    stop?: string[];
    /** GBNF; the text fits it. */
    grammar?: string;
    /** The text is JSON that fits it; {}: any JSON. */
    jsonSchema?: object | string;
    /** Numbers of the sampler by their names in the server's API, such as {temperature: 0.8, top_k: 40, repeat_penalty: 1.1}; of others, those of the model's file count, or the usual ones. */
    sampling?: Record<string, number>;
    signal?: AbortSignal;
    /** Called while the prompt is read, with the number of its tokens that were read, and of all. */
    progress?(done: number, total: number): void;
}

export interface ChatOptions extends GenerateOptions {
    /** More of what the chat template reads, such as {tools: [..], enable_thinking: false}. */
    template?: Record<string, unknown>;
}

export interface Message {
    role: string;
    content: string | object[] | null;
    [more: string]: unknown;
}

export interface RunInfo {
    finish: "end" | "stop" | "length" | "context" | "cancelled" | "error" | "none";
    /** Tokens of the prompt that were kept from before, that were read, and tokens that were written. */
    reused: number;
    promptTokens: number;
    tokens: number;
    promptSeconds: number;
    seconds: number;
}

/** A model in a worker of its own. Calls run one after the other; errors have the library's message, and those of an AbortSignal are its reason. Arguments and
 * options that are unknown or of a wrong type are a TypeError, numbers that are out of range a RangeError, and what a callback throws is thrown to who waits. */
export class Model {
    static load(source: Source, options?: LoadOptions): Promise<Model>;
    /** Threads that compute. */
    readonly nThreads: number;
    /** Bits of the machine's addresses. */
    readonly addressBits: 32 | 64;
    readonly nCtx: number;
    readonly nVocab: number;
    readonly hasChat: boolean;
    readonly version: string;
    /** Facts about the last text that was generated to its end. */
    readonly lastRun: RunInfo | null;
    /** Continues a text, piece by piece. */
    generate(prompt: string, options?: GenerateOptions): AsyncGenerator<string, RunInfo>;
    /** Answers a conversation, piece by piece. */
    chat(messages: Message[], options?: ChatOptions): AsyncGenerator<string, RunInfo>;
    encode(text: string, options?: { special?: boolean }): Promise<number[]>;
    decode(ids: Iterable<number>): Promise<string>;
    /** The logits after the last of these tokens. */
    logits(ids: Iterable<number>): Promise<Float32Array>;
    /** The vector of a text, of length 1. */
    embed(text: string): Promise<Float32Array>;
    close(): void;
}
