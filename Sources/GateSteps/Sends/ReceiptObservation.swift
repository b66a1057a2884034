import GateVocabulary
import WireProtocol

/// What one receipt tells of the person, beside what is on record already.
struct Observed {
    /// `nil` for what a provider reports.
    var act: ObservedAct?
    /// From the hand-over to the first time that somebody had the message before them; `nil` for any later one, and where
    /// nobody need have looked at it.
    var openedAfterMilliseconds: Int64?
    /// Whether it is the first tap at this destination: who acts on a message twice has tapped it once.
    var isFirstTap = false

    /// - Parameter known: The events of the send at this destination so far.
    init(_ body: ReceiptBody, of send: SendRecord, among known: [EventRecord]) {
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

    /// Whether somebody had the message before them: a number that goes from an icon tells of the app alone.
    static func isLook(_ act: ObservedAct) -> Bool { act != .badgeCleared }
}

extension StepContext {
    /// Receipts of one destination of a send: the provider's word, and what a person can do with one message several times over.
    package static var receiptCountMax: Int { 32 }

    func count(_ observed: Observed, as event: ReceiptBody.Event, of send: SendRecord) {
        observe(.receipt(event.fate, category: send.category, channel: send.channel))
        if let delay = observed.openedAfterMilliseconds {
            observe(.opened(category: send.category, channel: send.channel, afterMilliseconds: delay))
        }
        if observed.isFirstTap { observe(.tapped(category: send.category, channel: send.channel)) }
    }
}
