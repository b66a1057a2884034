import CanonicalJSON
import CourierModel
import GateVocabulary
import Logging
import Synchronization

/// The tickets of one Expo app whose receipts are still to come.
final class ExpoReceipts: Sendable {
    /// When Expo has a receipt ("Push receipts": about 15 minutes later), and when it is asked again for one that it did not have.
    private static let dueSeconds: Int64 = 900
    /// How long Expo keeps a receipt (the same page).
    private static let keptSeconds: Int64 = 86_400
    /// Expo's bound on one request: 1,000 ids. A hundred receipts with long errors stay below the bound of an answer.
    private static let countMax = 100

    private let prefix: String
    private let journal: CourierJournal
    private let clock: ProviderClock
    private let logger: Logger
    private let pass: @Sendable (_ path: String, _ body: JSONValue) async -> GatewayAnswer?
    /// Receipts are weighed against receipts: a ticket says that Expo took a push, and nothing of its token.
    private let suspects = Mutex(SuspectAnswers())
    /// When a push went last while receipts were doubted, or the first was refused.
    private let lastProbe = Mutex<Int64?>(nil)
    private static let probeMilliseconds: Int64 = 60_000

    init(
        name: String, journal: CourierJournal, clock: ProviderClock, logger: Logger,
        pass: @escaping @Sendable (_ path: String, _ body: JSONValue) async -> GatewayAnswer?
    ) {
        prefix = "expo/\(name)/"
        self.journal = journal
        self.clock = clock
        self.logger = logger
        self.pass = pass
    }

    /// A ticket's id, if it is one: Expo's are UUIDs.
    static func ticket(_ text: String) -> String? {
        (1...64).contains(text.utf8.count) && ProviderReason.bounded(text) == text ? text : nil
    }

    /// Makes the tickets durable. Without it the messages still count as taken: what is lost is that a receipt tells of an error.
    func expect(_ tickets: [(id: String, order: DeliveryOrder)]) async {
        if tickets.isEmpty { return }
        let now = clock.now()
        do {
            try await journal.commit(
                tickets.map { id, order in
                    .put(
                        prefix + id,
                        entry(
                            DeliveryReference(order), at: now, due: now.advanced(bySeconds: Self.dueSeconds)))
                })
        } catch {
            logger.error(
                "receipts will not be asked for",
                metadata: ["tickets": "\(tickets.count)", "why": "\(error)"])
        }
    }

    private func entry(_ reference: DeliveryReference, at: Instant, due: Instant) -> CourierJournal.Entry {
        CourierJournal.Entry(
            // Half a million of them may be kept, so an entry is short.
            .string(
                "\(at.milliseconds) \(due.milliseconds) \(reference.send.uuidText) \(reference.destination.text)"
            ), keptUntil: at.advanced(bySeconds: Self.keptSeconds))
    }

    /// - Parameter ask: `POST …/getReceipts`. It may be asked again, so a lost answer costs nothing.
    func fetch(_ ask: (_ body: [UInt8]) async throws(ExchangeFault) -> ProviderAnswer) async {
        let now = clock.now()
        let due = journal.entries(withPrefix: prefix)
            .compactMap { key, entry -> (id: String, due: Int64, entry: CourierJournal.Entry)? in
                guard let due = Ticket(entry)?.due, due <= now.milliseconds else { return nil }
                return (String(key.dropFirst(prefix.count)), due, entry)
            }.sorted { ($0.due, $0.id) < ($1.due, $1.id) }
        for start in stride(from: 0, to: due.count, by: Self.countMax) {
            let part = due[start..<min(start + Self.countMax, due.count)]
            let body: JSONValue = ["ids": .array(part.map { .string($0.id) })]
            do throws(ExchangeFault) {
                let answer = try await ask(CanonicalJSON.write(body))
                guard answer.status == 200, let receipts = answer.json?["data"]?.objectValue else {
                    logger.warning(
                        "Expo gives no receipts", metadata: ["status": "\(answer.status)"])
                    return
                }
                await take(receipts, of: part.map { ($0.id, $0.entry) })
            } catch {
                logger.warning("Expo gives no receipts", metadata: ["why": "\(error)"])
                return
            }
        }
    }

