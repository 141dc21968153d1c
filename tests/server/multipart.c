/* Forms with files (tools/llm-server/multipart.c), compared with what generated forms were made of. */
#include "llm-server/multipart.h"

#include <stdlib.h>

#include "test.h"

enum { MOST = 8, SIZE = 1 << 16 };
static multipart_part part[MOST];
static size_t n;
static ggl_error err;

static ggl_status read_text(const char *text) {
    return multipart_read(part, MOST, &n, "b", (ggl_str){text, strlen(text)}, &err);
}

static bool is(ggl_str s, const char *text, size_t len) {
    return s.n == len && memcmp(s.s, text, len) == 0;
}

#define HEAD "Content-Disposition: form-data; name=\"a\"\r\n"

TEST(boundaries_of_media_types) {
    char b[MULTIPART_BOUNDARY + 1], type[200];
    CHECK(multipart_is_type("Multipart/Form-Data ; boundary=x") && !multipart_is_type(NULL));
    CHECK(!multipart_is_type("multipart/form-data2") && !multipart_is_type("application/json"));
    CHECK_OK(multipart_boundary("multipart/form-data; a=\"\\\";\"; Boundary=\"a b:c\"", b, &err),
             &err);
    CHECK_STR(b, "a b:c");
    CHECK_OK(multipart_boundary("multipart/form-data;boundary=--x ", b, &err), &err);
    CHECK_STR(b, "--x");
    static const char *const bad[] = {"",
                                      ";",
                                      "; boundary",
                                      "; boundary=",
                                      "; =x",
                                      "; boundary=\"x",
                                      "; boundary=\"x \"",
                                      "; boundary=a@b",
                                      "; x y"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(type, sizeof type, "multipart/form-data%s", bad[i]);
        CHECK_INT(multipart_boundary(type, b, &err), GGL_FORMAT);
    }
    for (int k = MULTIPART_BOUNDARY; k <= MULTIPART_BOUNDARY + 1; k++) {
        snprintf(type, sizeof type, "multipart/form-data; boundary=%0*d", k, 0);
        CHECK_INT(multipart_boundary(type, b, &err), k > MULTIPART_BOUNDARY ? GGL_FORMAT : GGL_OK);
    }
}

TEST(parts) {
    REQUIRE_OK(read_text("preamble\r\n--b \r\n" HEAD "\r\n1\r\n--bb\r\n\r\n--b\r\n"
                         "content-disposition:form-data;filename=\"x\\\".wav\" ; name=f\r\n"
                         "Content-Type: audio/wav\r\n\r\n\r\n--b--\r\nepilogue"),
               &err);
    REQUIRE(n == 2);
    CHECK(is(part[0].name, "a", 1) && is(part[0].data, "1\r\n--bb\r\n", 9) && !part[0].is_file);
    CHECK(is(part[1].name, "f", 1) && part[1].is_file && part[1].data.n == 0);
    CHECK(is(part[1].filename, "x\\\".wav", 7));
    REQUIRE_OK(read_text("--b--"), &err);
    CHECK_INT(n, 0);
}

