/* Requests that name what the server has kept (store.h) become ones that have all of it, before their fields are read: so the
 * prompt is the same as if the client had sent the whole conversation again. */
#ifndef LLM_SERVER_API_RECALL_H
#define LLM_SERVER_API_RECALL_H

#include "common/json_write.h"
#include "dialect.h"
#include "store.h"

/* An answer and all those before it, the oldest first, held until recall_end. */
typedef struct recalled {
    answer_store *store;
    const stored **at; /* [n] */
    size_t n, cap;
} recalled;

/* Finds them. GGL_NOT_FOUND: one of them is not there any more; GGL_NOMEM. */
GGL_NODISCARD ggl_status recall_begin(recalled *r, const ask *a, ggl_str id, ggl_error *err);
void recall_end(recalled *r);

/* Parses a text that was kept. The caller frees *doc. GGL_NOMEM. */
GGL_NODISCARD ggl_status recall_parse(llm_json **doc, ggl_str text, ggl_error *err);
/* The same for a request, which holds the memory of the values, and of a copy of the text, until recall_replace. GGL_NOMEM, GGL_LIMIT. */
GGL_NODISCARD ggl_status recall_parse_for(ask *a, llm_json **doc, ggl_str text, ggl_error *err);
/* Copies a value of the request as a text for ask.keep. GGL_NOMEM. */
GGL_NODISCARD ggl_status recall_keep(ask *a, const json_value *v, ggl_str *text, ggl_error *err);
/* Keeps nothing of a request that has more than an entry of the store may, unless it is to be added to a conversation. */
void recall_limit(ask *a);
/* Puts a text, which is freed, in the place of the request's body. GGL_NOMEM, GGL_LIMIT: requests may not take so much memory. */
GGL_NODISCARD ggl_status recall_replace(ask *a, llm_json_out *body, ggl_error *err);

/* Those of the APIs, which also decide what is kept of the request. Without something to recall they change nothing.
 * ask.code and *param are set on failure. keeps: answers of the endpoint are kept. */
GGL_NODISCARD ggl_status openai_recall(ask *a, bool keeps, const char **param, ggl_error *err);
GGL_NODISCARD ggl_status anthropic_recall(ask *a, const char **param, ggl_error *err);
/* OpenAI: reads the "items" of a body in a->doc, at least one, as those of a request's input, which may change the doc. GGL_USAGE, GGL_UNSUPPORTED
 * and GGL_NOT_FOUND name the one that no request could use: "items[1]: ..". */
GGL_NODISCARD ggl_status openai_check_items(ask *a, const char **param, ggl_error *err);
/* Writes the items of a list as a conversation has them, each with an id. */
void openai_put_talk_items(const char *talk_id, const json_value *list, llm_json_out *out);
/* How a list shows the items that were kept, all with an id. Writes the k-th one of an entry. */
void openai_put_listed(const stored *of, const json_value *item, size_t k, llm_json_out *out);

#endif
