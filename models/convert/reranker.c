/* Rerankers that judge with "yes" or "no": ordinary causal models whose folder does not say what they are for. Their score is the share
 * of "yes" after a query and a document in the form below; so the conversion needs only two rows of the output. A section that reads
 * config.reranker can make one: the converter adds {"yes": its token, "no": its token, "form": ..} to config.json, if the caller asks
 * for a reranker, or the folder is named one. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/folder_name.h"
#include "common/json_write.h"
#include "convert_impl.h"
#include "ggl/internal/os_fs.h"

enum { MAX_VOCABULARY = 1 << 28 };

/* The form with which such models are trained, in llama.cpp's key tokenizer.chat_template.rerank. */
static const char form[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
    "answer "
    "the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n";

static bool has_word(const char *s, size_t n) {
    static const char word[] = "reranker";
    for (size_t i = 0; i + strlen(word) <= n; i++) {
        size_t k = 0;
        while (k < strlen(word) && tolower((unsigned char)s[i + k]) == word[k])
            k++;
        if (k == strlen(word))
            return true;
    }
    return false;
}

/* True if the folder, or the model that it was made from, is named a reranker. */
static bool is_named(const llm_converter *c) {
    const json_value *from = llm_json_get_kind(&c->config->root, "_name_or_path", JSON_STRING);
    size_t n = strlen(c->folder);
    const ggl_str name = llm_path_take_last(c->folder, &n);
    return has_word(name.s, name.n) || (from && has_word(from->s, from->n));
}

/* Looks up a token in an object of tokens; -1: it is not there. */
static double token_of(const json_value *vocabulary, const char *text) {
    const json_value *v = vocabulary ? llm_json_get_kind(vocabulary, text, JSON_NUMBER) : NULL;
    return v && v->whole && v->number >= 0 ? v->number : -1;
}

/* Finds the tokens in tokenizer.json or vocab.json. */
static ggl_status find_tokens(const llm_converter *c, double *yes, double *no, ggl_error *err) {
    static const char *const files[] = {"tokenizer.json", "vocab.json"};
    char path[4096];
    ggl_status st = GGL_OK;
    *yes = *no = -1;
    for (size_t i = 0; i < 2 && st == GGL_OK && (*yes < 0 || *no < 0); i++) {
        llm_json *doc;
        const int n = snprintf(path, sizeof path, "%s/%s", c->folder, files[i]);
        if (n < 0 || (size_t)n >= sizeof path || !ggl_os_exists(path))
            continue;
        st = llm_json_read(&doc, path, MAX_VOCABULARY, err);
        if (st != GGL_OK)
            return st;
        const json_value *model = llm_json_get_kind(&doc->root, "model", JSON_OBJECT),
                         *all = model ? llm_json_get_kind(model, "vocab", JSON_OBJECT) : &doc->root;
        *yes = token_of(all, "yes");
        *no = token_of(all, "no");
        llm_json_free(doc);
    }
    return st == GGL_OK && (*yes < 0 || *no < 0)
               ? ggl_fail(err, GGL_UNSUPPORTED,
                          "%s: a reranker of this class needs the tokens \"yes\" and \"no\", which "
                          "tokenizer.json or vocab.json would have",
                          c->folder)
               : st;
}

/* Replaces the config by a copy with one more value. */
static ggl_status add_value(llm_converter *c, double yes, double no, ggl_error *err) {
    llm_json_out out = {0};
    char ids[80];
    llm_json *doc = NULL;
    llm_json_put_value(&out, &c->config->root);
    out.n -= out.n > 0; /* the closing brace */
    snprintf(ids, sizeof ids, "%s\"reranker\": {\"yes\": %.0f, \"no\": %.0f, \"form\": ",
             c->config->root.n > 0 ? ", " : "", yes, no);
    llm_json_put_text(&out, ids);
    llm_json_put_string(&out, (ggl_str){form, sizeof form - 1});
    llm_json_put_text(&out, "}}");
    const char *text = out.failed ? NULL : ggl_arena_strndup(&c->arena, out.s, out.n);
    ggl_status st =
        text ? llm_json_parse(&doc, text, out.n, "config.json", err) : llm_converter_no_memory(err);
    ggl_free(out.s);
    if (st != GGL_OK)
        return st;
    c->plain_config = c->config; /* whose texts may be in use */
    c->config = doc;
    return GGL_OK;
}

ggl_status llm_converter_add_reranker(llm_converter *c, bool is_read, ggl_error *err) {
    double yes, no;
    const bool asked = c->params.reranker == LLM_CONVERT_RERANKER;
    if (asked && !is_read)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "%s: the convert section of this class makes no rerankers: it does not read "
            "config.reranker",
            c->folder);
    if (!is_read || c->lora || c->params.reranker == LLM_CONVERT_NO_RERANKER ||
        (!asked && !is_named(c)))
        return GGL_OK;
    ggl_status st = find_tokens(c, &yes, &no, err);
    if (st == GGL_OK)
        st = add_value(c, yes, no, err);
    if (st == GGL_OK && !llm_converter_note(c, "the model is made a reranker, whose score is the "
                                               "share of \"yes\": it writes no texts with "
                                               "--reranking"))
        st = llm_converter_no_memory(err);
    return st;
}
