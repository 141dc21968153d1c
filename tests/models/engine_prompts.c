/* Beginnings of prompts that engines share by the files of a folder: they are found, and change no bit. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "engine_test.h"

enum { COMMON = 150, SAVED = 128, PROMPT = 200 };

static fixture f;
static int n_reports;
static char report[600];

static void keep_report(void *ctx, const char *sentence) {
    (void)ctx;
    n_reports++;
    snprintf(report, sizeof report, "%s", sentence);
}

/* The folder of this case, within test_folder(), which has the model. */
static const char *folder(void) {
    static char path[300];
    snprintf(path, sizeof path, "%.250s/prompts", test_folder());
    (void)mkdir(path, 0700);
    return path;
}

static const char *in_folder(const char *name) {
    static char path[4][800];
    static unsigned next;
    snprintf(path[next % 4], sizeof path[0], "%s/%.400s", folder(), name);
    return path[next++ % 4];
}

/* A program begins: an engine with a session of its own, and the folder of this case. */
static bool start(const char *text, uint64_t n_bytes) {
    return (f.model || fixture_open(&f, text, 1)) &&
           fixture_start(&f, &(fixture_params){.n_ubatch = 32,
                                               .n_slots = 4,
                                               .n_rows = 8,
                                               .n_parallel = 2,
                                               .folder = folder(),
                                               .n_folder_bytes = n_bytes,
                                               .report = keep_report});
}

static bool start_again(void) {
    fixture_stop(&f);
    return start(NULL, 0);
}

/* Runs a prompt that begins with COMMON tokens of `what`, and goes on in its own way; n_beginning of them will come again. */
static job *run(int what, int own, size_t n_beginning) {
    job *j = job_plain(&f, what, PROMPT, 6);
    for (int i = COMMON; i < PROMPT; i++)
        j->prompt[i] = (j->prompt[i] + own * (i - COMMON + 1)) % VOCAB;
    const llm_sequence_params p = {.size = sizeof p, .n_beginning = n_beginning};
    CHECK(job_add(j, p) && fixture_finish(&f));
    CHECK(job_check(j));
    llm_prompt_folder_settle(f.prompts);
    return j;
}

static void end(void) {
    fixture_close(&f);
    f = (fixture){0};
    DIR *d = opendir(folder());
    for (struct dirent *e; d && (e = readdir(d));)
        (void)remove(in_folder(e->d_name));
    closedir(d);
    CHECK(rmdir(folder()) == 0);
}

static llm_prompt_folder_stats stats(void) {
    return llm_prompt_folder_get_stats(f.prompts);
}

/* The names of the folder's files, the last one in `name`; returns their number. */
static int files(char name[300]) {
    DIR *d = opendir(folder());
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' && ++n)
            snprintf(name, 300, "%.290s", e->d_name);
    closedir(d);
    return n;
}

/* A beginning that two prompts have had is saved; another program loads it, once, unless its slots cannot give it again. */
static void check_shared(const char *text, int n_loads) {
    char name[300];
    if (start(text, 0)) {
        CHECK_INT(run(1, 1, 0)->stats.n_reused, 0);
        CHECK_INT(stats().n_saved, 0);
        run(1, 2, 0);
        CHECK_INT(stats().n_saved, 1);
        run(1, 3, 0);
        CHECK_INT(stats().n_saved, 1);
        CHECK_INT(files(name), 1);
    }
    if (start_again()) {
        CHECK_INT(run(1, 4, 0)->stats.n_reused, SAVED);
        CHECK_INT(stats().n_loaded, 1);
        CHECK_INT(stats().n_loaded_tokens, SAVED);
        CHECK(run(1, 5, 0)->stats.n_reused >= SAVED);
        CHECK_INT(run(2, 5, 0)->stats.n_reused, 0);
        CHECK_INT(stats().n_loaded, n_loads);
        CHECK_INT(stats().n_failed, 0);
    }
    end();
}

TEST(shared) {
    check_shared(MODEL(ALL), 1);
}

TEST(shared_with_a_window) {
    check_shared(MODEL(WINDOW), 2);
}

TEST(shared_with_states) {
    check_shared(MODEL(ALL STATES), 1);
}

