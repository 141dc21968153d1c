/* What parts the names of a path, and what shared libraries are called, on each system. */
#include "common/folder_name.h"
#include "ggl/internal/os_library.h"
#include "plugin.h"
#include "test.h"

#ifdef _WIN32
enum { HAS_TWO = true }; /* '/' and '\\' */
#else
enum { HAS_TWO = false };
#endif

static bool has(const char *s) {
    return ggl_os_has_separator(s, strlen(s));
}

static void check_last(const char *path, const char *want) {
    CHECK_STR(ggl_os_last_separator(path), want);
}

TEST(separators) {
    CHECK(has("a/b") && has("/") && !has("ab") && !has(""));
    CHECK_INT(has("a\\b"), HAS_TWO);
    CHECK(!ggl_os_has_separator("ab/", 2));
    check_last("a/b/c", "/c");
    check_last("a/b\\c", HAS_TWO ? "\\c" : "/b\\c");
    check_last("a\\b/c", "/c");
    CHECK(!ggl_os_last_separator("abc"));
}

static void check_folder(const char *path, const char *want) {
    const ggl_str found = llm_folder_name(path);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)found.n, found.s);
    CHECK_STR(name, want);
}

TEST(names_of_folders) {
    check_folder("a/model//", "model");
    check_folder("models--org--name/snapshots/0123456", "name");
    check_folder("/", "");
    check_folder("a\\model\\", HAS_TWO ? "model" : "a\\model\\");
    check_folder("models--org--name\\snapshots\\0123456",
                 HAS_TWO ? "name" : "models--org--name\\snapshots\\0123456");
}

TEST(names_of_plugins) {
    CHECK(ggl_plugin_is_path("./mine") && ggl_plugin_is_path("a/b"));
    CHECK(!ggl_plugin_is_path("cpu") && !ggl_plugin_is_path("so") && !ggl_plugin_is_path(""));
    CHECK_INT(ggl_plugin_is_path("a\\b"), HAS_TWO);
    CHECK_INT(ggl_plugin_is_path("mine.so"), !HAS_TWO);
    CHECK_INT(ggl_plugin_is_path("mine.DLL"), HAS_TWO);
    CHECK(!ggl_os_library_is_name(".so") && !ggl_os_library_is_name(".dll"));
}

TEST(folders_above) {
    char path[512];
    snprintf(path, sizeof path, "%s/a%cb/file", test_folder(), HAS_TWO ? '\\' : '/');
    ggl_os_make_parents(path, true);
    CHECK(!ggl_os_exists(path));
    snprintf(path, sizeof path, "%s/a/b", test_folder());
    CHECK(ggl_os_is_folder(path));
    CHECK(ggl_os_remove_folder(path));
    snprintf(path, sizeof path, "%s/a", test_folder());
    CHECK(ggl_os_remove_folder(path));
    ggl_os_make_parents("", false);
    ggl_os_make_parents("/", false);
}
