/* llama.cpp's /embedding, and /embeddings, whose answers are OpenAI's unless the texts are in llama.cpp's field "content", or the server gives a vector
 * for each token. */
#include "api_openai.h"
#include "api_prompt.h"
#include "server.h"

/* Vectors have length 1, or are as they are, as always if there is one for each token. */
static ggl_status read_length(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    a->keeps_length = v->kind == JSON_NUMBER && v->number == -1;
    if (facts->n_embd == 0 || a->keeps_length ||
        (!facts->all_vectors && v->kind == JSON_NUMBER && v->number == 2))
        return GGL_OK;
    return ggl_fail(err, GGL_UNSUPPORTED, "\"embd_normalize\" must be %s",
                    facts->all_vectors ? "-1: the vectors of tokens are given as they are"
                                       : "2, for vectors of length 1, or -1, as they are");
}

static ggl_status read_content(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    openai_own_of(a)->lists = true;
    a->talk_name = "content"; /* for messages */
    return prompt_read_all(a, v, "content", facts, err);
}

static const field fields[] = {{"model", FIELD_FN, .fn = openai_field_model},
                               {"input", FIELD_FN, .fn = openai_field_input},
                               {"content", FIELD_FN, .fn = read_content},
                               {"embd_normalize", FIELD_FN, .fn = read_length},
                               {"encoding_format", FIELD_FN, .fn = openai_field_encoding},
                               {"dimensions", FIELD_FN, .fn = openai_field_dimensions},
                               {"task", FIELD_FN, .fn = openai_field_task},
                               {"prompt_name", FIELD_FN, .fn = openai_field_prompt_name},
                               {"truncate", FIELD_BOOL, .at = FIELD_AT(truncates)},
                               {"parse_special", FIELD_FN, .fn = openai_field_parse_special},
                               {"user", .kind = FIELD_IGNORED},
                               {0}};

static ggl_status check_encoding(ask *a, const char **param, ggl_error *err) {
    if (!openai_own_of(a)->base64)
        return GGL_OK;
    *param = "encoding_format";
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "\"encoding_format\" must be \"float\" where the answer has llama.cpp's form");
}

static ggl_status read_embedding(ask *a, const server_facts *facts, const char **param,
                                 ggl_error *err) {
    const ggl_status st = openai_read_embeddings(a, fields, "input", facts, param, err);
    return st == GGL_OK ? check_encoding(a, param, err) : st;
}

static ggl_status read_embeddings(ask *a, const server_facts *facts, const char **param,
                                  ggl_error *err) {
    const ggl_status st = openai_read_embeddings(a, fields, "input", facts, param, err);
    return st == GGL_OK && (facts->all_vectors || openai_own_of(a)->lists)
               ? check_encoding(a, param, err)
               : st;
}

/* A list of texts, with a list of vectors for each. */
static void embedding_whole(const answer *x, llm_json_out *out) {
    const int64_t n_embd = x->facts->n_embd;
    for (int i = 0; i < x->n_choices; i++) {
        const answer_choice *c = &x->choice[i];
        llm_json_format(out, "%s%d,'embedding':", i > 0 ? ",{\"index\":" : "[{\"index\":", i);
        for (int64_t k = 0; k < c->n_vectors; k++) {
            llm_json_put_text(out, k > 0 ? "," : "[");
            openai_put_floats(x->embedding + (c->first_vector + k) * n_embd, answer_dims(x), out);
        }
        llm_json_put_text(out, "]}");
    }
    llm_json_put_text(out, "]");
}

static void embeddings_whole(const answer *x, llm_json_out *out) {
    const bool lists = x->facts->all_vectors || openai_own_of(x->ask)->lists;
    (lists ? embedding_whole : openai_embeddings_whole)(x, out);
}

const dialect api_llamacpp_embedding = {.name = "llamacpp_embedding",
                                        .fields = fields,
                                        .read = read_embedding,
                                        .whole = embedding_whole,
                                        .error = llamacpp_error};
const dialect api_llamacpp_embeddings = {.name = "llamacpp_embeddings",
                                         .fields = fields,
                                         .read = read_embeddings,
                                         .whole = embeddings_whole,
                                         .error = llamacpp_error};
