import CanonicalJSON

/// What a producer asks for: one notification to one recipient.
///
/// ```swift
/// let send = Send(
///     id: "rem-8812736-sent", type: "transaction.remittance_sent", recipient: "u_42",
///     params: ["amount": .money(minor: 500_000, currency: "NOK"), "recipient_name": "Ahmad Karimi"])
/// ```
public struct Send: Hashable, Sendable {
    /// How the notification travels.
    public enum Channel: String, Hashable, Sendable {
        case push
        case sms
        case email
    }

    /// The idempotency key, 1 to 128 bytes, yours to choose. The gateway answers a repeated id with its
    /// first answer and sends nothing twice, for at least 31 days. Take it from the event that caused the
    /// send, not from a random source, so that a restarted producer finds the same one.
    public var id: String
    /// A type from the registry, e.g. `transaction.remittance_sent`.
    public var type: String
    /// The user to notify, by your own id for them.
    public var recipient: String
    /// One device or address; `nil` means every active one of the channel.
    public var device: String?
    /// By name, as `GET /v1/types/<type>` lists them.
    public var params: [String: SendValue]
    /// A push unless said otherwise.
    public var channel: Channel
    /// The `sendID` of a failed send this one replaces, with the same caller and recipient.
    public var fallbackFor: String?
    /// Asks for the operating system's critical alert. Refused, never downgraded, without the grant.
    public var critical: Bool
    /// Seconds from acceptance; the type's own when `nil`.
    public var ttlSeconds: Int64?
    /// Sends of one key replace each other on the device.
    public var collapseKey: String?
    /// Where a tap leads: below a place the type declares. The type's own place when `nil`.
    public var deepLink: String?
    /// A BCP 47 language tag; the recipient's when `nil`.
    public var locale: String?
    /// On a socket in shadow: whether your own sender sent it, for the gateway's report. Refused elsewhere.
    public var sent: Bool?

    /// Checks nothing: a send that breaks a rule is refused when it is sent (``SendgateError``).
    public init(
        id: String, type: String, recipient: String, device: String? = nil,
        params: [String: SendValue] = [:], channel: Channel = .push, fallbackFor: String? = nil,
        critical: Bool = false, ttlSeconds: Int64? = nil, collapseKey: String? = nil,
        deepLink: String? = nil, locale: String? = nil, sent: Bool? = nil
    ) {
        self.id = id
        self.type = type
        self.recipient = recipient
        self.device = device
        self.params = params
        self.channel = channel
        self.fallbackFor = fallbackFor
        self.critical = critical
        self.ttlSeconds = ttlSeconds
        self.collapseKey = collapseKey
        self.deepLink = deepLink
        self.locale = locale
        self.sent = sent
    }

    /// The longest request the gateway reads, in bytes.
    static let byteCountMax = 64 * 1024

    /// The body of the request, on one line.
    func encoded() throws(SendgateError) -> [UInt8] {
        var object: JSONObject = [
            "id": .string(id), "type": .string(type), "channel": .string(channel.rawValue),
            "params": try SendValue.object(params).json(depth: 0),
        ]
        var to: JSONObject = ["user": .string(recipient)]
        if let device { to["device"] = .string(device) }
        object["recipient"] = .object(to)
        if let fallbackFor { object["fallback_for"] = .string(fallbackFor) }
        if critical { object["critical"] = true }
        if let sent { object["sent"] = .boolean(sent) }
        if let ttlSeconds { object["ttl_seconds"] = try SendValue.integer(ttlSeconds).json(depth: 0) }
        if let collapseKey { object["collapse_key"] = .string(collapseKey) }
        if let deepLink { object["deep_link"] = .string(deepLink) }
        if let locale { object["locale"] = .string(locale) }
        let bytes = CanonicalJSON.write(object)
        guard bytes.count <= Self.byteCountMax else {
            throw .invalidSend("the send has \(bytes.count) bytes, \(Self.byteCountMax) are allowed")
        }
        return bytes
    }
}

/// A parameter of a send. There are no fractions: money is minor units, as the registry's schemas want it.
public indirect enum SendValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    /// Within ±(2⁵³−1), which every JSON reader carries exactly (RFC 7493 section 2.2).
    case integer(Int64)
    case string(String)
    case array([SendValue])
    case object([String: SendValue])

    /// An amount, e.g. `.money(minor: 500_000, currency: "NOK")` for 5,000 kroner.
    public static func money(minor: Int64, currency: String) -> SendValue {
        .object(["minor": .integer(minor), "currency": .string(currency)])
    }

    /// Deeper than any schema of the registry; the gateway refuses more as well.
    static let depthMax = 16

    func json(depth: Int) throws(SendgateError) -> JSONValue {
        guard depth <= Self.depthMax else {
            throw .invalidSend("params are nested more than \(Self.depthMax) levels deep")
        }
        switch self {
        case .null: return .null
        case .boolean(let value): return .boolean(value)
        case .integer(let value):
            guard CanonicalJSON.integerMin...CanonicalJSON.integerMax ~= value else {
                throw .invalidSend("\(value) is not within ±(2⁵³−1); send it as a string")
            }
            return .integer(value)
        case .string(let value): return .string(value)
        case .array(let values):
            var array: [JSONValue] = []
            for value in values { array.append(try value.json(depth: depth + 1)) }
            return .array(array)
        case .object(let members):
            var object = JSONObject()
            for (key, value) in members { object[key] = try value.json(depth: depth + 1) }
            return .object(object)
        }
    }
}

extension SendValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
    public init(nilLiteral: ()) { self = .null }
    public init(arrayLiteral elements: SendValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, SendValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
    }
}
