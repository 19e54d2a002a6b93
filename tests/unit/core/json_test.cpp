#include "engine/core/json.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

void refuse(const std::string& text, const std::vector<std::string>& parts) {
  expect_error(ErrorKind::input, parts, [&] { JsonDocument("spec.json", text); });
}

TEST(Json, KeepsOrderAndValues) {
  const JsonDocument document("spec.json", R"({"b": [1, 2.5, "x", null, true], "a": {"c": {}}})");
  EXPECT_EQ(document.value().dump(), R"({"b":[1,2.5,"x",null,true],"a":{"c":{}}})");
}

TEST(Json, ErrorsNameLineAndColumn) {
  refuse("{\n  \"a\": 1,\n  \"b\": tru\n}", {"not JSON", "spec.json", ":3:11: not JSON"});
  refuse("{\"a\": 1", {"not JSON", ":1:"});
  refuse("", {"not JSON", "spec.json"});
  refuse("{} x", {":1:4: not JSON"});
  refuse("{\"a\": NaN}", {"not JSON"});
  refuse("{\"a\": \"-O3", {"not JSON: a text does not end; was the file cut short?"});
  refuse("{\"a\": \"\xff\xfe\"}", {"not JSON: a text is not UTF-8"});
}

TEST(Json, ErrorsReportWhatIsWrongInFewWords) {
  refuse("# comment", {"spec.json:1:1: not JSON: '#' is not a value"});
  refuse("{\"a\": nan}", {"'nan' is not a value"});
  refuse("{\"a\": -Infinity}", {"not JSON: invalid number; expected digit after '-'"});
  refuse("{\"a\" 1}", {"not JSON: expected ':', not '1'"});
  refuse("{\"a\": \xfe}", {"'\\xFE' is not a value"});
  refuse("{\"schema\":", {"not JSON: it ends early; was it cut short?"});
  refuse("[" + std::string(30'000, '9') + "]",
         {"not JSON: a number is larger than any that is read", ":1:30001"});
  refuse("[\"a\tb\"]", {"a text has a control character"});
  refuse(std::string("\xff\xfe{\0}\0", 6), {"is UTF-16", "save it as UTF-8"});
  refuse(std::string("\0{\0}", 4), {"is UTF-16"});
  EXPECT_NO_THROW(JsonDocument("spec.json", "\xef\xbb\xbf{}"));
  const std::string key(5000, 'k');
  refuse("{\"" + key + "\":1,\"" + key + "\":2}", {"\"" + key.substr(0, 40) + "...\" is given"});
}

// Sets the most memory that this process may map; back to what it was at the end.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t more) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = mapped() + more;
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

  static bool works() {  // a sanitizer's shadow takes terabytes
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    return true;
#endif
  }

 private:
  static std::size_t mapped() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }
  rlimit before_{};
};

std::string format_list(std::size_t elements) {
  std::string text = "[0";
  for (std::size_t i = 1; i < elements; ++i) text += ",0";
  return text + "]";
}

