#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What ./test and ./train share: installs the packages that third_party/packages.txt lists, finds Bazel.
# Sourced from the root of the repository.

say() { printf '\n== %s\n' "$*"; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

listed_packages() { awk '!/^#/ && NF { print $1 }' third_party/packages.txt; }

# Prints the listed packages that are not installed.
missing_packages() {
  local package
  for package in $(listed_packages); do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      printf '%s ' "$package"
  done
}

# Installs what is missing, or ends with one sentence that says what to install.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "This is not a Debian-like system: the build will name any library that it misses."
    return
  fi
  local missing
  missing=$(missing_packages)
  [[ -z $missing ]] && return
  local root=()
  if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null ||
      die "these packages are missing and only root can install them: apt-get install $missing"
    root=(sudo)
    [[ -t 0 ]] || root+=(-n)
  fi
  say "Installing packages: $missing"
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600)
  "${apt[@]}" update >/dev/null || printf 'The list of packages could not be renewed; using the old one.\n' >&2
  # shellcheck disable=SC2086  # a list of words
  "${apt[@]}" install -y --no-install-recommends $missing >/dev/null ||
    die "these packages could not be installed: apt-get install $missing"
}

# Sets the array `bazel`: the command, from $BAZEL (words) or the system's.
find_bazel() {
  if [[ -n ${BAZEL:-} ]]; then
    read -ra bazel <<<"$BAZEL"
  elif [[ -x /usr/bin/bazel ]]; then
    bazel=(/usr/bin/bazel)
  else
    bazel=(bazel)
  fi
  command -v "${bazel[0]}" >/dev/null || die "Bazel is missing: apt-get install bazel-bootstrap"
}

# Sets the array `progress`: Bazel's live display on a terminal, readable lines elsewhere.
choose_progress() {
  progress=()
  [[ -t 2 ]] || progress=(--curses=no --color=no --show_progress_rate_limit=60)
}

# Prints the versions of the compilers, of Bazel and of every system library; ends if one is missing.
print_versions() {
  say "Versions"
  g++ --version | head -n 1
  clang-14 --version 2>/dev/null | head -n 1
  # Debian's Bazel does not know its own version.
  dpkg-query -W -f='bazel ${Version}\n' bazel-bootstrap 2>/dev/null || "${bazel[@]}" --version
  # What is installed and which sources there are may have changed since the last run.
  "${bazel[@]}" sync --noshow_progress --ui_event_filters=error --only=system --only=source_tree ||
    die "a system library is missing (see above)"
  "${bazel[@]}" build "${progress[@]}" --noshow_progress \
    --ui_event_filters=error --show_result=0 @system//:versions.txt || die "a system library is missing (see above)"
  cat "$("${bazel[@]}" info output_base 2>/dev/null)/external/system/versions.txt"
}
