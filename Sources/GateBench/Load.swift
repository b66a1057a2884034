import CanonicalJSON
import CommandTerminal
import Dispatch
import Histogram
import Synchronization
import UnixHTTPClient

/// Requests put on a gateway over ``UnixHTTPConnection``, and how long their answers took.
struct Load: Sendable {
    /// How the requests come.
    enum Arrival: Sendable {
        /// Every connection keeps so many under way: asks again as soon as it is answered.
        case closed(depth: Int)
        /// So many a second whatever the gateway does, one at a time on a connection. Latency counts from the moment a request
        /// should have started, so that a gateway that stands still is not asked less and measured kinder for it.
        case open(perSecond: Double)
    }

    var socket: String
    var connections: Int
    /// `POST /v1/sends/stream` in a closed loop, the bodies of the requests being its lines.
    var isStream: Bool
    var arrival: Arrival
    /// When no more requests are started, in seconds; answers are waited for longer.
    var seconds: Double
    /// How many requests at most; `nil` leaves it to the time.
    var countMax: Int?
    /// Whether ``Measurement/answers`` has each answer.
    var keepsAnswers = false

    /// How long one answer is waited for, in milliseconds.
    private static let answerMilliseconds: Int64 = 30_000
    /// Nanoseconds behind the end in which requests that were due before it are still started.
    private static let lateNanoseconds: UInt64 = 10_000_000_000

    struct Measurement: Sendable {
        /// Microseconds, three digits, up to a minute.
        var latency = Histogram<UInt64>(
            highestTrackableValue: 60_000_000, numberOfSignificantValueDigits: .three)
        /// The longest latency of requests that should have started in each tenth of a second, in microseconds.
        var longest: [UInt64] = []
        var count = 0
        /// From the first request to the last answer.
        var seconds = 0.0
        /// Answers by status; 0 for what was due and could not be asked for.
        var countByStatus: [Int: Int] = [:]
        /// With ``Load/keepsAnswers``: each request that was answered.
        var answers: [TimedAnswer] = []
        var perSecond: Double { seconds > 0 ? Double(count) / seconds : 0 }

        /// - Parameters:
        ///   - microseconds: From when it should have started until it was answered.
        ///   - nanoseconds: When that was, from the first request on.
        mutating func record(_ microseconds: UInt64, after nanoseconds: UInt64) {
            latency.record(microseconds)
            let tenth = Int(nanoseconds / 100_000_000)
            while longest.count <= tenth { longest.append(0) }
            longest[tenth] = max(longest[tenth], microseconds)
        }

        /// The slowest, each of another tenth of a second, slowest first.
        func slowest(_ count: Int) -> [(tenth: Int, microseconds: UInt64)] {
            Array(
                longest.enumerated().sorted { ($0.element, $1.offset) > ($1.element, $0.offset) }.prefix(
                    count
                )
                .filter { $0.element > 0 }.map { (tenth: $0.offset, microseconds: $0.element) })
        }
    }

    /// When one request should have started and when it was answered, by ``now()``.
    struct TimedAnswer: Sendable {
        var startedAt: UInt64
        var answeredAt: UInt64
        var status: Int
    }

    /// Returns when everything is answered.
    ///
    /// - Parameters:
    ///   - request: The n-th request, from 0; called on any thread.
    ///   - watch: Told how many were answered; called on any thread.
    ///   - isOver: Whether to start no more requests although the time is not up.
    func run(
        _ request: @escaping @Sendable (Int) -> LoadRequest,
        watch: @escaping @Sendable (Int) -> Void = { _ in },
        isOver: @escaping @Sendable () -> Bool = { false }
    ) async throws -> Measurement {
        var opened: [UnixHTTPConnection] = []
        for _ in 0..<connections {
            opened.append(try await UnixHTTPConnection.connect(.init(path: socket)))
        }
        // Requests share a connection, so none of them may close it.
        defer { Task { [opened] in for connection in opened { await connection.close() } } }
        let run = LoadRun(self, isOver: isOver, watch: watch)
        try await withThrowingTaskGroup { group in
            for connection in opened {
                let depth: Int
                if case .closed(let closed) = arrival { depth = closed } else { depth = 1 }
                if isStream {
                    group.addTask { try await Self.stream(request, depth, over: connection, in: run) }
                } else {
                    for _ in 0..<depth {
                        group.addTask { try await Self.requests(request, over: connection, in: run) }
                    }
                }
            }
            try await group.waitForAll()
        }
        return run.measurement()
    }

    private static func requests(
        _ request: (Int) -> LoadRequest, over connection: UnixHTTPConnection, in run: LoadRun
    ) async throws {
        while let next = run.next() {
            guard try await run.waited(until: next.due) else { continue }
            let wanted = request(next.number)
            let answer = try await connection.request(
                wanted.method, wanted.target, headers: [("Content-Type", "application/json")],
                body: wanted.body, timeoutMilliseconds: answerMilliseconds)
            run.note(answer.status, startedAt: next.due)
        }
    }

