#pragma once

/// Everything but <lockstep/asio.hpp>, <lockstep/json.hpp> and <lockstep/metrics.hpp>, which bring Boost.Asio, Boost.JSON and prometheus-cpp along.

#include <lockstep/barrier.hpp>
#include <lockstep/broadcast_event.hpp>
#include <lockstep/client.hpp>
#include <lockstep/codec.hpp>
#include <lockstep/counting_semaphore.hpp>
#include <lockstep/election.hpp>
#include <lockstep/embedded_server.hpp>
#include <lockstep/error.hpp>
#include <lockstep/event.hpp>
#include <lockstep/health.hpp>
#include <lockstep/latch.hpp>
#include <lockstep/leadership.hpp>
#include <lockstep/lease.hpp>
#include <lockstep/lease_options.hpp>
#include <lockstep/log.hpp>
#include <lockstep/monitor.hpp>
#include <lockstep/multi_lock.hpp>
#include <lockstep/mutex.hpp>
#include <lockstep/options.hpp>
#include <lockstep/recursive_mutex.hpp>
#include <lockstep/redlock.hpp>
#include <lockstep/redlock_lease.hpp>
#include <lockstep/reply.hpp>
#include <lockstep/request.hpp>
#include <lockstep/session.hpp>
#include <lockstep/shared_mutex.hpp>
#include <lockstep/singleton.hpp>
#include <lockstep/statistics.hpp>
#include <lockstep/subscription.hpp>
#include <lockstep/task.hpp>
#include <lockstep/trace.hpp>
