/* Gets models from the repositories of a hub: lists the files, chooses a GGUF file or the folder, downloads it, or takes it from the
 * cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fetch.h"
#include "amounts.h"
#include "ggl/internal/show.h"
#include "hub_impl.h"
#include "process.h"
#include "split_name.h"
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
    const web_request q = {
        .url = url, .token = h->token, .hurry = hurry, .body = on_page, .ctx = &p};
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = web_ask(&q, a, err);
    snprintf(what, sizeof what, "repository %s", h->name);
    if (st == GGL_CANCELLED && !process_stopped)
        st = ggl_fail(err, GGL_LIMIT, "%s: the list of files has more than %d MiB", what,
                      MOST_ANSWER >> 20);
    else if (st == GGL_IO || st == GGL_FORMAT)
        st = ggl_within(err, st, "%s", h->endpoint);
    else if (st == GGL_OK && a->status != 200)
        st = web_refused(a, what, h->token != NULL, err);
    else if (st == GGL_OK)
        st = hub_list_add_json(&h->list, p.s ? p.s : "", p.n, "the hub's list of files", err);
    if (st == GGL_OK && *a->next && !hub_is_on_endpoint(h, a->next))
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
            hub_list_sort(&h->list);
            return st;
        }
        snprintf(url, sizeof url, "%s", next);
    }
    return ggl_fail(err, GGL_LIMIT, "the hub's list of files has more than %d pages", MOST_PAGES);
}

/* --- printing --------------------------------------------------------------------------------- */

/* Prints a list, each split model as one file of all its bytes, and last the Hugging Face folder. cached: the files in the cache;
 * NULL: not known. */
static void print_list(const hub *h, const hub_list *l, const hub_list *cached, FILE *to) {
    char size[AMOUNT_TEXT], path[HUB_MOST_PATH], parts[32] = "";
    for (size_t i = 0; i < l->n; i++) {
        const hub_file *f = &l->file[i];
        const int n_parts = split_n_parts(f->path);
        uint64_t bytes = f->size;
        if (f->kind != HUB_GGUF || !split_is_first(f->path))
            continue;
        for (int k = 2; k <= n_parts; k++) {
            split_part_path(path, sizeof path, f->path, k);
            const hub_file *part = hub_list_find(l, path);
            if (!part)
                break;
            bytes += part->size;
        }
        *parts = '\0';
        if (n_parts > 1)
            snprintf(parts, sizeof parts, "  (%d parts)", n_parts);
        ggl_fprint(to, "%10s  %s%s%s\n", amount_bytes(size, bytes), f->path, parts,
                   cached && hub_list_find(cached, f->path) ? "  (in the cache)" : "");
    }
    if (hub_list_folder(l))
        hub_print_folder(l, cached && hub_list_folder(cached) && !hub_is_unfinished(h, HUB_CONFIG),
                         to);
}

/* Reports that a repository has neither GGUF files nor a Hugging Face folder. */
static int no_model(const hub *h, const hub_list *l, const char *where) {
    char name[512];
    if (l->pickle) {
        ggl_show(name, sizeof name, l->pickle, strlen(l->pickle));
        return tool_error(h->tool, 1,
                          "%s has its weights only as PyTorch pickles (%s): a pickle can run "
                          "programs when it is read, so it is not downloaded; look for a "
                          "repository of the model with safetensors, or with GGUF files",
                          h->name, name);
    }
    return tool_error(h->tool, 1,
                      "%s has no GGUF file%s, and no Hugging Face folder (config.json with "
                      "safetensors): the name of a repository with GGUF files mostly ends in -GGUF",
                      h->name, where);
}

