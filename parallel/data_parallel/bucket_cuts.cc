// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/bucket_cuts.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/tensor/dtype.h"

namespace forerun {
namespace {

// A difference of exposed time that is not worth more messages.
constexpr double kNegligible = 1.001;

struct BucketCost {
  double update = 0.0;
  double gather = 0.0;
  double reduce = 0.0;
  double wanted = 0.0;   // U + N
  double awaited = 0.0;  // b N: backward compute that still follows when it is ready
};

// A way to cut what lies before a place.
struct Way {
  double finish = 0.0;  // F of the last bucket
  double stall = 0.0;
  double reduced = 0.0;  // P: the sum of reduction times
  double tail = 0.0;
  double least = 0.0;  // stall plus tail of the whole model: it will not be less
  int from = 0;        // place of the cut before, and the way to that
  int parent = 0;

  double exposed() const { return stall + tail; }
  bool Beats(const Way& other) const {
    return finish <= other.finish && stall <= other.stall && reduced <= other.reduced &&
           tail <= other.tail;
  }
};

// Those that no other beats; of too many, those that promise most.
class Front {
 public:
  void Add(const Way& way) {
    for (const Way& kept : ways_) {
      if (kept.Beats(way)) return;
    }
    ways_.erase(std::remove_if(ways_.begin(), ways_.end(),
                               [&](const Way& kept) { return way.Beats(kept); }),
                ways_.end());
    ways_.push_back(way);
    if (ways_.size() == 2 * kMostWays) Trim();
  }
  void Trim() {
    if (ways_.size() <= kMostWays) return;
    const auto promises = [](const Way& a, const Way& b) {
      return std::make_pair(a.least, a.reduced) < std::make_pair(b.least, b.reduced);
    };
    std::sort(ways_.begin(), ways_.end(), promises);
    ways_.resize(kMostWays);
  }
  const std::vector<Way>& ways() const { return ways_; }

 private:
  static constexpr size_t kMostWays = 64;

  std::vector<Way> ways_;
};

struct Problem {
  absl::Span<const Parameter* const> order;
  const ForwardTimeline& timeline;
  const Costs& costs;
  const BucketPlanOptions& options;
  std::vector<bool> place;  // by place, 0 to order.size(): whether a cut may be there
  // By place: the update of all parameters before it; gather and reduction of all from there on,
  // at the least, in one message without padding.
  std::vector<double> updated, to_gather, to_reduce;

  int size() const { return static_cast<int>(order.size()); }
  double Wanted(int parameter) const { return updated.back() + timeline.before[parameter]; }
  double Awaited(int parameter) const { return kBackwardOverForward * timeline.before[parameter]; }
};

// The parameters from one place on, and the buckets that they give.
class Segment {
 public:
  Segment(const Problem& problem, int begin) : problem_(problem), begin_(begin), end_(begin) {}

  int end() const { return end_; }
  // Whether a cut must be here.
  bool Closed() const {
    if (end_ == problem_.size()) return true;
    return end_ > begin_ && (LiesAlone(end_) || LiesAlone(end_ - 1));
  }
  void Extend() {
    const Parameter& parameter = *problem_.order[end_];
    if (LiesAlone(end_)) {
      AddAlone(parameter);
    } else {
      Append(parameter);
    }
    ++end_;
  }
  // Whether a bucket of several parameters has become too large.
  bool TooLarge() const { return too_large_; }
  std::vector<BucketCost> BucketCosts() const {
    std::vector<BucketCost> costs;
    for (const Open& bucket : buckets_) costs.push_back(CostOf(bucket));
    return costs;
  }

 private:
  struct Open {
    DType dtype;
    int first;             // parameter
    int64_t numel = 0;     // filled
    int64_t elements = 0;  // without padding
  };

  bool LiesAlone(int parameter) const {
    return problem_.options.LiesAlone(*problem_.order[parameter]);
  }

  void AddAlone(const Parameter& parameter) {
    const int64_t most = problem_.options.PieceNumel(parameter);
    for (int64_t left = parameter.numel(); left > 0; left -= most) {
      const int64_t numel = std::min(left, most);
      buckets_.push_back({parameter.dtype(), end_, numel, numel});
    }
  }

  void Append(const Parameter& parameter) {
    auto open = std::find_if(buckets_.begin(), buckets_.end(),
                             [&](const Open& b) { return b.dtype == parameter.dtype(); });
    if (open == buckets_.end()) {
      buckets_.push_back({parameter.dtype(), end_});
      open = buckets_.end() - 1;
    }
    open->numel = problem_.options.NextBegin(open->numel) + parameter.numel();
    open->elements += parameter.numel();
    const int64_t closed = problem_.options.ClosedNumel(open->numel);
    too_large_ = too_large_ || (open->first < end_ &&
                                closed * SizeOf(open->dtype) > problem_.options.max_bucket_bytes);
  }

  BucketCost CostOf(const Open& bucket) const {
    const Costs& costs = problem_.costs;
    const int64_t numel = problem_.options.ClosedNumel(bucket.numel);
    return {costs.update * static_cast<double>(bucket.elements) / problem_.options.shards,
            costs.gather.Seconds(numel * SizeOf(bucket.dtype)),
            costs.reduce.Seconds(numel * SizeOf(DType::kF32)), problem_.Wanted(bucket.first),
            problem_.Awaited(bucket.first)};
  }

