import CommandTerminal
import Foundation
import Histogram

/// Requests put on a gateway from one thread, and how long their answers took.
struct Load {
    /// How the requests come.
    enum Arrival {
        /// Every connection keeps so many under way: asks again as soon as it is answered.
        case closed(depth: Int)
        /// So many a second whatever the gateway does. Latency counts from the moment a request should have
        /// started, so that a gateway that stands still is not asked less and measured kinder for it.
        case open(perSecond: Double)
    }

    var socket: String
    var connections: Int
    var isStream: Bool
    var arrival: Arrival
    /// When no more requests are started, in seconds; answers are waited for 10 s longer.
    var seconds: Double
    /// How many requests at most; `nil` leaves it to the time.
    var countMax: Int?
    /// Whether ``Measurement/answers`` has each answer.
    var keepsAnswers = false

    struct Measurement {
        /// Microseconds, three digits, up to a minute.
        var latency = Histogram<UInt64>(
            highestTrackableValue: 60_000_000, numberOfSignificantValueDigits: .three)
        var count = 0
        /// From the first request to the last answer.
        var seconds = 0.0
        /// Answers by status; 0 for what was due and could not be asked for.
        var countByStatus: [Int: Int] = [:]
        /// With ``Load/keepsAnswers``: each request that was answered.
        var answers: [TimedAnswer] = []
        var perSecond: Double { seconds > 0 ? Double(count) / seconds : 0 }
    }

    /// When one request should have started and when it was answered, by ``now()``.
    struct TimedAnswer {
        var startedAt: UInt64
        var answeredAt: UInt64
        var status: Int
    }

    /// Blocks its thread until everything is answered.
    ///
    /// - Parameters:
    ///   - request: The n-th request, from 0.
    ///   - watch: Told now and then how many were answered.
    ///   - isOver: Whether to start no more requests although the time is not up.
    func run(
        _ request: (Int) -> LoadRequest, watch: (Int) -> Void = { _ in }, isOver: () -> Bool = { false }
    ) throws -> Measurement {
        var lines: [LoadConnection] = []
        defer { for line in lines { line.shut() } }
        for _ in 0..<connections { lines.append(try LoadConnection(path: socket, isStream: isStream)) }
        var measured = Measurement()
        var started = 0
        var inFlight = 0
        var polled = [pollfd](repeating: pollfd(), count: lines.count)
        let begin = Self.now()
        var seconds = seconds
        var end = begin + UInt64(seconds * 1e9)
        var giveUp: UInt64 { end + 10_000_000_000 }
        var last = begin
        var nextLine = 0

        func room(_ depth: Int) -> Int? {
            for _ in 0..<lines.count {
                nextLine = (nextLine + 1) % lines.count
                if lines[nextLine].inFlight < depth { return nextLine }
            }
            return nil
        }

        /// At a fixed rate everything that was due is asked for, however late it gets: leaving it out would leave out
        /// the worst waits.
        func mayStart(_ now: UInt64) -> Bool {
            switch arrival {
            case .closed: now < end && (countMax.map { started < $0 } ?? true)
            case .open(let perSecond): now < giveUp && Double(started) < perSecond * seconds
            }
        }

        while true {
            let now = Self.now()
            if now < end, isOver() {
                end = now
                seconds = Double(now - begin) / 1e9
            }
            var wait: Int32 = 1_000
            if mayStart(now) {
                switch arrival {
                case .closed(let depth):
                    for index in lines.indices {
                        while lines[index].inFlight < depth, countMax.map({ started < $0 }) ?? true {
                            lines[index].add(request(started), startedAt: now)
                            started += 1
                            inFlight += 1
                        }
                    }
                case .open(let perSecond):
                    let interval = 1e9 / perSecond
                    var due = begin + UInt64(Double(started) * interval)
                    // A stream takes many lines at once, a connection of single requests one.
                    while due <= now, mayStart(now), let index = room(isStream ? 128 : 1) {
                        lines[index].add(request(started), startedAt: due)
                        started += 1
                        inFlight += 1
                        due = begin + UInt64(Double(started) * interval)
                    }
                    if due > now {
                        let left = due - now
                        wait = Int32(min(left / 1_000_000, 1_000))
                        // poll(2) counts milliseconds. The last one passes in naps, so that waiting takes no
                        // core from the gateway, and answers are at most a nap late.
                        if wait == 0 { usleep(UInt32(min(left / 1_000, Self.napMicroseconds))) }
                    }
                }
            } else if inFlight == 0 {
                break
            } else if now > giveUp {
                throw CommandFailure("the gateway left \(inFlight) requests unanswered for ten seconds")
            }
            for index in lines.indices {
                if lines[index].hasOutgoing { try lines[index].flush() }
                polled[index] = pollfd(
                    fd: lines[index].descriptor,
                    events: Int16(POLLIN) | (lines[index].hasOutgoing ? Int16(POLLOUT) : 0), revents: 0)
            }
            guard poll(&polled, nfds_t(polled.count), wait) >= 0 || errno == EINTR else {
                throw LoadConnection.Failure.system(errno)
            }
            for index in lines.indices where polled[index].revents & ~Int16(POLLOUT) != 0 {
                try lines[index].receive { answer in
                    let now = Self.now()
                    measured.latency.record((now - answer.startedAt) / 1_000)
                    measured.countByStatus[answer.status, default: 0] += 1
                    if keepsAnswers {
                        measured.answers.append(
                            TimedAnswer(
                                startedAt: answer.startedAt, answeredAt: now, status: answer.status))
                    }
                    measured.count += 1
                    inFlight -= 1
                    last = now
                }
            }
            watch(measured.count)
        }
        if case .open(let perSecond) = arrival {
            // What could not even be asked for waited until now at least.
            let interval = 1e9 / perSecond
            for number in started..<max(started, Int(perSecond * seconds)) {
                let due = begin + UInt64(Double(number) * interval)
                measured.latency.record((Self.now() - due) / 1_000)
                measured.countByStatus[0, default: 0] += 1
            }
        }
        measured.seconds = Double(last - begin) / 1e9
        return measured
    }

    private static let napMicroseconds: UInt64 = 50

    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
