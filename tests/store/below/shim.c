/* Stands between SQLite and the operating system (LD_PRELOAD): lets the n-th write, sync or allocation fail, and records
   all that is written to databases, so that every state in which a power cut could have left the disk can be made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *old, size_t size);

enum { NOTHING = 0, IO = 1, MEMORY = 2 };
static int armed = NOTHING, error_number, keeps_failing, recording = -1;
static long left, seen;
static uintptr_t sqlite_from, sqlite_to;

/* Whether this call, of a kind that is counted, is to fail. */
static int fails(int kind) {
    if (armed != kind) return 0;
    seen++;
    if (left > 0 && --left > 0) return 0;
    if (left < 0) return 0; /* it has failed once already */
    if (!keeps_failing) left = -1;
    return 1;
}

static int path_of(int fd, char *path, size_t room) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, room - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, ".sqlite3") != NULL || strstr(path, ".acknowledged") != NULL;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* kind, length of the path, path, offset, length, content */
static void record(char kind, const char *path, int64_t offset, int64_t length, const void *content) {
    if (recording < 0) return;
    uint16_t size = (uint16_t)strlen(path);
    ssize_t done = REAL(write)(recording, &kind, 1);
    done += REAL(write)(recording, &size, sizeof size);
    done += REAL(write)(recording, path, size);
    done += REAL(write)(recording, &offset, sizeof offset);
    done += REAL(write)(recording, &length, sizeof length);
    if (content) done += REAL(write)(recording, content, (size_t)length);
    (void)done;
}

static int is_of_a_database(const char *path) { return strstr(path, ".sqlite3") != NULL; }

ssize_t write(int fd, const void *content, size_t length) {
    char path[4096];
    if (armed == NOTHING && recording < 0) return REAL(write)(fd, content, length);
    if (fd == recording || !path_of(fd, path, sizeof path)) return REAL(write)(fd, content, length);
    if (is_of_a_database(path) && fails(IO)) { errno = error_number; return -1; }
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t done = REAL(write)(fd, content, length);
    if (done > 0) record('W', path, offset, done, content);
    return done;
}

ssize_t pwrite64(int fd, const void *content, size_t length, off64_t offset) {
    char path[4096];
    if ((armed == NOTHING && recording < 0) || !path_of(fd, path, sizeof path))
        return REAL(pwrite64)(fd, content, length, offset);
    if (fails(IO)) { errno = error_number; return -1; }
    ssize_t done = REAL(pwrite64)(fd, content, length, offset);
    if (done > 0) record('W', path, offset, done, content);
    return done;
}

ssize_t pwrite(int fd, const void *content, size_t length, off_t offset) { return pwrite64(fd, content, length, offset); }

static int synced(int fd, int (*real)(int)) {
    char path[4096];
    if ((armed == NOTHING && recording < 0) || !path_of(fd, path, sizeof path)) return real(fd);
    if (fails(IO)) { errno = error_number; return -1; }
    record('S', path, 0, 0, NULL);
    return real(fd);
}

int fsync(int fd) { return synced(fd, REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }

int ftruncate64(int fd, off64_t length) {
    char path[4096];
    if ((armed == NOTHING && recording < 0) || !path_of(fd, path, sizeof path)) return REAL(ftruncate64)(fd, length);
    if (fails(IO)) { errno = error_number; return -1; }
    record('T', path, length, 0, NULL);
    return REAL(ftruncate64)(fd, length);
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

int unlink(const char *path) {
    if (is_of_a_database(path)) record('U', path, 0, 0, NULL);
    return REAL(unlink)(path);
}

static int is_sqlite(const void *caller) { return (uintptr_t)caller >= sqlite_from && (uintptr_t)caller < sqlite_to; }

void *malloc(size_t size) {
    if (armed == MEMORY && is_sqlite(__builtin_return_address(0)) && fails(MEMORY)) { errno = ENOMEM; return NULL; }
    return __libc_malloc(size);
}

void *realloc(void *old, size_t size) {
    if (armed == MEMORY && is_sqlite(__builtin_return_address(0)) && fails(MEMORY)) { errno = ENOMEM; return NULL; }
    return __libc_realloc(old, size);
}

static int find_sqlite(struct dl_phdr_info *library, size_t size, void *found) {
    (void)size, (void)found;
    if (!strstr(library->dlpi_name, "libsqlite3")) return 0;
    for (int number = 0; number < library->dlpi_phnum; number++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[number];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
            sqlite_from = library->dlpi_addr + part->p_vaddr;
            sqlite_to = sqlite_from + part->p_memsz;
        }
    }
    return 1;
}

/* From now on the nth call of a kind fails, once or from then on. Returns whether SQLite's library was found. */
int faults_arm(int kind, long nth, int with_error, int from_then_on) {
    dl_iterate_phdr(find_sqlite, NULL);
    left = nth, seen = 0, error_number = with_error, keeps_failing = from_then_on, armed = kind;
    return sqlite_to > sqlite_from;
}

/* Number of calls of the kind since it was armed. */
long faults_disarm(void) {
    armed = NOTHING;
    return seen;
}

int faults_record(const char *path) {
    recording = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return recording >= 0;
}
