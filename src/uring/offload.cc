#include "uring/offload.h"

#include <signal.h>

#include <utility>

namespace rmq {

Offload::~Offload() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    wanted_.notify_one();
  }
  if (worker_.joinable()) worker_.join();
}

Task<bool> Offload::run(std::shared_ptr<Job> job, int64_t deadline_ns) {
  if (!worker_.joinable()) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);  // signals are for the main ring
    pthread_sigmask(SIG_BLOCK, &all, &before);
    worker_ = std::thread(&Offload::work_loop, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  {
    std::lock_guard lock(mutex_);
    if (todo_.size() >= jobs_max) co_return false;
    todo_.push_back(job);
    wanted_.notify_one();
  }
  bool ran = co_await job->done_.wait_until(deadline_ns);
  co_return ran;
}

void Offload::work_loop() {
  pthread_setname_np(pthread_self(), "offload");
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [this] { return stop_ || !todo_.empty(); });
    if (stop_) return;
    std::shared_ptr<Job> job = std::move(todo_.front());
    todo_.pop_front();
    lock.unlock();
    job->work();
    lock.lock();
    done_.push_back(std::move(job));
    wake();
  }
}

void Offload::on_wake() {
  std::vector<std::shared_ptr<Job>> done;
  {
    std::lock_guard lock(mutex_);
    done.swap(done_);
  }
  for (const auto& job : done) job->done_.set();
}

}  // namespace rmq
