import CanonicalJSON
import GateVocabulary

/// Replies and delivery reports as JSON, for every provider that has no reader of its own: one report, or an array of at most
/// ``countMax``.
///
///     {"kind": "reply", "id": …, "channel": "sms" | "email", "from": …, "text": …, "received_at"?: …}
///     {"kind": "receipt", "send": …, "destination": …, "event": "failed" | …, "reason"?: …, "at"?: …}
enum SignedReports {
    static let countMax = 100

    static func read(_ bytes: [UInt8]) -> InboundResult {
        let limits = JSONLimits(byteCountMax: InboundRequest.bytesMax)
        do {
            let value = try CanonicalJSON.read(bytes, limits: limits)
            let reports: [InboundReport]
            if case .array(let elements) = value {
                guard elements.count <= countMax else {
                    return .refused(status: 400, reason: "more than \(countMax) reports in one request")
                }
                reports = try elements.enumerated().map { try report($1, JSONPointer.root.appending($0)) }
            } else {
                reports = [try report(value, .root)]
            }
            return reports.isEmpty ? .nothing : .pass(reports)
        } catch {
            return .refused(status: 400, reason: "\(error)")
        }
    }

    private static func report(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError)
        -> InboundReport
    {
        var members = try JSONMembers(value, at: pointer)
        let report: InboundReport
        switch try members.required("kind", JSONShape.text) {
        case "reply":
            // The bound of the gateway's `RequestID`.
            let id: RequestID = try members.required("id", JSONShape.identifier)
            let channel: Channel = try members.required("channel", JSONShape.name)
            guard channel != .push else {
                throw JSONShapeError(pointer.appending("channel"), "expected one of `sms`, `email`")
            }
            report = InboundReport(
                .reply(
                    id: id.text, channel: channel, from: try members.required("from", JSONShape.text),
                    text: try members.required("text", JSONShape.text)),
                key: "reply/\(channel.rawValue)/\(id.text)",
                at: try members.optional("received_at", JSONShape.time))
        case "receipt":
            let send: SendID = try members.required("send", JSONShape.uuid)
            let destination: DestinationID = try members.required("destination", JSONShape.identifier)
            let event: InboundReport.ReceiptEvent = try members.required("event", JSONShape.name)
            let reason = try members.optional("reason", JSONShape.text)
            if reason != nil, event == .acceptedByProvider {
                throw JSONShapeError(pointer.appending("reason"), "an accepted message has none")
            }
            report = InboundReport(
                .receipt(DeliveryReference(send: send, destination: destination), event, reason: reason),
                key:
                    "receipt/\(send.uuidText)/\(destination.text)/\(event.rawValue)/\(InboundReport.reason(reason ?? ""))",
                at: try members.optional("at", JSONShape.time))
        default:
            // The words go into the log, so what the sender wrote stays out.
            throw JSONShapeError(pointer.appending("kind"), "expected `reply` or `receipt`")
        }
        try members.refuseOthers()
        return report
    }
}
