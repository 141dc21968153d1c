/* What families compute without the keys for it: expert_gating_func, expert_weights_norm, and keys
 * whose absence means one thing in one family and another in the next, which a table for all cannot
 * say. */
#include "compile/compile.h"
#include "known_source.h"
#include "test.h"
#include "toy_run.h"

typedef struct mixture {
    const char *file, *family;
    int gating; /* expert_gating_func: 1 softmax, 2 sigmoid, 3 softmax over those chosen */
    int normed; /* expert_weights_norm; -1: it would change nothing */
} mixture;

/* With both keys, whether the graph is `plain`; that is made if it is NULL. */
static bool builds_with(const mixture *m, const llm_arch *arch, const llm_arch_source *base,
                        value gating, value norm, ggl_graph **plain, ggl_error *err) {
    static wrapped w;
    ggl_graph *g;
    const char *const name[2] = {"expert_gating_func", "expert_weights_norm"};
    w_init(&w, base, m->family);
    for (int i = 0; i < 2; i++) { /* in place of the model's */
        snprintf(w.key[w.n].name, sizeof w.key->name, "%s.%s", m->family, name[i]);
        w.key[w.n++].v = i ? norm : gating;
    }
    if (build(arch, &w.source, &g, err) != GGL_OK)
        return false;
    if (!*plain) {
        *plain = g;
        return true;
    }
    const bool same = same_graph(*plain, g);
    ggl_graph_free(g);
    return same;
}

static void try_mixture(const mixture *m, const llm_arch *arch, const llm_arch_source *base) {
    ggl_error err = {0};
    ggl_graph *plain = NULL;
    const value absent = {.absent = true}, usual = number(m->gating),
                norm = {.type = LLM_ARCH_BOOL, .flag = m->normed == 1},
                other = {.type = LLM_ARCH_BOOL, .flag = m->normed != 1};
    REQUIRE(builds_with(m, arch, base, usual, norm, &plain, &err) ||
            CHECK_MSG(false, "%s: %s", m->family, err.msg));
    CHECK_MSG(builds_with(m, arch, base, absent, absent, &plain, &err), "%s: %s", m->family,
              err.msg);
    CHECK_MSG(builds_with(m, arch, base, number(0), norm, &plain, &err), "%s: %s", m->family,
              err.msg);
    CHECK_MSG(!builds_with(m, arch, base, number(m->gating == 2 ? 1 : 2), norm, &plain, &err),
              "%s: another gating", m->family);
    CHECK_MSG(!builds_with(m, arch, base, number(4), norm, &plain, &err), "%s: gating 4",
              m->family);
    CHECK_MSG(builds_with(m, arch, base, usual, other, &plain, &err) == (m->normed < 0),
              "%s: the other normalisation: %s", m->family, err.msg);
    ggl_graph_free(plain);
}

