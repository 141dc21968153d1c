/* The file of a prompt cache:
 *
 *   | magic | version u32 | 0x01020304 u32 | size of the file u64 | size of the head u64 |
 *   | digest of the rest of the head u64 |
 *   | key: program version, model's name, text `also`: strings |
 *   |      size, time and tensors of the model, graph, rings, placement: u64 |
 *   | n_tokens u64, tokens i32, zeros up to a multiple of 8 | n_entries u64 |
 *   |   n_entries times: tokens, offset, size, digest of the first 256 bytes: u64 |
 *   | n_states u64, n_states times the same | n_pictures u64 |
 *   |   n_pictures times: digest of the rows, 32 bytes; the token id of their first one i64, their number u64 |
 *   | zeros up to a multiple of 64, then the entries, each at such a multiple |
 *
 *   string:  | n u64 | n bytes | zeros up to a multiple of 8 |     numbers: in this machine's byte order
 *
 * An entry is a saved slot (llm_session_save) with the first `tokens` tokens of the sequence. The
 * first one holds the most: all, or all that had run. It has a digest of its own for the bytes after its header.
 *
 * The states lie behind the entries: saved slots of states only, after fewer tokens of the first entry, from which other prompts may go on.
 * Pictures say what the token ids below 0 stand for, which another process may number otherwise (llm/internal/media.h). Heads that end before either have none: older
 * ones. */
#ifndef LLM_PROMPT_CACHE_FILE_H
#define LLM_PROMPT_CACHE_FILE_H

#include "ggl/internal/gguf.h"
#include "llm/internal/prompt_cache.h"

enum {
    LLM_PROMPT_CACHE_PICTURES = 4096,
    LLM_PROMPT_CACHE_ENTRIES = 2,
    LLM_PROMPT_CACHE_TEXT = 1000
};

/* What a file must have been made with. */
typedef struct prompt_cache_key {
    const char *version; /* of the program */
    ggl_str model;       /* its name, for messages */
    ggl_str also;
    ggl_gguf_identity identity;
    uint64_t graph, rings, placement; /* digests */
} prompt_cache_key;

typedef struct prompt_cache_entry {
    uint64_t n;       /* tokens */
    const void *data; /* a saved slot */
    size_t size;
} prompt_cache_entry;

typedef struct prompt_cache_picture {
    uint8_t digest[LLM_MEDIA_ID];
    int64_t first; /* the id of its first row; the next ones are first - 1 .. */
    uint64_t n;
} prompt_cache_picture;

/* What a file holds. */
typedef struct prompt_cache_content {
    const int32_t *id; /* [n] */
    size_t n;
    prompt_cache_entry entry[LLM_PROMPT_CACHE_ENTRIES];
    int n_entries;
    const llm_prompt_states *
        state; /* [n_states]; of a file that was read: NULL, as llm_prompt_cache_read_state finds them */
    size_t n_states;
    const prompt_cache_picture *picture; /* [n_pictures] */
    size_t n_pictures;
    /* Of a file that was read. */
    const char *file, *state_row;
    size_t file_size;
} prompt_cache_content;

/* Checks the bytes of a file against the key. *out points into them, which are aligned to 8 bytes.
 * The entries lie in the file; of their bytes only the first are checked. GGL_FORMAT, GGL_UNSUPPORTED. */
ggl_status llm_prompt_cache_read(prompt_cache_content *out, const prompt_cache_key *key,
                                 const void *data, size_t size, ggl_error *err);
/* Finds state i of a file that was read; of its bytes only the first are checked. GGL_FORMAT. */
ggl_status llm_prompt_cache_read_state(const prompt_cache_content *c, size_t i,
                                       prompt_cache_entry *out, ggl_error *err);
/* GGL_LIMIT: there are more than LLM_PROMPT_CACHE_PICTURES, of which each is looked up among all. */
ggl_status llm_prompt_cache_many_pictures(ggl_error *err);
/* True if these are the first bytes of a prompt cache, also of one that was cut off early. */
bool llm_prompt_cache_is(const void *data, size_t size);
/* Sets *model to the name of the model that the file was made with. False: the file is no prompt cache of this
 * format, or damaged. */
bool llm_prompt_cache_model(const void *data, size_t size, ggl_str *model);
/* Writes the file. */
ggl_status llm_prompt_cache_write(const char *path, const prompt_cache_key *key,
                                  const prompt_cache_content *content, ggl_error *err);
/* Corrects the digest of a head whose bytes were changed, for tests. */
void llm_prompt_cache_seal(void *data, size_t size);

#endif
