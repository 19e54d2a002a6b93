// Preloaded into a run: kills the process at the n-th call of a kind on files of a folder.
// PACELINE_TEST_KILL_AT="fsync 2 /folder". Kinds: write (after half of the bytes), fsync, linkat,
// rename (before them).
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Plan {
  char kind[16] = "", folder[512] = "";
  int count = 0;
  Plan() {
    const char* text = std::getenv("PACELINE_TEST_KILL_AT");
    if (text == nullptr || std::sscanf(text, "%15s %d %511s", kind, &count, folder) != 3) count = 0;
  }
};

bool is_the_one(const char* kind, const char* path) {
  static const Plan plan;
  static std::atomic<int> calls{0};
  if (plan.count == 0 || std::strcmp(kind, plan.kind) != 0) return false;
  if (std::strncmp(path, plan.folder, std::strlen(plan.folder)) != 0) return false;
  return ++calls == plan.count;
}

struct PathOf {
  char path[1024] = "";
  explicit PathOf(int descriptor) {
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
  }
};

void die() {
  kill(getpid(), SIGKILL);
  pause();
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* data, size_t bytes) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  if (is_the_one("write", PathOf(descriptor).path)) {
    real(descriptor, data, bytes / 2);
    die();
  }
  return real(descriptor, data, bytes);
}

int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  if (is_the_one("fsync", PathOf(descriptor).path)) die();
  return real(descriptor);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  static const auto real = next<int (*)(int, const char*, int, const char*, int)>("linkat");
  if (is_the_one("linkat", to[0] == '/' ? to : PathOf(to_folder).path)) die();
  return real(from_folder, from, to_folder, to, flags);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  static const auto real = next<int (*)(int, const char*, int, const char*)>("renameat");
  if (is_the_one("rename", to[0] == '/' ? to : PathOf(to_folder).path)) die();
  return real(from_folder, from, to_folder, to);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  if (is_the_one("rename", to)) die();
  return real(from, to);
}
}
