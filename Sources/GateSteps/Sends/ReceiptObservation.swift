import CanonicalJSON
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
        event = body.event.fate
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

    /// - Parameter members: An entry's.
    /// - Returns: `nil` where they do not say the channel.
    init?(event: SendEventKind, _ members: JSONObject) {
        guard let channel = members["channel"]?.stringValue.flatMap(Channel.init(rawValue:)) else {
            return nil
        }
        self.event = event
        category = members["category"]?.stringValue.flatMap(Category.init(rawValue:))
        self.channel = channel
        act = members["act"]?.stringValue.flatMap(ObservedAct.init(rawValue:))
        openedAfterMilliseconds = members["opened_after"]?.integerValue
        isFirstTap = members["tapped"]?.booleanValue ?? false
    }

    func add(to members: inout JSONObject) {
        members["act"] = act.map { .string($0.rawValue) }
        members["category"] = category.map { .string($0.rawValue) }
        members["channel"] = .string(channel.rawValue)
        members["opened_after"] = openedAfterMilliseconds.map { .integer($0) }
        if isFirstTap { members["tapped"] = true }
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