// A long key once had its length a child, so 300 kB took 10 GB.
TEST(Json, MemoryIsInProportionToTheText) {
  if (!MemoryLimit::works()) GTEST_SKIP() << "memory cannot be limited with a sanitizer";
  const std::string key(100'000, 'k');
  const std::string text = "{\n\"" + key + "\": " + format_list(100'000) + "}";
  const MemoryLimit limit(std::size_t{64} << 20);
  const JsonDocument document("spec.json", text);
  EXPECT_EQ(document.where("/" + key + "/99999"), "spec.json:2");
}

// nlohmann's object looks through all its keys for each that is added, and copies when it grows.
TEST(Json, ManyKeysTakeLinearTime) {
  std::string text = "{\"k\": 0";
  for (int i = 0; i < 200'000; ++i) text += ",\n\"k" + std::to_string(i) + "\":{}";
  const JsonDocument document("spec.json", text + "}");
  EXPECT_EQ(document.value().size(), 200'001U);
  EXPECT_EQ(document.where("/k199999"), "spec.json:200001");
}

// The destructor of nlohmann's values allocates, which would end the program.
TEST(Json, TooLittleMemoryIsAnErrorNotTheEnd) {
  if (!MemoryLimit::works()) GTEST_SKIP() << "memory cannot be limited with a sanitizer";
  const std::string half = format_list(std::size_t{1} << 20);
  const std::string text = "{\"a\":" + half + ",\"b\":[" + half + "," + half + "]}";
  int refused = 0;
  for (std::size_t room = std::size_t{8} << 20; room <= std::size_t{96} << 20; room *= 2) {
    const MemoryLimit limit(room);
    try {
      const JsonDocument document("spec.json", text);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.kind(), ErrorKind::input);
      expect_parts(std::string(error.what()), {"too little memory"});
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Json, DuplicateKeysAreRefusedWithTheirLine) {
  refuse("{\n\"a\": 1,\n\"b\": 2,\n\"a\": 3\n}", {"\"a\" is given twice", "spec.json:4"});
  EXPECT_NO_THROW(JsonDocument("spec.json", R"([{"a": 1}, {"a": 2}])"));
}

TEST(Json, DepthIsLimited) {
  EXPECT_NO_THROW(JsonDocument("x", std::string(100, '[') + std::string(100, ']')));
  refuse(std::string(101, '[') + std::string(101, ']'), {"nested deeper than 100"});
  refuse(std::string(1'000'000, '['), {"nested deeper"});
}

TEST(Json, WhereNamesTheLineOfAKeyOrItsNearestParent) {
  const JsonDocument document("spec.json",
                              "{\n"
                              "  \"axes\": {\n"
                              "    \"gpus\": [\n"
                              "      1,\n"
                              "      2\n"
                              "    ]\n"
                              "  },\n"
                              "  \"a/b\": 0\n"
                              "}\n");
  EXPECT_EQ(document.where("/axes"), "spec.json:2");
  EXPECT_EQ(document.where("/axes/gpus"), "spec.json:3");
  EXPECT_EQ(document.where("/axes/gpus/1"), "spec.json:5");
  EXPECT_EQ(document.where("/axes/gpus/7"), "spec.json:3");
  EXPECT_EQ(document.where("/axes/nodes"), "spec.json:2");
  EXPECT_EQ(document.where("/a~1b"), "spec.json:8");
}

TEST(Json, FilesThatCannotBeRead) {
  const Scratch scratch;
  expect_error(ErrorKind::input, {"cannot be read", "absent.json"},
               [&] { read_text(scratch / "absent.json"); });
  expect_error(ErrorKind::input, {"is a folder"}, [&] { read_text(scratch.path()); });
  const auto pipe = scratch / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorKind::input, {"not a regular file", pipe.string()}, [&] { read_text(pipe); });
  expect_error(ErrorKind::input, {"not a regular file"}, [&] { read_text("/dev/zero"); });
  std::ofstream(scratch / "large") << std::string(1001, 'x');
  expect_error(ErrorKind::input, {"is larger than 1.0 kB"},
               [&] { read_text(scratch / "large", 1000); });
  EXPECT_EQ(read_text(scratch / "large", 1001).size(), 1001U);
}

TEST(Json, CommentsAndLastCommasAreForPeople) {
  const std::string text =
      "{ // a name\n  \"a\": [1, 2, /* three */ ],\n  \"b\": \"// no, /* comment */ ,]\",\n}\n";
  const std::string plain = without_comments(text);
  EXPECT_EQ(plain.size(), text.size()) << "positions must stay";
  const JsonDocument document("x", plain);
  EXPECT_EQ(document.value().dump(), R"({"a":[1,2],"b":"// no, /* comment */ ,]"})");
  EXPECT_EQ(document.where("/b"), "x:3");
  for (const char* bad : {"[,]", "[1,,]", "{,}", "[1 /* open ", "\"open"}) {
    EXPECT_THROW(JsonDocument("x", without_comments(bad)), Error) << bad;
  }
}

}  // namespace
}  // namespace paceline
