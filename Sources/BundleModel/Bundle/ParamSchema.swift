import GateVocabulary

/// What one param of a type must look like.
package struct ParamSchema: Hashable, Sendable {
    package var kind: Kind
    package var isOptional: Bool

    package init(kind: Kind, isOptional: Bool) {
        self.kind = kind
        self.isOptional = isOptional
    }

    package indirect enum Kind: Hashable, Sendable {
        /// RFC 9562, 36 lower-case characters; one spelling, because ``NotificationType/dedupeBy`` compares bytes.
        case uuid
        /// `{"minor": 500000, "currency": "NOK"}`: the smallest unit of an ISO 4217 currency.
        case money
        /// One amount per currency, at most ``ParamSchema/totalCountMax``: what a summary adds up.
        case totals
        /// UTF-8, 1 to so many bytes, that keeps the rule for texts.
        case text(byteCountMax: Int, PlainTextRule)
        case integer(min: Int64, max: Int64)
        /// RFC 3339 in UTC, ending in `Z`.
        case timestamp
        /// ISO 3166-1 alpha-2.
        case country
        /// 4 to 8 decimal digits that give access to an account. Never outside a seal.
        case code
        /// `https://…` under one of these places, which the page names.
        case url([LinkPrefix])
        /// One of a closed list.
        case oneOf([String])
    }

    package static let totalCountMax = 8
    /// Bytes of a `text` that names no bound of its own.
    static let textByteCountDefault = 128
    /// Bytes no `text` may exceed: it has to fit a sealed content of 1,974 bytes with everything else.
    static let textByteCountMax = 1024
}

extension ParamSchema {
    init(_ reader: NodeReader) {
        if case .mapping = reader.node.value {
            let members = reader.members()
            if let inner = members.optional("optional") {
                self.init(kind: Self.kind(inner), isOptional: true)
                members.refuseOthers()
                return
            }
        }
        self.init(kind: Self.kind(reader), isOptional: false)
    }

    private static let urlHint =
        "write where it may lead, with the whole host: {url: {under: [https://tracking.example.com/parcels]}}"

    private static func kind(_ reader: NodeReader) -> Kind {
        switch reader.node.value {
        case .text(let name):
            switch name {
            case "uuid": return .uuid
            case "money": return .money
            case "totals": return .totals
            case "text": return .text(byteCountMax: textByteCountDefault, PlainTextRule())
            case "integer":
                return .integer(min: -9_007_199_254_740_991, max: 9_007_199_254_740_991)
            case "timestamp": return .timestamp
            case "country": return .country
            case "code": return .code
            case "url":
                reader.problem("is a link to anywhere", hint: urlHint)
                return .url([])
            default: break
            }
        case .list:
            let values = reader.elements(countMax: 256).map { $0.text(byteCountMax: 64) }
            if values.isEmpty { reader.problem("is a list of no values, so nothing could fit it") }
            if values.namesOneTwice { reader.problem("names one value twice") }
            return .oneOf(values)
        case .mapping:
            let members = reader.members()
            if let text = members.optional("text")?.members() {
                let most = text.optional("bytes_max")?.integer(1...textByteCountMax) ?? textByteCountDefault
                let allowances: [TextAllowance] = text.optional("allows")?.elements().map { $0.name() } ?? []
                text.refuseOthers()
                members.refuseOthers()
                return .text(byteCountMax: most, PlainTextRule(allowing: Set(allowances)))
            }
            if let url = members.optional("url")?.members() {
                let places = url.required("under")?.elements(countMax: 16) ?? []
                let prefixes = places.compactMap { place in
                    let prefix = LinkPrefix(onWeb: place.text(byteCountMax: LinkPrefix.byteCountMax))
                    if prefix == nil { place.problem("is no place on the web", hint: urlHint) }
                    return prefix
                }
                if places.isEmpty { reader.problem("names no place, so no link could fit it", hint: urlHint) }
                url.refuseOthers()
                members.refuseOthers()
                return .url(prefixes)
            }
            if let integer = members.optional("integer")?.members() {
                let bounds = -9_007_199_254_740_991...9_007_199_254_740_991
                let least = integer.integer("min", bounds)
                let most = integer.integer("max", bounds)
                if least > most { reader.problem("has a `min` above its `max`") }
                integer.refuseOthers()
                members.refuseOthers()
                return .integer(min: Int64(least), max: Int64(max(least, most)))
            }
        default: break
        }
        reader.problem(
            "is no kind of param",
            hint:
                "known: uuid, money, totals, text, {text: {bytes_max: n, allows: [line_breaks, domain_names, email_addresses, phone_numbers, reference, abbreviations]}}, integer, {integer: {min: n, max: n}}, timestamp, country, code, {url: {under: [https://…]}}, a list of values, {optional: …}"
        )
        return .uuid
    }
}
