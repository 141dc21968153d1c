/* What the files of Ollama's API share. */
#ifndef LLM_SERVER_API_OLLAMA_H
#define LLM_SERVER_API_OLLAMA_H

#include "common/json_write.h"
#include "dialect.h"

/* What a request says besides the ask: ask.own. */
typedef struct ollama_ask {
    bool is_chat; /* /api/chat; else /api/generate */
    bool raw, has_think, thinks, has_logprobs;
    bool unloads; /* keep_alive 0: what an answer to an empty request says */
    int64_t n_top;
    ggl_str prompt, suffix, system, effort;
    const json_value *messages, *input, *images;
} ollama_ask;

/* The fields of "options". */
extern const field ollama_option_fields[];

/* Fills ask.talk from messages, or from system and prompt. (api_ollama_talk.c) */
ggl_status ollama_talk(ask *a, const char **param, ggl_error *err);
/* Adds the pictures of a list, which may be NULL, and writes their marks. */
ggl_status ollama_images(ask *a, const json_value *images, llm_json_out *out, ggl_error *err);
/* Reads the list of tools into ask.tools. */
ggl_status ollama_tools(ask *a, const json_value *v, const server_facts *facts, ggl_error *err);

#endif
