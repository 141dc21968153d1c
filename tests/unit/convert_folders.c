/* Which folders in a Hugging Face folder have files of the model: llm_convert_each_folder. */
#include "alloc_fail.h"
#include "test.h"

#include "llm/internal/convert.h"

static char names[400];

static ggl_status note(void *user, const char *name, bool needs_weights, ggl_error *err) {
    const size_t n = strlen(names);
    (void)user;
    snprintf(names + n, sizeof names - n, "%s%s ", name, needs_weights ? "!" : "");
    return strcmp(name, "stop") == 0 ? ggl_fail(err, GGL_LIMIT, "stop") : GGL_OK;
}

static bool put(const char *name, const char *text) {
    return test_write_file(test_path(name), text, strlen(text));
}

static ggl_status find(ggl_error *err) {
    *names = 0;
    return llm_convert_each_folder(test_folder(), NULL, note, NULL, err);
}

static void expect(const char *config, const char *want) {
    ggl_error err = {0};
    REQUIRE(put("config.json", config));
    CHECK_OK(find(&err), &err);
    CHECK_STR(names, want);
}

#define CLASS "\"architectures\": [\"MiMoV2ForCausalLM\"]"

/* An ear's folder is read if config.json has an ear. */
TEST(of_sections) {
    expect("{" CLASS ", \"audio_config\": {\"a\": 1}}", "audio_tokenizer ");
    expect("{" CLASS ", \"audio_config\": null}", "");
    expect("{" CLASS "}", "");
    expect("{\"architectures\": [\"Unknown\"], \"audio_config\": {}}", "");
    expect("{\"architectures\": 7}", "");
    expect("{", "");
    expect("", "");
}

/* Modules' folders are known before their own files are there; then those of sections are, too. */
TEST(of_modules) {
    static const char modules[] =
        "[{\"path\": \"\", \"type\": \"a.Transformer\"}, {\"path\": \"1_Pooling\", \"type\": "
        "\"a.Pooling\"}, {\"path\": \"2_Dense\", \"type\": \"a.Dense\"}, {\"path\": \"../x\", "
        "\"type\": \"a.Dense\"}, {\"path\": \"3_N\", \"type\": \"a.Normalize\"}, 7, {}]";
    ggl_error err = {0};
    REQUIRE(put("modules.json", modules));
    expect("{" CLASS ", \"audio_config\": {}}", "1_Pooling 2_Dense! 3_N ");
    REQUIRE(put("modules.json", "[{\"path\": \"0_T\", \"type\": \"a.Transformer\"}]"));
    expect("{}", "0_T! ");
    REQUIRE(put("modules.json", "{\"path\": \"0_T\"}"));
    expect("{}", "");
    REQUIRE(put("modules.json", "[{\"path\": \"stop\"}, {\"path\": \"next\"}]"));
    CHECK_INT(find(&err), GGL_LIMIT);
    CHECK_STR(names, "stop! ");
    REQUIRE(put("modules.json",
                "[{\"path\": \"1_D\", \"type\": \"a.Dense\"}, {\"path\": \"1\"}, {\"path\": "
                "\"1_D\", \"type\": \"a.Normalize\"}, {\"path\": \"1\"}]"));
    expect("{}", "1_D! 1 "); /* once, however often it is named */
    REQUIRE(put("modules.json", "[]"));
    expect("{" CLASS ", \"audio_config\": {}}", "audio_tokenizer ");
}

/* Either all folders are found, or that memory is missing is said. */
TEST(out_of_memory) {
    ggl_error err = {0};
    bool failed = true;
    REQUIRE(put("config.json", "{" CLASS ", \"audio_config\": {}}") &&
            put("modules.json", "[{\"type\": \"a.Transformer\"}, {\"path\": \"1_N\", \"type\": "
                                "\"a.Normalize\"}]"));
    for (long k = 1; failed; k += k < 40 ? 1 : 97) { /* parsing descriptors takes many */
        alloc_fail_at(k);
        const ggl_status s = find(&err);
        failed = alloc_has_failed();
        alloc_fail_at(0);
        CHECK_MSG(s == GGL_OK ? strcmp(names, "1_N audio_tokenizer ") == 0 : s == GGL_NOMEM,
                  "%ld: %d, %s", k, (int)s, names);
    }
}
