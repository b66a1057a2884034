package import CanonicalJSON
import GateVocabulary

/// How a text is handed to an SMS provider that takes JSON over HTTPS: a request with places to fill, and how its answer is read.
///
/// `${to}`, `${text}`, `${id}` (the message's id), `${send}`, `${destination}` and, in headers alone, `${secret}` are filled. In the body
/// they stand in strings, so no text can leave the string it is in; in the path they are percent-encoded.
package struct TextTemplate: Sendable, Hashable {
    package enum Place: String, CaseIterable, Sendable {
        case to, text, id, send, destination, secret
    }

    /// What a status of the provider means where the rule of ``HTTPTextAnswer`` is not the provider's.
    package enum Meaning: String, CaseIterable, Sendable {
        case accepted, failed
        /// This message waits.
        case later
        /// All messages wait for the provider.
        case app
        /// All messages wait for the operator: the account or the settings are wrong.
        case misconfigured
        case ambiguous
    }

    package var method = "POST"
    /// With the query.
    package var path: String
    package var headers: [(name: String, value: String)]
    package var body: JSONValue
    /// Where the answer has the provider's id (RFC 6901).
    package var idPointer: JSONPointer?
    /// Where the answer of an error has its code.
    package var codePointer: JSONPointer?
    /// Meanings by HTTP status.
    package var statuses: [Int: Meaning]
    /// Meanings by the code at ``codePointer``, which counts more than the status.
    package var codes: [String: Meaning]

    package init(
        method: String = "POST", path: String, headers: [(name: String, value: String)], body: JSONValue,
        idPointer: JSONPointer? = nil, codePointer: JSONPointer? = nil, statuses: [Int: Meaning] = [:],
        codes: [String: Meaning] = [:]
    ) {
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.idPointer = idPointer
        self.codePointer = codePointer
        self.statuses = statuses
        self.codes = codes
    }

    package static func == (left: TextTemplate, right: TextTemplate) -> Bool {
        left.method == right.method && left.path == right.path && left.body == right.body
            && left.headers.elementsEqual(right.headers, by: ==) && left.idPointer == right.idPointer
            && left.codePointer == right.codePointer && left.statuses == right.statuses
            && left.codes == right.codes
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(path) }

    /// The part of the template that cannot be used; `nil` when all can.
    package var fault: String? {
        var texts = [("path", path)] + headers.map { ("header `\($0.name)`", $0.value) }
        texts += Self.strings(of: body).map { ("body", $0) }
        for (place, text) in texts {
            for name in Self.names(in: text) {
                guard let known = Place(rawValue: name) else {
                    let all = Place.allCases.map { "${\($0.rawValue)}" }.joined(separator: ", ")
                    return "`${\(name)}` in the \(place) is none of \(all)"
                }
                if known == .secret, !place.hasPrefix("header") {
                    return "`${secret}` stands in the \(place); put it into a header"
                }
                if [.text, .to, .destination].contains(known), place.hasPrefix("header") {
                    return "`${\(name)}` stands in the \(place); put it into the body"
                }
            }
        }
        let inBody = Set(Self.strings(of: body).flatMap(Self.names))
        if !inBody.contains("text") { return "the body has no `${text}`" }
        if !inBody.contains("to"), !Self.names(in: path).contains("to") {
            return "neither body nor path has `${to}`"
        }
        return nil
    }

    /// - Parameter secret: The credential, for headers; only that it has no line break is looked at.
    package func request(
        for order: DeliveryOrder, text: String, secret: String
    ) -> (path: String, headers: [(name: String, value: String)], body: JSONValue) {
        let values: [Place: String] = [
            .to: order.token, .text: text, .id: order.message.uuidText, .send: order.send.uuidText,
            .destination: order.destination.text, .secret: secret,
        ]
        return (
            Self.fill(path) { values[$0].map(PercentEncoding.encode) },
            headers.map { (name: $0.name, value: Self.fill($0.value) { values[$0] }) },
            Self.fill(body) { $0 == .secret ? nil : values[$0] }
        )
    }

    /// - Parameters:
    ///   - answer: `nil` where the body is no JSON.
    ///   - retryAfter: In seconds.
    ///   - suspects: Weighs a refusal that does not say whether the text or the settings are at fault.
    ///   - now: Milliseconds on a clock that never jumps.
    package func outcome(
        status: Int, answer: JSONValue?, retryAfter: Int?, weighing suspects: inout SuspectAnswers,
        at now: Int64
    ) -> DeliveryOutcome {
        let code = codePointer.flatMap { answer?[$0] }.flatMap(Self.word)
        let reason = code.map { "provider_\(InboundReport.reason($0))" } ?? "provider_http_\(status)"
        let id = idPointer.flatMap { answer?[$0] }.flatMap(Self.word)
        switch code.flatMap({ codes[$0] }) ?? statuses[status] {
        case .accepted: return .accepted(providerID: id)
        case .failed: return .failed(reason: reason)
        case .later: return .later(reason: reason, seconds: retryAfter, scope: .message)
        case .app: return .later(reason: reason, seconds: retryAfter, scope: .app)
        case .misconfigured: return .misconfigured(reason: reason)
        case .ambiguous: return .ambiguous(reason: reason, mayRepeat: false)
        // The code that would say what became of the text cannot be read.
        case nil where codePointer != nil && answer == nil && (200..<300).contains(status):
            return .ambiguous(reason: "provider_answer_unreadable", mayRepeat: false)
        // A code that nobody has said the meaning of: a text that was taken goes once, and one that was not is not called taken.
        case nil where code != nil && !codes.isEmpty && (200..<300).contains(status):
            return .ambiguous(reason: reason, mayRepeat: false)
        case nil:
            let outcome = HTTPTextAnswer.outcome(
                status: status, reason: reason, retryAfter: retryAfter, weighing: &suspects, at: now)
            if case .accepted = outcome { return .accepted(providerID: id) }
            return outcome
        }
    }

    private static func word(_ value: JSONValue) -> String? {
        switch value {
        case .string(let text) where (1...128).contains(text.utf8.count): text
        case .integer(let number): String(number)
        default: nil
        }
    }

    // MARK: Places

    private static func fill(_ value: JSONValue, _ text: (Place) -> String?) -> JSONValue {
        switch value {
        case .string(let string): .string(fill(string, text))
        case .array(let elements): .array(elements.map { fill($0, text) })
        case .object(let object): .object(JSONObject(object.map { ($0.key, fill($0.value, text)) }))
        default: value
        }
    }

    /// One pass: what a value brings in is not looked at again.
    private static func fill(_ template: String, _ text: (Place) -> String?) -> String {
        pieces(of: template).map { piece in
            switch piece {
            case .text(let literal): literal
            case .name(let name): Place(rawValue: name).flatMap(text) ?? ""
            }
        }.joined()
    }

    private enum Piece {
        case text(String)
        case name(String)
    }

    private static func pieces(of template: String) -> [Piece] {
        var (pieces, rest): ([Piece], Substring) = ([], template[...])
        while let start = rest.firstRange(of: "${"), let end = rest[start.upperBound...].firstIndex(of: "}") {
            pieces += [.text(String(rest[..<start.lowerBound])), .name(String(rest[start.upperBound..<end]))]
            rest = rest[rest.index(after: end)...]
        }
        return pieces + [.text(String(rest))]
    }

    private static func names(in template: String) -> [String] {
        pieces(of: template).compactMap { if case .name(let name) = $0 { name } else { nil } }
    }

    private static func strings(of value: JSONValue) -> [String] {
        switch value {
        case .string(let text): [text]
        case .array(let elements): elements.flatMap(strings)
        case .object(let object): object.flatMap { strings(of: $0.value) }
        default: []
        }
    }
}
