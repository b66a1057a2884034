import CanonicalJSON
package import CourierModel
import GateVocabulary
import Synchronization

/// Hands a message over once at most, to a provider that does not know a second copy from the first: mail and text.
///
/// - Durability: The message's id is on the disk before the first byte of its content is written to the provider, and its end
///   before the gateway hears of it.
/// - Restart: A message that was begun and has no recorded end may have gone. It is answered `ambiguous`, not to be repeated.
/// - Concurrency: A second try of a message that is under way waits for the first and has its outcome.
/// - Cancellation: A caller that is cancelled cancels the attempt: what is not written then never is.
package final class SingleCopy: Sendable {
    /// How long after a message's own end its id is still known, in seconds: the gateway's clock and the courier's are one, so
    /// an hour is ample.
    private static let keptSeconds: Int64 = 3600

    private let journal: CourierJournal
    private let underWay = Mutex<[String: Task<DeliveryOutcome, Never>]>([:])

    package init(_ journal: CourierJournal) { self.journal = journal }

    /// - Parameter attempt: Hands the message over. It calls its argument just before it writes the content; an outcome that
    ///   this returns is the end of the attempt, and nothing may be written.
    package func deliver(
        _ order: DeliveryOrder,
        _ attempt:
            @escaping @Sendable (_ begin: @escaping @Sendable () async -> DeliveryOutcome?) async ->
            DeliveryOutcome
    ) async -> DeliveryOutcome {
        if Task.isCancelled { return .stopping }
        let key = "once/" + order.message.uuidText
        let task = underWay.withLock { underWay in
            if let task = underWay[key] { return task }
            let task = Task { await self.run(order, key, attempt) }
            underWay[key] = task
            return task
        }
        let outcome = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        underWay.withLock { if $0[key] == task { $0[key] = nil } }
        return outcome
    }

    private func run(
        _ order: DeliveryOrder, _ key: String,
        _ attempt:
            @Sendable (_ begin: @escaping @Sendable () async -> DeliveryOutcome?) async -> DeliveryOutcome
    ) async -> DeliveryOutcome {
        if let earlier = journal[key] { return DeliveryOutcome(journaled: earlier.value) }
        let keptUntil = order.expiresAt.advanced(bySeconds: Self.keptSeconds)
        let journal = journal
        let beginning = Beginning {
            do {
                try await journal.commit([
                    .put(key, CourierJournal.Entry(["state": "begun"], keptUntil: keptUntil))
                ])
                return nil
            } catch {
                return .later(reason: "journal_unavailable", seconds: nil, scope: .app)
            }
        }
        let outcome = await attempt { await beginning.begin() }
        // An attempt may have been given up while the journal was written: what it wrote is undone below.
        await beginning.end()
        // Crash point: the provider has answered, and the journal says `begun`. A restart answers `ambiguous`.
        guard journal[key] != nil else { return outcome }
        let change: CourierJournal.Change =
            outcome.journaled.map { .put(key, CourierJournal.Entry($0, keptUntil: keptUntil)) }
            ?? .remove(key)
        do {
            try await journal.commit([change])
        } catch {
            // The end could not be recorded. What was taken stays `begun`, which forbids a second copy as well; what was not
            // taken can no longer be told from it.
            if outcome.journaled == nil {
                return .ambiguous(reason: "journal_unavailable", mayRepeat: false)
            }
        }
        return outcome
    }
}

/// The entry that an attempt makes before it writes. Once the attempt is over it is there or never will be.
private final class Beginning: Sendable {
    private enum State {
        case open
        case begun(Task<DeliveryOutcome?, Never>)
        case ended
    }

    private let state = Mutex(State.open)
    private let record: @Sendable () async -> DeliveryOutcome?

    init(_ record: @escaping @Sendable () async -> DeliveryOutcome?) { self.record = record }

    func begin() async -> DeliveryOutcome? {
        let task = state.withLock { state -> Task<DeliveryOutcome?, Never>? in
            switch state {
            case .begun(let task): return task
            case .ended: return nil
            case .open:
                let task = Task { [record] in await record() }
                state = .begun(task)
                return task
            }
        }
        guard let task else { return .stopping }
        return await task.value
    }

    func end() async {
        let task = state.withLock { state -> Task<DeliveryOutcome?, Never>? in
            defer { state = .ended }
            if case .begun(let task) = state { return task }
            return nil
        }
        _ = await task?.value
    }
}

extension DeliveryOutcome {
    /// The journal's value for the outcome; `nil` for one after which the message goes again.
    fileprivate var journaled: JSONValue? {
        switch self {
        case .accepted(let providerID):
            var object: JSONObject = ["state": "accepted"]
            object["provider_id"] = providerID.map(JSONValue.string)
            return .object(object)
        case .seenBefore: return ["state": "accepted"]
        case .failed(let reason), .tokenGone(let reason, _):
            return ["state": "failed", "reason": .string(reason)]
        case .ambiguous(let reason, _): return ["state": "ambiguous", "reason": .string(reason)]
        case .later, .misconfigured: return nil
        }
    }

    fileprivate init(journaled value: JSONValue) {
        func text(_ name: String) -> String? {
            if case .object(let object) = value, case .string(let text)? = object[name] { text } else { nil }
        }
        switch text("state") {
        case "accepted": self = .accepted(providerID: text("provider_id"))
        case "failed": self = .failed(reason: text("reason") ?? "failed_before")
        case "ambiguous": self = .ambiguous(reason: text("reason") ?? "unanswered", mayRepeat: false)
        default: self = .interrupted
        }
    }
}
