/* Names of keys and tensors: patterns that match them, and what the descriptor and the file have. Which outputs are named by the caller. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "ggl/internal/show.h"

bool llm_arch_is_asked(const arch_eval *ev, int output) {
    const llm_arch_params *p = ev->params;
    if (p && p->only)
        return strcmp(p->only, llm_arch_output_names[output]) == 0;
    return p &&
           ((output == OUT_EMBEDDING && p->embedding) || (output == OUT_ALIGNMENT && p->alignment));
}

size_t llm_arch_match_first(const char *const *pattern, size_t n, ggl_str name, size_t *hits) {
    size_t first = n;
    for (size_t i = 0; i < n && (first == n || hits); i++) {
        if (!arch_match(pattern[i], name.s, name.n))
            continue;
        first = first < n ? first : i;
        if (hits)
            hits[i]++;
    }
    return first;
}

static const arch_known_key *key_named(const llm_arch *arch, const char *name) {
    const arch_known_key *k = arch->key;
    while (k && (k->whole || strcmp(k->name, name) != 0))
        k = k->next;
    return k;
}

bool llm_arch_reads_key(const llm_arch *arch, const char *name) {
    const arch_known_key *k = key_named(arch, name);
    return k && k->n_reads > 0;
}

const char *llm_arch_meant_of_family(const llm_arch *arch, const char *family, const char *key) {
    char before[ARCH_MAX_NAME];
    const char *dot = strchr(key, '.');
    if (!dot || dot == key || (size_t)(dot - key) >= sizeof before)
        return NULL;
    snprintf(before, sizeof before, "%.*s", (int)(dot - key), key);
    ggl_nearest near = ggl_nearest_to(before);
    ggl_nearest_try(&near, family, SIZE_MAX);
    return near.best && llm_arch_reads_key(arch, dot + 1) ? dot + 1 : NULL;
}

/* The names that programs give to keys outside of the families, read here or not. Further ones end with a number or a name of the
 * user's: general.base_model.0.name, tokenizer.chat_template.tool_use. */
static const char *const general[] = {
#define GENERAL(name) "general." name
    GENERAL("alignment"),
    GENERAL("architecture"),
    GENERAL("author"),
    GENERAL("basename"),
    GENERAL("base_model.count"),
    GENERAL("dataset.count"),
    GENERAL("datasets"),
    GENERAL("description"),
    GENERAL("descriptor"),
    GENERAL("doi"),
    GENERAL("file_type"),
    GENERAL("finetune"),
    GENERAL("languages"),
    GENERAL("license"),
    GENERAL("license.link"),
    GENERAL("license.name"),
    GENERAL("max_images"),
    GENERAL("name"),
    GENERAL("organization"),
    GENERAL("quantization_version"),
    GENERAL("quantized_by"),
    GENERAL("repo_url"),
    GENERAL("size_label"),
    GENERAL("source.doi"),
    GENERAL("source.repo_url"),
    GENERAL("source.url"),
    GENERAL("source.uuid"),
    GENERAL("tags"),
    GENERAL("type"),
    GENERAL("url"),
    GENERAL("uuid"),
    GENERAL("version"),
#undef GENERAL
    "tokenizer.chat_template",
    "tokenizer.chat_templates",
    "tokenizer.huggingface.json",
    "tokenizer.rwkv.world",
#define TOKENS(name) "tokenizer.ggml." name
    TOKENS("add_bos_token"),
    TOKENS("add_eos_token"),
    TOKENS("add_sep_token"),
    TOKENS("add_space_prefix"),
    TOKENS("bos_token_id"),
    TOKENS("clean_spaces"),
    TOKENS("cls_token_id"),
    TOKENS("dna_auto_tags"),
    TOKENS("eom_token_id"),
    TOKENS("eos_token_id"),
    TOKENS("eot_token_id"),
    TOKENS("escape_whitespaces"),
    TOKENS("fim_mid_token_id"),
    TOKENS("fim_pad_token_id"),
    TOKENS("fim_pre_token_id"),
    TOKENS("fim_rep_token_id"),
    TOKENS("fim_sep_token_id"),
    TOKENS("fim_suf_token_id"),
    TOKENS("mask_token_id"),
    TOKENS("merges"),
    TOKENS("metaspace.prepend_scheme"),
    TOKENS("middle_token_id"),
    TOKENS("model"),
    TOKENS("normalizer.lowercase"),
    TOKENS("normalizer.nfc"),
    TOKENS("normalizer.strip_accents"),
    TOKENS("padding_token_id"),
    TOKENS("pre"),
    TOKENS("precompiled_charsmap"),
    TOKENS("prefix_token_id"),
    TOKENS("remove_extra_whitespaces"),
    TOKENS("scores"),
    TOKENS("seperator_token_id"),
    TOKENS("suffix_token_id"),
    TOKENS("token_type"),
    TOKENS("token_type_count"),
    TOKENS("tokens"),
    TOKENS("unknown_token_id"),
#undef TOKENS
};

