/* The other ranks: carries out orders on a backend. */
#ifndef RANKS_EXECUTE_H
#define RANKS_EXECUTE_H

#include "station.h"

/* Carries out the order, whose body is r. */
void ggl_station_execute(station *s, uint32_t op, ggl_reader *r);

#endif
