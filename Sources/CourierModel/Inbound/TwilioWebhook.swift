import CanonicalJSON
import GateVocabulary
import SealedFormat

/// A webhook that Twilio calls. Every request is signed with the account's auth token (HMAC-SHA1 over the address and the sorted
/// fields, https://www.twilio.com/docs/usage/webhooks/webhooks-security), or, under a rule for the address, with a shared key and
/// HMAC-SHA256, which ``settingsHeader`` then says.
package struct TwilioWebhook: Sendable {
    static let header = "x-twilio-signature"
    static let settingsHeader = "x-twilio-webhooks-signature-settings"

    /// At the courier's listener.
    package var path: String
    /// The address as Twilio calls it, without a query: scheme, host, and whatever path the proxy in front has for it.
    package var publicURL: String
    /// The account's auth token, or the shared key; two while it is changed.
    package var authTokens: [[UInt8]]

    package init(path: String, publicURL: String, authTokens: [[UInt8]]) {
        self.path = path
        self.publicURL = publicURL
        self.authTokens = authTokens
    }

    /// The address to give Twilio as `StatusCallback` of one message. What the callback is about is in the query, which the
    /// signature covers, so that no table of Twilio's ids has to be kept.
    package static func statusCallback(_ publicURL: String, for order: DeliveryOrder) -> String {
        publicURL + "?"
            + FormFields.write([
                ("send", order.send.uuidText), ("destination", order.destination.text),
            ])
    }

    func readMessage(_ request: InboundRequest) -> InboundResult {
        let form: [String: String]
        switch fields(of: request) {
        case .success(let fields): form = fields
        case .failure(let refusal): return refusal.result
        }
        guard let id = form["MessageSid"], let from = form["From"], (1...128).contains(id.utf8.count) else {
            return .refused(status: 400, reason: "the form has no MessageSid or no From")
        }
        return .pass([
            InboundReport(
                .reply(id: id, channel: .sms, from: from, text: form["Body"] ?? ""), key: "twilio/\(id)")
        ])
    }

    func readStatus(_ request: InboundRequest) -> InboundResult {
        let form: [String: String]
        switch fields(of: request) {
        case .success(let fields): form = fields
        case .failure(let refusal): return refusal.result
        }
        guard let id = form["MessageSid"], let status = form["MessageStatus"] else {
            return .refused(status: 400, reason: "the form has no MessageSid or no MessageStatus")
        }
        guard status == "failed" || status == "undelivered" || status == "canceled" else { return .nothing }
        let query = FormFields.read((request.query ?? "").utf8) ?? []
        guard let send = query.first(where: { $0.name == "send" }).flatMap({ SendID(uuidText: $0.value) }),
            let destination = query.first(where: { $0.name == "destination" })?.value, !destination.isEmpty
        else {
            return .refused(
                status: 400, reason: "the query does not say which send and destination the callback is about"
            )
        }
        let code = form["ErrorCode"].flatMap { Int($0) }
        return .pass([
            InboundReport(
                .receipt(
                    DeliveryReference(send: send, destination: DestinationID(destination)),
                    TwilioErrors.event(ofStatus: status, code: code),
                    reason: code.map { "twilio_\($0)" } ?? "twilio_\(status)"),
                key: "twilio/\(id)/\(status)")
        ])
    }

    private struct Refusal: Error {
        var result: InboundResult
        init(_ status: Int, _ reason: String) { result = .refused(status: status, reason: reason) }
    }

    private func fields(of request: InboundRequest) -> Result<[String: String], Refusal> {
        guard let signature = request.header(Self.header).flatMap({ Base64.decode($0) }) else {
            return .failure(Refusal(403, "the header \(Self.header) is missing or is not base64"))
        }
        guard let fields = FormFields.read(request.body) else {
            return .failure(Refusal(400, "the body is not a form in UTF-8"))
        }
        let url = publicURL + (request.query.map { "?\($0)" } ?? "")
        let isSHA256 = request.header(Self.settingsHeader)?.contains("algorithm=HMAC_SHA256") ?? false
        let isGenuine = authTokens.contains { token in
            Self.spellings(of: url).contains { url in
                let signed = Self.signed(url, fields)
                return isSHA256
                    ? Authentication.isSHA256(signature, of: signed, under: token)
                    : Authentication.isSHA1(signature, of: signed, under: token)
            }
        }
        guard isGenuine else { return .failure(Refusal(403, "the signature is wrong")) }
        return .success(Dictionary(fields.map { ($0.name, $0.value) }) { first, _ in first })
    }

    /// The address, and the names and values of the fields in the order of the names and, of one name, of the values, each pair
    /// once.
    private static func signed(_ url: String, _ fields: [(name: String, value: String)]) -> [UInt8] {
        let sorted = fields.sorted {
            $0.name == $1.name
                ? CodeUnits.precedes($0.value, $1.value) : CodeUnits.precedes($0.name, $1.name)
        }
        var bytes = Array(url.utf8)
        var last: (name: String, value: String)?
        for field in sorted where last == nil || last! != field {
            bytes += field.name.utf8
            bytes += field.value.utf8
            last = field
        }
        return bytes
    }

    /// Twilio signs the address with or without a port that goes without saying, depending on the product, and its own
    /// libraries try both.
    private static func spellings(of url: String) -> [String] {
        guard
            let start = url.firstIndex(of: ":").flatMap({
                url.index($0, offsetBy: 3, limitedBy: url.endIndex)
            })
        else { return [url] }
        let end = url[start...].firstIndex { "/?".contains($0) } ?? url.endIndex
        let authority = url[start..<end]
        let scheme = url[..<start]
        guard let colon = authority.lastIndex(of: ":") else {
            let port = scheme == "https://" ? ":443" : ":80"
            return [url, scheme + authority + port + url[end...]]
        }
        return [url, String(scheme + authority[..<colon] + url[end...])]
    }

    /// TwiML (https://www.twilio.com/docs/messaging/twiml): what Twilio texts back, or nothing.
    static func response(_ text: String?) -> String {
        guard let text else { return "<Response/>" }
        let escaped = text.map { character in
            switch character {
            case "&": "&amp;"
            case "<": "&lt;"
            case ">": "&gt;"
            default: String(character)
            }
        }
        return "<Response><Message>\(escaped.joined())</Message></Response>"
    }
}
