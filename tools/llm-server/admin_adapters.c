/* /lora-adapters, in the form of llama.cpp's server. */
#include "admin.h"
#include "answer_impl.h"
#include "api_pieces.h"
#include "api_scales.h"
#include "server_adapters.h"

void admin_adapters(server *s, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    float *scale = server_scales(s);
    out.failed = !scale;
    llm_json_put_text(&out, "[");
    for (size_t i = 0; scale && i < server_n_adapters(s); i++) {
        const server_adapter a = server_adapter_at(s, i);
        llm_json_format(&out, "%s{'id': %zu, 'path': %.*s, 'scale': ", i > 0 ? ", " : "", i,
                        LLM_JSON_TEXT(a.path));
        put_shortest(&out, scale[i]);
        llm_json_put_text(&out, ", \"task_name\": ");
        llm_json_put_string(&out, a.task);
        llm_json_put_text(&out, ", \"prompt_prefix\": ");
        llm_json_put_string(&out, a.prefix);
        llm_json_put_text(&out, "}");
    }
    llm_json_put_text(&out, "]");
    ggl_free(scale);
    admin_send(&out, q, r);
}

void admin_set_adapters(server *s, const http_request *q, http_reply *r) {
    ignored_fields ignored = {.strict = server_get_facts(s)->strict_fields};
    llm_json *doc = NULL;
    llm_json_out out = {0};
    ggl_error err = {0};
    ggl_status st = llm_json_parse(&doc, q->body.s, q->body.n, "request", &err);
    if (st == GGL_OK)
        st = api_check_scales(&doc->root, &ignored, &err);
    if (st == GGL_OK)
        st = server_set_scales(s, &doc->root, &err);
    llm_json_free(doc);
    server_say_ignored(s, &ignored, q, r);
    if (st != GGL_OK) {
        server_count(s, COUNT_ERRORS);
        answer_failed(request_errors(q), st, &err, NULL, r);
        return;
    }
    llm_json_put_text(&out, "{\"success\": true}");
    admin_send(&out, q, r);
}
