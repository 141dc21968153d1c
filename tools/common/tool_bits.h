/* The tools that a row of a table is for: of hints (hints.c), and of options for opening a model (open_params.def). */
#ifndef TOOLS_TOOL_BITS_H
#define TOOLS_TOOL_BITS_H

enum {
    CLI = 1 << 0,
    SERVER = 1 << 1,
    BENCH = 1 << 2,
    IMATRIX = 1 << 3,
    PERPLEXITY = 1 << 4,
    TOKENIZE = 1 << 5,
    QUANTIZE = 1 << 6,
    GGUF = 1 << 7,
    LORA = 1 << 8,
    CONVERT = 1 << 9,
    EMBED = 1 << 10,
    TRANSCRIBE = 1 << 11,
    TRAIN = 1 << 12,
    WRITES = CLI | SERVER,
    GUESSES = WRITES | BENCH,
    SEES = CLI | SERVER | EMBED,
    MEASURES = IMATRIX | PERPLEXITY,
    RUNS = WRITES | MEASURES | EMBED,
    OPENS = RUNS | TOKENIZE,
    BLIND = MEASURES | TOKENIZE,
    LOADS = RUNS | TRANSCRIBE | BENCH
};

#endif
