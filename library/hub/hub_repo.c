/* Gets models from the repositories of a hub: lists the files, chooses a GGUF file or the folder, downloads it, or takes it from the
 * cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/split_name.h"
#include "fetch.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/text.h"
#include "hub_impl.h"
#include "web.h"

enum { MOST_ANSWER = 64 << 20, MOST_PAGES = 100 };

/* The address of the page that lists the files for people. */
#define PAGE_FORMAT "%s/%s/tree/main"

/* --- the hub's list --------------------------------------------------------------------------- */

typedef struct page {
    char *s;
    size_t n, cap;
} page;

static bool on_page(void *ctx, const web_answer *a, const char *data, size_t n) {
    page *p = ctx;
    (void)a;
    if (n > MOST_ANSWER - p->n || !ggl_grow(&p->s, &p->cap, p->n + n, 1))
        return false;
    memcpy(p->s + p->n, data, n);
    p->n += n;
    return true;
}

/* Reads a page of the list; *next is the URL of the next one. */
static ggl_status read_page(hub *h, const char *url, char next[WEB_MOST_URL], bool hurry,
                            ggl_error *err) {
    page p = {0};
    web_answer *a = malloc(sizeof *a);
    char what[HUB_MOST_NAME + 16];
    const web_request q = {.url = url,
                           .token = h->token,
                           .hurry = hurry,
                           .body = on_page,
                           .ctx = &p,
                           .watch = &h->w->watch};
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = llm_web_ask(&q, a, err);
    snprintf(what, sizeof what, "repository %s", h->name);
    if (st == GGL_CANCELLED && !hub_stopped(h))
        st = ggl_fail(err, GGL_LIMIT, "%s: the list of files has more than %d MiB", what,
                      MOST_ANSWER >> 20);
    else if (st == GGL_IO || st == GGL_FORMAT)
        st = ggl_within(err, st, "%s", h->endpoint);
    else if (st == GGL_OK && a->status != 200)
        st = llm_web_refused(a, what, h->token != NULL, err);
    else if (st == GGL_OK)
        st = llm_hub_list_add_json(&h->list, p.s ? p.s : "", p.n, "the hub's list of files", err);
    if (st == GGL_OK && *a->next && !llm_hub_is_on_endpoint(h, a->next))
        st = ggl_fail(err, GGL_FORMAT, "the hub's list of files continues at another host, %s",
                      a->next);
    snprintf(next, WEB_MOST_URL, "%s", a->next);
    free(a);
    ggl_free(p.s);
    return st;
}

static ggl_status read_list(hub *h, bool hurry, ggl_error *err) {
    char url[WEB_MOST_URL], next[WEB_MOST_URL];
    snprintf(url, sizeof url, "%s/api/models/%s/tree/main?recursive=true", h->endpoint, h->name);
    for (int i = 0; i < MOST_PAGES; i++) {
        const ggl_status st = read_page(h, url, next, hurry, err);
        if (st != GGL_OK || !*next) {
            llm_hub_list_sort(&h->list);
            return st;
        }
        snprintf(url, sizeof url, "%s", next);
    }
    return ggl_fail(err, GGL_LIMIT, "the hub's list of files has more than %d pages", MOST_PAGES);
}

/* --- the models of a list --------------------------------------------------------------------- */

void llm_hub_each_model(const hub *h, const hub_list *l, const hub_list *cached,
                        void (*each)(void *user, const hub_model *m), void *user) {
    char path[HUB_MOST_PATH];
    for (size_t i = 0; i < l->n; i++) {
        const hub_file *f = &l->file[i];
        if (f->kind != HUB_GGUF || !llm_split_is_first(f->path))
            continue;
        hub_model m = {.path = f->path,
                       .size = f->size,
                       .n_files = llm_split_n_parts(f->path),
                       .cached = cached && llm_hub_list_find(cached, f->path) &&
                                 !llm_hub_is_unfinished(h, f->path)};
        const hub_file *part = f;
        /* up to the first part that is not there, as a name may promise 99,999 */
        for (int k = 2; k <= m.n_files && part; k++) {
            llm_split_part_path(path, sizeof path, f->path, k);
            part = llm_hub_list_find(l, path);
            m.size += part ? part->size : 0;
            m.cached = m.cached && llm_hub_list_find(cached, path);
        }
        each(user, &m);
    }
    if (llm_hub_list_folder(l)) {
        hub_model m = llm_hub_folder_model(l, l == cached);
        m.cached = cached && llm_hub_list_folder(cached) && !llm_hub_is_unfinished(h, HUB_CONFIG);
        each(user, &m);
    }
}

