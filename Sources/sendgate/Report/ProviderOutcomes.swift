import GateRecords
import GateVocabulary
import WireProtocol

/// Which receipts of providers do not count, because their message counts by another: each message has one outcome, that
/// it was accepted if any receipt says so, and else the first that was told.
struct ProviderOutcomes {
    /// Messages that are remembered: so many, and up to as many before them. A receipt of one that is forgotten counts as
    /// that of another message.
    static let messageCountMax = 1 << 18

    private struct Message: Hashable {
        var send: SendID
        var destination: Tag
    }
    private var newest: [Message: SendEventKind] = [:]
    private var earlier: [Message: SendEventKind] = [:]
    private var uncounted: [Channel: [SendEventKind: UInt64]] = [:]

    mutating func add(_ receipt: ReceiptEntry) {
        guard let event = receipt.event.known(ReceiptBody.Event.self), event != .userObserved,
            let channel = receipt.channel.known(Channel.self)
        else { return }
        let message = Message(send: receipt.send, destination: receipt.destination)
        var outcome = event.eventKind
        if let known = newest[message] ?? earlier[message] {
            let isBetter = outcome == .acceptedByProvider && known != .acceptedByProvider
            uncounted[channel, default: [:]][isBetter ? known : outcome, default: 0] += 1
            if !isBetter { outcome = known }
        }
        newest[message] = outcome
        if newest.count >= Self.messageCountMax { (earlier, newest) = (newest, [:]) }
    }

    /// How many receipts of an event do not count.
    func uncountedCount(of event: SendEventKind, on channel: Channel) -> UInt64 {
        uncounted[channel]?[event] ?? 0
    }
}
