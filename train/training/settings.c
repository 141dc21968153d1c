/* What the bits of a training depend on: its settings, as a JSON object, and the digests of its files. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json_write.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/xxh64.h"
#include "training.h"

static const char *separator(const llm_json_out *out) {
    return out->n > 0 && out->s[out->n - 1] != '{' ? ", " : "";
}

static void put_number(llm_json_out *out, const char *name, double x) {
    llm_json_format(out, "%s'%s': %.17g", separator(out), name, x);
}

/* What is no number, or has more digits than a double. */
static void put_text(llm_json_out *out, const char *name, const char *text) {
    llm_json_format(out, "%s'%s': '%s'", separator(out), name, text);
}

const char *llm_train_optimizer_name(int k) {
    static const char *const name[] = {
        [LLM_TRAIN_ADAMW] = "adamw", [LLM_TRAIN_SGD] = "sgd", [LLM_TRAIN_MUON] = "muon"};
    return k < (int)(sizeof name / sizeof *name) ? name[k] : NULL;
}

ggl_status llm_train_settings(llm_training *t, ggl_error *err) {
    const llm_training_params *p = &t->p;
    llm_json_out out = {0};
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, p->seed);
    llm_json_format(&out, "{'given': {");
    put_number(&out, "minutes", p->minutes);
    put_number(&out, "n_batch", (double)p->n_batch);
    put_number(&out, "n_seq", (double)p->n_seq);
    put_number(&out, "rate_end", p->rate_end);
    put_number(&out, "rate_hold", p->rate_hold);
    put_text(&out, "schedule", llm_train_fall_name(t->fall));
    put_text(&out, "optimizer", llm_train_optimizer_name((int)t->optimizer));
    put_number(&out, "optimizer_bits", p->optimizer_bits);
    put_text(&out, "round_to", ggl_type_get(t->rounded)->name);
    put_number(&out, "bf16", p->bf16);
    put_number(&out, "n_warmup", (double)p->n_warmup);
    put_number(&out, "beta1", p->beta1);
    put_number(&out, "beta2", p->beta2);
    put_number(&out, "eps", p->eps);
    put_number(&out, "decay", p->decay);
    put_number(&out, "max_norm", p->max_norm);
    put_text(&out, "seed", seed);
    put_number(&out, "lora", p->lora);
    put_number(&out, "adapter", p->adapter != NULL);
    put_number(&out, "rank", !p->lora ? 0 : p->rank ? (double)p->rank : 16);
    put_number(&out, "dora", p->lora && p->dora);
    put_number(&out, "rs", p->lora && p->rs);
    put_number(&out, "alpha", t->of.adapter ? llm_adapter_describe(t->of.adapter).alpha : 0);
    put_number(&out, "valid_share", p->valid_share);
    put_number(&out, "valid_max", (double)p->valid_max);
    put_number(&out, "dpo_beta", p->dpo_beta);
    put_number(&out, "teacher_share", t->of.teach ? p->teacher_share : 0);
    put_number(&out, "teacher_temp", t->of.teach ? p->teacher_temp : 0);
    if (p->draft) {
        put_number(&out, "draft_depth", (double)p->draft_depth);
        put_number(&out, "draft_share", p->teacher_share);
    }
    if (llm_train_is_contrast(t->kind)) {
        char name[32];
        put_number(&out, "contrast_temp", p->contrast_temp);
        put_text(&out, "pooling", llm_pooling_name(t->pooling));
        for (size_t i = 0; i < p->n_dims; i++) {
            snprintf(name, sizeof name, "dim %zu", i + 1);
            put_number(&out, name, (double)p->dim[i]);
        }
    }
    llm_json_format(&out, "}, 'sizes': {");
    put_number(&out, "rate", p->rate); /* the usual one follows from most of the others */
    /* Of a training with a limit of minutes the number of steps is no setting, but settled later. */
    put_number(&out, "n_steps", p->minutes > 0 ? 0 : (double)t->n_steps);
    put_number(&out, "n_ctx", (double)p->n_ctx);
    put_number(&out, "n_ubatch", (double)p->n_ubatch);
    put_number(&out, "n_parts", (double)p->n_parts);
    llm_json_format(&out, "}}");
    t->settings = out.s;
    return out.failed ? ggl_fail(err, GGL_NOMEM, "out of memory for the settings") : GGL_OK;
}

