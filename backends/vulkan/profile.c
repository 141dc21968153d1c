#include "profile.h"

#include "ggl/alloc.h"

bool ggl_vk_profiles(const vk_backend *b) {
    return b->profile && b->device->clock_bits > 0;
}

ggl_status ggl_vk_profile_open(vk_backend *b, vk_profile *p, size_t n_steps, ggl_error *err) {
    if (n_steps < p->capacity)
        return GGL_OK;
    ggl_vk_profile_close(b, p);
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = (uint32_t)n_steps + 1};
    p->step = ggl_calloc(n_steps + 1, sizeof *p->step);
    p->time = ggl_calloc(n_steps + 1, sizeof *p->time);
    VkResult r = VK_ERROR_OUT_OF_HOST_MEMORY;
    if (p->step && p->time)
        r = b->f.CreateQueryPool(b->device->device, &info, NULL, &p->pool);
    if (r != VK_SUCCESS)
        return ggl_vk_fail(err, r, "a clock for steps");
    p->capacity = info.queryCount;
    return GGL_OK;
}

void ggl_vk_profile_close(vk_backend *b, vk_profile *p) {
    for (int i = 0; i < VK_IN_FLIGHT; i++)
        if (b->device->submission[i].profile == p)
            b->device->submission[i].profile = NULL;
    if (p->pool)
        b->f.DestroyQueryPool(b->device->device, p->pool, NULL);
    ggl_free(p->step);
    ggl_free(p->time);
    *p = (vk_profile){0};
}

static void stamp(vk_backend *b, vk_profile *p, VkCommandBuffer commands) {
    b->f.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, p->pool, p->count);
}

void ggl_vk_profile_begin(vk_backend *b, vk_profile *p, VkCommandBuffer commands) {
    p->count = 0;
    b->f.CmdResetQueryPool(commands, p->pool, 0, p->capacity);
    stamp(b, p, commands);
}

void ggl_vk_profile_step(vk_backend *b, vk_profile *p, VkCommandBuffer commands,
                         const ggl_step *step, int64_t first, int64_t n) {
    p->step[p->count++] = (vk_timed_step){step, first, n};
    stamp(b, p, commands);
}

void ggl_vk_profile_submitted(vk_backend *b, vk_profile *p, uint64_t number, int64_t n) {
    vk_submission *s = &b->device->submission[number % VK_IN_FLIGHT];
    s->profile = p;
    s->n = n;
}

/* --- the device's clock ----------------------------------------------------------------------- */

/* Returns the ns between two timestamps, which may have wrapped around. */
static double between(const vk_backend *b, uint64_t from, uint64_t to) {
    return (double)((to - from) & (UINT64_MAX >> (64 - b->device->clock_bits))) *
           (double)b->device->properties.limits.timestampPeriod;
}

/* Advances the device's clock to a timestamp. Returns its ns since the first timestamp. */
static double advance(vk_device *d, const vk_backend *b, uint64_t tick) {
    d->ns += d->has_tick ? between(b, d->tick, tick) : 0;
    d->has_tick = true;
    d->tick = tick;
    return d->ns;
}

/* Places a submission in the host's time. It cannot have begun before it was submitted, nor ended
 * after `now`: the offset of the clocks changes only if it must. So it follows clocks that differ
 * in speed, and the more submissions there are, the better it is known. */
static void adjust(vk_device *d, double begin, double end, const vk_submission *s, uint64_t now) {
    const double least = (double)s->begin - begin, most = (double)now - end;
    if (d->offset == 0 || d->offset < least)
        d->offset = least;
    else if (d->offset > most)
        d->offset = most > least ? most : least;
}

/* Returns the host's time for a time of the device; not before the last one, nor after now. */
static uint64_t host_time(vk_device *d, double ns, uint64_t now) {
    const double at = d->offset + ns;
    const uint64_t t = at > 0 ? (uint64_t)at : 0;
    d->last = t < d->last ? d->last : t > now ? now : t;
    return d->last;
}

/* Reports the part of a step that belongs to the batch. */
static void tell_step(const vk_backend *b, const vk_timed_step *s, int64_t n_batch, uint64_t begin,
                      uint64_t end) {
    const int64_t left = n_batch - s->first;
    if (left > 0)
        b->profile(b->profile_ctx, s->step->node, s->n < left ? s->n : left,
                   s->step->kind == GGL_STEP_FORM, begin, end);
}

ggl_status ggl_vk_profile_tell(vk_backend *b, const vk_submission *s, uint64_t now,
                               ggl_error *err) {
    const vk_profile *p = s->profile;
    vk_device *d = b->device;
    if (!p)
        return GGL_OK;
    VkResult r = b->f.GetQueryPoolResults(d->device, p->pool, 0, p->count + 1,
                                          (p->count + 1) * sizeof *p->time, p->time,
                                          sizeof *p->time, VK_QUERY_RESULT_64_BIT);
    if (r != VK_SUCCESS)
        return ggl_vk_fail(err, r, "times of steps");
    double at = advance(d, b, p->time[0]), end = at;
    for (uint32_t i = 0; i < p->count; i++)
        end += between(b, p->time[i], p->time[i + 1]);
    adjust(d, at, end, s, now);
    for (uint32_t i = 0; i < p->count; i++) {
        const uint64_t begin = host_time(d, at, now);
        at = advance(d, b, p->time[i + 1]);
        tell_step(b, &p->step[i], s->n, begin, host_time(d, at, now));
    }
    return GGL_OK;
}