    /// Keeps `depth` lines under way; answers come in the order of the lines.
    private static func stream(
        _ request: (Int) -> LoadRequest, _ depth: Int, over connection: UnixHTTPConnection, in run: LoadRun
    ) async throws {
        guard case .open(let stream) = try await connection.openStream("/v1/sends/stream") else {
            throw CommandFailure("the gateway refused a live stream")
        }
        var starts: [UInt64] = []
        while true {
            var lines: [[UInt8]] = []
            while starts.count < depth, let next = run.next() {
                lines.append(request(next.number).body)
                starts.append(next.due)
            }
            try await stream.send(lines)
            guard !starts.isEmpty else { break }
            guard let line = try await stream.next(timeoutMilliseconds: answerMilliseconds),
                let status = try CanonicalJSON.read(line)["status"]?.integerValue
            else { throw CommandFailure("the gateway ended a live stream with lines unanswered") }
            run.note(Int(status), startedAt: starts.removeFirst())
        }
        await stream.close()
    }

    /// Nanoseconds of the monotonic clock.
    static func now() -> UInt64 { DispatchTime.now().uptimeNanoseconds }

    /// The state that the connections of one load share: the next request, and the measurement.
    private final class LoadRun: Sendable {
        private struct State {
            var end: UInt64
            var started = 0
            var last: UInt64
            var measured = Measurement()
        }

        private let load: Load
        private let begin = Load.now()
        private let isOver: @Sendable () -> Bool
        private let watch: @Sendable (Int) -> Void
        private let state: Mutex<State>

        init(
            _ load: Load, isOver: @escaping @Sendable () -> Bool, watch: @escaping @Sendable (Int) -> Void
        ) {
            self.load = load
            self.isOver = isOver
            self.watch = watch
            state = Mutex(State(end: begin + UInt64(load.seconds * 1e9), last: begin))
        }

        /// When a request of an open loop should start.
        private func due(_ number: Int, perSecond: Double) -> UInt64 {
            begin + UInt64(Double(number) * 1e9 / perSecond)
        }

        /// The end, which moves to now when the load is over before its time.
        private func movedEnd(_ state: inout State, at now: UInt64) -> UInt64 {
            if now < state.end, isOver() { state.end = now }
            return state.end
        }

        /// - Returns: `nil` when no more requests are started. In an open loop everything that was due is asked for, however
        ///   late it gets: leaving it out would leave out the worst waits.
        func next() -> (number: Int, due: UInt64)? {
            state.withLock { state in
                let now = Load.now()
                let end = movedEnd(&state, at: now)
                let start: UInt64
                switch load.arrival {
                case .closed:
                    guard now < end, load.countMax.map({ state.started < $0 }) ?? true else { return nil }
                    start = now
                case .open(let perSecond):
                    start = due(state.started, perSecond: perSecond)
                    guard start < end, now < end + Load.lateNanoseconds else { return nil }
                }
                defer { state.started += 1 }
                return (state.started, start)
            }
        }

        /// - Returns: Whether the moment came before the end did.
        func waited(until due: UInt64) async throws -> Bool {
            while true {
                let now = Load.now()
                if now >= due { return true }
                guard due < state.withLock({ movedEnd(&$0, at: now) }) else { return false }
                // A tenth of a second at most, so that a load that is over ends.
                try await Task.sleep(
                    for: .nanoseconds(Int64(min(due - now, 100_000_000))), tolerance: .zero)
            }
        }

        func note(_ status: Int, startedAt: UInt64) {
            let now = Load.now()
            let count = state.withLock { state in
                state.measured.record((now - startedAt) / 1_000, after: startedAt - begin)
                state.measured.countByStatus[status, default: 0] += 1
                if load.keepsAnswers {
                    state.measured.answers.append(
                        TimedAnswer(startedAt: startedAt, answeredAt: now, status: status))
                }
                state.measured.count += 1
                state.last = max(state.last, now)
                return state.measured.count
            }
            watch(count)
        }

        func measurement() -> Measurement {
            state.withLock { state in
                if case .open(let perSecond) = load.arrival {
                    // A request that was due and never sent has waited until now at least.
                    while due(state.started, perSecond: perSecond) < state.end {
                        let start = due(state.started, perSecond: perSecond)
                        state.measured.record((Load.now() - start) / 1_000, after: start - begin)
                        state.measured.countByStatus[0, default: 0] += 1
                        state.started += 1
                    }
                }
                state.measured.seconds = Double(state.last - begin) / 1e9
                return state.measured
            }
        }
    }
}

/// One request; on a stream only its body counts.
struct LoadRequest: Sendable {
    var method: String
    var target: String
    var body: [UInt8]
}