const char *llm_train_setting_flag(ggl_str name) {
    static const char *const flag[][2] = {
        {"minutes", "--minutes"},
        {"n_batch", "-b"},
        {"n_seq", "--sequences"},
        {"rate", "-lr"},
        {"rate_end", "--lr-end"},
        {"rate_hold", "--hold"},
        {"schedule", "--schedule"},
        {"optimizer", "--optimizer"},
        {"optimizer_bits", "--optimizer-bits"},
        {"round_to", "--qat"},
        {"bf16", "--bf16"},
        {"n_warmup", "--warmup"},
        {"beta1", "--beta1"},
        {"beta2", "--beta2"},
        {"eps", "--eps"},
        {"decay", "--decay"},
        {"max_norm", "--max-norm"},
        {"seed", "-s"},
        {"lora", "--lora"},
        {"adapter", "--adapter"},
        {"rank", "--rank"},
        {"dora", "--dora"},
        {"rs", "--rslora"},
        {"alpha", "--alpha"},
        {"valid_share", "--valid-share or --no-valid"},
        {"valid_max", "--valid-max"},
        {"dpo_beta", "--dpo-beta"},
        {"teacher_share", "--teacher-share"},
        {"teacher_temp", "--teacher-temp"},
        {"draft_depth", "--draft-depth"},
        {"draft_share", "--teacher-share"},
        {"contrast_temp", "--contrast-temp"},
        {"pooling", "--pooling"},
        {"n_steps", "--steps or --epochs"},
        {"n_ctx", "-c"},
        {"n_ubatch", "-ub"},
        {"n_parts", "--parts"},
    };
    for (size_t i = 0; i < sizeof flag / sizeof *flag; i++)
        if (ggl_str_is(name, flag[i][0]))
            return flag[i][1];
    return name.n > 4 && memcmp(name.s, "dim ", 4) == 0 ? "--dims" : NULL;
}

static uint64_t digest_of_data(const llm_training *t) {
    return llm_train_data_digest(t->data) ^
           (t->valid ? llm_train_data_digest(t->valid) * UINT64_C(0x9e3779b97f4a7c15) : 0);
}

static uint64_t digest_of_model(const llm_training *t) {
    const uint64_t draft =
        t->of.draft ? ggl_gguf_digest(llm_model_file(t->of.draft)) * UINT64_C(0x9e3779b97f4a7c15)
                    : 0;
    const uint64_t eye =
        t->of.eye ? ggl_gguf_digest(llm_model_file(t->of.eye)) * UINT64_C(0xbf58476d1ce4e5b9) : 0;
    return ggl_gguf_digest(llm_model_file(t->of.model)) ^ draft ^ eye;
}

/* That with which it began; a new one follows from the settings. */
static uint64_t digest_of_adapter(const llm_training *t) {
    return t->p.adapter ? ggl_gguf_digest(llm_adapter_file(t->of.adapter)) : 0;
}

static uint64_t digest_of_teacher(const llm_training *t) {
    return t->of.teacher_file ? ggl_gguf_digest(t->of.teacher_file) : 0;
}

static uint64_t digest_of_descriptor(const llm_training *t) {
    size_t n;
    const char *text = llm_arch_text(llm_model_arch(t->of.model), &n);
    ggl_xxh64 h;
    ggl_xxh64_begin(&h);
    ggl_xxh64_add(&h, text, n);
    return ggl_xxh64_end(&h);
}

const char *const llm_train_digest_name[TRAIN_DIGESTS] = {"model", "descriptor", "adapter",
                                                          "teacher", "data"};
const char *const llm_train_digest_other[TRAIN_DIGESTS] = {"another model or mmproj",
                                                           "another descriptor", "another adapter",
                                                           "another teacher", "other data"};
const char *const llm_train_digest_none[TRAIN_DIGESTS] = {"a model", "a descriptor", "an adapter",
                                                          "a teacher", "data"};

void llm_train_digests(const llm_training *t, uint64_t out[TRAIN_DIGESTS]) {
    out[0] = digest_of_model(t);
    out[1] = digest_of_descriptor(t);
    out[2] = digest_of_adapter(t);
    out[3] = digest_of_teacher(t);
    out[4] = digest_of_data(t);
}
