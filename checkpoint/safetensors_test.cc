// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/output_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::HasSubstr;

std::string TestPath(const std::string& name) { return testing::TempDir() + "/" + name; }

// A file with this header and data.
std::string Bytes(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

// Without forcing it to the disk: these tests write many files.
void Put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string Error(const std::string& bytes) {
  const std::string path = TestPath("faulty");
  Put(path, bytes);
  const auto reader = SafetensorsReader::Open(path);
  if (reader.ok()) return "";
  EXPECT_THAT(std::string(reader.status().message()), HasSubstr(path));
  return std::string(reader.status().message());
}

void WriteExample(const std::string& path) {
  const uint8_t flags[3] = {1, 2, 3};
  const float weights[4] = {1.5f, -2, 3, 4};
  const int64_t step = 77;
  auto writer = SafetensorsWriter::Create(path,
                                          {{"flags", DType::kU8, {3}},
                                           {"weights", DType::kF32, {2, 2}},
                                           {"step", DType::kI64, {}},
                                           {"nothing", DType::kF32, {0, 5}}},
                                          {{"name", "value"}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Write(2, &step).ok());
  ASSERT_TRUE((*writer)->Write(0, flags).ok());
  ASSERT_TRUE((*writer)->Write(3, nullptr).ok());
  ASSERT_TRUE((*writer)->Write(1, weights).ok());
  ASSERT_TRUE((*writer)->Publish().ok());
}

TEST(Safetensors, WritesTheGoldenBytes) {
  const std::string path = TestPath("golden");
  const uint16_t values[2] = {0x3f80, 0x4000};
  auto writer = SafetensorsWriter::Create(path, {{"a", DType::kBF16, {2}}}, {{"k", "v"}});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Write(0, values).ok());
  ASSERT_TRUE((*writer)->Publish().ok());
  const std::string header =
      R"({"__metadata__":{"k":"v"},"a":{"data_offsets":[0,4],"dtype":"BF16","shape":[2]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(*ReadFile(path), Bytes(header + padding, std::string("\x80\x3f\x00\x40", 4)));
}

TEST(Safetensors, RoundTripsWithWideTypesFirstAndAligned) {
  const std::string path = TestPath("round_trip");
  WriteExample(path);
  const auto opened = SafetensorsReader::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const SafetensorsReader& reader = **opened;
  EXPECT_EQ(reader.metadata().at("name"), "value");
  EXPECT_EQ(reader.tensors().size(), 4u);
  const auto* weights = reader.Find("weights");
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->dtype, DType::kF32);
  EXPECT_EQ(weights->shape, (Shape{2, 2}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weights->bytes.data()) % 8, 0u);
  float first = 0;
  std::memcpy(&first, weights->bytes.data(), sizeof first);
  EXPECT_EQ(first, 1.5f);
  int64_t step = 0;
  std::memcpy(&step, reader.Find("step")->bytes.data(), sizeof step);
  EXPECT_EQ(step, 77);
  EXPECT_LT(reader.Find("step")->bytes.data(), weights->bytes.data());
  EXPECT_EQ(reader.Find("flags")->bytes[2], 3);
  EXPECT_TRUE(reader.Find("nothing")->bytes.empty());
  EXPECT_EQ(reader.Find("other"), nullptr);
}

TEST(Safetensors, EveryTruncationIsNoticed) {
  const std::string path = TestPath("whole");
  WriteExample(path);
  const std::string whole = *ReadFile(path);
  EXPECT_EQ(Error(whole), "");
  for (size_t size = 0; size < whole.size(); ++size) {
    ASSERT_THAT(Error(whole.substr(0, size)), HasSubstr("truncated")) << size;
  }
  EXPECT_THAT(Error(whole + "x"), HasSubstr("is corrupt: it has"));
}

TEST(Safetensors, FaultsOfTheHeaderAreNamed) {
  EXPECT_EQ(Error(Bytes("{}", "")), "");
  EXPECT_THAT(Error(Bytes("[]", "")), HasSubstr("its header is not JSON"));
  EXPECT_THAT(Error(Bytes("{", "")), HasSubstr("its header is not JSON"));
  EXPECT_THAT(Error("\xff\xff\xff\xff\xff\xff\xff\xff{}"),
              HasSubstr("is truncated or no safetensors"));
  const auto with = [](const std::string& member) {
    return Error(Bytes(absl::StrCat("{\"t\":", member, "}"), "12345678"));
  };
  EXPECT_EQ(with(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "");
  EXPECT_THAT(with("3"), HasSubstr("tensor t is not described"));
  EXPECT_THAT(with(R"({"shape":[2],"data_offsets":[0,8]})"), HasSubstr("t has no dtype"));
  EXPECT_THAT(with(R"({"dtype":"I8","shape":[8],"data_offsets":[0,8]})"),
              HasSubstr("t has dtype I8, which is not supported"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), HasSubstr("no shape"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2]})"), HasSubstr("no data_offsets"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"),
              HasSubstr("no data_offsets"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
              HasSubstr("does not match its shape"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"),
              HasSubstr("does not match its shape"));
  EXPECT_THAT(with(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})"),
              HasSubstr("does not match its shape"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[1,1,1,1,1,1,2],"data_offsets":[0,8]})"),
              HasSubstr("does not match its shape"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"), HasSubstr("truncated"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
              HasSubstr("describes 4"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
              HasSubstr("no tensor holds its byte 0"));
  EXPECT_THAT(with(R"({"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                   R"("u":{"dtype":"U8","shape":[2],"data_offsets":[6,8]})"),
              HasSubstr("overlap at byte 6"));
  EXPECT_THAT(Error(Bytes(R"({"__metadata__":{"a":1}})", "")), HasSubstr("without text"));
  EXPECT_THAT(Error(Bytes(R"({"__metadata__":[]})", "")), HasSubstr("is no object"));
}

TEST(Safetensors, AFlippedByteOfTheHeaderNeverEscapesTheFile) {
  const std::string path = TestPath("flipped");
  WriteExample(path);
  const std::string whole = *ReadFile(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int bit : {0, 3, 6}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      Put(path, changed);
      const auto reader = SafetensorsReader::Open(path);
      if (!reader.ok()) continue;
      int64_t sum = 0;  // reads every byte that the reader hands out
      for (const auto& [key, tensor] : (*reader)->tensors()) {
        for (const uint8_t byte : tensor.bytes) sum += byte;
      }
      EXPECT_GE(sum, 0);
    }
  }
}

}  // namespace
}  // namespace forerun
