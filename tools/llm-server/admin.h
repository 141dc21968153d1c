/* Endpoints that do not run the model: the state of the server, and texts as tokens and prompts. Answers have the form of
 * llama.cpp's server, or of the API to which the path belongs. */
#ifndef LLM_SERVER_ADMIN_H
#define LLM_SERVER_ADMIN_H

#include "models.h"

typedef void admin_handler(server *s, const http_request *q, http_reply *r);

/* A handler of requests that name no model. */
typedef void admin_handler_all(models *t, const http_request *q, http_reply *r);

/* admin.c */
admin_handler admin_props, admin_slots, admin_slot;
bool admin_props_unloaded(model *m, const http_request *q, http_reply *r);
/* Refuses to save a slot of a model that is not loaded, which has nothing in it. */
bool admin_slot_unloaded(model *m, const http_request *q, http_reply *r);
bool admin_slots_unloaded(model *m, const http_request *q, http_reply *r);
admin_handler_all admin_health, admin_ready, admin_props_all, admin_stream, admin_stream_cancel,
    admin_streams;
/* admin_adapters.c */
admin_handler admin_adapters, admin_set_adapters;
/* admin_models.c */
admin_handler_all admin_models, admin_model, admin_load, admin_unload;
/* Sends the text of *out and frees it. If it is empty or memory ran out, sends an error in the form of the path. */
void admin_send(llm_json_out *out, const http_request *q, http_reply *r);
/* Appends a text that ends with a NUL as a JSON string. */
void admin_put_string(llm_json_out *out, const char *s);
/* Returns the model that a request names, by its name or an alias, also if there is only one. NULL: GGL_USAGE, no name is
 * given; GGL_NOT_FOUND. */
model *admin_find_named(const models *t, const http_request *q, ggl_error *err);
/* What the model notices beside text; s: its server, or NULL if it is not loaded. */
llm_senses admin_senses(model *m, const server *s);

/* admin_store.c */
admin_handler_all admin_response, admin_response_cancel, admin_response_delete, admin_talk_create,
    admin_talk, admin_talk_change, admin_talk_delete;

/* admin_metrics.c */
admin_handler_all admin_metrics;

/* admin_text.c */
admin_handler admin_tokenize, admin_detokenize, admin_apply_template;
/* d: of the path that the query names; NULL: it has none. */
void admin_prefix(server *s, const dialect *d, const http_request *q, http_reply *r);

/* admin_ollama.c */
admin_handler admin_ollama_show;
admin_handler_all admin_ollama_tags, admin_ollama_ps, admin_ollama_version;
bool admin_ollama_show_file(model *m, const http_request *q, http_reply *r);

/* The page at "/", where clients that do not accept text/html get a line that says llm-server and "Ollama is running". (page_serve.c) */
bool page_answers(const server_options *o,
                  const http_request *q); /* true if page_serve has an answer */
void page_serve(const http_request *q, http_reply *r);

#endif
