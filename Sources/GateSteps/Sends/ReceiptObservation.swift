import GateRecords
import GateVocabulary
import WireProtocol

/// What one receipt adds to what is already recorded. Its entry says the same, so that counting entries gives the
/// same numbers.
struct Observed {
    var event: SendEventKind
    /// `nil` of a type that is in no bundle.
    var category: Category?
    var channel: Channel
    /// `nil` for what a provider reports.
    var act: ObservedAct?
    /// From the hand-over to the first time that the person had the message before them; `nil` for any later one, and
    /// for an event that does not imply a look.
    var openedAfterMilliseconds: Int64?
    /// Whether it is the first tap at this destination: a person who acts on a message twice has tapped it once.
    var isFirstTap = false

    /// - Parameter known: The events of the send at this destination so far.
    init(_ body: ReceiptBody, of send: SendRecord, among known: [EventRecord]) {
        event = body.event.eventKind
        category = send.category
        channel = send.channel
        guard body.event == .userObserved else { return }
        let act = ObservedAct(action: body.action)
        let earlier = known.filter { $0.event == .userObserved }.map { ObservedAct(action: $0.reason) }
        self.act = act
        isFirstTap = act == .tap && !earlier.contains(.tap)
        if Self.isLook(act), !earlier.contains(where: Self.isLook) {
            let handedOverAt = known.first { $0.event == .handedOver }?.at ?? send.receivedAt
            openedAfterMilliseconds = max(0, body.at.milliseconds - handedOverAt.milliseconds)
        }
    }

    /// - Throws: ``UnknownCode`` of an event or a channel that this build does not know.
    init(_ entry: ReceiptEntry) throws {
        event = try entry.event.name(ReceiptBody.Event.self).eventKind
        category = entry.category?.known()
        channel = try entry.channel.name()
        act = entry.act?.known()
        openedAfterMilliseconds = entry.openedAfterMilliseconds
        isFirstTap = entry.isFirstTap ?? false
    }

    var observations: [Observation] {
        var observations: [Observation] = [.receipt(event, category: category, channel: channel)]
        if let openedAfterMilliseconds {
            observations.append(
                .opened(
                    category: category, channel: channel, afterMilliseconds: openedAfterMilliseconds))
        }
        if isFirstTap { observations.append(.tapped(category: category, channel: channel)) }
        return observations
    }

    /// Whether the act shows that the person had the message before them: changing an icon's number tells of the app
    /// alone.
    static func isLook(_ act: ObservedAct) -> Bool { act != .badgeCleared }
}

extension StepContext {
    /// Bound on the receipts of one destination of a send: so many of what a person did with it, and as many of the
    /// provider's reports, and beyond them the first of each event.
    package static var receiptCountMax: Int { 32 }
}
