/* unit.sound_other: kinds of sound that libsndfile reads, in files that it has written. */
#include <math.h>
#include <sndfile.h>

#include "sound/sound.h"
#include "test.h"

enum { N = 30000, MOST = 200000 };

static short written[2 * N];
static float x[MOST];

/* Two sines in two channels. */
static bool write_kind(const char *path, int format, int rate) {
    SF_INFO about = {.samplerate = rate, .channels = 2, .format = format};
    for (int i = 0; i < N; i++) {
        written[2 * i] = (short)(10000 * sin(0.05 * i));
        written[2 * i + 1] = (short)(8000 * sin(0.021 * i + 1));
    }
    SNDFILE *f = sf_open(path, SFM_WRITE, &about);
    const bool ok = f && sf_writef_short(f, written, N) == N;
    return f && sf_close(f) == 0 && ok;
}

static int64_t read_all(llm_sound *s, ggl_error *err) {
    int64_t n = 0, got = 1;
    while (got > 0) {
        const int64_t part = MOST - n < 1777 ? MOST - n : 1777;
        if (part == 0 || llm_sound_read(s, x + n, part, &got, err) != GGL_OK)
            return -1;
        n += got;
    }
    return n;
}

static const struct {
    const char *name;
    int format, rate;
    double most; /* difference */
} kinds[] = {
    {"FLAC", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000, 0},
    {"AIFF", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 16000, 0},
    {"AU", SF_FORMAT_AU | SF_FORMAT_PCM_16, 16000, 0},
    {"big-endian WAV", SF_FORMAT_WAV | SF_FORMAT_PCM_16 | SF_ENDIAN_BIG, 16000, 0},
    {"Wave64", SF_FORMAT_W64 | SF_FORMAT_PCM_16, 16000, 0},
    {"CAF", SF_FORMAT_CAF | SF_FORMAT_PCM_16, 16000, 0},
    {"mu-law", SF_FORMAT_WAV | SF_FORMAT_ULAW, 16000, 0.02},
    {"ADPCM", SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, 16000, 0.05},
    {"Vorbis", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 16000, 0.05},
    {"Opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 48000, 0.05},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* Each kind as a file and in memory, twice. */
TEST(kinds_are_read) {
    for (int k = 0; k < 2 * N_KINDS; k++) {
        const char *path = test_path("sound"), *name = kinds[k / 2].name;
        llm_sound_params p = {0};
        ggl_error err = {0};
        llm_sound *s;
        size_t size;
        char note[64];
        if (!CHECK_MSG(write_kind(path, kinds[k / 2].format, kinds[k / 2].rate), "%s: %s", name,
                       sf_strerror(NULL)))
            continue;
        unsigned char *data = test_read_file(path, &size);
        if (k % 2)
            p = (llm_sound_params){.data = data, .n_data = size};
        if (!CHECK_OK(llm_sound_open(&s, path, &p, &err), &err))
            continue;
        CHECK_MSG(llm_sound_n_samples(s) >= N && llm_sound_n_samples(s) < N + 1100, "%s: %lld",
                  name, (long long)llm_sound_n_samples(s));
        for (int turn = 0; turn < 2; turn++) {
            const int64_t n = read_all(s, &err);
            double worst = 0;
            CHECK_MSG(n >= N && n < N + 1100, "%s: %lld of %d samples: %s", name, (long long)n, N,
                      err.msg);
            for (int i = 0; i < N && n >= N; i++)
                worst = fmax(worst,
                             fabs((double)x[i] - (written[2 * i] + written[2 * i + 1]) / 65536.0));
            CHECK_MSG(worst <= kinds[k / 2].most, "%s: %g off", name, worst);
            snprintf(note, sizeof note, "%d Hz, 2 channels: channels mixed", kinds[k / 2].rate);
            CHECK_STR(llm_sound_note(s), note);
            CHECK_OK(llm_sound_rewind(s, &err), &err);
        }
        llm_sound_close(s);
        free(data);
    }
    CHECK_HAS(llm_sound_library(), "libsndfile-");
}

/* Each beginning of a file, and a byte of it changed: samples or an error. */
TEST(damaged) {
    uint64_t seed = 3;
    for (int k = 0; k < N_KINDS; k++) {
        size_t size;
        if (!write_kind(test_path("sound"), kinds[k].format, kinds[k].rate))
            continue;
        unsigned char *data = test_read_file(test_path("sound"), &size);
        for (int turn = 0; turn < 12 && data; turn++) {
            ggl_error err = {0};
            llm_sound *s;
            const size_t n = turn % 2 ? size : (size_t)(test_random(&seed) % size);
            data[test_random(&seed) % (turn % 3 ? size : 200)] ^= (unsigned char)(1 << turn % 8);
            const llm_sound_params p = {.data = data, .n_data = n, .rate = 16000};
            const ggl_status st = llm_sound_open(&s, "x", &p, &err);
            if (st != GGL_OK || read_all(s, &err) < 0)
                CHECK_MSG(err.status == GGL_OK || strncmp(err.msg, "x: ", 3) == 0, "%s", err.msg);
            llm_sound_close(st == GGL_OK ? s : NULL);
        }
        free(data);
    }
}

TEST(pipes_are_refused) {
    (void)setenv("PATH", "/nowhere", 1); /* there is no ffmpeg */
    int ends[2];
    char path[64];
    ggl_error err = {0};
    llm_sound *s;
    REQUIRE(pipe(ends) == 0 && write(ends[1], "fLaC____________", 16) == 16);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    CHECK_INT(llm_sound_open(&s, path, &(llm_sound_params){0}, &err), GGL_UNSUPPORTED);
    CHECK_HAS(
        err.msg,
        "is FLAC, which can be read from a file, but not from a pipe: save it, or convert it");
    close(ends[0]);
}
