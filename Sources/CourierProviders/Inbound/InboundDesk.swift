package import CanonicalJSON
package import CourierModel
import GateVocabulary
import Synchronization

/// Takes the requests of the inbound listener to the gateway, and its answers back.
///
/// - Durability: A sender hears of success only after the gateway has answered every report, so what is lost on the way is sent
///   again.
/// - Repeats: The first time of a report is on the disk before it is passed on, so the gateway knows every copy of it for one.
/// - Concurrency: Requests at once are bounded by the listener.
package final class InboundDesk: Sendable {
    /// How long the first time of a report is kept, in seconds: the gateway knows the id of a reply for 31 days at least.
    private static let keptSeconds: Int64 = 31 * 86_400

    private let routes: Mutex<[String: InboundRoute]>
    private let journal: CourierJournal
    private let clock: ProviderClock
    private let pass: @Sendable (_ path: String, _ body: JSONValue) async -> GatewayAnswer?

    /// - Parameters:
    ///   - routes: Each path once; of two the later one counts.
    ///   - pass: Asks the gateway by `POST`; `nil` when it did not answer.
    package init(
        routes: [InboundRoute], journal: CourierJournal, clock: ProviderClock,
        pass: @escaping @Sendable (_ path: String, _ body: JSONValue) async -> GatewayAnswer?
    ) {
        self.routes = Mutex(Self.byPath(routes))
        self.journal = journal
        self.clock = clock
        self.pass = pass
    }

    /// Takes routes with other secrets; requests under way go on with the old ones.
    package func replace(_ routes: [InboundRoute]) { self.routes.withLock { $0 = Self.byPath(routes) } }

    private static func byPath(_ routes: [InboundRoute]) -> [String: InboundRoute] {
        Dictionary(routes.map { ($0.path, $0) }) { _, later in later }
    }

    /// - Returns: What the sender hears, and what the log may say: no address, no number, no text.
    package func handle(_ request: InboundRequest) async -> (answer: InboundAnswer, log: String?) {
        guard let route = routes.withLock({ $0[request.path] }) else {
            return (InboundAnswer(status: 404), nil)
        }
        let result = route.read(request, at: clock.now())
        guard case .pass(let reports) = result else {
            let answer = route.answer(result, gateway: [], at: clock.now())
            guard case .refused(let status, let reason) = result else { return (answer, nil) }
            return (answer, "refused \(route.path) with \(status): \(reason)")
        }
        var answers: [GatewayAnswer?] = []
        do {
            for (report, firstAt) in zip(reports, try await firstTimes(of: reports)) {
                answers.append(await pass(report.path, report.body(firstAt: firstAt)))
            }
        } catch {
            return (InboundAnswer(status: 503), "\(error)")
        }
        let answer = route.answer(result, gateway: answers, at: clock.now())
        let statuses = Set(answers.map { $0.map { String($0.status) } ?? "none" }).sorted().joined(
            separator: ", ")
        return (answer, answer.status < 300 ? nil : "the gateway answered \(statuses) to \(route.path)")
    }

    private func firstTimes(of reports: [InboundReport]) async throws(JournalFault) -> [Instant] {
        let now = clock.now()
        var (times, changes): ([Instant], [CourierJournal.Change]) = ([], [])
        for report in reports {
            if let at = report.at {
                times.append(at)
                continue
            }
            let key = "first/\(report.key)"
            if case .integer(let milliseconds)? = journal[key]?.value {
                times.append(Instant(milliseconds: milliseconds))
                continue
            }
            times.append(now)
            let entry = CourierJournal.Entry(
                .integer(now.milliseconds), keptUntil: now.advanced(bySeconds: Self.keptSeconds))
            changes.append(.put(key, entry))
        }
        if !changes.isEmpty { try await journal.commit(changes) }
        return times
    }
}
