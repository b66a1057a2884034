// One counter of the kernel (perf_event_open(2)), for `sendgate bench` alone. The C library has no function for it, and
// syscall(2) takes variable arguments, which Swift cannot call.
#ifndef SENDGATE_CPERFEVENT_SHIM_H
#define SENDGATE_CPERFEVENT_SHIM_H

#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// What read(2) gives of a counter: its value, and the nanoseconds for which it was wanted and really counted.
typedef struct {
    unsigned long long value;
    unsigned long long enabled;
    unsigned long long running;
} sendgate_counter_value;

static const unsigned int sendgate_counts_hardware = PERF_TYPE_HARDWARE;
static const unsigned int sendgate_counts_software = PERF_TYPE_SOFTWARE;
static const unsigned long long sendgate_counts_instructions = PERF_COUNT_HW_INSTRUCTIONS;
static const unsigned long long sendgate_counts_nanoseconds = PERF_COUNT_SW_TASK_CLOCK;

// As in /proc/self/task; gettid(2) is not imported.
static inline pid_t sendgate_own_thread(void) { return (pid_t)syscall(SYS_gettid); }

// Counts from now on what a thread, and those that it makes later, do outside the kernel. A descriptor, or -1 and errno.
//
// Where `path` is not NULL, the type is that of the kernel's uprobes, and passes of this thread alone through the instruction
// at `offset` of that file are counted: a thread that inherits probes takes up to a second to be made.
static inline int sendgate_open_counter(
    unsigned int type, unsigned long long config, const char *path, unsigned long long offset, pid_t thread) {
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = type;
    attributes.config = config;
    if (path != NULL) {
        attributes.uprobe_path = (unsigned long)path;
        attributes.probe_offset = offset;
    }
    attributes.inherit = path == NULL;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

#endif