TEST(damage_is_named) {
    static const struct {
        const char *text;
        ggl_status status;
        const char *words;
    } cases[] = {
        {"", GGL_FORMAT, "does not have the boundary"},
        {"--c--", GGL_FORMAT, "does not have the boundary"},
        {"--b\r\n", GGL_FORMAT, "ends in part 1"},
        {"--b\r\n" HEAD "\r\nx\r\n--b\r\n" HEAD "\r\ny", GGL_FORMAT, "ends in part 2"},
        {"--b\r\n--b--", GGL_FORMAT, "part 1 has no empty line"},
        {"--b\r\n" HEAD "x\r\n--b--", GGL_FORMAT, "no empty line"},
        {"--b\r\n" HEAD " folded\r\n\r\nx\r\n--b--", GGL_FORMAT, "several lines"},
        {"--b\r\nno colon\r\n\r\nx\r\n--b--", GGL_FORMAT, "damaged header"},
        {"--b\r\n\r\nx\r\n--b--", GGL_FORMAT, "no Content-Disposition"},
        {"--b\r\n" HEAD HEAD "\r\nx\r\n--b--", GGL_FORMAT, "two Content-Disposition"},
        {"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--", GGL_FORMAT, "name="},
        {"--b\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--b--", GGL_FORMAT, "name="},
        {"--b\r\n" HEAD "Content-Transfer-Encoding: base64\r\n\r\nx\r\n--b--", GGL_UNSUPPORTED,
         "base64"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(read_text(cases[i].text), cases[i].status);
        CHECK_HAS(err.msg, cases[i].words);
    }
}

TEST(limits) {
    static char text[SIZE];
    size_t k = 0;
    for (int i = 0; i <= MOST; i++)
        k += (size_t)snprintf(text + k, SIZE - k, "--b\r\n" HEAD "\r\nx\r\n");
    snprintf(text + k, SIZE - k, "--b--");
    CHECK_INT(read_text(text), GGL_LIMIT);
    CHECK_HAS(err.msg, "more than 8 parts");
    k = (size_t)snprintf(text, SIZE, "--b\r\n" HEAD "X: ");
    memset(text + k, 'x', MULTIPART_HEADER);
    snprintf(text + k + MULTIPART_HEADER, SIZE - k - MULTIPART_HEADER, "\r\n\r\n1\r\n--b--");
    CHECK_INT(read_text(text), GGL_LIMIT);
    CHECK_HAS(err.msg, "8192 bytes");
}

/* Parts of random bytes, many of which look like borders. */
TEST(generated_forms) {
    static const char marks[] = "\r\n--b-\r\n\0: ";
    static char text[SIZE], data[MOST][100];
    uint64_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        size_t k = 0, len[MOST];
        const size_t n_parts = test_random(&seed) % (MOST + 1);
        for (size_t p = 0; p < n_parts; p++) {
            len[p] = test_random(&seed) % sizeof data[p];
            for (size_t i = 0; i < len[p]; i++)
                data[p][i] = marks[test_random(&seed) % (sizeof marks - 1)];
            /* the boundary is XYZ, which no data has */
            k += (size_t)snprintf(text + k, SIZE - k,
                                  "--XYZ\r\nContent-Disposition: form-data; name=p%zu\r\n\r\n", p);
            memcpy(text + k, data[p], len[p]);
            k += len[p];
            memcpy(text + k, "\r\n", 2);
            k += 2;
        }
        k += (size_t)snprintf(text + k, SIZE - k, "--XYZ--\r\n");
        char *exact = malloc(k); /* so that sanitizers see what is read behind it */
        REQUIRE(exact);
        memcpy(exact, text, k);
        const ggl_status st = multipart_read(part, MOST, &n, "XYZ", (ggl_str){exact, k}, &err);
        CHECK_OK(st, &err);
        CHECK_INT(n, n_parts);
        for (size_t p = 0; p < n && n == n_parts; p++)
            CHECK(is(part[p].data, data[p], len[p]) && part[p].name.s[1] == (char)('0' + p));
        const size_t cut = test_random(&seed) % (k - 4);
        CHECK(multipart_read(part, MOST, &n, "XYZ", (ggl_str){exact, cut}, &err) != GGL_OK);
        free(exact);
    }
}

TEST(a_part_is_found_by_its_name) {
    static const char type[] = "multipart/form-data; boundary=b";
    static const char text[] = "--b\r\n" HEAD "\r\n1\r\n--b\r\n" HEAD "\r\n2\r\n--b--";
    const ggl_str body = {text, sizeof text - 1};
    ggl_str found;
    CHECK(multipart_find(&found, type, body, "a") && is(found, "1", 1));
    CHECK(!multipart_find(&found, type, body, "b"));
    CHECK(!multipart_find(&found, "multipart/form-data", body, "a"));
    CHECK(!multipart_find(&found, type, (ggl_str){text, body.n - 2}, "a"));
}

/* Bodies of many almost-borders. If each were searched to the end of the body, this would not end. */
TEST(hostile_bodies_take_one_pass) {
    enum {
        MIB = 1 << 20,
        SIZE_OF_BODY = (TEST_ASAN ? 1 : 8) * MIB
    }; /* a sanitizer looks at each comparison */
    static const char *const repeated[] = {"\r\n--bx", "\r\n--b x", "\r\n--",
                                           "\r\n",     "-",         "\r\n--b\t \r"};
    char *text = malloc(SIZE_OF_BODY);
    REQUIRE(text);
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
        size_t k = (size_t)snprintf(text, MIB, "--b\r\n" HEAD "\r\n");
        const size_t step = strlen(repeated[i]);
        for (; k + step + 16 < SIZE_OF_BODY; k += step)
            memcpy(text + k, repeated[i], step);
        CHECK_INT(multipart_read(part, MOST, &n, "b", (ggl_str){text, k}, &err), GGL_FORMAT);
        k += (size_t)snprintf(text + k, 16, "\r\n--b--");
        CHECK_OK(multipart_read(part, MOST, &n, "b", (ggl_str){text, k}, &err), &err);
        CHECK_INT(n, 1);
    }
    free(text);
}