/* A sequence may say that others will begin so. The turns of a conversation are not saved. */
TEST(told) {
    char name[300];
    if (start(MODEL(ALL), 0)) {
        const job *j = run(1, 1, COMMON);
        CHECK_INT(stats().n_saved, 1);
        job *next = job_plain(&f, 0, PROMPT + 20, 6);
        memcpy(next->prompt, j->prompt, PROMPT * sizeof *next->prompt);
        memcpy(next->prompt + PROMPT, j->token, 4 * sizeof *next->prompt);
        const llm_sequence_params p = {.size = sizeof p};
        CHECK(job_add(next, p) && fixture_finish(&f) && job_check(next));
        CHECK(next->stats.n_reused >= PROMPT);
        run(2, 1, 100); /* too short */
        llm_prompt_folder_settle(f.prompts);
        CHECK_INT(files(name), 1);
    }
    if (start_again()) {
        CHECK_INT(run(1, 2, COMMON)->stats.n_reused, SAVED);
        CHECK_INT(stats().n_saved, 0);
    }
    end();
}

/* Changes a byte of the only file. */
static void damage(long at) {
    char name[300];
    CHECK_INT(files(name), 1);
    FILE *file = fopen(in_folder(name), "r+b");
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    const int c = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(c ^ 1, file);
    fclose(file);
}

/* A file that is damaged, cut, empty, or no file is not used, and nothing hangs; a damaged one is written anew. */
TEST(bad_files) {
    static const long places[] = {3, 60, 200, -300, -1000};
    char name[300];
    if (start(MODEL(ALL), 0))
        run(1, 1, COMMON);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        damage(places[i]);
        if (!start_again())
            break;
        CHECK_INT(run(1, 1, COMMON)->stats.n_reused, 0);
        CHECK_INT(stats().n_failed, 1);
        CHECK_INT(stats().n_saved, 1);
    }
    files(name);
    CHECK(truncate(in_folder(name), 700) == 0 && start_again());
    CHECK_INT(run(1, 1, COMMON)->stats.n_reused, 0);
    CHECK_INT(stats().n_failed, 1);
    files(name);
    CHECK(truncate(in_folder(name), 0) == 0 && start_again());
    CHECK_INT(run(1, 1, COMMON)->stats.n_reused, 0);
    for (int kind = 0; kind < 2; kind++) {
        files(name);
        CHECK(unlink(in_folder(name)) == 0);
        CHECK((kind ? mkdir(in_folder(name), 0700) : mkfifo(in_folder(name), 0600)) == 0);
        CHECK(start_again());
        CHECK_INT(run(1, 1, 0)->stats.n_reused, 0);
        CHECK_INT(stats().n_failed, 1);
        if (kind)
            CHECK(rmdir(in_folder(name)) == 0);
    }
    end();
}

/* The tokens of another prompt under this one's name, as by a collision of digests. */
TEST(other_tokens) {
    char one[300], two[300];
    if (start(MODEL(ALL), 0)) {
        run(1, 1, COMMON);
        files(one);
        char *copy = strdup(in_folder(one));
        char *aside = strdup(in_folder("aside"));
        CHECK(rename(copy, aside) == 0);
        run(2, 1, COMMON);
        CHECK_INT(files(two), 2);
        if (strcmp(two, "aside") == 0) {
            DIR *d = opendir(folder());
            for (struct dirent *e; (e = readdir(d));)
                if (e->d_name[0] != '.' && strcmp(e->d_name, "aside") != 0)
                    snprintf(two, sizeof two, "%.290s", e->d_name);
            closedir(d);
        }
        CHECK(rename(aside, in_folder(two)) == 0);
        free(copy);
        free(aside);
    }
    if (start_again()) {
        CHECK_INT(run(2, 2, 0)->stats.n_reused, 0);
        CHECK_INT(stats().n_failed, 1);
        CHECK_INT(stats().n_loaded, 0);
    }
    end();
}

