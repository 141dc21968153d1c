/* The adapters of a model (--lora) and their scales: those of the start, those that POST /lora-adapters sets for all later requests, and those that a request
 * chooses for itself (its field "lora"). Any thread may call this while it holds the server. */
#ifndef LLM_SERVER_ADAPTERS_H
#define LLM_SERVER_ADAPTERS_H

#include "server.h"

/* An adapter, as GET /lora-adapters lists it. */
typedef struct server_adapter {
    const char *path;
    ggl_str task, prefix; /* adapter.lora.task_name, .prompt_prefix; empty: it has none */
} server_adapter;

size_t server_n_adapters(const server *s);
server_adapter server_adapter_at(const server *s, size_t i);
/* The scales of requests that choose none, [server_n_adapters], which the caller frees. NULL: out of memory. */
float *server_scales(const server *s);

/* Sets the scales of later requests by a list that api_check_scales has checked; adapters that it lacks get 0, as in llama.cpp's server. GGL_USAGE: there is no such
 * adapter, or one has another scale there and cannot vary. */
GGL_NODISCARD ggl_status server_set_scales(server *s, const json_value *list, ggl_error *err);
/* Gets the scales of a request, *scale[server_n_adapters], which the caller frees, also on failure. list: its own
 * scales, as above; NULL, or empty: those of all requests. */
GGL_NODISCARD ggl_status server_request_scales(const server *s, const json_value *list,
                                               float **scale, ggl_error *err);
/* Gets the shares of the tokens of a request with these scales (llm_sequence_params.share) into share[LLM_ARCH_MAX_TASKS]. Returns
 * their number; 0: the model has none. */
size_t server_shares(const server *s, const float *scale, float *share);

#endif
