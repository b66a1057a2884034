import GateVocabulary
import WireProtocol

extension StepContext {
    /// Counts what was reported of one message, before its event is on record.
    ///
    /// A person who sees a message twice opened it once, and who acts on it twice tapped it once: only the first report of a
    /// destination counts as either.
    func observe(_ body: ReceiptBody, of send: SendRecord, at destination: Tag) throws {
        observe(.receipt(body.event.fate, category: send.category, channel: send.channel))
        guard body.event == .userObserved else { return }
        let events = try view.events(of: send.id).filter { $0.destination == destination }
        let seen = events.filter { $0.event == .userObserved }
        if seen.isEmpty {
            let handedOverAt = events.first { $0.event == .handedOver }?.at ?? send.receivedAt
            observe(
                .opened(
                    category: send.category, channel: send.channel,
                    afterMilliseconds: max(0, body.at.milliseconds - handedOverAt.milliseconds)))
        }
        guard Self.isTap(body.action), !seen.contains(where: { Self.isTap($0.reason) }) else { return }
        observe(.tapped(category: send.category, channel: send.channel))
    }

    /// Whether an app's word says that the person acted on a message, and did not only see it or put it away.
    private static func isTap(_ action: String?) -> Bool {
        guard let action = action?.lowercased() else { return false }
        return !["seen", "shown", "displayed", "viewed", "dismissed", "dismiss", "swiped"].contains(action)
    }
}
