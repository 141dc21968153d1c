/* What a request says of itself: its key, its client, its model. */
#include <string.h>

#include "common/digest.h"
#include "endpoints.h"
#include "ggl/internal/text.h"
#include "models_impl.h"
#include "multipart.h"

/* Compares keys. The time does not depend on how many bytes are equal, from which one could guess a key byte by byte. */
static bool is_equal(const char *a, const char *b) {
    const size_t n_a = strlen(a), n_b = strlen(b);
    volatile unsigned char differs = n_a != n_b;
    for (size_t i = 0; i < n_a; i++)
        differs |= (unsigned char)(a[i] ^ b[n_b > 0 ? i % n_b : 0]);
    return !differs;
}

size_t endpoint_find_key(const char *const *key, size_t n, const char *authorization,
                         const char *x_api_key) {
    const char *given = x_api_key;
    size_t found = n;
    if (authorization && ggl_case_compare_n(authorization, "Bearer ", 7) == 0)
        given = authorization + 7 + strspn(authorization + 7, " ");
    for (size_t i = 0; i < n && given; i++)
        found = is_equal(given, key[i]) ? i : found;
    return found;
}

uint64_t endpoint_client(const char *const *key, size_t n, const char *authorization,
                         const char *x_api_key, const char *address) {
    const size_t i = endpoint_find_key(key, n, authorization, x_api_key);
    if (i < n)
        return i;
    return llm_digest(LLM_DIGEST_START, address, address ? strlen(address) : 0);
}

static uint64_t client_of(const server_options *o, const http_request *q) {
    return endpoint_client(o->api_key, o->n_api_keys, q->header(q, "Authorization"),
                           q->header(q, "x-api-key"), q->client);
}

/* Clients are those of the program: a model's own options, which are read again with the list of models, may have the keys of a file
 * that has changed meanwhile. */
uint64_t server_client(const server *s, const http_request *q) {
    return client_of(s->model_row ? models_options(model_table(s->model_row)) : s->o, q);
}

uint64_t models_client(const models *t, const http_request *q) {
    return client_of(models_options(t), q);
}

/* Reads which model a body names. */
static ggl_status name_in(const json_value *root, ggl_str *name, ggl_error *err) {
    static const char *const fields[] = {"model", "name"}; /* the latter: Ollama's older clients */
    if (root->kind != JSON_OBJECT) /* as read_fields says it; no fault of the field "model" */
        return ggl_fail(err, GGL_FORMAT, "a JSON object is expected, not %s",
                        llm_json_kind_text((json_kind)root->kind));
    for (size_t i = 0; i < sizeof fields / sizeof *fields && !name->s; i++) {
        const json_value *v = llm_json_get(root, fields[i]);
        if (!v || v->kind == JSON_NULL)
            continue;
        if (v->kind != JSON_STRING)
            return ggl_fail(err, GGL_USAGE, "\"%s\" must be a string", fields[i]);
        *name = json_str(v);
    }
    return GGL_OK;
}

char *endpoint_model(const http_request *q, ggl_error *why) {
    llm_json *doc = NULL;
    const char *of_query = q->parameter(q, "model");
    ggl_str name = {of_query, of_query ? strlen(of_query) : 0};
    const char *type = q->header(q, "Content-Type");
    const bool is_form = multipart_is_type(type);
    *why = (ggl_error){0};
    if (!name.s && is_form)
        (void)multipart_find(&name, type, q->body, "model");
    if (!name.s && !is_form && (q->body.n > 0 || strcmp(q->method, "POST") == 0) &&
        llm_json_parse(&doc, q->body.s ? q->body.s : "", q->body.n, "request", why) == GGL_OK)
        (void)name_in(&doc->root, &name, why);
    char *text = name.s ? ggl_calloc(name.n + 1, 1) : NULL;
    if (text && name.n > 0)
        memcpy(text, name.s, name.n);
    llm_json_free(doc);
    return text;
}
