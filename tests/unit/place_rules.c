/* library/place/place_rules.h: which rule decides for a weight. */
#include "test.h"

#include "place/place_rules.h"

static place_rules rules;
static ggl_error err;

/* Reads rules of --place and -ot; NULL: none. */
static ggl_status read_rules(const char *place, const char *override, bool cpu_moe, int64_t n) {
    const place_rule_options o = {.place = {&place, place != NULL},
                                  .override = {&override, override != NULL},
                                  .cpu_moe = cpu_moe,
                                  .n_cpu_moe = n};
    err = (ggl_error){0};
    llm_place_rules_fini(&rules);
    return llm_place_rules_read(&rules, &o, &err);
}

/* The backend of the weight; "": that of its layer. */
static const char *backend_of(const char *weight) {
    const place_rule *r = llm_place_rules_find(&rules, weight);
    return r ? r->backend : "";
}

TEST(globs) {
    CHECK_INT(read_rules("blk.*.ffn_*exps*=vulkan0", NULL, false, 0), GGL_OK);
    CHECK_STR(backend_of("blk.3.ffn_up_exps.weight"), "vulkan0");
    CHECK_STR(backend_of("blk.3.attn_q.weight"), "");
    CHECK_INT(llm_place_rules_check(&rules, &err), GGL_OK);
    llm_place_rules_begin(&rules);
    CHECK_INT(llm_place_rules_check(&rules, &err), GGL_USAGE);
    CHECK_STR(err.msg, "--place 'blk.*.ffn_*exps*=vulkan0': no weight that is read has a matching "
                       "name");
}

TEST(regular_expressions) {
    CHECK_INT(read_rules(NULL, "blk\\.(?:[0-4]|1\\d)\\.ffn_.*_exps=CPU,output=Vulkan0", false, 0),
              GGL_OK);
    CHECK_STR(backend_of("blk.4.ffn_up_exps.weight"), "cpu");
    CHECK_STR(backend_of("blk.12.ffn_up_exps.weight"), "cpu");
    CHECK_STR(backend_of("blk.5.ffn_up_exps.weight"), "");
    CHECK_STR(backend_of("output.weight"), "vulkan0");
    CHECK_INT(read_rules(NULL, "a=./Lib.so", false, 0), GGL_OK);
    CHECK_STR(backend_of("a"), "./Lib.so");
}

TEST(experts_of_layers) {
    CHECK_INT(read_rules(NULL, NULL, false, 2), GGL_OK);
    CHECK_STR(backend_of("blk.1.ffn_gate_up_exps.weight"), "cpu");
    CHECK_STR(backend_of("blk.2.ffn_gate_up_exps.weight"), "");
    CHECK_STR(backend_of("blk.1.ffn_up.weight"), "");
    CHECK(!llm_place_rules_unused(&rules));
    CHECK_INT(read_rules(NULL, NULL, true, 0), GGL_OK);
    CHECK_STR(llm_place_rules_unused(&rules), "--cpu-moe");
    CHECK_INT(llm_place_rules_check(&rules, &err), GGL_OK);
    CHECK_STR(backend_of("blk.99.ffn_down_chexps.weight"), "cpu");
    /* the first rule decides */
    CHECK_INT(read_rules("*.0.ffn_up_exps.*=gpu", NULL, true, 0), GGL_OK);
    CHECK_STR(backend_of("blk.0.ffn_up_exps.weight"), "gpu");
    CHECK_STR(backend_of("blk.1.ffn_up_exps.weight"), "cpu");
}

TEST(wrong) {
    CHECK_INT(read_rules("=cpu", NULL, false, 0), GGL_USAGE);
    CHECK_HAS(err.msg, "--place: '=cpu' is not PATTERN=NAME, as in 'blk.*.ffn_*exps*=cpu'");
    CHECK_INT(read_rules(NULL, "a=cpu,b", false, 0), GGL_USAGE);
    CHECK_HAS(err.msg, "-ot: 'b' is not PATTERN=NAME, as in 'ffn_.*_exps=CPU'");
    CHECK_INT(read_rules(NULL, "a=", false, 0), GGL_USAGE);
    CHECK_INT(read_rules(NULL, "(a=cpu", false, 0), GGL_USAGE);
    CHECK_STR(err.msg, "-ot: '(a' is not a regular expression: column 1: the group is not closed "
                       "by ')'");
    CHECK_INT(read_rules(NULL, NULL, false, 0), GGL_OK);
    CHECK(!llm_place_rules_find(&rules, "a"));
}
