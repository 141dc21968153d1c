/* Where a user's files are, and the folders that lead there. */
#include "test.h"

#include <sys/stat.h>

#include "common/user_path.h"

static bool is(const char *rest, const char *want) {
    char *path = llm_user_path("XDG_CACHE_HOME", ".cache", rest);
    const bool same = path && want ? strcmp(path, want) == 0 : path == want;
    if (!same)
        printf("%s, not %s\n", path ? path : "none", want ? want : "none");
    free(path);
    return same;
}

TEST(paths) {
    setenv("HOME", "/home/me", 1);
    setenv("XDG_CACHE_HOME", "/cache", 1);
    CHECK(is("x/y", "/cache/ggml-lite/x/y"));
    CHECK(is("", "/cache/ggml-lite"));
    setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored, says the specification */
    CHECK(is("x", "/home/me/.cache/ggml-lite/x"));
    unsetenv("XDG_CACHE_HOME");
    CHECK(is("", "/home/me/.cache/ggml-lite"));
    setenv("HOME", "", 1);
    CHECK(is("", NULL));
    unsetenv("HOME");
    CHECK(is("x", NULL));
}

TEST(folders) {
    char path[400];
    struct stat st;
    snprintf(path, sizeof path, "%s/a/b/file", test_folder());
    ggl_os_make_parents(path, true);
    CHECK(stat(path, &st) != 0);
    snprintf(path, sizeof path, "%s/a/b", test_folder());
    CHECK(stat(path, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700);
    ggl_os_make_parents("", true);
    ggl_os_make_parents("/", true);
}