/* Without the keys a family does what its paper says; keys that say so change nothing, others are obeyed or refused. */
LONG_TEST(experts_as_the_family_has_them) {
    static const mixture all[] = {
        {"afmoe", "afmoe", 2, 0},
        {"arctic", "arctic", 1, 1},
        {"bailingmoe", "bailingmoe", 1, 0},
        {"bailingmoe2", "bailingmoe2", 2, 0},
        {"beam", "beam", 2, 1},
        {"cohere2moe", "cohere2moe", 2, 0},
        {"dbrx", "dbrx", 1, 1},
        {"deepseek", "deepseek", 1, 0},
        {"deepseek2", "deepseek2", 1, 0},
        {"dots1", "dots1", 2, 0},
        {"ernie4_5", "ernie4_5-moe", 1, 1},
        {"exaone_moe", "exaone-moe", 2, 0},
        {"flint", "flint", 2, 1},
        {"gemma4", "gemma4", 1, 1},
        {"glm4moe", "glm4moe", 2, 0},
        {"gpt-oss", "gpt-oss", 3, -1},
        {"granite", "granitemoe", 3, -1},
        {"granite_swa", "granite_swa", 3, -1},
        {"granitehybrid", "granitehybrid", 3, -1},
        {"grok", "grok", 1, 1},
        {"grovemoe", "grovemoe", 1, 1},
        {"hunyuan", "hunyuan-moe", 1, 1},
        {"jamba", "jamba", 1, 0},
        {"kimi-linear", "kimi-linear", 2, 1},
        {"kolibri1", "kolibri1", 2, 0},
        {"laguna", "laguna", 2, 0},
        {"lfm2", "lfm2moe", 2, 1},
        {"llama", "llama", 1, 1},
        {"llama4", "llama4", 2, 0},
        {"maion-coder", "maion-coder", 1, 1},
        {"maple", "maple", 1, 1},
        {"mellum", "mellum", 1, 1},
        {"mimo2", "mimo2", 2, 1},
        {"minicpm", "minicpm", 1, 1},
        {"minimax_01", "minimax-01", 1, 1},
        {"minimax_m2", "minimax-m2", 2, 1},
        {"minimax_m3", "minimax-m3", 2, 0},
        {"mistral-large4", "mistral-large4", 1, 1},
        {"muse-spark", "muse-spark", 2, 1},
        {"nemotron_h", "nemotron_h_moe", 2, 0},
        {"olmoe", "olmoe", 1, 0},
        {"phimoe", "phimoe", 1, 1},
        {"qwen2moe", "qwen2moe", 1, 0},
        {"qwen3", "qwen3moe", 1, 1},
        {"qwen35", "qwen35moe", 1, 1},
        {"qwen3next", "qwen3next", 1, 1},
        {"qwen4exp", "qwen4exp", 1, 1},
        {"smallthinker", "smallthinker", 2, 1},
        {"step35", "step35", 2, 0},
    };
    const char *name, *text;
    size_t n;
    int tried = 0;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            toy_model m;
            ggl_error err = {0};
            const size_t stem = strlen(all[i].file);
            if (strncmp(name, all[i].file, stem) != 0 || strcmp(name + stem, ".arch") != 0)
                continue;
            bool there = false;
            for (int variant = 1; !there && toy_open(&m, name, text, n, variant, &err);
                 variant += 2) {
                const char *what = llm_arch_toy_text(m.toy);
                const size_t len = strlen(all[i].family);
                there = strncmp(what, all[i].family, len) == 0 && what[len] == ',';
                llm_arch_toy_freeze(m.toy);
                if (there)
                    try_mixture(&all[i], m.arch, llm_arch_toy_source(m.toy));
                toy_close(&m);
            }
            CHECK_MSG(there, "%s: %s", all[i].family, err.msg);
            tried++;
        }
    CHECK(tried == (int)(sizeof all / sizeof *all));
}

static bool ignores(const llm_arch *arch, const char *pattern) {
    for (const arch_known_key *k = arch->key_pattern; k; k = k->next)
        if (strcmp(k->name, pattern) == 0)
            return true;
    return false;
}

static bool names(const llm_arch *arch, const char *key) {
    for (const arch_known_key *k = arch->key; k; k = k->next)
        if (!k->whole && strcmp(k->name, key) == 0)
            return true;
    return false;
}

/* Keys that only a descriptor can judge: no family with experts, and none without a rotation, may
 * leave them to the table. Picture models have no keys of a rotation. */
TEST(descriptors_say_what_the_table_cannot) {
    const char *name, *text;
    size_t n;
    int n_experts = 0, n_fixed = 0;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
        llm_arch *arch;
        ggl_error err = {0};
        REQUIRE_OK(llm_arch_parse(&arch, text, n, name, &err), &err);
        if (llm_arch_reads_key(arch, "expert_count")) {
            n_experts++;
            CHECK_MSG(names(arch, "expert_gating_func"), "%s: no expert_gating_func", name);
            CHECK_MSG(names(arch, "expert_weights_norm"), "%s: no expert_weights_norm", name);
        }
        if (!strstr(text, "rope_") && !strstr(text, "picture(patch")) {
            n_fixed++;
            CHECK_MSG(ignores(arch, "rope.*"), "%s: no ignore \".rope.*\"", name);
        }
        llm_arch_free(arch);
    }
    CHECK_MSG(n_experts > 25 && n_fixed > 7, "%d with experts, %d that rotate nothing", n_experts,
              n_fixed);
}
