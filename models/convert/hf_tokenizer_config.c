/* Checks the types of tokenizer_config.json's values. As in the programs that write these files,
 * a wrong type is an error: a flag that is silently not read would give a tokenizer that splits
 * text differently. null counts as absent. */
#include "hf_tokenizer.h"

#include "ggl/internal/show.h"

/* A token is a string, or an object with a string "content". */
static bool is_token(const json_value *v) {
    return v->kind == JSON_STRING || llm_json_get_kind(v, "content", JSON_STRING);
}

static bool is_flag(const json_value *v) {
    return v->kind == JSON_BOOL;
}

static bool is_string(const json_value *v) {
    return v->kind == JSON_STRING;
}

static bool is_object(const json_value *v) {
    return v->kind == JSON_OBJECT;
}

/* A template is a string, or a list of named ones. */
static bool is_template(const json_value *v) {
    bool all = v->kind == JSON_ARRAY;
    for (size_t i = 0; all && i < v->n; i++)
        all = llm_json_get_kind(&v->item[i], "name", JSON_STRING) &&
              llm_json_get_kind(&v->item[i], "template", JSON_STRING);
    return all || v->kind == JSON_STRING;
}

static const struct {
    const char *name;
    bool (*is)(const json_value *v);
    const char *wanted;
} types[] = {
    {"bos_token", is_token, "a string, or an object with a string \"content\""},
    {"eos_token", is_token, "a string, or an object with a string \"content\""},
    {"unk_token", is_token, "a string, or an object with a string \"content\""},
    {"pad_token", is_token, "a string, or an object with a string \"content\""},
    {"eot_token", is_token, "a string, or an object with a string \"content\""},
    {"eom_token", is_token, "a string, or an object with a string \"content\""},
    {"cls_token", is_token, "a string, or an object with a string \"content\""},
    {"sep_token", is_token, "a string, or an object with a string \"content\""},
    {"mask_token", is_token, "a string, or an object with a string \"content\""},
    {"do_lower_case", is_flag, "true or false"},
    {"strip_accents", is_flag, "true or false"},
    {"add_bos_token", is_flag, "true or false"},
    {"add_eos_token", is_flag, "true or false"},
    {"separate_vocabs", is_flag, "true or false"},
    {"tokenizer_class", is_string, "a string"},
    {"added_tokens_decoder", is_object, "an object"},
    {"chat_template", is_template,
     "a string, or a list of objects with the strings \"name\" and \"template\""},
};

ggl_status llm_hf_check_config(const json_value *root, ggl_error *err) {
    if (root->kind != JSON_OBJECT)
        return ggl_fail(err, GGL_FORMAT, "it is %s, not an object", llm_json_kind_text(root->kind));
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        const json_value *v = llm_json_get(root, types[k].name);
        if (v && v->kind != JSON_NULL && !types[k].is(v))
            return ggl_fail(err, GGL_FORMAT, "%s is %s; it should be %s, or null", types[k].name,
                            llm_json_kind_text(v->kind), types[k].wanted);
    }
    return GGL_OK;
}