    private func take(
        _ receipts: JSONObject, of tickets: [(id: String, entry: CourierJournal.Entry)]
    ) async {
        var changes: [CourierJournal.Change] = []
        let isDoubted = weigh(
            tickets.compactMap { ticket in receipts[ticket.id]?.objectValue.map { (ticket.id, $0) } })
        for (id, entry) in tickets {
            guard let ticket = Ticket(entry) else {
                changes.append(.remove(prefix + id))
                continue
            }
            let (reference, sentAt) = (ticket.reference, Instant(milliseconds: ticket.at))
            let receipt = receipts[id]?.objectValue
            guard let receipt, !(isDoubted && ExpoErrors.read(receipt).isDead) else {
                let next = clock.now().advanced(bySeconds: Self.dueSeconds)
                changes.append(.put(prefix + id, self.entry(reference, at: sentAt, due: next)))
                continue
            }
            if await tell(receipt, of: reference, sentAt: sentAt, key: prefix + id) {
                changes.append(.remove(prefix + id))
            }
        }
        do {
            try await journal.commit(changes)
        } catch {
            // They are asked for and told again, which the gateway knows for repeats: the time is that of the push.
            logger.error("receipts cannot be recorded", metadata: ["why": "\(error)"])
        }
    }

    /// Takes in all receipts of one answer before any of them is told, so that none of a spike goes before it is seen.
    /// - Returns: Whether those of dead tokens are not believed. Expo is asked for them again.
    private func weigh(_ receipts: [(id: String, receipt: JSONObject)]) -> Bool {
        let now = clock.uptimeMilliseconds()
        let findings = receipts.map { (id: $0.id, finding: ExpoErrors.read($0.receipt)) }
        let doubt = suspects.withLock { suspects -> String? in
            // Receipts are weighed in the order of their tickets: sorted by their answer, the dead ones would stand in a row.
            for (id, finding) in findings {
                if case .accepted = finding.verdict { suspects.accepted(at: now) }
                if finding.isDead {
                    _ = suspects.dead(.tokenGone(reason: finding.reason, at: nil), of: id, at: now)
                }
            }
            return suspects.doubt
        }
        if let doubt, findings.contains(where: \.finding.isDead) {
            logger.error("receipts of dead tokens are not believed", metadata: ["reason": "\(doubt)"])
        }
        return doubt != nil
    }

    /// See ``DeliveryProvider/doubt``.
    var doubt: String? { suspects.withLock { $0.doubt } }

    /// Why a push may not go now: while receipts are doubted, one a minute does, because only new receipts can end the doubt.
    func refusal(at now: Int64) -> String? {
        let doubt = doubt
        return lastProbe.withLock { last in
            guard let doubt else {
                last = nil
                return nil
            }
            guard let earlier = last else {
                last = now
                return doubt
            }
            if now - earlier < Self.probeMilliseconds { return doubt }
            last = now
            return nil
        }
    }

    func confirmDead() {
        let now = clock.uptimeMilliseconds()
        suspects.withLock { $0.confirmDead(at: now) }
    }

    func resetSuspects() { suspects.withLock { $0.reset() } }

    /// - Returns: Whether nothing is left to tell of it.
    private func tell(
        _ receipt: JSONObject, of reference: DeliveryReference, sentAt: Instant, key: String
    ) async -> Bool {
        let finding = ExpoErrors.read(receipt)
        let event: InboundReport.ReceiptEvent
        switch finding.verdict {
        case .accepted: return true
        case .tokenGone: event = .tokenGone
        case .configuration:
            logger.error("Expo could not hand a push on", metadata: ["reason": "\(finding.reason)"])
            event = .failed
        default: event = .failed
        }
        // Expo does not say since when a token is dead. One that was registered after the push is not meant.
        let report = InboundReport(.receipt(reference, event, reason: finding.reason), key: key, at: sentAt)
        guard let status = await pass(report.path, report.body(firstAt: sentAt))?.status else { return false }
        return (200..<300).contains(status) || [404, 409, 422].contains(status)
    }

    private struct Ticket {
        var at: Int64
        var due: Int64
        var reference: DeliveryReference

        init?(_ entry: CourierJournal.Entry) {
            let words = entry.value.stringValue?.split(separator: " ", maxSplits: 3) ?? []
            guard words.count == 4, let at = Int64(words[0]), let due = Int64(words[1]),
                let send = SendID(uuidText: String(words[2]))
            else { return nil }
            (self.at, self.due) = (at, due)
            reference = DeliveryReference(send: send, destination: DestinationID(String(words[3])))
        }
    }

    /// Whether the journal takes one more ticket.
    var hasRoom: Bool { journal.hasRoom(for: prefix) }
}
