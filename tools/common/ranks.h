/* Tools as ranks of a job that mpirun has started. */
#ifndef TOOLS_RANKS_H
#define TOOLS_RANKS_H

/* Call it in main after process_begin. Returns -1 to go on, as rank 0 or without a job. The other ranks compute for rank 0,
 * and it returns what main ends with when the job has ended. */
int tool_join_job(const char *tool);

#endif