/* The folder stays below its size: what was not used for longest goes. Files that are no caches stay. */
TEST(bounded) {
    char name[300];
    struct stat s;
    if (!start(MODEL(ALL), 0)) {
        end();
        return;
    }
    run(1, 1, COMMON);
    files(name);
    CHECK(stat(in_folder(name), &s) == 0);
    const struct utimbuf long_ago = {.actime = 1000, .modtime = 1000};
    char *first = strdup(in_folder(name));
    CHECK(utime(first, &long_ago) == 0);
    FILE *other = fopen(in_folder("other"), "w");
    CHECK(other && fclose(other) == 0);
    char unfinished[320];
    snprintf(unfinished, sizeof unfinished, "%.250s.tmp-12-0", name);
    other = fopen(in_folder(unfinished), "w");
    CHECK(other && fclose(other) == 0 && utime(in_folder(unfinished), &long_ago) == 0);
    static const char notes[] = "my-notes.prompt.tmp-keep"; /* a user's own */
    other = fopen(in_folder(notes), "w");
    CHECK(other && fclose(other) == 0 && utime(in_folder(notes), &long_ago) == 0);
    fixture_stop(&f);
    CHECK(start(NULL, (uint64_t)s.st_size * 5 / 2));
    run(2, 1, COMMON);
    CHECK_INT(stats().n_removed, 0);
    CHECK(stat(in_folder(unfinished), &s) != 0);
    CHECK_INT(run(1, 2, COMMON)->stats.n_reused, SAVED); /* it was used just now */
    for (int i = 3; i < 8; i++)
        run(i, 1, COMMON);
    CHECK_INT(stats().n_removed, 5);
    CHECK_INT(files(name), 4);
    CHECK(stat(in_folder("other"), &s) == 0);
    CHECK(stat(in_folder(notes), &s) == 0);
    free(first);
    end();
}

/* Beginnings that are larger than a file may be are not saved, of which it is told once, with the sizes. */
TEST(too_large) {
    char name[300], words[64];
    n_reports = 0;
    if (start(MODEL(ALL), 5000)) {
        for (int i = 0; i < 3; i++)
            CHECK_INT(run(i, 1, COMMON)->stats.n_reused, 0);
        CHECK_INT(n_reports, 1);
        CHECK_HAS(report, folder());
        CHECK_HAS(report, "a file may have 0.00 MiB (of 0.00 MiB for all)");
        snprintf(words, sizeof words, "%d tokens that prompts share need ", SAVED);
        CHECK_HAS(report, words);
        CHECK_INT(files(name), 0);
        CHECK_INT(stats().n_failed, 0);
    }
    end();
}

/* A folder in which nothing can be written is an error at once. */
TEST(may_not_be_written) {
    llm_prompt_folder *x;
    ggl_error err = {0};
    const uid_t me = geteuid();
    if (start(MODEL(ALL), 0)) {
        const llm_prompt_folder_params p = {
            .size = sizeof p,
            .path = folder(),
            .cache = {.size = sizeof p.cache, .model = f.model, .session = f.s}};
        CHECK(chmod(test_folder(), 0711) == 0 && chmod(folder(), 0555) == 0);
        CHECK(me != 0 || seteuid(65534) == 0); /* root may write anywhere */
        CHECK_INT(llm_prompt_folder_new(&x, &p, &err), GGL_USAGE);
        CHECK(me != 0 || seteuid(me) == 0);
        CHECK(chmod(folder(), 0700) == 0);
        CHECK_HAS(err.msg, folder());
        CHECK_HAS(err.msg, "/prompts cannot be read and written: Permission denied");
    }
    end();
}

/* A folder that goes away is an error of each file, and of nothing else. */
TEST(no_folder) {
    llm_prompt_folder *x;
    ggl_error err = {0};
    if (start(MODEL(ALL), 0)) {
        const llm_prompt_folder_params p = {
            .size = sizeof p,
            .path = "/no/such/folder",
            .cache = {.size = sizeof p.cache, .model = f.model, .session = f.s}};
        CHECK_INT(llm_prompt_folder_new(&x, &p, &err), GGL_USAGE);
        CHECK_HAS(err.msg, "/no/such/folder: No such file or directory");
        CHECK(rmdir(folder()) == 0);
        CHECK_INT(run(1, 1, COMMON)->stats.n_reused, 0);
        CHECK_INT(stats().n_failed, 1);
    }
    end();
}
