package import CanonicalJSON

// What the values of facts look like in JSON. Which facts there are is declared beside ``Facts``.

extension ParamsFact: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension FallbackFact: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension RepetitionFact: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension RecipientFact: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension AgeFact: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension PrivacyLevel: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension RegionSource: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension ConsentState: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension ConsentMethod: QuotedValue {
    package static let quoted = QuotedNames(of: recorded, \.rawValue)
}
extension PreferenceState: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension DestinationFact: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension Platform: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension OSPermission: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }
extension DeviceKeyFact: QuotedValue { package static let quoted = QuotedNames(\Self.rawValue) }

/// The regions of devices.
extension RegionObservation: FieldElement {
    package static var countMax: Int { Facts.deviceRegionCountMax }
}

extension RegionObservation: FieldObject {
    package static let means = "Where somebody was believed to be, how that became known, and when."
    package static var blank: RegionObservation {
        RegionObservation(code: .unknown, source: .ip, observedAt: Instant(milliseconds: 0))
    }

    @inline(__always)
    package static func show<Visitor: FieldVisitor & ~Copyable>(
        to fields: inout Visitor
    ) throws(Visitor.Failure) where Visitor.Object == RegionObservation {
        try fields.required("code", \.code, "ISO 3166-1, or ISO 3166-2 where a country is not enough.")
        try fields.required("observed_at", \.observedAt, "Unix milliseconds.")
        try fields.required("source", \.source, "How it became known.")
    }
}

extension TextRule {
    /// A country, or a part of one where the law differs.
    package static let region = TextRule(
        "an ISO 3166 code such as `NO` or `US-CA`", lengths: 2...6, pattern: "^[A-Z]{2}(?:-[A-Z0-9]{1,3})?$"
    ) { bytes in
        guard bytes.count == 2 || (bytes.count >= 4 && bytes.count <= 6) else { return false }
        guard bytes[0].isUppercaseLetter, bytes[1].isUppercaseLetter else { return false }
        guard bytes.count > 2 else { return true }
        guard bytes[2] == UInt8(ascii: "-") else { return false }
        for index in 3..<bytes.count where !(bytes[index].isUppercaseLetter || bytes[index].isDigit) {
            return false
        }
        return true
    }
}

extension RegionCode: FieldValue {
    package static var shape: Shape { .text(.region) }

    @inline(__always)
    package func write(field json: inout CanonicalWriter) {
        json.name(description)
    }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> RegionCode {
        guard let code = RegionCode(try cursor.text(byteCountMax: 6)) else {
            throw cursor.failure("an ISO 3166 code")
        }
        return code
    }

    package static func read(
        field value: JSONValue
    ) throws(JSONShapeError) -> RegionCode {
        guard let code = RegionCode(try JSONShape.text(value, .root)) else {
            throw JSONShapeError(.root, "expected an ISO 3166 code such as `NO` or `US-CA`")
        }
        return code
    }
}

extension ConsentFact: FieldObject {
    package static let means = "The newest word of one person on one purpose."
    package static var blank: ConsentFact { ConsentFact(state: .neverAsked) }

    @inline(__always)
    package static func show<Visitor: FieldVisitor & ~Copyable>(
        to fields: inout Visitor
    ) throws(Visitor.Failure) where Visitor.Object == ConsentFact {
        try fields.optional("expires_at", \.expiresAt, "Unix milliseconds.")
        try fields.optional("method", \.method, "How it was given.")
        try fields.required("state", \.state, "What was said.")
    }
}

extension PayloadSizes: FieldObject {
    package static let means = "Bytes of the composed payload in each form it could take."
    package static var blank: PayloadSizes { PayloadSizes() }

    @inline(__always)
    package static func show<Visitor: FieldVisitor & ~Copyable>(
        to fields: inout Visitor
    ) throws(Visitor.Failure) where Visitor.Object == PayloadSizes {
        try fields.optional("full", \.full, "Full.")
        try fields.optional("generic", \.generic, "Generic.")
        try fields.optional("sealed", \.sealed, "Sealed.")
    }
}

extension QuietHoursFact: FieldValue {
    package static var shape: Shape {
        .variants(
            VariantShape(
                "state", "Where the moment lies.",
                [
                    (
                        ["off", "outside", "zone_missing"],
                        ObjectShape("Not inside the quiet hours, or nobody can tell.", [])
                    ),
                    (
                        ["inside", "inside_somewhere"],
                        ObjectShape(
                            "Inside the quiet hours; `inside_somewhere` in one of the zones where the recipient may be.",
                            [.required("ends_at", Instant.shape, "Unix milliseconds when the window ends.")])
                    ),
                ]))
    }

    package func write(field json: inout CanonicalWriter) {
        switch self {
        case .off: json.raw(#"{"state":"off"}"#)
        case .outside: json.raw(#"{"state":"outside"}"#)
        case .zoneMissing: json.raw(#"{"state":"zone_missing"}"#)
        case .inside(let end), .insideSomewhere(let end):
            json.object { json in
                json.member("ends_at", end)
                json.member("state", state)
            }
        }
    }

    package static func read(field cursor: inout EntryCursor) throws(EntryError) -> QuietHoursFact {
        if cursor.skip(#"{"state":"off"}"#) { return .off }
        if cursor.skip(#"{"state":"outside"}"#) { return .outside }
        if cursor.skip(#"{"state":"zone_missing"}"#) { return .zoneMissing }
        try cursor.expect(#"{"ends_at":"#)
        let end = try cursor.instant()
        if cursor.skip(#","state":"inside_somewhere"}"#) { return .insideSomewhere(endsAt: end) }
        try cursor.expect(#","state":"inside"}"#)
        return .inside(endsAt: end)
    }

    package static func read(
        field json: JSONValue
    ) throws(JSONShapeError) -> QuietHoursFact {
        var members = try JSONMembers(json, at: .root)
        let state = try members.required("state", JSONShape.text)
        let read: QuietHoursFact
        switch state {
        case "off": read = .off
        case "zone_missing": read = .zoneMissing
        case "outside": read = .outside
        case "inside": read = .inside(endsAt: try members.required("ends_at", JSONShape.instant))
        case "inside_somewhere":
            read = .insideSomewhere(endsAt: try members.required("ends_at", JSONShape.instant))
        default:
            throw JSONShapeError(
                JSONPointer.root.appending("state"),
                "expected one of `off`, `zone_missing`, `outside`, `inside`, `inside_somewhere`")
        }
        try members.refuseOthers()
        return read
    }

    /// The name of the case.
    package var state: String {
        switch self {
        case .off: "off"
        case .zoneMissing: "zone_missing"
        case .outside: "outside"
        case .inside: "inside"
        case .insideSomewhere: "inside_somewhere"
        }
    }
}
