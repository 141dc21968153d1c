/* The answer to /props: how a server describes itself. */
#include <inttypes.h>
#include <string.h>

#include "api_images.h"
#include "api_pieces.h"
#include "server_impl.h"

#ifndef TOOLS_VERSION
#define TOOLS_VERSION "unknown"
#endif

static void put_token(llm_json_out *out, const char *name, const server *s, int32_t id) {
    llm_json_format(out, ", '%s': ", name);
    llm_json_put_string(out, llm_token_piece(llm_opened_tokenizer(s->ctx), id));
}

static void put_text(llm_json_out *out, const char *name, const char *text) {
    llm_json_format(out, ", '%s': %.*s", name, LLM_JSON_TEXT(text));
}

/* Writes the defaults of requests. */
static void put_defaults(llm_json_out *out, const server *s) {
    const server_facts *f = &s->facts;
    llm_json_format(
        out,
        "{\"id\": 0, \"id_task\": -1, \"n_ctx\": %" PRId64
        ", \"speculative\": %s, \"is_processing\": false, \"params\": {\"n_predict\": %" PRId64
        ", \"max_tokens\": %" PRId64 ", \"seed\": %" PRId64 ", ",
        f->n_ctx, llm_opened_guessing(s->ctx) ? "true" : "false", f->n_predict, f->n_predict,
        s->o->seed);
    put_sampling(out, &f->sampling);
    llm_json_format(out, ", \"n_keep\": %" PRId64, f->n_keep);
    llm_json_put_text(out,
                      ", \"stop\": [], \"n_discard\": 0, \"ignore_eos\": false, "
                      "\"stream\": true, \"n_probs\": 0, \"min_keep\": 0, \"grammar\": \"\"}}");
}

/* Writes all members but is_sleeping, and no closing brace. */
static void put_props(llm_json_out *out, const server *s) {
    llm_json_put_text(out, "{\"default_generation_settings\": ");
    put_defaults(out, s);
    llm_json_format(out, ", \"total_slots\": %" PRId64 "", s->facts.n_parallel);
    put_text(out, "model_path", s->facts.model_path);
    put_text(out, "model_alias", s->facts.model);
    llm_json_put_text(out, ", \"chat_template\": ");
    llm_json_put_string(out, llm_opened_chat(s->ctx) ? llm_chat_text(llm_opened_chat(s->ctx))
                                                     : (ggl_str){"", 0});
    put_token(out, "bos_token", s, llm_tokenizer_bos(llm_opened_tokenizer(s->ctx)));
    put_token(out, "eos_token", s, llm_tokenizer_eos(llm_opened_tokenizer(s->ctx)));
    llm_json_format(out, "%s, 'modalities': {'vision': %s, 'audio': %s}",
                    ", \"build_info\": \"b" TOOLS_VERSION
                    "-llm-server\", \"media_marker\": \"" IMAGE_PLACE "\"",
                    server_sees(&s->facts) ? "true" : "false",
                    s->facts.hears || s->facts.listens ? "true" : "false");
}

char *server_props(const server *s) {
    llm_json_out out = {0};
    put_props(&out, s);
    llm_json_put(&out, "", 1);
    if (!out.failed)
        return out.s;
    ggl_free(out.s);
    return NULL;
}
