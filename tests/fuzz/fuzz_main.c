/* Runs a fuzz target without libFuzzer: its seeds, the files and folders given, and mutations of
 * all of them, which are the same in every run.
 *
 *     fuzz-NAME [--mutations N | --sample N] [--seed S] [--write-seeds FOLDER] [FILE | FOLDER]...
 *
 * N mutations in all, shared out evenly; --sample: N / 4 of them, unless GGL_TEST_LONG is set. Before each run the input's number is kept, and printed on
 * a crash (SIGSEGV, SIGABRT, ..), so that `--only NUMBER` repeats just that one. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "seed.h"

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static input *inputs;
static size_t n_inputs;
static volatile long running = -1;

static void crashed(int number) {
    char text[64];
    int n = snprintf(text, sizeof text, "crashed: repeat with --only %ld\n", running);
    if (write(STDERR_FILENO, text, (size_t)n) != n)
        _exit(3);
    signal(number, SIG_DFL);
    raise(number);
}

static void input_add(uint8_t *data, size_t size) {
    inputs = realloc(inputs, (n_inputs + 1) * sizeof *inputs);
    if (!inputs)
        exit(1);
    inputs[n_inputs++] = (input){data, size};
}

static void input_add_file(const char *path) {
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        perror(path);
        exit(1);
    }
    uint8_t *data = malloc((size_t)st.st_size + 1);
    if (!data)
        exit(1);
    size_t n = fread(data, 1, (size_t)st.st_size, f);
    fclose(f);
    input_add(data, n);
}

static int name_order(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A file, or the files of a folder in the order of their names. */
static void input_add_path(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        input_add_file(path);
        return;
    }
    char **names = NULL;
    size_t n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        names = realloc(names, (n + 1) * sizeof *names);
        size_t size = strlen(path) + strlen(e->d_name) + 2;
        if (!names || !(names[n] = malloc(size)))
            exit(1);
        snprintf(names[n++], size, "%s/%s", path, e->d_name);
    }
    if (dir)
        closedir(dir);
    if (n > 0)
        qsort(names, n, sizeof *names, name_order);
    for (size_t i = 0; i < n; i++) {
        input_add_file(names[i]);
        free(names[i]);
    }
    free(names);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static const uint64_t interesting[] = {
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    12,
    13,
    16,
    31,
    32,
    33,
    64,
    65,
    127,
    128,
    255,
    256,
    1024,
    65535,
    65536,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    (uint64_t)1 << 61,
    (uint64_t)1 << 62,
    ((uint64_t)1 << 63) - 1,
    (uint64_t)1 << 63,
    UINT64_MAX,
    UINT64_MAX - 7,
    UINT64_MAX - 31,
};

static void mutate_once(uint8_t *data, size_t *size, uint64_t *r) {
    size_t at = next_random(r) % *size, n;
    uint64_t value = interesting[next_random(r) % (sizeof interesting / sizeof *interesting)];
    switch (next_random(r) % 8) {
    case 0:
        data[at] ^= (uint8_t)(1u << next_random(r) % 8);
        break;
    case 1:
        data[at] = (uint8_t)next_random(r);
        break;
    case 2:
    case 3: /* a number, of 1, 2, 4 or 8 bytes */
        n = (size_t)1 << next_random(r) % 4;
        memcpy(data + at, &value, n < *size - at ? n : *size - at);
        break;
    case 4: /* add a little to a byte */
        data[at] = (uint8_t)(data[at] + next_random(r) % 9 - 4);
        break;
    case 5: /* cut the end off */
        if (next_random(r) % 4 == 0)
            *size = at + 1;
        break;
    case 6: /* take some bytes out */
        n = next_random(r) % 16 + 1;
        if (n < *size - at) {
            memmove(data + at, data + at + n, *size - at - n);
            *size -= n;
        }
        break;
    default: /* copy some bytes elsewhere */
        n = next_random(r) % 64 + 1;
        size_t to = next_random(r) % *size;
        size_t room = *size - (at > to ? at : to);
        memmove(data + to, data + at, n < room ? n : room);
    }
}

/* Run number k: the inputs themselves first, then mutations of each in turn. The copy has no byte
 * to spare, so that the address sanitizer sees a read past the end. */
static void run(long k, uint64_t seed) {
    const input *from = &inputs[(size_t)k % n_inputs];
    uint8_t *data = malloc(from->size > 0 ? from->size : 1);
    size_t size = from->size;
    if (!data)
        exit(1);
    if (size > 0)
        memcpy(data, from->data, size);
    if ((size_t)k >= n_inputs && size > 0) {
        uint64_t r = seed + (uint64_t)k * 0x632be59bd9b4e019u;
        for (uint64_t n = next_random(&r) % 6 + 1; n > 0; n--)
            mutate_once(data, &size, &r);
        if (size < from->size) {
            uint8_t *exact = realloc(data, size);
            data = exact ? exact : data;
        }
    }
    running = k;
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int write_seeds(const char *folder) {
    uint8_t *data;
    size_t size;
    for (int k = 0; fuzz_seed(k, &data, &size); k++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/seed-%d", folder, k);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
            perror(path);
            return 1;
        }
        free(data);
    }
    return 0;
}

int main(int argc, char **argv) {
    long mutations = 0, only = -1;
    uint64_t seed = sample_seed();
    uint8_t *data;
    size_t size;
    for (int k = 0; fuzz_seed(k, &data, &size); k++)
        input_add(data, size);
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (more && strcmp(argv[i], "--mutations") == 0)
            mutations = atol(argv[++i]);
        else if (more && strcmp(argv[i], "--sample") == 0) {
            mutations = atol(argv[++i]);
            mutations = sample_is_all() ? mutations : mutations / 16;
        } else if (more && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 0);
        else if (more && strcmp(argv[i], "--only") == 0)
            only = atol(argv[++i]);
        else if (more && strcmp(argv[i], "--write-seeds") == 0)
            return write_seeds(argv[++i]);
        else
            input_add_path(argv[i]);
    }
    if (n_inputs == 0) {
        fprintf(stderr, "nothing to run\n");
        return 2;
    }
    signal(SIGSEGV, crashed);
    signal(SIGBUS, crashed);
    signal(SIGFPE, crashed);
    signal(SIGILL, crashed);
    signal(SIGABRT, crashed);
    long total = (long)n_inputs + mutations;
    for (long k = only >= 0 ? only : 0; k < (only >= 0 ? only + 1 : total); k++)
        run(k, seed);
    printf("%zu inputs, %ld mutations, seed %llu: no crash\n", n_inputs, mutations,
           (unsigned long long)seed);
    for (size_t i = 0; i < n_inputs; i++)
        free(inputs[i].data);
    free(inputs);
    return 0;
}
