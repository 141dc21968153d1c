/* What a model's file says about sampling: the keys general.sampling.*, which llama.cpp's converter makes of generation_config.json. They are
 * defaults, for where nobody has said anything else.
 *
 *     llm_file_sampling s;
 *     llm_file_sampling_read(&s, file, note, user);
 *     llm_sampler_params p = s.p;  // and what somebody has said
 *
 * Threads: the functions have no state; any number of threads may call them at the same time. */
#ifndef LLM_FILE_SAMPLING_H
#define LLM_FILE_SAMPLING_H

#include "ggl/gguf.h"
#include "llm/internal/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LLM_SAMPLING_SEQUENCE "general.sampling.sequence"

/* A key with a number. */
typedef struct llm_sampling_key {
    const char *key; /* "general.sampling.temp" */
    const char *
        config; /* its names in generation_config.json, separated by spaces; the first one that is there counts */
    int number; /* of llm_sampler_numbers */
} llm_sampling_key;

enum {
#define SAMPLER_KEY(name, ...) LLM_SAMPLING_KEY_##name,
#include "llm/internal/samplers.def"
    LLM_N_SAMPLING_KEYS
};
extern const llm_sampling_key llm_sampling_keys[LLM_N_SAMPLING_KEYS];

typedef struct llm_file_sampling {
    llm_sampler_params p;             /* the defaults: the file's, or else llm_sampler_default() */
    bool sets[LLM_SAMPLER_N_NUMBERS]; /* the numbers that are the file's */
    /* The order of the stages, as llm_sampler_read_names reads it, if it is the file's; else "". */
    char order[LLM_SAMPLER_N_STAGES * 16];
} llm_file_sampling;

/* Gets a sentence that names a key, its value, what is wrong with it, and that it is not used. is_foreign: other programs can use it. */
typedef void llm_sampling_note(void *user, bool is_foreign, const char *text);

/* Reads the keys. A value that is no number, or out of the sampler's range, is not used, nor are names in the sequence that are no stages: `note`
 * is told of each. file NULL: it has no keys; note NULL: nobody asks. */
void llm_file_sampling_read(llm_file_sampling *out, const ggl_gguf *file, llm_sampling_note *note,
                            void *user);
/* Writes what the file sets, "temperature 0.6, top_k 20, samplers top_k;temperature"; "" if it sets nothing. Returns buf, which is cut if it is small. */
const char *llm_file_sampling_text(const llm_file_sampling *s, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
