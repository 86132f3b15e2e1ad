// SPDX-License-Identifier: Apache-2.0
#include "trainer/arguments.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What a run cannot do without.
constexpr char kNeeded[] =
    "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
    "--micro-batch-size 2 --train-iters 10 --lr 1e-3 --mock-data";

absl::StatusOr<Arguments> Parse(absl::string_view flags) {
  const std::vector<std::string> args = absl::StrSplit(flags, ' ', absl::SkipEmpty());
  return ParseArguments(args);
}

Arguments Parsed(absl::string_view flags) {
  const absl::StatusOr<Arguments> arguments = Parse(absl::StrCat(kNeeded, " ", flags));
  EXPECT_TRUE(arguments.ok()) << arguments.status();
  return arguments.ok() ? *arguments : Arguments{};
}

// The sentence that refuses these flags beside the needed ones.
std::string Refusal(absl::string_view flags) {
  const absl::Status status = Parse(absl::StrCat(kNeeded, " ", flags)).status();
  EXPECT_FALSE(status.ok()) << flags;
  const std::string message(status.message());
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
  return message;
}

TEST(Arguments, DefaultsAreThoseOfMegatronLm) {
  const Arguments a = Parsed("");
  EXPECT_EQ(a.training.lr_decay_style, "linear");
  EXPECT_EQ(a.training.min_lr, 0.0);
  EXPECT_EQ(a.training.lr_warmup_iters, 0);
  EXPECT_EQ(a.training.clip_grad, 1.0);
  EXPECT_EQ(a.training.weight_decay, 0.01);
  EXPECT_EQ(a.training.adam_beta1, 0.9);
  EXPECT_EQ(a.training.adam_beta2, 0.999);
  EXPECT_EQ(a.training.adam_eps, 1e-8);
  EXPECT_EQ(a.training.seed, 1234);
  EXPECT_EQ(a.training.eval_interval, 1000);
  EXPECT_EQ(a.training.eval_iters, 100);
  EXPECT_EQ(a.training.log_interval, 100);
  EXPECT_EQ(a.model.init_method_std, 0.02);
  EXPECT_EQ(a.model.attention_dropout, 0.1);
  EXPECT_EQ(a.model.hidden_dropout, 0.1);
  EXPECT_EQ(a.model.norm_epsilon, 1e-5);
  EXPECT_EQ(a.model.make_vocab_size_divisible_by, 128);
  EXPECT_EQ(a.model.position_embedding_type, "learned_absolute");
  EXPECT_EQ(a.model.normalization, "LayerNorm");
  EXPECT_EQ(a.data.split, "969,30,1");
  EXPECT_EQ(a.parallel.distributed_timeout_minutes, 10.0);
  EXPECT_FALSE(a.parallel.use_distributed_optimizer);
  EXPECT_FALSE(a.model.bf16);
}

TEST(Arguments, DataPathTakesPrefixesAndWeights) {
  const Arguments a = Parsed("--data-path 0.3 /d/a 0.7 /d/b --split 1");
  EXPECT_THAT(a.data.blend.prefixes, ElementsAre("/d/a", "/d/b"));
  EXPECT_THAT(a.data.blend.weights, ElementsAre(0.3, 0.7));
  EXPECT_EQ(a.data.split, "1");
  EXPECT_THAT(Parsed("--data_path=/d/a").data.blend.prefixes, ElementsAre("/d/a"));
  // Of a repeated flag the last one counts, as with all others.
  EXPECT_THAT(Parsed("--data-path /a /b --data-path /c").data.blend.prefixes, ElementsAre("/c"));
  EXPECT_THAT(Refusal("--data-path 0.3 a x b"), HasSubstr("the weight 'x' of b"));
  EXPECT_THAT(Refusal("--data-path 0.3 a -1 b"), HasSubstr("-1"));
  EXPECT_THAT(Refusal("--data-path"), HasSubstr("--data-path needs a value"));
  EXPECT_EQ(Refusal("--dataloader-type external"),
            "--dataloader-type external is not single or cyclic");
}

TEST(Arguments, WhatIsNotGivenFollowsFromTheRest) {
  const Arguments a = Parsed("--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2");
  EXPECT_EQ(a.parallel.world_size, 4);
  EXPECT_EQ(a.parallel.data_parallel_size(), 1);
  EXPECT_GE(a.parallel.threads_per_rank, 1);
  EXPECT_EQ(a.training.global_batch_size, 2);
  EXPECT_EQ(a.microbatches(), 1);
  EXPECT_EQ(a.training.lr_decay_iters, 10);
  EXPECT_EQ(a.model.ffn_hidden_size, 4 * 64);
  EXPECT_EQ(a.model.max_position_embeddings, 32);
  EXPECT_EQ(a.model.num_query_groups, 4);
  EXPECT_EQ(Parsed("--swiglu").model.ffn_hidden_size, 192);  // 170.67 rounded up to 64
}

