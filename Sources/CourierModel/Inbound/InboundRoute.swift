package import CanonicalJSON
package import GateVocabulary

/// A path of the inbound listener, and who may write to it how.
package enum InboundRoute: Sendable {
    /// Twilio's webhook of incoming texts.
    case twilioMessages(TwilioWebhook)
    /// Twilio's status callbacks.
    case twilioStatuses(TwilioWebhook)
    /// Reports as JSON, from a program of the company or a provider's adapter.
    case reports(SignedWebhook)
    /// Bounces and complaints as the mail system received them (`message/rfc822`).
    case bounces(SignedWebhook)

    package var path: String {
        switch self {
        case .twilioMessages(let webhook), .twilioStatuses(let webhook): webhook.path
        case .reports(let webhook), .bounces(let webhook): webhook.path
        }
    }

    /// Pure: checks the signature first, and reads nothing of a request whose signature is wrong.
    package func read(_ request: InboundRequest, at now: Instant) -> InboundResult {
        guard request.body.count <= InboundRequest.bytesMax else {
            return .refused(status: 413, reason: "the body is longer than \(InboundRequest.bytesMax) bytes")
        }
        switch self {
        case .twilioMessages(let webhook): return webhook.readMessage(request)
        case .twilioStatuses(let webhook): return webhook.readStatus(request)
        case .reports(let webhook):
            if let refusal = webhook.refusal(of: request, at: now) { return refusal }
            return SignedReports.read(request.body)
        case .bounces(let webhook):
            if let refusal = webhook.refusal(of: request, at: now) { return refusal }
            return MailReport.read(request.body)
        }
    }

    /// The answer to the sender of the request.
    ///
    /// - Parameter gateway: The gateway's answer to each report: its status, and its body where that is JSON; `nil` for a
    ///   gateway that did not answer.
    package func answer(_ result: InboundResult, gateway: [GatewayAnswer?], at now: Instant) -> InboundAnswer
    {
        if case .refused(let status, _) = result { return InboundAnswer(status: status) }
        // 4xx of a report that the gateway knows nothing of, or holds against another, is the same on every repeat.
        let isDone = gateway.allSatisfy { answer in
            guard let status = answer?.status else { return false }
            return (200..<300).contains(status) || [404, 409, 422].contains(status)
        }
        guard isDone else { return InboundAnswer(status: 503) }
        guard case .twilioMessages = self else { return InboundAnswer(status: 204) }
        return InboundAnswer(
            status: 200, contentType: "text/xml; charset=utf-8",
            body: Array(TwilioWebhook.response(gateway.first??.confirmation(at: now)).utf8))
    }
}

package struct GatewayAnswer: Sendable, Hashable {
    package var status: Int
    package var body: JSONValue?

    package init(status: Int, body: JSONValue?) {
        self.status = status
        self.body = body
    }

    /// The text that confirms a withdrawal, while it may still be sent (47 CFR 64.1200(a)(12)).
    func confirmation(at now: Instant) -> String? {
        guard status == 200, case .object(let answer)? = body,
            case .object(let confirmation)? = answer["confirmation"],
            case .string(let text)? = confirmation["text"], case .string(let until)? = confirmation["until"],
            let until = Instant(rfc3339: until), now < until
        else { return nil }
        return text
    }
}

package struct InboundAnswer: Sendable, Hashable {
    package var status: Int
    package var contentType: String?
    package var body: [UInt8]

    package init(status: Int, contentType: String? = nil, body: [UInt8] = []) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }
}

extension InboundReport {
    package var path: String {
        switch content {
        case .reply: "/v1/replies"
        case .receipt: "/v1/receipts"
        }
    }

    /// The gateway's body for it.
    /// - Parameter firstAt: When the first copy of the report came.
    package func body(firstAt: Instant) -> JSONValue {
        let at = JSONValue.string((at ?? firstAt).rfc3339)
        switch content {
        case .reply(let id, let channel, let from, let text):
            return [
                "id": .string(id), "channel": .string(channel.rawValue), "from": .string(from),
                "text": .string(
                    String(
                        text.unicodeScalars.filter { $0 != "\0" }.prefix(Self.textCountMax).map(
                            Character.init))),
                "received_at": at,
            ]
        case .receipt(let reference, let event, let reason):
            var object: JSONObject = [
                "send": .string(reference.send.uuidText), "destination": .string(reference.destination.text),
                "event": .string(event.rawValue), "at": at,
            ]
            object["reason"] = reason.map { .string(Self.reason($0)) }
            return .object(object)
        }
    }

    /// Longest text of a reply, in characters. A longer one is cut: only its beginning says whether it is a withdrawal.
    private static let textCountMax = 1600

    /// A provider's reason in the letters that `POST /v1/receipts` takes: 1 to 64 of `A-Z a-z 0-9 _ - .`.
    package static func reason(_ text: String) -> String {
        ProviderReason.word(text) ?? "unknown"
    }
}
