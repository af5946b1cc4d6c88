// Keeps the state that pages follow, for as long as there are any: watches while somebody listens, and samples what the plots show.
//
// All on the I/O thread, except for what blocks, which is done by the workers.
#pragma once

#include "dashboard/backend.hpp"
#include "dashboard/state.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

namespace lockstep::dashboard {

// One page that follows.
class listener {
public:
    virtual ~listener() = default;
    virtual void state_changed() = 0;  // call feed::message when there is room for it
    virtual void closed() = 0;           // no more comes
    virtual void trouble_changed() = 0;  // say feed::trouble with the next write
    virtual void send(std::string_view event,
                      std::string const& data) = 0;  // a small thing; may be dropped when it is slow
};

class feed : public std::enable_shared_from_this<feed> {
public:
    feed(boost::asio::io_context& io, boost::asio::thread_pool& workers, backend& from)
        : io_(io), workers_(workers), from_(from), timer_(io) {}

    void join(listener& page);
    void leave(listener& page);
    [[nodiscard]] std::size_t listeners() const noexcept { return pages_.size(); }
    [[nodiscard]] bool ready() const noexcept { return ready_; }

    [[nodiscard]] dashboard::state const& state() const noexcept { return state_; }
    // As state::message; pages that have seen the same share the text.
    std::shared_ptr<std::string const> message(std::string const& seen);
    // The server's clock now, as far as the last news tell. When ready().
    [[nodiscard]] std::int64_t now_ms() const;
    // The samples so far, as a JSON array.
    [[nodiscard]] std::string samples() const;
    [[nodiscard]] std::optional<std::string> const& trouble() const noexcept { return trouble_; }
    // Something was done: pages read the audit again.
    void announce_audit();
    // No more calls after this, but for another close() when the workers have ended; what it returns ends the watch and may block.
    std::shared_ptr<void> close();

private:
    void wake();
    void start_watch();
    void stop_watch();
    void take(snapshot const& now);  // on any thread
    void apply();
    void tick();
    void sample();
    void look_at_jobs();
    void sampled(name_statistics const& total);
    void troubled(std::optional<std::string> why);
    void tell(std::string_view event, std::string const& data);

    boost::asio::io_context& io_;
    boost::asio::thread_pool& workers_;
    backend& from_;
    boost::asio::steady_timer timer_;
    std::unordered_set<listener*> pages_;
    dashboard::state state_;
    std::chrono::steady_clock::time_point updated_at_{};
    bool ready_ = false;
    bool closed_ = false;
    bool ticking_ = false;
    bool starting_ = false;
    bool sampling_ = false;
    bool looking_ = false;
    std::shared_ptr<void> watch_;
    std::chrono::steady_clock::time_point alone_since_{};
    std::optional<std::string> trouble_;

    std::string cached_seen_, cached_version_;
    std::shared_ptr<std::string const> cached_;

    std::deque<std::string> samples_;
    std::optional<name_statistics> before_;
    std::chrono::steady_clock::time_point before_at_{};

    std::mutex newest_mutex_;
    std::shared_ptr<void> begun_;             // a watch, on its way from the worker that made it
    std::shared_ptr<snapshot const> newest_;  // a state that nobody has seen is replaced by the next
};

}  // namespace lockstep::dashboard