/* Reports that no file fits, and prints those that exist. */
static int no_such_file(const hub *h, const hub_list *l, const hub_wish *wish, const char *where) {
    const char *wanted = wish->file ? wish->file : wish->quant ? wish->quant : "";
    const bool has_gguf = hub_list_n_gguf(l) > 0;
    char name[512];
    if (l->unsafe) {
        ggl_show(name, sizeof name, l->unsafe, strlen(l->unsafe));
        tool_warning(
            h->tool,
            "%s names a file '%s', which is not a safe path inside a folder; it is left out",
            h->name, name);
    }
    if (!has_gguf && !hub_list_folder(l))
        return no_model(h, l, where);
    ggl_show(name, sizeof name, wanted, strlen(wanted));
    if (!has_gguf && wish->quant)
        (void)tool_error(h->tool, 1,
                         "%s has no GGUF file%s, and so none with quantization %s; -hf %s without "
                         "it uses the safetensors, and --type quantizes them while they are loaded",
                         h->name, where, name, h->name);
    else
        (void)tool_error(h->tool, 1, "%s has no %s%s%s; its %s are", h->name,
                         wish->file    ? "file "
                         : wish->quant ? "file with quantization "
                                       : "model of text",
                         name, where, has_gguf ? "GGUF files" : "models");
    print_list(h, l, NULL, stderr);
    return 1;
}

/* --- getting a file --------------------------------------------------------------------------- */

/* Downloads all parts of the chosen file. */
static int fetch_parts(hub *h, const hub_file *first) {
    const int n = split_n_parts(first->path);
    ggl_error err = {0};
    char path[HUB_MOST_PATH];
    if (n > HUB_MOST_PARTS) {
        (void)!hub_too_many(h, (size_t)n, &err);
        return tool_error(h->tool, 1, "%s", err.msg);
    }
    const hub_file **part = ggl_calloc((size_t)n, sizeof *part);
    int code = part ? -1 : tool_error(h->tool, 1, "out of memory");
    for (int k = 0; k < n && code < 0; k++) {
        split_part_path(path, sizeof path, first->path, k + 1);
        part[k] = hub_list_find(&h->list, path);
        if (!part[k])
            code = tool_error(h->tool, 1, "%s lacks %s, part %d of %d of the model", h->name, path,
                              k + 1, n);
    }
    if (code < 0)
        code = hub_fetch(h, part, (size_t)n, n > 1 ? first->path : NULL);
    if (code < 0 && n > 1)
        hub_set_finished(h, first->path, true);
    ggl_free(part);
    return code;
}

/* Sets h->path to a file's path in the cache, or to the folder's if it is that of config.json. */
static int set_path(hub *h, const hub_file *f) {
    h->path = f->kind == HUB_GGUF ? hub_join(h->cache, h->folder, f->path)
                                  : hub_join(h->cache, h->folder, NULL);
    return h->path ? -1 : tool_error(h->tool, 1, "out of memory");
}

/* Returns the file of the cache that is meant, if all parts of its model are there; NULL: none. */
static const hub_file *find_cached(const hub *h, const hub_wish *wish) {
    size_t n_others;
    char path[HUB_MOST_PATH];
    const hub_file *f = hub_list_choose(&h->cached, wish, &n_others);
    for (int k = 2; f && k <= split_n_parts(f->path); k++) {
        split_part_path(path, sizeof path, f->path, k);
        if (!hub_list_find(&h->cached, path))
            f = NULL;
    }
    return f;
}

/* Chooses a file or the folder that is in the cache. `reason` is the error of the hub; NULL: --offline. */
static int use_cached(hub *h, const hub_wish *wish, const char *reason) {
    const hub_file *f = find_cached(h, wish);
    const bool unfinished = f && hub_is_unfinished(h, f->path);
    char name[HUB_MOST_PATH * 4];
    if (unfinished)
        return tool_error(h->tool, 1,
                          "%s%sthe model %s in the cache (%s/%s) is not complete, because its "
                          "download was interrupted; the same command%s continues it",
                          reason ? reason : "", reason ? ". Also, " : "", h->name, h->cache,
                          h->folder, reason ? ", with the network," : " without --offline");
    if (!f && h->cached.n > 0 && !reason)
        return no_such_file(h, &h->cached, wish, " in the cache");
    if (!f && reason)
        return tool_error(h->tool, 1,
                          "%s. The model is not in the cache either (%s/%s); to download it "
                          "yourself, open " PAGE_FORMAT " and pass the file with -m",
                          reason, h->cache, h->folder, h->endpoint, h->name);
    if (!f)
        return tool_error(h->tool, 1,
                          "%s is not in the cache (%s/%s), and --offline forbids downloading it",
                          h->name, h->cache, h->folder);
    ggl_show(name, sizeof name, f->path, strlen(f->path));
    if (reason && f->kind == HUB_GGUF)
        tool_note(h->tool, "%s. The file in the cache is used: %s", reason, name);
    else if (reason)
        tool_note(h->tool, "%s. The folder in the cache is used: %s/%s", reason, h->cache,
                  h->folder);
    return set_path(h, f);
}

