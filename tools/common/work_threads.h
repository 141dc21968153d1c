/* The number of threads for work that is shared out in pieces (work_share.h of the models). */
#ifndef TOOLS_WORK_THREADS_H
#define TOOLS_WORK_THREADS_H

/* Returns how many processors this process may use, at most WORK_MAX_THREADS. */
int work_threads(void);

#endif