  const Problem& problem_;
  const int begin_;
  int end_;
  bool too_large_ = false;
  std::vector<Open> buckets_;  // in order of first use
};

// The best cuts for one limit of bucket bytes.
class Program {
 public:
  explicit Program(const Problem& problem) : problem_(problem), fronts_(problem.size() + 1) {
    fronts_[0].Add({});
    for (int place = 0; place < problem_.size(); ++place) {
      if (problem_.place[place]) ExtendFrom(place);
    }
    const std::vector<Way>& ways = fronts_.back().ways();
    double least = ways[0].exposed();
    for (const Way& way : ways) least = std::min(least, way.exposed());
    for (const Way& way : ways) {
      if (way.exposed() > least * kNegligible) continue;
      if (best_ == nullptr || way.reduced < best_->reduced) best_ = &way;
    }
  }

  double exposed() const { return best_->exposed(); }
  std::vector<int> Cuts() const {
    std::vector<int> cuts;
    for (const Way* way = best_; way->from > 0; way = &fronts_[way->from].ways()[way->parent]) {
      cuts.push_back(way->from);
    }
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
  }

 private:
  // Up to the next place whatever its size, and further while buckets stay within the limit.
  void ExtendFrom(int begin) {
    fronts_[begin].Trim();
    Segment segment(problem_, begin);
    bool reached = false;
    while (!segment.Closed()) {
      segment.Extend();
      if (reached && segment.TooLarge()) break;
      if (!problem_.place[segment.end()]) continue;
      AddWays(begin, segment.end(), segment.BucketCosts());
      reached = true;
    }
  }

  void AddWays(int begin, int end, const std::vector<BucketCost>& buckets) {
    const std::vector<Way>& ways = fronts_[begin].ways();
    for (size_t w = 0; w < ways.size(); ++w) {
      Way way = ways[w];
      way.from = begin;
      way.parent = static_cast<int>(w);
      double updated = problem_.updated[begin];
      for (const BucketCost& bucket : buckets) {
        updated += bucket.update;
        way.finish = std::max(way.finish, updated) + bucket.gather;
        way.stall = std::max(way.stall, way.finish - bucket.wanted);
        way.reduced += bucket.reduce;
        way.tail = std::max(way.tail, way.reduced - bucket.awaited);
      }
      way.finish = std::max(way.finish, updated);  // no later gather ends before that
      way.least = LeastExposed(way, end);
      fronts_[end].Add(way);
    }
  }

  // The last bucket, wherever it begins, is wanted no later than its last parameter.
  double LeastExposed(const Way& way, int place) const {
    const int last = problem_.size() - 1;
    return std::max(way.stall, way.finish + problem_.to_gather[place] - problem_.Wanted(last)) +
           std::max(way.tail, way.reduced + problem_.to_reduce[place] - problem_.Awaited(last));
  }

  const Problem& problem_;
  std::vector<Front> fronts_;  // by place
  const Way* best_ = nullptr;
};

// All of a small model's. Otherwise as far apart as an eighth of the bytes before, for a first
// bucket that nothing hides is better small, and not farther than 1/kMostPlaces of all.
std::vector<bool> Places(absl::Span<const Parameter* const> order,
                         const BucketPlanOptions& options) {
  std::vector<bool> places(order.size() + 1, true);
  if (order.size() <= static_cast<size_t>(kMostPlaces)) return places;
  const auto bytes = [&](size_t i) {
    return options.NextBegin(order[i]->numel()) * SizeOf(order[i]->dtype());
  };
  int64_t total = 0;
  for (size_t i = 0; i < order.size(); ++i) total += bytes(i);
  const int64_t most = std::min(total / kMostPlaces, options.max_bucket_bytes);
  int64_t run = bytes(0), before = 0;
  for (size_t i = 1; i < order.size(); ++i) {
    const bool alone = options.LiesAlone(*order[i]) || options.LiesAlone(*order[i - 1]);
    places[i] = alone || run + bytes(i) > std::min(most, before / 8);
    if (places[i]) before += std::exchange(run, 0);
    run += bytes(i);
  }
  return places;
}

Problem MakeProblem(absl::Span<const Parameter* const> order, const ForwardTimeline& timeline,
                    const Costs& costs, const BucketPlanOptions& options) {
  Problem problem{order, timeline, costs, options, Places(order, options), {0.0}, {}, {}};
  for (const Parameter* parameter : order) {
    const double update = costs.update * static_cast<double>(parameter->numel()) / options.shards;
    problem.updated.push_back(problem.updated.back() + update);
  }
  problem.to_gather.assign(order.size() + 1, 0.0);
  problem.to_reduce.assign(order.size() + 1, 0.0);
  int64_t gathered = 0, reduced = 0;  // bytes
  for (size_t place = order.size(); place-- > 0;) {
    gathered += order[place]->numel() * SizeOf(order[place]->dtype());
    reduced += order[place]->numel() * SizeOf(DType::kF32);
    problem.to_gather[place] = costs.gather.Seconds(gathered);
    problem.to_reduce[place] = costs.reduce.Seconds(reduced);
  }
  return problem;
}

}  // namespace

BucketPlanOptions WithBestCuts(absl::Span<const Parameter* const> first_use_order,
                               const ForwardTimeline& timeline, const Costs& costs,
                               BucketPlanOptions options) {
  FR_CHECK(!options.bucket_numel.has_value()) << "a bucket size was asked for";
  FR_CHECK_EQ(timeline.before.size(), first_use_order.size()) << "parameters of the timeline";
  BucketPlanOptions best = options;
  double least = 0.0;
  for (int64_t limit : {options.max_bucket_bytes, int64_t{16} << 20, int64_t{4} << 20}) {
    if (limit > options.max_bucket_bytes) continue;
    BucketPlanOptions tried = options;
    tried.max_bucket_bytes = limit;
    const Problem problem = MakeProblem(first_use_order, timeline, costs, tried);
    const Program program(problem);
    if (limit != options.max_bucket_bytes && program.exposed() * kNegligible >= least) continue;
    least = program.exposed();
    best = tried;
    best.cuts = program.Cuts();
  }
  return best;
}

}  // namespace forerun
