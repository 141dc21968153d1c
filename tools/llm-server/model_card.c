#include "model_card.h"

#include "quant/quant_mix.h"
#include "ggl/internal/gguf.h"
#include "common/gguf_text.h"
#include "ggl/internal/os_fs.h"
#include "llm/internal/load.h"
#include "llm/internal/model.h"
#include "llm/internal/pooling.h"
#include "ggl/internal/text.h"

#include <stdio.h>
#include <string.h>

/* The number of a key {arch}.NAME; 0: it is not there. */
static int64_t number_of(const ggl_gguf *f, const char *arch, const char *name) {
    char key[128];
    double x = 0;
    snprintf(key, sizeof key, "%s.%s", arch, name);
    const ggl_gguf_value *v = ggl_gguf_find(f, key);
    return v && !v->is_array && ggl_gguf_number(v, 0, &x) && x > 0 && x < 1e15 ? (int64_t)x : 0;
}

static bool mentions(ggl_str text, const char *word) {
    return text.n > 0 && ggl_find_bytes(text.s, text.n, word, strlen(word));
}

model_card model_card_of(const ggl_gguf *f) {
    double of_type[256] = {0};
    os_stat st;
    model_card c = {.is_known = true, .digest = ggl_gguf_digest(f)};
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        double n = 1;
        for (int d = 0; d < t->n_dims; d++)
            n *= (double)t->ne[d];
        c.n_params += n;
        c.size += (double)t->size;
        of_type[(unsigned)t->type % 256] += (double)t->size;
    }
    int best = 0;
    for (int i = 1; i < 256; i++)
        best = of_type[i] > of_type[best] ? i : best;
    const ggl_type_info *info = ggl_type_get(best);
    c.weight_type = info ? info->name : "";
    const ggl_gguf_value *kind = ggl_gguf_find(f, "general.file_type");
    double number = -1;
    const quant_mix *mix;
    if (kind && (kind->is_array || !ggl_gguf_number(kind, 0, &number)))
        number = -1;
    for (int i = 0; number >= 0 && (mix = llm_quant_mix_at(i)); i++)
        if (mix->file_type == number) { /* the published name; its tensors have several types */
            c.weight_type = mix->name;
            break;
        }
    const ggl_str family = text_of_key(f, "general.architecture");
    snprintf(c.family, sizeof c.family, "%.*s", (int)(family.n < 63 ? family.n : 63), family.s);
    llm_arch *arch;
    ggl_error unread;
    if (llm_arch_open(&arch, c.family, &unread) == GGL_OK) {
        c.hears = model_card_hears(arch);
        llm_arch_free(arch);
    }
    const ggl_str shown = text_of_key(f, "tokenizer.chat_template");
    llm_pooling pooling;
    c.scores = llm_pooling_find(&pooling, NULL, f, NULL) == GGL_OK && pooling == LLM_POOL_RANK;
    c.ranks = llm_pooling_check_ranks(f, NULL) == GGL_OK;
    c.shows_tools = mentions(shown, "tools");
    c.shows_thinking = mentions(shown, "enable_thinking");
    c.n_ctx = number_of(f, c.family, "context_length");
    c.n_embd = number_of(f, c.family, "embedding_length");
    c.modified = ggl_os_stat(ggl_gguf_name(f), &st) ? st.modified / 1000000000 : 0;
    return c;
}

ggl_status model_card_read(model_card *out, const char *path, ggl_error *err) {
    ggl_gguf *f;
    *out = (model_card){.weight_type = ""};
    ggl_status st = ggl_gguf_open(&f, path, NULL, err); /* checks that all weights are there */
    if (st != GGL_OK)
        return st;
    const ggl_str type = text_of_key(f, "general.type");
    if (type.n > 0 && !ggl_str_is(type, "model"))
        st = ggl_fail(err, GGL_UNSUPPORTED, "%s: it is no model but of the type %.*s", path,
                      (int)type.n, type.s);
    else if (ggl_gguf_n_tensors(f) == 0)
        st = ggl_fail(err, GGL_UNSUPPORTED, "%s: it has no weights", path);
    else
        *out = model_card_of(f);
    ggl_gguf_close(f);
    return st;
}
