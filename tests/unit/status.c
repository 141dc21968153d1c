#include "test.h"

TEST(texts) {
    CHECK_STR(ggl_status_text(GGL_OK), "ok");
    CHECK_STR(ggl_status_text(GGL_FORMAT), "the file breaks its format");
    for (int s = 0; s < GGL_STATUS_COUNT; s++)
        CHECK(ggl_status_text((ggl_status)s)[0] != '\0');
    CHECK_STR(ggl_status_text(GGL_STATUS_COUNT), "unknown status");
    CHECK_STR(ggl_status_text((ggl_status)1000), "unknown status");
}

TEST(fail_and_within) {
    ggl_error err = {0};
    CHECK_INT(ggl_fail(&err, GGL_IO, "file %d", 7), GGL_IO);
    CHECK_INT(err.status, GGL_IO);
    CHECK_STR(err.msg, "file 7");
    CHECK_INT(ggl_within(&err, GGL_FORMAT, "part %s", "x"), GGL_FORMAT);
    CHECK_INT(err.status, GGL_FORMAT);
    CHECK_STR(err.msg, "part x: file 7");
    ggl_within(&err, GGL_FORMAT, "%s", "");
    CHECK_STR(err.msg, "part x: file 7");
}

TEST(no_error_wanted) {
    CHECK_INT(ggl_fail(NULL, GGL_NOMEM, "%s", "x"), GGL_NOMEM);
    CHECK_INT(ggl_within(NULL, GGL_IO, "%s", "x"), GGL_IO);
}

TEST(message_of_itself) {
    ggl_error err = {0};
    ggl_fail(&err, GGL_IO, "inner");
    ggl_fail(&err, GGL_IO, "outer (%s)", err.msg);
    CHECK_STR(err.msg, "outer (inner)");
}

TEST(long_messages_are_cut) {
    ggl_error err = {0};
    char *text = malloc(10000);
    memset(text, 'a', 9999);
    text[9999] = '\0';
    ggl_fail(&err, GGL_IO, "%s", text);
    CHECK_INT(strlen(err.msg), sizeof err.msg - 1);
    CHECK_STR(err.msg + sizeof err.msg - 5, "a...");
    ggl_within(&err, GGL_IO, "here");
    CHECK_INT(strlen(err.msg), sizeof err.msg - 1);
    CHECK(strncmp(err.msg, "here: aaa", 9) == 0);
    CHECK_STR(err.msg + sizeof err.msg - 5, "a...");
    ggl_within(&err, GGL_IO, "%s", text);
    CHECK_INT(strlen(err.msg), sizeof err.msg - 1);
    CHECK_STR(err.msg + sizeof err.msg - 5, "a...");
    for (int shift = 0; shift < 2; shift++) { /* no half of a character before the dots */
        for (int i = shift; i + 2 < 9999; i += 2)
            memcpy(text + i, "\xc3\xb6", 2);
        ggl_fail(&err, GGL_IO, "%s", text);
        const char *end = strchr(err.msg, '.');
        CHECK(end && strcmp(end, "...") == 0 && memcmp(end - 2, "\xc3\xb6", 2) == 0);
    }
    memset(text, 'a', 9999);
    /* one that just fits is not */
    text[sizeof err.msg - 1] = '\0';
    ggl_fail(&err, GGL_IO, "%s", text);
    CHECK_STR(err.msg, text);
    free(text);
}
