import CanonicalJSON
package import GateVocabulary

/// What one param of a type must look like.
package struct ParamSchema: Hashable, Sendable {
    package var kind: Kind
    package var isOptional: Bool

    package init(kind: Kind, isOptional: Bool) {
        self.kind = kind
        self.isOptional = isOptional
    }

    /// What a value of the param must be, with its bounds.
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
        /// 4 to 8 decimal digits that give access to an account. On push sealed; a text message may say them where
        /// `code_texts` of regions.yaml lets it.
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
        self = reader.oneOf(
            [
                (
                    "optional", "What it is where a send has it.",
                    { ParamSchema(kind: Self.kind($0), isOptional: true) }
                )
            ],
            else: { ParamSchema(kind: Self.kind($0), isOptional: false) })
    }

    private static let urlHint =
        "write where it may lead, with the whole host: {url: {under: [https://tracking.example.com/parcels]}}"

    /// What a param is that is said in one word.
    private static let plain: KeyValuePairs<String, Kind> = [
        "uuid": .uuid, "money": .money, "totals": .totals,
        "text": .text(byteCountMax: textByteCountDefault, PlainTextRule()),
        "integer": .integer(min: -9_007_199_254_740_991, max: 9_007_199_254_740_991),
        "timestamp": .timestamp, "country": .country, "code": .code,
    ]

    private static func kind(_ reader: NodeReader) -> Kind {
        reader.named("param").oneOf(
            list: { values($0) },
            else: { reader in
                reader.oneOf(
                    [
                        ("text", "A text that keeps the rule for texts.", { text($0) }),
                        ("url", "A link.", { url($0, of: reader) }),
                        ("integer", "A whole number within bounds.", { integer($0, of: reader) }),
                    ], else: { word($0) })
            })
    }

    private static func word(_ reader: NodeReader) -> Kind {
        reader.recorder?.note(.choice(plain.map(\.key)))
        if case .text(let name) = reader.node.value {
            if let kind = plain.first(where: { $0.key == name })?.value { return kind }
            if name == "url" {
                reader.problem("is a link to anywhere", hint: urlHint)
                return .url([])
            }
        }
        reader.problem(
            "is no kind of param",
            hint:
                "known: \(plain.map(\.key).joined(separator: ", ")), {text: {bytes_max: n, allows: [\(TextAllowance.allCases.map(\.rawValue).joined(separator: ", "))]}}, {integer: {min: n, max: n}}, {url: {under: [https://…]}}, a list of values, {optional: …}"
        )
        return .uuid
    }

    private static func values(_ reader: NodeReader) -> Kind {
        let values = reader.elements(countMin: 1, countMax: 256).map { element in
            let value = element.text(byteCountMax: 64)
            // A value is what a send has, byte for byte, and what its text says.
            if let problem = Self.problem(ofValue: value) { element.problem(problem) }
            return value
        }
        if values.isEmpty { reader.problem("is a list of no values, so nothing could fit it") }
        if values.namesOneTwice { reader.problem("names one value twice") }
        return .oneOf(values)
    }

    private static func problem(ofValue value: String) -> String? {
        do throws(TextViolation) {
            let isCanonical = CodeUnits.equal(try PlainTextRule().checked(value).text, value)
            return isCanonical ? nil : "has other blanks than one between two words"
        } catch {
            return error.expectation.replacing("expected", with: "must have")
        }
    }

    private static func text(_ reader: NodeReader) -> Kind {
        let members = reader.members()
        let most = members.optional("bytes_max", "Bytes of it, at most; \(textByteCountDefault) without it.")
        let byteCountMax = most?.integer(1...textByteCountMax) ?? textByteCountDefault
        let allowances: [TextAllowance] =
            members.optional(
                "allows",
                "What of the rule for texts is given up: one line, no domain name, no e-mail address, no telephone number, no long reference, no shortened name without a blank. Never links, invisible characters or blanks."
            )?.elements().map { $0.name() } ?? []
        members.refuseOthers()
        return .text(byteCountMax: byteCountMax, PlainTextRule(allowing: Set(allowances)))
    }

    /// - Parameter param: Where a problem of the whole param is told.
    private static func url(_ reader: NodeReader, of param: NodeReader) -> Kind {
        let members = reader.members()
        let under = members.required(
            "under", "The places on the web it may lead to, with their whole host.")
        let places = under?.elements(countMin: 1, countMax: 16) ?? []
        let prefixes = places.compactMap { place in
            let text = place.shown(as: .text(.webPlaceOfPage)).text(byteCountMax: LinkPrefix.byteCountMax)
            let prefix = LinkPrefix(onWeb: text)
            if prefix == nil { place.problem("is no place on the web", hint: urlHint) }
            return prefix
        }
        if places.isEmpty { param.problem("names no place, so no link could fit it", hint: urlHint) }
        members.refuseOthers()
        return .url(prefixes)
    }

    /// - Parameter param: Where a problem of the whole param is told.
    private static func integer(_ reader: NodeReader, of param: NodeReader) -> Kind {
        let members = reader.members()
        let bounds = -9_007_199_254_740_991...9_007_199_254_740_991
        let least = members.integer("min", bounds, "It is no less.")
        let most = members.integer("max", bounds, "It is no more.")
        if least > most { param.problem("has a `min` above its `max`") }
        members.refuseOthers()
        return .integer(min: Int64(least), max: Int64(max(least, most)))
    }
}