static int print_files(const hub *h, const hub_list *l) {
    print_list(h, l, &h->cached, stdout);
    if (hub_list_n_gguf(l) == 0 && !hub_list_folder(l))
        return no_such_file(h, l, &(hub_wish){0}, h->o->offline ? " in the cache" : "");
    return tool_finish(h->tool, 0);
}

/* Gets a file or the folder of the repository h->name. */
static int get_from_hub(hub *h, const hub_wish *wish) {
    size_t n_others;
    ggl_error err = {0};
    if (h->o->offline)
        return h->o->list ? print_files(h, &h->cached) : use_cached(h, wish, NULL);
    const bool has_cached = hub_list_choose(&h->cached, wish, &n_others) && !h->o->list;
    const ggl_status st = read_list(h, has_cached, &err);
    if (process_stopped)
        return process_stop_code();
    if (st == GGL_USAGE || (st != GGL_OK && h->o->list))
        return tool_error(h->tool, st == GGL_USAGE ? 2 : 1, "%s", err.msg);
    if (st != GGL_OK)
        return use_cached(h, wish, err.msg);
    if (h->o->list)
        return print_files(h, &h->list);
    const hub_file *f = hub_list_choose(&h->list, wish, &n_others);
    if (!f)
        return no_such_file(h, &h->list, wish, "");
    if (n_others > 0) {
        char name[HUB_MOST_PATH * 4];
        ggl_show(name, sizeof name, f->path, strlen(f->path));
        tool_note(h->tool,
                  "%s has %zu files with this quantization; %s is used, -hff FILE chooses another "
                  "(--hf-list)",
                  h->name, n_others + 1, name);
    }
    const int code = f->kind == HUB_GGUF ? fetch_parts(h, f) : hub_get_folder(h);
    return code < 0 ? set_path(h, f) : code;
}

/* --- names ------------------------------------------------------------------------------------ */

/* Splits USER/REPO[:QUANT]. The address of the hub may stand before it, because people copy it from a browser. */
static int read_name(hub *h, const char *flag, const char *s) {
    static const char *const heads[] = {"https://", "http://", "hf.co/", "huggingface.co/"};
    const char *given = s;
    if (hub_is_on_endpoint(h, s))
        s += strlen(h->endpoint) + (s[strlen(h->endpoint)] == '/');
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (strncasecmp(s, heads[i], strlen(heads[i])) == 0)
            s += strlen(heads[i]);
    const size_t n = strcspn(s, ":");
    snprintf(h->name, sizeof h->name, "%.*s", (int)(n < HUB_MOST_NAME ? n : 0), s);
    if (!hub_is_repo(h->name) || (s[n] && !s[n + 1]))
        return hub_wrong(h->tool,
                         "%s: '%s' is not USER/REPO or USER/REPO:QUANT, such as "
                         "bartowski/SmolLM2-360M-Instruct-GGUF:Q4_K_M",
                         flag, given);
    h->quant = s[n] && strcasecmp(s + n + 1, "latest") != 0 ? s + n + 1 : NULL;
    return -1;
}

int hub_get_repo(hub *h, const char *flag, const char *repo, const char *file) {
    ggl_error err = {0};
    int code = read_name(h, flag, repo);
    if (code >= 0)
        return code;
    if (h->quant && file)
        return hub_wrong(h->tool, "-hff and the quantization :%s cannot be used together",
                         h->quant);
    h->folder = hub_join("hub", h->name, NULL);
    char *place = h->folder ? hub_join(h->cache, h->folder, NULL) : NULL;
    const ggl_status st = place ? hub_list_add_folder(&h->cached, place, &err)
                                : ggl_fail(&err, GGL_NOMEM, "out of memory");
    free(place);
    if (st != GGL_OK)
        return tool_error(h->tool, 1, "%s", err.msg);
    hub_list_sort(&h->cached);
    return get_from_hub(h, &(hub_wish){h->quant, file});
}
