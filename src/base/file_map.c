/*
 * file_map.c - a file as memory: its pages are read when they are touched and dropped when memory is short, so it may
 * be larger than memory. Whoever shortens the file meanwhile takes the pages away; such files are for reading only.
 */
#include "base/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

rt_status rt_file_map(const char *path, const uint8_t **data, size_t *n) {
    struct stat info;
    *data = NULL;
    *n = 0;
    int fd = rt_io_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    RT_FAIL_IF(fd < 0, errno == EIO ? RT_E_IO : RT_E_INPUT, "%s: cannot open: %s", path, strerror(errno));
    const bool file = rt_io_fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
    void *p = file ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    const int why = errno;
    const int closed = rt_io_close(fd); /* the pages stay */
    RT_FAIL_IF(!file, RT_E_INPUT, "%s: empty, or not a regular file", path);
    RT_FAIL_IF(p == MAP_FAILED || closed < 0, RT_E_IO, "%s: cannot be mapped into memory: %s", path,
               strerror(why));
    *data = p;
    *n = (size_t)info.st_size;
    return RT_OK;
}

void rt_file_unmap(const uint8_t *data, size_t n) {
    if (data)
        (void)munmap((void *)(uintptr_t)data, n);
}
