/* The command line of llm-server, with the names and defaults of llama.cpp's. */
#ifndef LLM_SERVER_OPTIONS_H
#define LLM_SERVER_OPTIONS_H

#include "common/diffusion_options.h"
#include "common/open_options.h"
#include "common/sampling_options.h"

typedef struct server_options {
    open_options
        open; /* with how.image_tokens_for_all for all of --models, and mmproj_came: the eye lies beside the model in a folder of them */
    const char *alias, *tags;
    const char *models; /* a folder, or a file of presets; NULL: one model */
    int64_t models_max;
    bool no_autoload;
    int64_t keep_alive;              /* seconds; less than 0: for ever */
    int reasoning, reasoning_format; /* indices into reasoning_choices and _formats */
    const char *slot_path;           /* a folder for saved slots; NULL if none are saved */
    const char *prompt_path;         /* a folder of shared beginnings; NULL: none are shared */
    int64_t prompt_mib;              /* that it may have */
    int64_t n_parallel, n_cache_slots, n_queue, n_predict, n_keep;
    sampling_options sampling;
    diffusion_options diffusion;
    int64_t seed;
    /* HTTP */
    const char *host, *key_file, *log_file;
    int64_t port, n_http_threads, max_body, max_connections, max_per_client, timeout, max_seconds,
        grace, drain, max_stall, request_memory, resume_time, store_time, ping;
    arg_list keys, origins;
    bool image_urls;       /* pictures are fetched from their addresses */
    const char *vad_model; /* finds speech for requests that ask for it; NULL: none */
    bool vad;              /* and for all others */
    bool no_warmup, no_page, opens_page, no_slots, no_store, shifts, verbose, strict_fields;
    /* open.how.params.embeddings: vectors, or by the pooling scores, as far as they are asked for; encoders give them in any case */
    bool reranking; /* the pooling is LLM_POOL_RANK */
    int pooling;    /* an llm_pooling; less than 0: the model's */
    bool list_devices;
    /* All keys, of --api-key and the file: [n_api_keys]. They point into `key_text` and argv. */
    const char **api_key;
    size_t n_api_keys;
    char *key_text;
} server_options;

/* Reads the command line and the file of keys. Returns -1, or an exit code. */
int server_options_read(server_options *o, int argc, char **argv);
/* Reads the flags of one model of several: argv. Later values replace earlier ones. tool: the beginning of messages. */
int server_options_read_model(const char *tool, server_options *o, int argc, char **argv);
/* The same without checks of flags that exclude or need each other. */
int server_options_parse(const char *tool, server_options *o, int argc, char **argv);
/* Returns the spelling, with its dashes, of the flag that a line of a file of presets names, by itself or without dashes; the name is
 * not terminated. *is_switch: it has no value. *is_server: it is the server's, and no model's. NULL: none. */
const char *server_options_flag(const char *name, size_t n, size_t *n_flag, bool *is_switch,
                                bool *is_server);
/* Checks the paths that the flags name. Returns -1, or an exit code. */
int server_options_check_paths(const char *tool, const server_options *o);
void server_options_fini(server_options *o);

#endif
