/* Other processes than rank 0: they do what it orders. */
#include <inttypes.h>

#include "training.h"

static ggl_status follow(llm_training *t, const train_order_sent *o, ggl_error *err) {
    ggl_status st;
    t->n_steps = o->n_steps;
    if (o->kind == TRAIN_ORDER_STEP) {
        st = o->step == t->step && o->draw == t->draw
                 ? llm_train_follow_step(t, err)
                 : ggl_fail(err, GGL_DEVICE,
                            "rank %d is at step %" PRId64 ", and rank 0 at step %" PRId64,
                            t->group->rank, t->step, o->step);
        /* rank 0 has diverged, too, or was cancelled: it says what comes next */
        return st == GGL_LIMIT || st == GGL_CANCELLED ? GGL_OK : st;
    }
    st = llm_train_move_state(t, 0, false, err);
    t->step = o->step;
    t->draw = o->draw;
    t->n_tokens = o->n_tokens;
    llm_trainer_set_steps(t->trainer, o->n_updates);
    return st;
}

ggl_status llm_training_follow(llm_training *t, ggl_error *err) {
    ggl_error own;
    train_order_sent o = {.kind = TRAIN_ORDER_STEP};
    ggl_status st = GGL_OK;
    err = err ? err : &own;
    if (!t->group || t->group->rank == 0)
        return ggl_fail(err, GGL_USAGE, "rank 0 orders the steps: only the others follow");
    while (st == GGL_OK) {
        st = t->group->receive(t->group->ctx, 0, &o, sizeof o, err);
        if (st == GGL_OK && o.kind == TRAIN_ORDER_END)
            return st;
        if (st == GGL_OK)
            st = follow(t, &o, err);
    }
    return st;
}
