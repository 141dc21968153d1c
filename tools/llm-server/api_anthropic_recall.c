/* Anthropic's threads: {"type": "create"} lets the server keep the conversation, and {"type": "continue"} sends nothing but the
 * messages after the answer that it names. System and tools are those with which the thread was created. */
#include "api_anthropic.h"
#include "api_recall.h"
#include "fields_sampling.h"

static const char *const fixed_names[] = {"system", "tools"};
enum { N_FIXED = sizeof fixed_names / sizeof *fixed_names };

static const json_value *given(const json_value *root, const char *name) {
    const json_value *v = llm_json_get(root, name);
    return v && v->kind != JSON_NULL ? v : NULL;
}

static bool is_fixed(ggl_str name) {
    for (int i = 0; i < N_FIXED; i++)
        if (ggl_str_is(name, fixed_names[i]))
            return true;
    return false;
}

/* Keeps messages and, of a new thread, what it has from now on. */
static ggl_status keep(ask *a, bool is_new, ggl_error *err) {
    const json_value *root = &a->doc->root, *messages = llm_json_get(root, "messages");
    llm_json_out out = {0};
    const char *before = "{";
    a->keep.is_wanted = true;
    if (messages && recall_keep(a, messages, &a->keep.sent, err) != GGL_OK)
        return err->status;
    for (int i = 0; is_new && i < N_FIXED; i++)
        if (given(root, fixed_names[i])) {
            llm_json_format(&out, "%s'%s':", before, fixed_names[i]);
            llm_json_put_value(&out, given(root, fixed_names[i]));
            before = ",";
        }
    llm_json_put_text(&out, out.n > 0 ? "}" : "{}");
    return ask_keep(a, &out, &a->keep.fixed, err);
}

static bool same_value(const json_value *a, const json_value *b) {
    llm_json_out x = {0}, y = {0};
    llm_json_put_value(&x, a);
    llm_json_put_value(&y, b);
    const bool same = !x.failed && !y.failed && x.n == y.n && memcmp(x.s, y.s, x.n) == 0;
    ggl_free(x.s);
    ggl_free(y.s);
    return same;
}

/* Writes the request's members, those of the thread in place of its own, up to the messages. */
static ggl_status put_members(ask *a, const json_value *fixed, llm_json_out *out, ggl_error *err) {
    const json_value *root = &a->doc->root;
    llm_json_put_text(out, "{");
    for (int i = 0; i < N_FIXED; i++) {
        const json_value *own = given(root, fixed_names[i]),
                         *v = llm_json_get(fixed, fixed_names[i]);
        if (own && !(v && same_value(own, v))) {
            a->code = "thread_fingerprint_mismatch";
            return ggl_fail(err, GGL_USAGE,
                            "\"%s\" is not that with which the thread was created: leave it out, "
                            "or create a thread with the whole conversation",
                            fixed_names[i]);
        }
        if (!v)
            continue;
        llm_json_format(out, "'%s':", fixed_names[i]);
        llm_json_put_value(out, v);
        llm_json_put_text(out, ",");
    }
    for (uint32_t i = 0; i < root->n; i++) {
        const ggl_str name = json_name(root, i);
        if (ggl_str_is(name, "messages") || is_fixed(name))
            continue;
        llm_json_format(out, "%.*s:", LLM_JSON_STR(name));
        llm_json_put_value(out, &root->item[i]);
        llm_json_put_text(out, ",");
    }
    llm_json_put_text(out, "\"messages\":[");
    return GGL_OK;
}

static void put_list(const json_value *list, size_t *n, llm_json_out *out) {
    for (uint32_t i = 0; i < list->n; i++) {
        llm_json_put_text(out, (*n)++ > 0 ? "," : "");
        llm_json_put_value(out, &list->item[i]);
    }
}

