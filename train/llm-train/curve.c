/* Describes the losses of a training: those of the steps, their mean, and those that were measured. */
#include <math.h>

#include "show.h"

enum { COLUMNS = 320 };

void train_curve(drawing *d, const llm_training *t) {
    llm_training_report r = {.size = sizeof r};
    int64_t n = 0;
    while (llm_training_past(t, n, &r))
        n++;
    drawing_legend(d, 0, 1, "loss of the steps");
    drawing_legend(d, 1, 1, "loss of what it does not learn from");
    drawing_panel *p = drawing_panel_add(d, 280);
    p->x = (drawing_axis){.title = "step", .high = n > 1 ? (double)n : 1, .whole = true};
    /* of many steps, neighbors are drawn as their mean: as many points as there is room for */
    const int64_t each = (n + COLUMNS - 1) / COLUMNS;
    for (int64_t i = 0; i < n; i += each) {
        double sum = 0, of = 0;
        for (int64_t k = i; k < i + each && llm_training_past(t, k, &r); k++)
            if (isfinite(r.loss))
                sum += r.loss, of++;
        if (of > 0)
            drawing_at(d, DRAWING_LINE, 0, (double)i + (of + 1) / 2, sum / of);
    }
    for (int64_t i = 0; i < n; i++)
        if (llm_training_past(t, i, &r))
            drawing_at(d, DRAWING_POINT, 1, (double)r.step, r.valid_loss);
}