/* The names of models in a message, as many as fit. */
typedef struct model_names {
    char text[1500];
    size_t n;
    int n_left_out;
} model_names;

static void add_name(void *user, const hub_model *m) {
    model_names *names = user;
    char size[AMOUNT_TEXT], one[HUB_MOST_PATH + 64];
    const int n =
        snprintf(one, sizeof one, "%s%s (%s%s)", names->n ? ", " : "", m->path,
                 m->folder ? "Hugging Face folder, " : "", llm_amount_bytes(size, m->size));
    if (names->n_left_out > 0 || names->n + (size_t)n >= sizeof names->text) {
        names->n_left_out++;
        return;
    }
    memcpy(names->text + names->n, one, (size_t)n + 1);
    names->n += (size_t)n;
}

/* Fails because a repository has neither GGUF files nor a Hugging Face folder. */
static ggl_status no_model(const hub *h, const hub_list *l, const char *where, ggl_error *err) {
    if (l->pickle)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s has its weights only as PyTorch pickles (%s): a pickle can run "
                        "programs when it is read, so it is not downloaded; look for a "
                        "repository of the model with safetensors, or with GGUF files",
                        h->name, l->pickle);
    return ggl_fail(err, GGL_NOT_FOUND,
                    "%s has no GGUF file%s, and no Hugging Face folder (config.json with "
                    "safetensors): the name of a repository with GGUF files mostly ends in -GGUF",
                    h->name, where);
}

/* Fails because no file fits, and names those that exist. */
static ggl_status no_such_file(const hub *h, const hub_list *l, const hub_wish *wish,
                               const char *where, ggl_error *err) {
    const char *wanted = wish->file ? wish->file : wish->quant ? wish->quant : "";
    const bool has_gguf = llm_hub_list_n_gguf(l) > 0;
    model_names names = {0};
    char more[48] = "";
    if (l->unsafe)
        llm_watch_say(
            &h->w->watch, HUB_WARNS,
            "%s names a file '%s', which is not a safe path inside a folder; it is left out",
            h->name, l->unsafe);
    if (!has_gguf && !llm_hub_list_folder(l))
        return no_model(h, l, where, err);
    if (!has_gguf && wish->quant)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s has no GGUF file%s, and so none with quantization %s; %s without it "
                        "is the safetensors, which can be quantized while they are loaded",
                        h->name, where, wanted, h->name);
    llm_hub_each_model(h, l, NULL, add_name, &names);
    if (names.n_left_out > 0)
        snprintf(more, sizeof more, ", and %d more", names.n_left_out);
    return ggl_fail(err, GGL_NOT_FOUND, "%s has no %s%s%s; its %s are %s%s", h->name,
                    wish->file    ? "file "
                    : wish->quant ? "file with quantization "
                                  : "model of text",
                    wanted, where, has_gguf ? "GGUF files" : "models", names.text, more);
}

/* --- getting a file --------------------------------------------------------------------------- */

/* Finds all parts of the chosen file: part [n]. */
static ggl_status find_parts(hub *h, const hub_file *first, const hub_file **part, int n,
                             ggl_error *err) {
    char path[HUB_MOST_PATH];
    for (int k = 0; k < n; k++) {
        llm_split_part_path(path, sizeof path, first->path, k + 1);
        part[k] = llm_hub_list_find(&h->list, path);
        if (!part[k])
            return ggl_fail(err, GGL_NOT_FOUND, "%s lacks %s, part %d of %d of the model", h->name,
                            path, k + 1, n);
    }
    return GGL_OK;
}

