/* Text Embeddings Inference's /embed. Its /rerank is in api_rerank.c. */
#include "api_openai.h"
#include "api_prompt.h"
#include "server.h"

static ggl_status read_inputs(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    return prompt_read_all(a, v, "inputs", facts, err);
}

static ggl_status read_normalize(ask *a, const json_value *v, const server_facts *facts,
                                 ggl_error *err) {
    (void)facts;
    a->keeps_length = v->kind == JSON_BOOL && !v->flag;
    return v->kind == JSON_BOOL ? GGL_OK
                                : ggl_fail(err, GGL_USAGE, "\"normalize\" must be true or false");
}

ggl_status tei_field_direction(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)a;
    (void)facts;
    return llm_json_is(v, "Right") || llm_json_is(v, "right")
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED,
                          "\"truncation_direction\" must be \"Right\": the end of a text is cut");
}

static const field fields[] = {{"model", FIELD_FN, .fn = openai_field_model},
                               {"inputs", FIELD_FN, .fn = read_inputs},
                               {"normalize", FIELD_FN, .fn = read_normalize},
                               {"truncate", FIELD_BOOL, .at = FIELD_AT(truncates)},
                               {"parse_special", FIELD_FN, .fn = openai_field_parse_special},
                               {"truncation_direction", FIELD_FN, .fn = tei_field_direction},
                               {"dimensions", FIELD_FN, .fn = openai_field_dimensions},
                               {"prompt_name", FIELD_FN, .fn = openai_field_prompt_name},
                               {"task", FIELD_FN, .fn = openai_field_task},
                               {0}};

static ggl_status read_embed(ask *a, const server_facts *facts, const char **param,
                             ggl_error *err) {
    const ggl_status st = openai_read_embeddings(a, fields, "inputs", facts, param, err);
    return st == GGL_OK ? embed_needs_pooling(facts, err) : st;
}

/* A list of vectors. */
static void embed_whole(const answer *x, llm_json_out *out) {
    for (int i = 0; i < x->n_choices; i++) {
        llm_json_put_text(out, i > 0 ? "," : "[");
        openai_put_floats(x->embedding + i * answer_width(x), answer_dims(x), out);
    }
    llm_json_put_text(out, "]");
}

const dialect api_tei_embed = {.name = "tei_embed",
                               .fields = fields,
                               .read = read_embed,
                               .whole = embed_whole,
                               .error = openai_error};
