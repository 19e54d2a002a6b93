// safetensors written, read, and refused where lengths, offsets or types are wrong.
#include <gtest/gtest.h>

#include <cstdint>

#include "engine/train/weights.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

std::string resolve_file(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

template <typename T>
std::string make_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string one(const std::string& type, const std::string& shape, std::size_t end) {
  return R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":[0,)" +
         std::to_string(end) + "]}}";
}

void expect_bad(const std::string& bytes, const std::string& part) {
  SCOPED_TRACE(part);
  expect_error(ErrorKind::input, {part, "x.safetensors"},
               [&] { parse_safetensors(bytes, "x.safetensors"); });
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  const Scratch scratch;
  const auto file = scratch / "w.safetensors";
  write_safetensors(file, {{"b", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"a", {1}, {-0.5}}, {"s", {}, {9}}});
  const auto tensors = read_safetensors(file);
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(tensors[0].name, "b");
  EXPECT_EQ(tensors[0].shape, (std::vector<int>{2, 3}));
  EXPECT_EQ(tensors[0].values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensors[1].values, std::vector<float>{-0.5});
  EXPECT_TRUE(tensors[2].shape.empty());
  std::ifstream stream(file, std::ios::binary);
  std::uint64_t header = 0;
  stream.read(reinterpret_cast<char*>(&header), 8);
  EXPECT_EQ(header % 8, 0U) << "values are aligned";
}

TEST(Safetensors, AllTypes) {
  const auto value = [](const std::string& type, const std::string& data) {
    return parse_safetensors(resolve_file(one(type, "[2]", data.size()), data), "x")[0].values;
  };
  const std::vector<float> expected = {1, -2};
  EXPECT_EQ(value("F64", make_bytes<double>({1, -2})), expected);
  EXPECT_EQ(value("F32", make_bytes<float>({1, -2})), expected);
  EXPECT_EQ(value("F16", make_bytes<std::uint16_t>({0x3C00, 0xC000})), expected);
  EXPECT_EQ(value("BF16", make_bytes<std::uint16_t>({0x3F80, 0xC000})), expected);
  EXPECT_EQ(value("I64", make_bytes<std::int64_t>({1, -2})), expected);
  EXPECT_EQ(value("I32", make_bytes<std::int32_t>({1, -2})), expected);
}

TEST(Safetensors, MetadataIsNoTensor) {
  EXPECT_TRUE(parse_safetensors(resolve_file(R"({"__metadata__":{"format":"pt"}})"), "x").empty());
}

TEST(Safetensors, HostileFiles) {
  const std::string eight(8, '\0');
  expect_bad("", "too short");
  expect_bad("1234567", "too short");
  expect_bad(std::string(8, '\xff') + "{}", "length of its header");
  expect_bad(resolve_file(one("F32", "[2]", 8), eight).substr(0, 20), "cut short");
  expect_bad(resolve_file("{"), "not JSON");
  expect_bad(resolve_file("[]"), "no JSON object");
  expect_bad(resolve_file(R"({"a":1})"), "no dtype, shape and data_offsets");
  expect_bad(resolve_file(one("F32", "[2]", 8), "1234"), "cut short or damaged");
  expect_bad(resolve_file(one("F32", "[3]", 8), eight), "8 bytes for 3 values");
  expect_bad(resolve_file(one("F8_E5M2", "[8]", 8), eight), "F8_E5M2");
  expect_bad(resolve_file(one("U8", "[8]", 8), eight),
             "x.safetensors: tensor a has the unsupported type U8; convert it to F32");
  expect_bad(resolve_file(one("F32", "[-2]", 8), eight), "a dimension that is none");
  expect_bad(resolve_file(one("F32", "[4294967296,4294967296]", 8), eight),
             "a dimension that is none");
  expect_bad(resolve_file(one("F32", "[2147483647,2147483647,2147483647]", 8), eight), "too large");
  expect_bad(resolve_file(one("F32", "[1,1,1,1,1,1,1,1,1]", 4), "1234"), "too many dimensions");
  expect_bad(resolve_file(one("F32", "[1]", 4), eight), "4 bytes of data behind the last");
  expect_bad(resolve_file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", eight),
             "begins at byte 4");
  const auto two = [](const char* offsets) {
    return R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
           R"("b":{"dtype":"F32","shape":[1],"data_offsets":)" +
           std::string(offsets) + "}}";
  };
  EXPECT_EQ(parse_safetensors(resolve_file(two("[4,8]"), eight), "x").size(), 2U);
  expect_bad(resolve_file(two("[2,6]"), eight), "tensor b begins at byte 2 of the data, not at 4");
  expect_bad(resolve_file(two("[5,9]"), eight + "1"), "tensor b begins at byte 5");
  expect_bad(resolve_file(R"({"a":{},"a":{}})"), "given twice");
}

TEST(Safetensors, AFileOfThePythonLibrary) {
  const char* data = std::getenv("PACELINE_TEST_DATA");
  if (!data) GTEST_SKIP() << "PACELINE_TEST_DATA names no folder of samples";
  const auto file = std::filesystem::path(data) / "formats/safetensors/multi_layer.safetensors";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no multi_layer.safetensors there";
  const auto tensors = read_safetensors(file);
  EXPECT_EQ(tensors.size(), 9U);
  for (const NamedTensor& tensor : tensors) {
    std::size_t elements = 1;
    for (const int extent : tensor.shape) elements *= static_cast<std::size_t>(extent);
    EXPECT_EQ(tensor.values.size(), elements) << tensor.name;
  }
}

}  // namespace
}  // namespace paceline
