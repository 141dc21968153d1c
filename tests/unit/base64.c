/* Base64, as RFC 4648 has it and nothing else. */
#include "common/base64.h"
#include "test.h"

static bool decodes(const char *text, const char *want) {
    unsigned char to[64];
    size_t n = 0, wrong = 0;
    const bool good = llm_base64_decode(to, &n, (ggl_str){text, strlen(text)}, &wrong);
    return good && n == strlen(want) && n <= llm_base64_room(strlen(text)) &&
           memcmp(to, want, n) == 0;
}

/* True if the text is refused at this place. */
static bool refuses(const char *text, size_t at) {
    unsigned char to[64];
    size_t n = 0, wrong = 1000;
    if (llm_base64_decode(to, &n, (ggl_str){text, strlen(text)}, &wrong))
        return TEST_SAY("'%s' is taken", text);
    return wrong == at || TEST_SAY("'%s' is wrong at %zu, not %zu", text, wrong, at);
}

TEST(decodes_what_the_rfc_shows) {
    CHECK(decodes("", "") && decodes("Zg==", "f") && decodes("Zm8=", "fo"));
    CHECK(decodes("Zm9v", "foo") && decodes("Zm9vYg==", "foob") && decodes("Zm9vYmFy", "foobar"));
    CHECK(decodes("+/+/", "\xfb\xff\xbf"));
}

TEST(refuses_all_else) {
    CHECK(refuses("Z", 1) && refuses("Zm", 2) && refuses("Zm9", 3) && refuses("Zm9vY", 5));
    CHECK(refuses("Zm9v\n", 4) && refuses(" Zm9v", 0) && refuses("Zm9-", 3) && refuses("Zm9_", 3));
    CHECK(refuses("====", 0) && refuses("Z===", 1) && refuses("Zg==Zg==", 2) && refuses("=Zg=", 0));
    CHECK(refuses("Zh==", 1) && refuses("Zm9=", 2)); /* bits are left over */
}

TEST(writes_no_further_than_the_room) {
    for (size_t n = 0; n < 200; n++) {
        char text[200];
        unsigned char *to = malloc(llm_base64_room(n) + 1);
        size_t n_out, wrong;
        memset(text, 'A', sizeof text);
        REQUIRE(to);
        to[llm_base64_room(n)] = 77;
        CHECK(llm_base64_decode(to, &n_out, (ggl_str){text, n}, &wrong) == (n % 4 == 0));
        CHECK(to[llm_base64_room(n)] == 77);
        free(to);
    }
}