/* Writes the messages of an answer's request, and the answer. */
static ggl_status put_stored(ask *a, const stored *x, size_t *n, llm_json_out *out,
                             ggl_error *err) {
    llm_json *sent = NULL, *body = NULL;
    ggl_status st = recall_parse_for(a, &sent, x->sent, err);
    if (st == GGL_OK)
        st = recall_parse_for(a, &body, x->answer, err);
    const json_value *content =
        st == GGL_OK ? llm_json_get_kind(&body->root, "content", JSON_ARRAY) : NULL;
    if (st == GGL_OK)
        put_list(&sent->root, n, out);
    if (content && content->n > 0) {
        llm_json_format(out, "%s{'role':'assistant','content':", (*n)++ > 0 ? "," : "");
        llm_json_put_value(out, content);
        llm_json_put_text(out, "}");
    }
    llm_json_free(sent);
    llm_json_free(body);
    return st;
}

static ggl_status expand(ask *a, const recalled *r, llm_json_out *out, ggl_error *err) {
    llm_json *fixed = NULL;
    size_t n = 0;
    ggl_status st = recall_parse_for(a, &fixed, r->at[0]->fixed, err);
    if (st == GGL_OK)
        st = put_members(a, &fixed->root, out, err);
    for (size_t i = 0; i < r->n && st == GGL_OK; i++)
        st = put_stored(a, r->at[i], &n, out, err);
    a->n_recalled = n;
    if (st == GGL_OK)
        put_list(llm_json_get(&a->doc->root, "messages"), &n, out);
    llm_json_put_text(out, "]}");
    llm_json_free(fixed);
    return st;
}

static ggl_status continue_thread(ask *a, ggl_str id, ggl_error *err) {
    const bool is_one = id.n > 4 && memcmp(id.s, "msg_", 4) == 0;
    recalled r = {0};
    llm_json_out out = {0};
    a->keep.parent = ggl_arena_strndup(&a->arena, id.s, id.n);
    if (!a->keep.parent)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    ggl_status st = is_one ? recall_begin(&r, a, id, err) : GGL_NOT_FOUND;
    if (st == GGL_NOT_FOUND) {
        a->code = "thread_not_found";
        return ggl_fail(err, GGL_NOT_FOUND,
                        "thread: the message \"%.*s\" is not kept (any more): create a thread with "
                        "the whole conversation",
                        (int)(id.n < 100 ? id.n : 100), id.s);
    }
    if (st == GGL_OK)
        st = expand(a, &r, &out, err);
    recall_end(&r);
    if (st == GGL_OK)
        return recall_replace(a, &out, err);
    ggl_free(out.s);
    return st;
}

ggl_status anthropic_recall(ask *a, const char **param, ggl_error *err) {
    const json_value *thread = given(&a->doc->root, "thread"),
                     *id = llm_json_get_kind(thread, "previous_message_id", JSON_STRING);
    *param = "thread";
    if (!thread)
        return GGL_OK;
    const bool is_new = llm_json_has(thread, "type", "create"),
               goes_on = llm_json_has(thread, "type", "continue");
    if (!is_new && !(goes_on && id))
        return ggl_fail(err, GGL_USAGE,
                        "thread: \"type\" must be \"create\", or \"continue\" with a string "
                        "\"previous_message_id\"");
    if (!a->store) {
        a->code = "thread_unsupported_request";
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "thread: the server keeps no conversations (--no-store): send all messages "
                        "without \"thread\"");
    }
    const json_value *messages = llm_json_get_kind(&a->doc->root, "messages", JSON_ARRAY);
    if (goes_on && !(messages && messages->n > 0)) { /* of a new thread it is found later */
        *param = "messages";
        return ggl_fail(err, GGL_USAGE, "\"messages\" must be a list of at least one message");
    }
    ggl_status st = keep(a, is_new, err);
    if (st == GGL_OK && goes_on)
        st = continue_thread(a, json_str(id), err);
    recall_limit(a);
    return st;
}
