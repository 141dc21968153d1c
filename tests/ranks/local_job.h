/* A job whose ranks are threads of this process: the transport copies messages from one to the other. For tests of ranks
 * without MPI, with the sanitizers. */
#ifndef LOCAL_JOB_H
#define LOCAL_JOB_H

#include "ranks/job.h"

typedef struct local_job local_job;

/* Changes what the other ranks say first (hello); NULL: nothing. For the next local_job_open. */
void local_job_change_hello(void (*change)(hello *h));
/* Starts ranks 1 .. n_ranks - 1 in threads of their own, and makes this thread's process rank 0 of the job, so that
 * ggl_backend_open(.., "rank1", ..) works. NULL: *err. */
local_job *local_job_open(int n_ranks, ggl_error *err);
/* Changes weights, and other data, that rank 0 sends; NULL: nothing. */
void local_job_change_data(void (*change)(char *data, size_t size));
/* Returns the bytes of data that rank 0 has sent, and the notes of other ranks to the user since the job was opened, and the last one. */
size_t local_job_data(const local_job *l);
int local_job_notes(char *last, size_t size);
/* Lets a rank fall silent when it has been sent so many more messages of data. */
void local_job_silence_after(local_job *l, int rank, int n);
/* Lets a rank fall silent: no message of it arrives any more. */
void local_job_silence(local_job *l, int rank);
/* Ends the job after all backends are closed. False: a rank did not end as it must. */
bool local_job_close(local_job *l);

#endif
