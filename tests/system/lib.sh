# Fresh Debian 12 roots and booted containers of them. Sourced by the scripts beside it; needs root, and
# nothing else of the host: where systemd is not the host's PID 1 (a build container, a bare virtual machine)
# systemd-nspawn runs without registering the machine and keeps to the cgroup that it is started in.

cache=${RMQD_TEST_CACHE:-/var/cache/rmqd-test}
suite=bookworm
passed=0 failed=0
# No silent end: set -e says where, and the way there.
set -E
trap 'say "$(basename "$0"): line $LINENO of ${FUNCNAME[*]:0}: failed with $?: $BASH_COMMAND"' ERR
output=$(mktemp)

say() { printf '%s\n' "$@" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }

# check WHAT COMMAND...: one checked fact; its output is shown if it fails. COMMAND may be a function.
check() {
  local what=$1
  shift
  if "$@" >"$output" 2>&1; then
    passed=$((passed + 1))
    say "ok      $what"
  else
    failed=$((failed + 1))
    say "FAILED  $what"
    tail -20 "$output" | sed 's/^/        /' >&2
  fi
}

# until_true SECONDS COMMAND...: tries until it succeeds.
until_true() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < until)) || { "$@"; return; }
    sleep 0.2
  done
}

# closing_line: the last line of a test, and its end when it has failed.
closing_line() {
  echo "$passed passed, $failed failed"
  ((passed > 0 && failed == 0)) || exit 1
}

# base_root NAME PACKAGES: path of a pristine root, made by debootstrap when it is not in the cache. It
# fetches packages the way the host does (proxy and the like from the host's apt configuration).
base_root() {
  local base=$cache/$1 packages=$2
  if [[ $(cat "$base.complete" 2>&1) != "$packages" ]]; then
    say "making $base"
    rm -rf "$base" "$base.complete"
    mkdir -p "$cache"
    debootstrap --variant=minbase ${packages:+--include="$packages"} "$suite" "$base" >"$base.log" 2>&1 ||
      { tail -20 "$base.log" >&2; return 1; }
    apt-config dump Acquire >"$base/etc/apt/apt.conf.d/90host"
    echo "$packages" >"$base.complete"
  fi
  echo "$base"
}

# fetch ROOT APT-ARGUMENT...: downloads packages, and what they depend on, into the root without installing
# them. What was downloaded is kept in the cache for the next time.
fetch() {
  local root=$1 archives=$1/var/cache/apt/archives
  shift
  mkdir -p "$cache/archives"
  find "$cache/archives" -name '*.deb' -exec cp -t "$archives" {} +
  in_root "$root" apt-get -qq update &&
    in_root "$root" apt-get -qq -y --download-only install "$@" || return
  find "$archives" -maxdepth 1 -name '*.deb' -exec cp -u -t "$cache/archives" {} +
}

# in_root ROOT COMMAND...: runs in a root that is not booted, with the host's network.
in_root() {
  local root=$1
  shift
  systemd-nspawn --quiet --directory="$root" --register=no --keep-unit --as-pid2 --console=pipe \
    --resolv-conf=replace-host --setenv=DEBIAN_FRONTEND=noninteractive "$@" </dev/null
}

# boot ROOT LOG: boots a container with a network of its own (loopback only); sets `leader`, its PID 1.
boot() {
  local root=$1 log=$2 outside=(--keep-unit) hierarchy
  [[ -d /run/systemd/system ]] && outside=()
  # A cgroup of our own, so that two containers do not share one.
  (
    for hierarchy in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
      [[ -w $hierarchy/cgroup.procs && ${#outside[@]} -gt 0 ]] || continue
      mkdir -p "$hierarchy/rmqd-test-$$" && echo "$BASHPID" >"$hierarchy/rmqd-test-$$/cgroup.procs"
    done
    exec setsid systemd-nspawn --quiet --directory="$root" --machine="rmqd-test-$$" --boot --register=no \
      "${outside[@]}" --private-network --resolv-conf=off --link-journal=no --console=pipe
  ) </dev/null >"$log" 2>&1 &
  nspawn=$!
  until_true 60 find_leader && until_true 120 booted ||
    { say "the container does not boot:"; cat "$log" >&2; return 1; }
}

# Before the container's PID 1 there is a short-lived child that sets it up. It may be gone when it is looked
# at: read fails then, where $(<...) would end the script under set -e, even in a condition.
find_leader() {
  local name=
  leader=$(cut -d' ' -f1 "/proc/$nspawn/task/$nspawn/children")
  [[ -n $leader ]] && read -r name <"/proc/$leader/comm" && [[ $name == systemd ]]
}

# A unit of the base system may have failed on a loaded host: that is not what is tested.
booted() { inside systemctl is-system-running | grep -xE 'running|degraded'; }

# inside COMMAND...: runs in the booted container.
inside() {
  nsenter --target "$leader" --all -- /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@" </dev/null
}

# power_off: orderly shutdown, then nothing of the container is left. Fails if it had to be killed.
power_off() {
  [[ -n ${nspawn:-} ]] || return 0
  local waited=0 killed=0
  kill -TERM "$nspawn" 2>/dev/null || true
  while kill -0 "$nspawn" 2>/dev/null; do
    if ((++waited == 900)); then
      # It may end by itself at this very moment.
      kill -KILL "$nspawn" 2>/dev/null && killed=1 || true
    fi
    sleep 0.1
  done
  wait "$nspawn" 2>/dev/null || true
  nspawn=
  find /sys/fs/cgroup -depth -type d -path "*/rmqd-test-$$*" -exec rmdir {} + 2>/dev/null || true
  ((killed == 0)) || { say "the container did not stop within 90 seconds"; return 1; }
}
