/* The search of fit_scale_tmpl.h for four runs at once, on every processor. */
#define FIT(name) name##_four
#include "fit_scale_tmpl.h"