const char *llm_arch_meant_in_general(const char *key) {
    enum { NAMESPACE = 8, LETTERS = 8 }; /* "general."; one more letter may be wrong in so many */
    const size_t n = strlen(key);
    ggl_nearest near = ggl_nearest_to(key);
    near.distance = n > NAMESPACE ? (n - NAMESPACE) / LETTERS + 2 : 2;
    for (size_t i = 0; i < sizeof general / sizeof *general; i++) {
        if (strcmp(general[i], key) == 0)
            return NULL;
        ggl_nearest_try(&near, general[i], SIZE_MAX);
    }
    return near.best;
}

bool llm_arch_names_key(const llm_arch *arch, const char *name) {
    const arch_known_key *k = key_named(arch, name);
    return k && k->own;
}

/* --- values, for messages --------------------------------------------------------------------- */

void llm_arch_cut(char *s, size_t most) {
    if (strlen(s) <= most)
        return;
    size_t n = most - 2;
    while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
        n--;
    strcpy(s + n, "..");
}

static void item_text(arch_eval *ev, const llm_arch_key *k, uint64_t i, char *buf, size_t size) {
    llm_arch_item item = {0};
    char text[4 * 64 + 1];
    snprintf(buf, size, "?");
    if (!ev->src->get_item(ev->src->ctx, k, i, &item))
        return;
    if (k->type == LLM_ARCH_NUMBER)
        snprintf(buf, size, "%.12g", item.number);
    else if (k->type == LLM_ARCH_BOOL)
        snprintf(buf, size, "%s", item.flag ? "true" : "false");
    else {
        ggl_show(text, sizeof text, item.string.s, item.string.n < 64 ? item.string.n : 64);
        llm_arch_cut(text, 48);
        snprintf(buf, size, "\"%s\"", text);
    }
}

const char *llm_arch_value_of_key(arch_eval *ev, ggl_str key, char *buf, size_t size) {
    char name[300], item[300];
    llm_arch_key k;
    snprintf(name, sizeof name, "%.*s", (int)(key.n < 256 ? key.n : 256), key.s);
    buf[0] = 0;
    if (!ev->src->find_key(ev->src->ctx, name, &k))
        return buf;
    if (!k.is_list) {
        item_text(ev, &k, 0, item, sizeof item);
        snprintf(buf, size, " = %s", item); /* at most 50 bytes */
        return buf;
    }
    size_t used = (size_t)snprintf(buf, size, " = [");
    for (uint64_t i = 0; i < k.n && i < 4 && used + 60 < size; i++) {
        item_text(ev, &k, i, item, sizeof item);
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", item);
    }
    snprintf(buf + used, size - used, k.n > 4 ? ", ..] of %" PRIu64 : "]", k.n);
    return buf;
}
