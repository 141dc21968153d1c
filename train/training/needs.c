/* What a training needs: memory, and room on disks. */
#include <stdio.h>
#include <string.h>

#include "common/amounts.h"
#include "ggl/internal/disk_left.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/types.h"
#include "training.h"

/* --- memory ----------------------------------------------------------------------------------- */

static size_t bytes_of_file(const ggl_gguf *f) {
    size_t sum = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++)
        sum += ggl_gguf_tensor_at(f, i)->size;
    return sum;
}

/* The bytes in the file of a weight that learns: nobody reads them any more. */
static size_t bytes_in_file(const llm_train_weight *w) {
    return ggl_row_size(w->type, w->ne[0]) * (size_t)ggl_extents(w->ne, 1, GGL_MAX_DIMS, 1);
}

train_memory llm_train_memory(const llm_training *t) {
    train_memory m = {.teacher = t->of.teacher_bytes, .values = t->part_bytes};
    m.model = bytes_of_file(llm_model_file(t->of.model));
    if (t->of.eye)
        m.model += bytes_of_file(llm_train_eye_file(t));
    if (!t->trainer) {
        const llm_train_params p = {.learn = t->p.learn,
                                    .n_learn = t->p.n_learn,
                                    .optimizer_bits = t->p.optimizer_bits,
                                    .rounded = t->rounded,
                                    .bf16 = t->p.bf16};
        const bool some = t->p.draft && !t->of.draft; /* layers that guess: few of the model's */
        m.learn = some ? 0 : llm_train_expected_bytes(llm_train_file(t), &p);
        if (t->of.eye && t->reads && !t->of.adapter)
            m.learn += llm_train_expected_bytes(llm_train_eye_file(t), &p);
        m.model = t->of.adapter || t->p.draft ? m.model : 0;
    }
    for (int k = 0; t->trainer && k < llm_trainer_n_weights(t->trainer); k++) {
        const llm_train_weight w = llm_trainer_weight(t->trainer, k);
        m.learn += llm_train_weight_bytes(&w);
        m.model -= t->of.adapter || t->of.draft ? 0 : bytes_in_file(&w);
    }
    if (t->trainer)
        m.values += llm_trainer_value_bytes(t->trainer);
    if (t->trainer && (t->of.teach || t->p.draft))
        m.values += (size_t)t->p.n_ubatch * (size_t)llm_trainer_n_vocab(t->trainer) * sizeof(float);
    m.all = m.learn + m.values + m.model + m.teacher;
    return m;
}

/* Adds to a text of `size` bytes. */
static void add(char *text, size_t size, const char *more) {
    const size_t n = strlen(text);
    snprintf(text + n, size - n, "%s", more);
}

static void add_part(char *text, size_t size, const char *gap, size_t bytes, const char *what) {
    char part[96], amount[AMOUNT_TEXT];
    if (bytes == 0)
        return;
    snprintf(part, sizeof part, "%s%s %s", gap, llm_amount_bytes(amount, bytes), what);
    add(text, size, part);
}

void llm_train_note_memory(llm_training *t) {
    const train_memory m = llm_train_memory(t);
    const bool values_matter = m.values > m.all / 8, learn_matters = m.learn > m.all / 4;
    char text[800], all[AMOUNT_TEXT], left[AMOUNT_TEXT];
    if (t->of.memory_left == 0 || m.all <= t->of.memory_left || t->has_noted_memory || !t->p.note)
        return;
    t->has_noted_memory = true;
    snprintf(text, sizeof text,
             "it needs %s of memory, and %s are free: ", llm_amount_bytes(all, m.all),
             llm_amount_bytes(left, t->of.memory_left));
    add_part(text, sizeof text, "", m.learn, "for what learns");
    add_part(text, sizeof text, ", ", m.values, "for values");
    add_part(text, sizeof text, ", ", m.model, "for the model");
    add_part(text, sizeof text, ", ", m.teacher, "for the teacher");
    add(text, sizeof text, ". The system may end it, or read the disk all the time");
    if (learn_matters || values_matter)
        add(text, sizeof text, ". Less take:");
    if (learn_matters && t->p.optimizer_bits != 8)
        add(text, sizeof text, " optimizer_bits (--optimizer-bits) 8;");
    if (learn_matters && !t->of.adapter)
        add(text, sizeof text, " an adapter (lora, or --lora);");
    if (learn_matters)
        add(text, sizeof text, " fewer weights (learn, or --learn);");
    if (values_matter)
        add(text, sizeof text,
            " a limit of the values (memory, or --memory); fewer tokens at once (n_ubatch, or "
            "-ub);");
    if (text[strlen(text) - 1] == ';')
        text[strlen(text) - 1] = '\0';
    t->p.note(t->p.user, text);
}