static ggl_status fetch_parts(hub *h, const hub_file *first, ggl_error *err) {
    const int n = llm_split_n_parts(first->path);
    if (n > HUB_MOST_PARTS)
        return llm_hub_too_many(h, (size_t)n, err);
    const hub_file **part = ggl_calloc((size_t)n, sizeof *part);
    ggl_status st =
        part ? find_parts(h, first, part, n, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = llm_hub_fetch(h, part, (size_t)n, n > 1 ? first->path : NULL, err);
    if (st == GGL_OK && n > 1)
        llm_hub_set_finished(h, first->path, true);
    ggl_free(part);
    return st;
}

/* Sets h->path to a file's path in the cache, or to the folder's if it is that of config.json. */
static ggl_status set_path(hub *h, const hub_file *f, ggl_error *err) {
    h->path = f->kind == HUB_GGUF ? llm_hub_join(h->cache, h->folder, f->path)
                                  : llm_hub_join(h->cache, h->folder, NULL);
    return h->path ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
}

/* Returns the eye of a model, if it is wanted; NULL: none. */
static const hub_file *find_eye(const hub *h, const hub_list *l, const hub_file *model) {
    return h->w->eye && model->kind == HUB_GGUF ? llm_hub_list_eye(l, model) : NULL;
}

/* Sets h->eye to a file's path in the cache; NULL: there is none. */
static ggl_status set_eye(hub *h, const hub_file *f, ggl_error *err) {
    h->eye = f ? llm_hub_join(h->cache, h->folder, f->path) : NULL;
    return h->eye || !f ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
}

/* Returns the file of the cache that is meant, if all parts of its model are there; NULL: none. */
static const hub_file *find_cached(const hub *h, const hub_wish *wish) {
    size_t n_others;
    char path[HUB_MOST_PATH];
    const hub_file *f = llm_hub_list_choose(&h->cached, wish, &n_others);
    for (int k = 2; f && k <= llm_split_n_parts(f->path); k++) {
        llm_split_part_path(path, sizeof path, f->path, k);
        if (!llm_hub_list_find(&h->cached, path))
            f = NULL;
    }
    return f;
}

/* Fails because the cache lacks the model. */
static ggl_status not_cached(const hub *h, const hub_wish *wish, ggl_status st, const char *reason,
                             ggl_error *err) {
    if (reason)
        return ggl_fail(err, st,
                        "%s. The model is not in the cache either (%s/%s); to download it "
                        "yourself, open " PAGE_FORMAT " and use the path of the file",
                        reason, h->cache, h->folder, h->endpoint, h->name);
    if (h->cached.n > 0)
        return no_such_file(h, &h->cached, wish, " in the cache", err);
    return ggl_fail(err, GGL_NOT_FOUND,
                    "%s is not in the cache (%s/%s), and nothing is downloaded offline", h->name,
                    h->cache, h->folder);
}

/* Chooses a file or the folder that is in the cache. `reason` is the error of the hub, with its status; NULL: offline. */
static ggl_status use_cached(hub *h, const hub_wish *wish, ggl_status of_hub, const char *reason,
                             ggl_error *err) {
    const hub_file *f = find_cached(h, wish);
    if (!f)
        return not_cached(h, wish, of_hub, reason, err);
    if (llm_hub_is_unfinished(h, f->kind == HUB_GGUF ? f->path : HUB_CONFIG))
        return ggl_fail(err, reason ? of_hub : GGL_NOT_FOUND,
                        "%s%sthe model %s in the cache (%s/%s) is not complete, because its "
                        "download was interrupted; with the network, the same command continues it",
                        reason ? reason : "", reason ? ". Also, " : "", h->name, h->cache,
                        h->folder);
    if (reason && f->kind == HUB_GGUF)
        llm_watch_say(&h->w->watch, HUB_NOTES, "%s. The file in the cache is used: %s", reason,
                      f->path);
    else if (reason)
        llm_watch_say(&h->w->watch, HUB_NOTES, "%s. The folder in the cache is used: %s/%s", reason,
                      h->cache, h->folder);
    const hub_file *eye = find_eye(h, &h->cached, f);
    const ggl_status st = set_eye(h, eye && !llm_hub_is_unfinished(h, eye->path) ? eye : NULL, err);
    return st == GGL_OK ? set_path(h, f, err) : st;
}

/* Gets a file or the folder that the hub lists, and the eye of a file. */
static ggl_status get_listed(hub *h, const hub_wish *wish, ggl_error *err) {
    size_t n_others;
    const hub_file *f = llm_hub_list_choose(&h->list, wish, &n_others);
    if (!f)
        return no_such_file(h, &h->list, wish, "", err);
    if (n_others > 0)
        llm_watch_say(&h->w->watch, HUB_NOTES,
                      "%s has %zu files with this quantization; %s is used, but each can be named",
                      h->name, n_others + 1, f->path);
    ggl_status st = f->kind == HUB_GGUF ? fetch_parts(h, f, err) : llm_hub_get_folder(h, err);
    const hub_file *eye = st == GGL_OK ? find_eye(h, &h->list, f) : NULL;
    if (eye)
        st = fetch_parts(h, eye, err);
    if (st == GGL_OK)
        st = set_eye(h, eye, err);
    return st == GGL_OK ? set_path(h, f, err) : st;
}

static ggl_status get_from_hub(hub *h, const hub_wish *wish, ggl_error *err) {
    size_t n_others;
    ggl_error of_hub = {0};
    if (h->w->offline)
        return use_cached(h, wish, GGL_OK, NULL, err);
    const ggl_status st =
        read_list(h, llm_hub_list_choose(&h->cached, wish, &n_others) != NULL, &of_hub);
    if (st == GGL_OK)
        return get_listed(h, wish, err);
    if (st != GGL_USAGE && st != GGL_CANCELLED)
        return use_cached(h, wish, st, of_hub.msg, err);
    (void)ggl_pass(err, &of_hub);
    return st;
}

/* --- names ------------------------------------------------------------------------------------ */

/* Splits USER/REPO[:QUANT]. The address of the hub may stand before it, because people copy it from a browser. */
static ggl_status read_name(hub *h, ggl_error *err) {
    static const char *const heads[] = {"hf:", "https://", "http://", "hf.co/", "huggingface.co/"};
    const char *s = h->w->repo;
    if (llm_hub_is_on_endpoint(h, s))
        s += strlen(h->endpoint) + (s[strlen(h->endpoint)] == '/');
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (ggl_case_compare_n(s, heads[i], strlen(heads[i])) == 0)
            s += strlen(heads[i]);
    const size_t n = strcspn(s, ":");
    snprintf(h->name, sizeof h->name, "%.*s", (int)(n < HUB_MOST_NAME ? n : 0), s);
    if (!llm_hub_is_repo(h->name) || (s[n] && !s[n + 1]))
        return ggl_fail(err, GGL_USAGE,
                        "'%s' is not USER/REPO or USER/REPO:QUANT, such as "
                        "bartowski/SmolLM2-360M-Instruct-GGUF:Q4_K_M",
                        h->w->repo);
    h->quant = s[n] && ggl_case_compare(s + n + 1, "latest") != 0 ? s + n + 1 : NULL;
    return GGL_OK;
}

/* Reads the name, and what the cache has of the repository. */
static ggl_status open_repo(hub *h, ggl_error *err) {
    ggl_status st = read_name(h, err);
    if (st != GGL_OK)
        return st;
    h->folder = llm_hub_join("hub", h->name, NULL);
    char *place = h->folder ? llm_hub_join(h->cache, h->folder, NULL) : NULL;
    st = place ? llm_hub_list_add_folder(&h->cached, place, err)
               : ggl_fail(err, GGL_NOMEM, "out of memory");
    free(place);
    llm_hub_list_sort(&h->cached);
    return st;
}

ggl_status llm_hub_get_repo(hub *h, ggl_error *err) {
    const ggl_status st = open_repo(h, err);
    if (st != GGL_OK)
        return st;
    if (h->quant && h->w->file)
        return ggl_fail(err, GGL_USAGE,
                        "a file of the repository and the quantization :%s cannot be used together",
                        h->quant);
    return get_from_hub(h, &(hub_wish){h->quant, h->w->file}, err);
}

ggl_status llm_hub_list_models(hub *h, void (*each)(void *user, const hub_model *m), void *user,
                               ggl_error *err) {
    const hub_list *l = h->w->offline ? &h->cached : &h->list;
    ggl_status st = open_repo(h, err);
    if (st == GGL_OK && !h->w->offline)
        st = read_list(h, false, err);
    if (st != GGL_OK)
        return st;
    if (llm_hub_list_n_gguf(l) == 0 && !llm_hub_list_folder(l))
        return no_such_file(h, l, &(hub_wish){0}, h->w->offline ? " in the cache" : "", err);
    llm_hub_each_model(h, l, &h->cached, each, user);
    return GGL_OK;
}
