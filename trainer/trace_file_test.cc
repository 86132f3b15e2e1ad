// SPDX-License-Identifier: Apache-2.0
#include "trainer/trace_file.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/autograd/parameter.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

nlohmann::json Read(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

class TraceFileTest : public testing::Test {
 protected:
  static ParameterSpec Spec() {
    ParameterSpec spec;
    spec.name = "weight \"quoted\"";
    spec.global_shape = {64};
    spec.box = Box::Whole(spec.global_shape);
    return spec;
  }

  const std::string path_ = testing::TempDir() + "/trace.json";
  const Parameter parameter_{0, Spec()};
  const Parameter* const order_[1] = {&parameter_};
  const BucketPlan plan_{order_, {}};
};

TEST_F(TraceFileTest, AnEmptyOneIsAnEmptyArray) {
  ASSERT_TRUE(TraceFile::Open(path_).ok());
  EXPECT_EQ(Read(path_), nlohmann::json::array());
}

TEST_F(TraceFileTest, EachRankHasFourTracksAndSlicesInMicroseconds) {
  StepTrace trace;
  trace.iteration = 7;
  trace.actions.push_back({{pipeline::ActionKind::kForward, 2, 0}, 1.0, 4.0, 0.5});
  trace.update_begin = 5.0;
  trace.update_end = 6.0;
  TransferEvent gather;
  gather.started = 2.0;
  gather.ended = 3.0;
  gather.wanted = 2.5;
  gather.waited = 0.5;
  trace.gathers.push_back(gather);
  TransferEvent in_flight;
  in_flight.started = 2.0;
  trace.reductions.push_back(in_flight);
  {
    const auto file = *TraceFile::Open(path_);
    file->Add(0, trace, plan_);
    file->Add(3, trace, plan_);
    EXPECT_TRUE(file->status().ok());
  }
  std::set<std::string> tracks;
  nlohmann::json forward, receive, bucket;
  int slices = 0;
  for (const nlohmann::json& event : Read(path_)) {
    if (event["pid"] != 3) continue;
    if (event["name"] == "thread_name") tracks.insert(event["args"]["name"]);
    if (event["name"] == "F2") forward = event;
    if (event["name"] == "receive") receive = event;
    if (event["name"] == "bucket 0") bucket = event;
    slices += event["ph"] == "X" ? 1 : 0;
  }
  EXPECT_EQ(tracks, (std::set<std::string>{"compute", "gather", "reduce", "pipeline"}));
  EXPECT_EQ(slices, 4) << "a message in flight is not drawn";
  EXPECT_EQ(forward["ts"], 1.5e6);
  EXPECT_EQ(forward["dur"], 2.5e6);
  EXPECT_EQ(receive["dur"], 0.5e6);
  EXPECT_EQ(bucket["ts"], 2.0e6);
  EXPECT_EQ(bucket["args"]["wanted"], 2.5e6);
  EXPECT_EQ(bucket["args"]["first parameter"], "weight \"quoted\"");
}

TEST_F(TraceFileTest, SlicesOfATrackDoNotOverlap) {
  StepTrace trace;
  for (const double ended : {3.0, 5.0, 4.0}) {  // the last, of another group, ended before
    TransferEvent gather;
    gather.started = 2.0;
    gather.ended = ended;
    trace.gathers.push_back(gather);
  }
  {
    const auto file = *TraceFile::Open(path_);
    file->Add(0, trace, plan_);
  }
  double end = 0.0;
  int slices = 0;
  for (const nlohmann::json& event : Read(path_)) {
    if (event["name"] != "bucket 0" || event["dur"] == 0.0) continue;
    EXPECT_GE(event["ts"], end);
    EXPECT_EQ(event["args"]["started"], 2.0e6);
    end = event["ts"].get<double>() + event["dur"].get<double>();
    ++slices;
  }
  EXPECT_EQ(slices, 2);
}

TEST_F(TraceFileTest, AFileThatCannotBeWrittenIsNamed) {
  const auto file = TraceFile::Open("/no/such/folder/trace.json");
  EXPECT_EQ(file.status().message(),
            "cannot write trace file /no/such/folder/trace.json: No such file or directory");
}

}  // namespace
}  // namespace forerun
