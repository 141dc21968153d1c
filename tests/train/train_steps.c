/* The time to read files of data grows with their size, whatever they contain. */
#include <stdlib.h>
#include <string.h>

#include "steps.h"
#include "training/data_records.h"

/* Returns the steps for a list of n elements in one line. */
static uint64_t steps_of(size_t n) {
    static const char one[] = "{\"text\": \"a\"}, ";
    const size_t n_one = sizeof one - 1;
    ggl_error err = {0};
    char *text = malloc(n * n_one + 2);
    train_records r;
    train_record record;
    size_t found = 0;
    if (!CHECK(text))
        return 0;
    text[0] = '[';
    for (size_t i = 0; i < n; i++)
        memcpy(text + 1 + i * n_one, one, n_one);
    text[n * n_one - 1] = ']'; /* in place of the last comma */
    ggl_n_steps = 0;
    llm_train_records_begin(&r, "list.json", (ggl_str){text, n * n_one});
    while (llm_train_records_next(&r, &record, &err))
        found++;
    CHECK_OK(r.status, &err);
    CHECK_INT((int64_t)found, (int64_t)n);
    CHECK_INT(r.line, 1);
    free(text);
    return ggl_n_steps;
}

TEST(a_list_in_one_line) {
    test_linear("a list in one line", steps_of(1000), steps_of(10000), 10);
}
