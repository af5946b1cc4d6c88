// Two workers, each with a client of its own as if they were two programs, share one mutex. What they write checks the fence.
#include <lockstep/lockstep.hpp>

#include <cstdint>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

namespace {

// What the mutex guards. It refuses a smaller fence than it has seen, so a holder from before can't spoil it. In a real program it is
// somewhere else (a database), and only this check, made there, protects it from a worker that was paused.
class ledger {
public:
    bool add(int amount, std::uint64_t fence) {
        std::lock_guard const guard{mutex_};
        if (fence < newest_) return false;
        newest_ = fence;
        total_ += amount;
        return true;
    }
    int total() const { return total_; }

private:
    std::mutex mutex_;
    std::uint64_t newest_ = 0;
    int total_ = 0;
};

void work(std::string const& url, ledger& book) {
    lockstep::client client{url};
    lockstep::mutex mutex{client, "ledger"};
    for (int i = 0; i != 100; ++i) {
        auto const lease = mutex.acquire();
        if (!book.add(1, lease.fence())) std::cout << "too late with fence " << lease.fence() << '\n';
    }
}

}  // namespace

int main() try {
    lockstep::embedded_server const server;
    ledger book;
    std::uint64_t old_fence = 0;
    {
        lockstep::client client{server.url()};
        old_fence = lockstep::mutex{client, "ledger"}.acquire().fence();
    }
    {
        std::jthread const one{[&] { work(server.url(), book); }};
        std::jthread const other{[&] { work(server.url(), book); }};
    }
    std::cout << "total " << book.total() << '\n';
    std::cout << "the fence from before is " << (book.add(1, old_fence) ? "accepted" : "refused") << '\n';
    return book.total() == 200 ? 0 : 1;
} catch (lockstep::error const& problem) {
    std::cerr << "mutex: " << problem.what() << '\n';
    return 1;
}