/* --- disks ------------------------------------------------------------------------------------ */

/* A file that is written again and again, each time beside the one that it replaces. */
typedef struct written {
    const char *path;
    uint64_t size, there; /* there: of the file that is there so far */
    uint64_t disk, left;
} written;

/* Gets what is there. False: nothing needs room, or nothing is known of it. */
static bool look(written *w, const char *path, uint64_t size) {
    os_stat s;
    *w = (written){.path = path, .size = size};
    if (!path || size == 0 || !ggl_disk_left(path, &w->left, &w->disk))
        return false;
    if (ggl_os_stat(path, &s))
        w->there = (uint64_t)s.size;
    return true;
}

/* Writes the files so many times, one after the other, and then the first n_results of them, which are the result. Returns the most bytes of the disk that
 * this takes, beside those that are taken now. */
static uint64_t most_taken(written *const *file, int n, int64_t times, int n_results) {
    int64_t taken = 0, most = 0;
    const int64_t all = times * n + n_results;
    for (int64_t k = 0; k < all; k++) {
        written *w = file[k % n];
        taken += (int64_t)w->size;
        most = taken > most ? taken : most;
        taken -= (int64_t)w->there;
        w->there = w->size;
    }
    return (uint64_t)most;
}

static ggl_status check_disk(written *const *file, int n, int64_t times, int n_results,
                             ggl_error *err) {
    char all[AMOUNT_TEXT], left[AMOUNT_TEXT];
    const uint64_t most = most_taken(file, n, times, n_results);
    return most <= file[0]->left
               ? GGL_OK
               : ggl_fail(
                     err, GGL_IO,
                     "%s%s%s%s%s would take %s of their disk while they are written, each "
                     "beside the one before, and it has %s free: make room, or write elsewhere",
                     file[0]->path, n > 2 ? ", " : "", n > 2 ? file[1]->path : "",
                     n > 1 ? " and " : "", n > 1 ? file[n - 1]->path : "",
                     llm_amount_bytes(all, most), llm_amount_bytes(left, file[0]->left));
}

/* Returns how often there may be a checkpoint, at most 2: later ones take no more room. */
static int64_t n_checkpoints(const llm_training *t, const llm_training_run_params *p) {
    const double first = p->save_minutes > 0 ? p->save_minutes : LLM_TRAIN_SAVE_MINUTES;
    const int64_t steps = t->n_steps > 0 ? t->n_steps - t->step - 1 : INT64_MAX,
                  /* by minutes, nobody knows before the first steps how many there will be */
        n = p->save_every > 0  ? steps / p->save_every
            : t->p.minutes > 0 ? (int64_t)(t->p.minutes / first)
                               : 0;
    return n < 0 ? 0 : n < 2 ? n : 2;
}

ggl_status llm_train_check_room(const llm_training *t, const llm_training_run_params *p,
                                ggl_error *err) {
    enum { RESULTS = 2, FILES = 3 };
    const bool f32 = p->f32 || t->of.adapter;
    const int64_t times = n_checkpoints(t, p);
    const llm_trainer *trainer = t->trainer;
    const char *eye = p->out ? t->p.mmproj_out : NULL;
    written of[FILES];
    const bool has[FILES] = {
        look(&of[0], p->out, p->out ? llm_trainer_write_size(trainer, llm_train_file(t), f32) : 0),
        look(&of[1], eye, eye ? llm_trainer_write_size(trainer, llm_train_eye_file(t), p->f32) : 0),
        look(&of[2], p->save, p->save ? llm_trainer_state_size(trainer) : 0)};
    ggl_status st = GGL_OK;
    if (llm_train_is_over(t))
        return GGL_OK;
    for (int k = 0; k < FILES && st == GGL_OK; k++) {
        written *file[FILES];
        int n = 0, n_results = 0;
        bool is_first = true; /* on its disk */
        for (int i = 0; i < FILES; i++)
            if (has[k] && has[i] && of[i].disk == of[k].disk) {
                is_first &= i >= k;
                n_results += i < RESULTS;
                file[n++] = &of[i];
            }
        st = n > 0 && is_first ? check_disk(file, n, times, n_results, err) : GGL_OK;
    }
    return st;
}
