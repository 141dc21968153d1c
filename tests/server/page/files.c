/* e2e.page.files: the files that the program carries are those that the build made of tools/llm-server/page, and the page
 * needs no other. */
#include "llm-server/page.h"

#include "test.h"

/* Checks that a file has gzip's header, without a time, and that what it unpacks to has n bytes, as its end says. */
static bool is_gzip(const page_file *f, size_t n) {
    static const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0};
    const unsigned char *end = f->data + f->size - 4;
    return f->size > 18 && memcmp(f->data, head, sizeof head) == 0 &&
           (end[0] | end[1] << 8 | end[2] << 16 | (size_t)end[3] << 24) == n;
}

TEST(are_the_folders) {
    size_t n = 0;
    for (const page_file *f; (f = page_at(n)); n++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", PAGE_DIR, f->path);
        FILE *disk = fopen(path, "rb");
        REQUIRE(disk);
        if (f->encoding) {
            CHECK_STR(f->encoding, "gzip");
            CHECK(fseek(disk, 0, SEEK_END) == 0 && is_gzip(f, (size_t)ftell(disk)));
            fclose(disk);
            continue;
        }
        unsigned char *bytes = malloc(f->size + 1);
        REQUIRE(bytes);
        CHECK(fread(bytes, 1, f->size + 1, disk) == f->size);
        CHECK(memcmp(bytes, f->data, f->size) == 0);
        free(bytes);
        fclose(disk);
    }
    CHECK(n > 20);
}

TEST(have_types_and_tags) {
    const page_file *f, *g;
    for (size_t k = 0; (f = page_at(k)); k++) {
        CHECK(strchr(f->media_type, '/'));
        size_t n = strlen(f->etag);
        CHECK(n == 18 && f->etag[0] == '"' && f->etag[n - 1] == '"');
        for (size_t i = 0; i < k; i++) {
            g = page_at(i);
            CHECK(strcmp(f->etag, g->etag) != 0 && strcmp(f->path, g->path) != 0);
        }
    }
    CHECK_STR(page_find("/app.js")->media_type, "text/javascript; charset=utf-8");
    CHECK_STR(page_find("/style.css")->media_type, "text/css; charset=utf-8");
    CHECK(strstr(page_libraries(), "the page contains "));
    CHECK_STR(page_find("/licences.txt")->media_type, "text/plain; charset=utf-8");
    CHECK_STR(page_find("/")->media_type, "text/html; charset=utf-8");
}

TEST(are_found_by_their_paths_only) {
    CHECK(page_find("/") == page_find("/index.html"));
    static const char *const none[] = {"",           "index.html", "//",         "/x.js",
                                       "/../page.c", "/app.js/",   "/app.js?x=", "/package.json"};
    for (size_t k = 0; k < sizeof none / sizeof *none; k++) {
        CHECK(page_find(none[k]) == NULL);
    }
}

/* Checks that the page has every file that stands between `before` and a quote in f. Returns how many there are. */
static int check_references(const page_file *f, const char *before) {
    char *text = calloc(1, f->size + 1);
    int n = 0;
    if (!text) {
        return 0;
    }
    memcpy(text, f->data, f->size);
    for (char *at = text; (at = strstr(at, before)); n++) {
        at += strlen(before);
        char path[256];
        snprintf(path, sizeof path, "/%.*s", (int)strcspn(at, "'\""), at);
        if (!CHECK(path[1] == '#' || page_find(path))) {
            printf("%s refers to %s\n", f->path, path);
        }
    }
    free(text);
    return n;
}

TEST(refer_to_each_other_only) {
    CHECK(check_references(page_find("/"), "href=\"") >= 5);
    CHECK(check_references(page_find("/"), "src=\"") == 2);
    int n = 0;
    const page_file *f;
    for (size_t k = 0; (f = page_at(k)); k++) {
        if (strstr(f->path, ".js") && !f->encoding) {
            n += check_references(f, "from './");
        }
    }
    CHECK(n > 20);
}
