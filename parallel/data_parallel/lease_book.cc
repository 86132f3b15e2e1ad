// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/lease_book.h"

#include <algorithm>

namespace forerun {

struct LeaseBook::Lease {
  Lease(std::shared_ptr<LeaseBook> b, int p, absl::string_view h)
      : book(std::move(b)), parameter(p), holder(h) {}
  ~Lease() { book->Close(parameter, this); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const std::shared_ptr<LeaseBook> book;
  const int parameter;
  const std::string holder;
};

std::shared_ptr<const void> LeaseBook::Open(int parameter, absl::string_view holder) {
  auto lease = std::make_shared<Lease>(shared_from_this(), parameter, holder);
  MutexLock lock(&mutex_);
  holders_[parameter].push_back(lease.get());
  return lease;
}

void LeaseBook::Close(int parameter, const Lease* lease) {
  MutexLock lock(&mutex_);
  std::vector<const Lease*>& holders = holders_[parameter];
  holders.erase(std::find(holders.begin(), holders.end(), lease));
}

absl::optional<std::string> LeaseBook::Holder(int parameter) const {
  MutexLock lock(&mutex_);
  if (holders_[parameter].empty()) return absl::nullopt;
  return holders_[parameter][0]->holder;
}

}  // namespace forerun