TEST(Arguments, DashesUnderscoresSpacesAndEqualSignsAreTheSame) {
  for (const char* flags : {"--global-batch-size 8", "--global_batch_size 8",
                            "--global-batch-size=8", "--global_batch_size=8"}) {
    EXPECT_EQ(Parsed(flags).training.global_batch_size, 8) << flags;
  }
  EXPECT_TRUE(Parsed("--use_distributed_optimizer").parallel.use_distributed_optimizer);
}

TEST(Arguments, ABucketSizeIsANumberOrAuto) {
  EXPECT_FALSE(Parsed("").parallel.ddp_bucket_size.has_value());
  EXPECT_EQ(Parsed("--ddp-bucket-size 4096").parallel.ddp_bucket_size, 4096);
  EXPECT_FALSE(
      Parsed("--ddp-bucket-size 4096 --ddp-bucket-size=auto").parallel.ddp_bucket_size.has_value());
  EXPECT_EQ(Refusal("--ddp-bucket-size large"), "--ddp-bucket-size large is not a number");
}

TEST(Arguments, TheLastOfARepeatedFlagCounts) {
  EXPECT_EQ(Parsed("--lr 2e-3 --lr=3e-3").training.lr, 3e-3);
  EXPECT_TRUE(Parsed("--bf16 --bf16").model.bf16);
}

TEST(Arguments, NoValueIsTakenForAnother) {
  for (const char* flag : {"--save", "--load", "--metrics-file", "--trace-file", "--lr", "--seed",
                           "--dump-forward-order", "--split", "--data-path"}) {
    std::vector<std::string> args = absl::StrSplit(kNeeded, ' ');
    args.insert(args.end(), {flag, ""});
    EXPECT_EQ(ParseArguments(args).status().message(), absl::StrCat(flag, " has an empty value"));
  }
  EXPECT_EQ(Refusal("--seed 18446744073709551616"),
            "--seed 18446744073709551616 is not a whole number in the range of this flag");
  EXPECT_EQ(Refusal("--num-layers 2.5"),
            "--num-layers 2.5 is not a whole number in the range of this flag");
  EXPECT_EQ(Refusal("--lr 1e400"), "--lr 1e400 is not a number of finite size");
  EXPECT_EQ(Refusal("--bf16=maybe"), "--bf16 takes no value but true or false");
  EXPECT_EQ(Refusal("--num-query-groups 1"), "--num-query-groups 1 needs --group-query-attention");
  EXPECT_EQ(Parsed("--group-query-attention").model.num_query_groups, 1);
  EXPECT_THAT(Refusal("--tokenizer-type Wordy --vocab-size 9"), HasSubstr("no tokenizer 'Wordy'"));
}

TEST(Arguments, WhatCannotBePlannedIsSaidWithItsLimit) {
  EXPECT_EQ(Refusal("--micro-batch-size 65537"), "--micro-batch-size 65537 is not at most 65536");
  EXPECT_EQ(Refusal("--num-layers 100000 --pipeline-model-parallel-size 4"),
            "--num-layers 100000 gives a pipeline stage 25000 layers, which can have 16384");
}

TEST(Arguments, HelpShowsDefaults) {
  const std::string help(Parse("--help").status().message());
  for (const char* shown : {"--weight-decay FLOAT=0.01", "--seed INT=1234", "--split TEXT=969,30,1",
                            "--adam-eps FLOAT=1e-08", "--lr FLOAT REQUIRED"}) {
    EXPECT_THAT(help, HasSubstr(shown));
  }
}

TEST(Arguments, AcceptedFlagsWithoutEffectAreSaid) {
  const Arguments a = Parsed(
      "--use-flash-attn --use_mcore_models --no-gradient-accumulation-fusion --num-workers 2");
  EXPECT_THAT(a.without_effect,
              testing::UnorderedElementsAre("--use-flash-attn", "--use-mcore-models",
                                            "--no-gradient-accumulation-fusion", "--num-workers"));
  EXPECT_THAT(Parsed("").without_effect, ElementsAre());
}

TEST(Arguments, RelativePathsMeanTheUsersDirectory) {
  setenv("BUILD_WORKING_DIRECTORY", "/home/user", 1);
  const Arguments a = Parsed("--save out --trace-file /t.json --metrics-file m.jsonl");
  EXPECT_THAT(Refusal("--load in"), HasSubstr("/home/user/in holds no checkpoint"));
  unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_EQ(a.checkpoint.save, "/home/user/out");
  EXPECT_EQ(a.output.trace_file, "/t.json");
  EXPECT_EQ(a.output.metrics_file, "/home/user/m.jsonl");
}

