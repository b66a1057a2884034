package import GateVocabulary

/// A request from outside the company, as the inbound listener read it. Nothing in it is believed before its signature.
package struct InboundRequest: Sendable {
    /// Longest body in bytes: a bounce carries the headers of the message that bounced, or the whole of it.
    package static let bytesMax = 262_144

    /// Path and query, as the request line has them.
    package var target: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]

    package init(target: String, headers: [(name: String, value: String)], body: [UInt8]) {
        self.target = target
        self.headers = headers
        self.body = body
    }

    package var path: String { String(target.prefix { $0 != "?" }) }

    /// The query behind the question mark, as it was written; `nil` without one.
    package var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The first field with this name; header names ignore case.
    package func header(_ name: String) -> String? {
        let wanted = name.lowercased()
        return headers.first { $0.name.lowercased() == wanted }?.value
    }
}

/// What the listener does with a request.
package enum InboundResult: Sendable, Hashable {
    /// Each goes to the gateway; the request is answered when the gateway has answered all of them.
    case pass([InboundReport])
    /// The request is genuine and says nothing that the gateway keeps. Answered with success, so that it is not sent again.
    case nothing
    /// Answered with this status. The reason is for the log; it carries no address, number or text.
    case refused(status: Int, reason: String)
}

/// One thing to tell the gateway.
package struct InboundReport: Sendable, Hashable {
    package enum Content: Sendable, Hashable {
        /// `POST /v1/replies`.
        case reply(id: String, channel: Channel, from: String, text: String)
        /// `POST /v1/receipts`.
        case receipt(DeliveryReference, ReceiptEvent, reason: String?)
    }

    package enum ReceiptEvent: String, CaseIterable, Sendable, Hashable {
        case acceptedByProvider = "accepted_by_provider"
        case failed
        case tokenGone = "token_gone"
        case expired
    }

    package var content: Content
    /// The same for every repeat of the same report. The gateway takes a repeat for one only under an unchanged time, so where
    /// the sender names none, the time of the first copy is kept under this key.
    package var key: String
    /// When it happened, as the sender says.
    package var at: Instant?

    package init(_ content: Content, key: String, at: Instant? = nil) {
        self.content = content
        self.key = key
        self.at = at
    }
}

/// Names one message at one destination to the gateway.
package struct DeliveryReference: Sendable, Hashable {
    package var send: SendID
    package var destination: DestinationID

    package init(send: SendID, destination: DestinationID) {
        self.send = send
        self.destination = destination
    }

    package init(_ order: DeliveryOrder) {
        self.init(send: order.send, destination: order.destination)
    }
}
