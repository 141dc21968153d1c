/* docs/architectures.md, docs/tutorial.md, docs/tutorial-encoder.md: every example compiles. ```arch is a descriptor, ```arch-part lines of
 * one, ```arch-error lines with the message that they give, after "#! ". */
#include <dirent.h>

#include "arch_test.h"
#include "test.h"

static char *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *text = calloc(1 << 20, 1);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    text[n] = 0;
    return text;
}

/* Names that parts of a descriptor may use. */
static const char before[] =
    "arch example\nlanguage 2\n"
    "n_layer = .block_count\nn_embd = .embedding_length\nn_ff = .feed_forward_length\nn_head = "
    ".attention.head_count\n"
    "n_kv = .attention.head_count_kv\nd = .attention.key_length\nd_v = "
    ".attention.value_length\nn_expert = .expert_count\n"
    "n_used = .expert_used_count\neps = .attention.layer_norm_rms_epsilon\n"
    "token_embd [n_embd, n_vocab]\nx = token_embd[token]\n";
static const char after[] = "logits = linear(x, token_embd)\n";

/* A part may leave names to what follows it. That nothing reads one is reported when all else is right. */
static void check(const char *text, const char *where, bool part) {
    ggl_error err = {0};
    llm_arch *a;
    if (!CHECK_MSG(llm_arch_parse(&a, text, strlen(text), where, &err) == GGL_OK, "%s", err.msg))
        return;
    ggl_status s = llm_arch_check(a, NULL, &err);
    CHECK_MSG(s == GGL_OK || (part && strstr(err.msg, "error: nothing reads '")), "%s", err.msg);
    llm_arch_free(a);
}

static void check_error(const char *text, const char *where) {
    ggl_error err = {0};
    llm_arch *a;
    char want[512];
    const char *mark = strstr(text, "#! ");
    if (!CHECK_MSG(mark, "%s: no message given", where))
        return;
    snprintf(want, sizeof want, "%.*s", (int)strcspn(mark + 3, "\n"), mark + 3);
    ggl_status s = llm_arch_parse(&a, text, strlen(text), where, &err);
    if (s == GGL_OK) {
        s = llm_arch_check(a, NULL, &err);
        llm_arch_free(a);
    }
    CHECK_MSG(s != GGL_OK, "%s: no error: %s", where, text);
    CHECK_HAS(err.msg, want);
}

/* The descriptors of tests/numpy, whose logits are compared there, check without a model too. */
TEST(constructs) {
    DIR *dir = opendir(GGL_SOURCE_DIR "/tests/numpy/archs");
    int n = 0;
    REQUIRE(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[1024];
        snprintf(path, sizeof path, GGL_SOURCE_DIR "/tests/numpy/archs/%s", e->d_name);
        char *text = strstr(e->d_name, ".arch") ? read_file(path) : NULL;
        if (text) {
            check(text, e->d_name, false);
            n++;
        }
        free(text);
    }
    closedir(dir);
    CHECK(n >= 10);
}

/* Compiles a page's examples; n: how many descriptors, parts and errors it has. */
static void check_page(const char *page, int n[3]) {
    char path[1024];
    snprintf(path, sizeof path, "%s/docs/%s", GGL_SOURCE_DIR, page);
    char *doc = read_file(path), *text = malloc(1 << 17);
    int line = 1;
    REQUIRE(doc);
    for (char *s = doc; *s; line++) {
        char *end = strchr(s, '\n');
        if (!end)
            break;
        bool part = strncmp(s, "```arch-part\n", 13) == 0,
             error = strncmp(s, "```arch-error\n", 14) == 0;
        if (part || error || strncmp(s, "```arch\n", 8) == 0) {
            char where[64], *close = strstr(end, "\n```");
            REQUIRE(close);
            snprintf(where, sizeof where, "%s line %d", page, line);
            sprintf(text, "%s%.*s\n%s", part || error ? before : "", (int)(close - end - 1),
                    end + 1, part || error ? after : "");
            if (error)
                check_error(text, where);
            else
                check(text, where, part);
            n[part + 2 * error]++;
            for (; s < close; s++)
                line += *s == '\n';
            end = close;
            s = close + 1;
            end = strchr(s, '\n');
        }
        s = end + 1;
    }
    printf("%d descriptors, %d parts, %d errors\n", n[0], n[1], n[2]);
    free(doc);
    free(text);
}

TEST(reference) {
    int n[3] = {0};
    check_page("architectures.md", n);
    CHECK(n[0] >= 2 && n[1] >= 10 && n[2] >= 3);
}

/* Each `name` in the last column of the page's tables that name shipped descriptors. */
static int check_names(const char *row, const char *end) {
    int n = 0;
    const char *last = end - 2; /* before the row's closing '|' */
    while (last > row && *last != '|')
        last--;
    for (const char *s = last; (s = memchr(s, '`', (size_t)(end - s))); n++) {
        const char *close = memchr(s + 1, '`', (size_t)(end - s - 1));
        char path[1024];
        if (!CHECK_MSG(close, "%.*s", (int)(end - row), row))
            break;
        snprintf(path, sizeof path, GGL_SOURCE_DIR "/models/archs/%.*s.arch", (int)(close - s - 1),
                 s + 1);
        CHECK_MSG(access(path, R_OK) == 0, "no such descriptor ships: %.*s", (int)(end - row), row);
        s = close + 1;
    }
    return n;
}

TEST(named_descriptors) {
    static const char *const head[] = {"| there | here | in |", "| | how | complete in |"};
    char *doc = read_file(GGL_SOURCE_DIR "/docs/architectures.md");
    REQUIRE(doc);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) {
        int n = 0;
        char *s = strstr(doc, head[i]);
        if (!CHECK_MSG(s, "%s", head[i]))
            continue;
        for (char *end; (s = strchr(s, '\n')) && s[1] == '|'; s = end) {
            end = strchr(++s, '\n');
            REQUIRE(end);
            n += check_names(s, end);
        }
        CHECK(n > 20);
    }
    free(doc);
}

TEST(tutorial) {
    int n[3] = {0};
    check_page("tutorial.md", n);
    CHECK(n[0] == 1 && n[1] == 2 && n[2] == 3);
}

TEST(tutorial_encoder) {
    int n[3] = {0};
    check_page("tutorial-encoder.md", n);
    CHECK(n[0] == 1 && n[1] == 0 && n[2] == 0);
}