TEST(Arguments, CheckpointFlagsThatMeanNothingTogetherAreSaid) {
  for (const char* flag : {"--ckpt-step 3", "--finetune", "--use-checkpoint-args",
                           "--use-checkpoint-opt_param-scheduler"}) {
    EXPECT_THAT(Refusal(flag), HasSubstr(" needs --load"));
  }
  EXPECT_EQ(Refusal("--async-save"), "--async-save needs --save");
  EXPECT_EQ(Refusal("--save out --save-interval 4 --save-retain-interval 6"),
            "--save-retain-interval 6 is not a multiple of --save-interval 4");
  EXPECT_THAT(Refusal("--load in --finetune --use-checkpoint-opt_param-scheduler"),
              HasSubstr("--finetune takes this run's schedule"));
}

TEST(Arguments, HelpIsNotFoundWithTheText) {
  const absl::Status status = Parse("--help").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--overlap-param-gather"));
}

TEST(Arguments, AnUnknownFlagIsNamed) {
  EXPECT_EQ(Refusal("--colour red"), "there is no flag --colour");
  EXPECT_EQ(Refusal("--colour=red"), "there is no flag --colour");
  EXPECT_EQ(Refusal("red"), "the argument red belongs to no flag");
  EXPECT_EQ(Refusal("-x"), "there is no flag -x");
  // Before what follows from it: the flag that was meant is missing.
  EXPECT_EQ(Parse("--num-layer 2").status().message(), "there is no flag --num-layer");
}

TEST(Arguments, AMissingFlagIsNamed) {
  EXPECT_EQ(Parse("--num-layers 2").status().message(), "--hidden-size is required");
  const std::string needed = kNeeded;
  EXPECT_EQ(Parse(needed.substr(0, needed.find(" --mock-data"))).status().message(),
            "either --data-path or --mock-data is needed");
}

TEST(Arguments, AValueThatIsNoNumberIsNamed) {
  EXPECT_EQ(Refusal("--num-layers many"), "--num-layers many is not a number");
  EXPECT_EQ(Refusal("--lr=fast"), "--lr fast is not a number");
  EXPECT_EQ(Refusal("--num-layers 2.5"),
            "--num-layers 2.5 is not a whole number in the range of this flag");
  EXPECT_EQ(Refusal("--world-size 9999999999"),
            "--world-size 9999999999 is not a whole number in the range of this flag");
  EXPECT_EQ(Refusal("--lr"), "--lr needs a value");
  EXPECT_THAT(Refusal("--bf16=maybe"), HasSubstr("--bf16"));
}

TEST(Arguments, NumbersOutOfRangeAreNamed) {
  for (const char* flag : {"--num-layers",
                           "--hidden-size",
                           "--num-attention-heads",
                           "--seq-length",
                           "--micro-batch-size",
                           "--train-iters",
                           "--tensor-model-parallel-size",
                           "--pipeline-model-parallel-size",
                           "--world-size",
                           "--threads-per-rank",
                           "--decoder-first-pipeline-num-layers",
                           "--decoder-last-pipeline-num-layers",
                           "--ffn-hidden-size",
                           "--num-query-groups",
                           "--max-position-embeddings",
                           "--rotary-base",
                           "--vocab-size",
                           "--make-vocab-size-divisible-by",
                           "--global-batch-size",
                           "--lr-decay-iters",
                           "--lr-warmup-iters",
                           "--eval-interval",
                           "--eval-iters",
                           "--log-interval",
                           "--save-interval",
                           "--ddp-bucket-size",
                           "--param-gather-window-mb",
                           "--seed"}) {
    EXPECT_THAT(Refusal(absl::StrCat(flag, " -1")),
                HasSubstr(absl::StrCat(flag, " -1 is not at least ")));
  }
  for (const char* flag :
       {"--lr", "--min-lr", "--clip-grad", "--weight-decay", "--adam-beta1", "--adam-beta2",
        "--adam-eps", "--init-method-std", "--norm-epsilon", "--attention-dropout",
        "--hidden-dropout", "--distributed-timeout-minutes"}) {
    for (const char* value : {"nan", "inf", "-1"}) {
      EXPECT_THAT(Refusal(absl::StrCat(flag, " ", value)),
                  HasSubstr(absl::StrCat(flag, " ", value, " is not a number ")));
    }
  }
  EXPECT_EQ(Refusal("--ddp-bucket-size 0"), "--ddp-bucket-size 0 is not at least 1");
  EXPECT_EQ(Refusal("--adam-beta2 1"), "--adam-beta2 1 is not a number from 0 to below 1");
  EXPECT_EQ(Refusal("--num-layers 3000000000"),
            "--num-layers 3000000000 is not at most 2147483647");
  EXPECT_EQ(Refusal("--threads-per-rank 100000"), "--threads-per-rank 100000 is not at most 1024");
  EXPECT_EQ(Refusal("--split a,b"), "--split a,b: 'a' is not a number of 0 or more");
  EXPECT_EQ(Refusal("--min-lr 1"), "--min-lr 1 is above --lr 0.001");
}

