/*
 * limits.c - what the operating system lets this process use: processors and memory (declared in pool.h and
 * timer.h).
 *
 * A container sees all processors and all memory of its host, and is throttled or killed when it believes
 * them. The limits are in the control group of the process and in every group above it; the smallest
 * counts.
 *
 *     version 2: /sys/fs/cgroup/<path>/cpu.max ("quota period" or "max period"), memory.max
 *     version 1: /sys/fs/cgroup/cpu/<path>/cpu.cfs_quota_us and cpu.cfs_period_us,
 *                /sys/fs/cgroup/memory/<path>/memory.limit_in_bytes
 *
 * Inside a container <path> often names a directory of the host that is not mounted; then its root is the
 * container's own group. These pseudo-files are read directly, not through rt_io: injected faults must not
 * change the number of threads.
 */
#include "base/pool.h"
#include "base/str.h"
#include "base/timer.h"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TEXT_MAX = 4096, PATH_LEN = 1024 };

/* Reads a small pseudo-file; an absent or empty one gives "". */
static bool read_small(const char *path, char text[TEXT_MAX]) {
    text[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t n = 0;
    while (n < TEXT_MAX - 1) {
        ssize_t k = read(fd, text + n, TEXT_MAX - 1 - n);
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    close(fd);
    text[n] = 0;
    return n > 0;
}

/* The group's path for a controller of version 1, or for version 2 (controller "").
 * Lines are "id:controllers:path". */
static void cgroup_path(const char *controller, char path[PATH_LEN]) {
    strcpy(path, "/");
    char text[TEXT_MAX];
    if (!read_small("/proc/self/cgroup", text))
        return;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *names = strchr(line, ':');
        char *where = names ? strchr(names + 1, ':') : NULL;
        if (!where || strlen(where + 1) >= PATH_LEN)
            continue;
        *where = 0;
        names++;
        bool match = *controller == 0 && *names == 0;
        char *inner = NULL;
        for (char *name = strtok_r(names, ",", &inner); name; name = strtok_r(NULL, ",", &inner))
            match = match || (*controller && strcmp(name, controller) == 0);
        if (match) {
            strcpy(path, where + 1);
            return;
        }
    }
}

/* First unsigned number of a text; "max" and "-1" mean no limit. */
static bool first_number(const char *text, uint64_t *out, const char **rest) {
    size_t n = strspn(text, "0123456789");
    *rest = text + n;
    return rt_parse_u64(text, n, out);
}

typedef bool (*limit_reader)(const char *dir, uint64_t *limit);

static bool cpu_limit_v2(const char *dir, uint64_t *limit) {
    char path[2 * PATH_LEN], text[TEXT_MAX];
    snprintf(path, sizeof path, "%s/cpu.max", dir);
    uint64_t quota, period;
    const char *rest;
    if (!read_small(path, text) || !first_number(text, &quota, &rest) || *rest != ' ')
        return false;
    if (!first_number(rest + 1, &period, &rest) || period == 0)
        return false;
    *limit = quota / period + (quota % period != 0);
    return true;
}

static bool cpu_limit_v1(const char *dir, uint64_t *limit) {
    char path[2 * PATH_LEN], text[TEXT_MAX];
    uint64_t quota, period;
    const char *rest;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
    if (!read_small(path, text) || !first_number(text, &quota, &rest))
        return false;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
    if (!read_small(path, text) || !first_number(text, &period, &rest) || period == 0)
        return false;
    *limit = quota / period + (quota % period != 0);
    return true;
}

static bool memory_limit_v2(const char *dir, uint64_t *limit) {
    char path[2 * PATH_LEN], text[TEXT_MAX];
    const char *rest;
    snprintf(path, sizeof path, "%s/memory.max", dir);
    return read_small(path, text) && first_number(text, limit, &rest);
}

static bool memory_limit_v1(const char *dir, uint64_t *limit) {
    char path[2 * PATH_LEN], text[TEXT_MAX];
    const char *rest;
    snprintf(path, sizeof path, "%s/memory.limit_in_bytes", dir);
    return read_small(path, text) && first_number(text, limit, &rest);
}

/* Smallest limit from the process's group up to the root; `limit` keeps its value when there is none. */
static void walk_up(const char *root, const char *controller, limit_reader read_limit, uint64_t *limit) {
    char group[PATH_LEN], dir[2 * PATH_LEN];
    cgroup_path(controller, group);
    for (;;) {
        size_t n = strlen(group);
        while (n > 0 && group[n - 1] == '/')
            group[--n] = 0;
        snprintf(dir, sizeof dir, "%s%s", root, group);
        uint64_t here;
        if (read_limit(dir, &here) && here > 0 && here < *limit)
            *limit = here;
        char *slash = strrchr(group, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

static uint64_t affinity_count(void) {
    /* The kernel refuses a mask smaller than its own; grow until it fits. */
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set)
            break;
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        int ok = sched_getaffinity(0, bytes, set);
        int n = ok == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (n > 0)
            return (uint64_t)n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint64_t)n : 1;
}

static int sharers = 1;

void rt_cpu_share(int processes) {
    sharers = RT_MAX(processes, 1);
}

int rt_cpu_count(void) {
    uint64_t n = affinity_count();
    walk_up("/sys/fs/cgroup", "", cpu_limit_v2, &n);
    walk_up("/sys/fs/cgroup/cpu", "cpu", cpu_limit_v1, &n);
    return (int)RT_MIN(RT_MAX(n / (uint64_t)sharers, 1), INT32_MAX);
}

uint64_t rt_memory_total(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t none = UINT64_MAX, total = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : none;
    walk_up("/sys/fs/cgroup", "", memory_limit_v2, &total);
    walk_up("/sys/fs/cgroup/memory", "memory", memory_limit_v1, &total);
    return total == none ? 0 : total;
}

/* VmHWM rather than getrusage: ru_maxrss survives exec and may tell the parent's peak. */
uint64_t rt_memory_peak(void) {
    char text[TEXT_MAX];
    uint64_t kib;
    const char *rest;
    if (read_small("/proc/self/status", text)) {
        const char *line = strstr(text, "\nVmHWM:");
        if (line) {
            line += strlen("\nVmHWM:");
            line += strspn(line, " \t");
            if (first_number(line, &kib, &rest))
                return kib * 1024;
        }
    }
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0 || u.ru_maxrss <= 0)
        return 0;
    return (uint64_t)u.ru_maxrss * 1024;
}
