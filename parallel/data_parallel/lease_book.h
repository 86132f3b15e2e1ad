// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "core/base/mutex.h"

namespace forerun {

// Who holds a lease on which parameter now. Leases end on whatever thread drops the last view, and
// may outlive whoever opened them: the book is shared with every lease. Any thread may call.
class LeaseBook : public std::enable_shared_from_this<LeaseBook> {
 public:
  explicit LeaseBook(int parameters) : holders_(parameters) {}

  // A lease on a parameter (by its dense index), that ends when the returned token does.
  std::shared_ptr<const void> Open(int parameter, absl::string_view holder);

  // One of the holders of the parameter now, if any.
  absl::optional<std::string> Holder(int parameter) const;

 private:
  struct Lease;
  void Close(int parameter, const Lease* lease);

  mutable Mutex mutex_;
  std::vector<std::vector<const Lease*>> holders_ ABSL_GUARDED_BY(mutex_);  // by parameter
};

}  // namespace forerun