TEST(Arguments, LayoutsThatDoNotDivideAreNamed) {
  EXPECT_EQ(Refusal("--world-size 6 --tensor-model-parallel-size 2 "
                    "--pipeline-model-parallel-size 2"),
            "--world-size 6 is not a multiple of tensor size 2 x pipeline size 2");
  EXPECT_THAT(Refusal("--tensor-model-parallel-size 2000000 "
                      "--pipeline-model-parallel-size 2000000"),
              HasSubstr("tensor size 2000000 x pipeline size 2000000 is above the 16777216 ranks"));
  EXPECT_EQ(Refusal("--world-size 2 --global-batch-size 6"),
            "--global-batch-size 6 is not a multiple of micro batch size 2 x data-parallel size 2");
  EXPECT_THAT(Refusal("--sequence-parallel --tensor-model-parallel-size 2"),
              HasSubstr("--sequence-parallel is not supported yet"));
  EXPECT_TRUE(Parsed("--sequence-parallel").parallel.sequence_parallel);  // the identity
}

TEST(Arguments, NamesThatAreNotKnownListThoseThatAre) {
  EXPECT_THAT(Refusal("--position-embedding-type alibi"), HasSubstr("learned_absolute or rope"));
  EXPECT_THAT(Refusal("--normalization BatchNorm"), HasSubstr("LayerNorm or RMSNorm"));
  EXPECT_THAT(Refusal("--lr-decay-style wavy"), HasSubstr("wavy"));
  EXPECT_THAT(Refusal("--pipeline-schedule backwards"), HasSubstr("backwards"));
  EXPECT_THAT(Refusal("--registration-order sideways"),
              HasSubstr("unknown registration order 'sideways'"));
}

TEST(Arguments, FullRecomputeIsWhatMegatronLmMeansByIt) {
  EXPECT_FALSE(Parsed("").recompute.full());
  const RecomputeArguments a = Parsed(
                                   "--recompute-granularity full --recompute-method block "
                                   "--recompute-num-layers 2")
                                   .recompute;
  EXPECT_TRUE(a.full());
  EXPECT_EQ(a.method, "block");
  EXPECT_EQ(a.num_layers, 2);
}

TEST(Arguments, ARecomputeThatIsNotWholeIsNamed) {
  EXPECT_EQ(Refusal("--recompute-granularity selective"),
            "--recompute-granularity selective is not supported");
  EXPECT_EQ(Refusal("--recompute-granularity half"), "--recompute-granularity half is not full");
  EXPECT_EQ(Refusal("--recompute-method block"),
            "--recompute-method needs --recompute-granularity full");
  EXPECT_EQ(Refusal("--recompute-num-layers 1"),
            "--recompute-num-layers needs --recompute-granularity full");
  const std::string full = "--recompute-granularity full ";
  EXPECT_EQ(Refusal(full + "--recompute-num-layers 1"),
            "--recompute-granularity full needs --recompute-method");
  EXPECT_EQ(Refusal(full + "--recompute-method block"),
            "--recompute-granularity full needs --recompute-num-layers");
  EXPECT_EQ(Refusal(full + "--recompute-method stripes --recompute-num-layers 1"),
            "--recompute-method stripes is not uniform or block");
  for (const char* layers : {"-1", "0", "2"}) {  // two layers over two stages
    EXPECT_EQ(Refusal(absl::StrCat(full, "--recompute-method block --recompute-num-layers ", layers,
                                   " --pipeline-model-parallel-size 2")),
              absl::StrCat("--recompute-num-layers ", layers,
                           " is not from 1 to 1, the layers of a stage"));
  }
}

TEST(Arguments, FlagsThatNeedEachOtherSaySo) {
  EXPECT_EQ(Refusal("--save-interval 5"), "--save-interval needs --save");
  EXPECT_EQ(Refusal("--overlap-param-gather --overlap-grad-reduce"),
            "--overlap-param-gather needs --use-distributed-optimizer");
  EXPECT_EQ(Refusal("--overlap-param-gather --use-distributed-optimizer"),
            "--overlap-param-gather needs --overlap-grad-reduce");
  EXPECT_THAT(Refusal("--lr-warmup-iters 10"), HasSubstr("--lr-warmup-iters 10 is not below"));
}

}  // namespace
}  // namespace forerun
