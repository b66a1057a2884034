package import CanonicalJSON
package import GateVocabulary

extension RegionObservation: EvidentValue {
    package func write(row: inout RowWriter) {
        row.put(code.description)
        source.write(row: &row)
        row.put(observedAt)
    }

    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        guard let code = RegionCode(try row.text()) else { throw .unknown("region") }
        return Self(code: code, source: try .read(row: &row), observedAt: try row.instant())
    }

    package static let shownShape = Shape.named(
        "ObservedRegion",
        .object(
            ObjectShape(
                "Where somebody was believed to be.",
                [
                    .required("code", .text(.region), "ISO 3166."),
                    .required("observed_at", .instant, "When it was observed."),
                    .required("source", RegionSource.shape, "How it became known."),
                ])))

    package func write(shown json: inout CanonicalWriter) {
        json.object { json in
            json.member("code", code.description)
            json.member("observed_at", observedAt.rfc3339)
            json.member("source", source.rawValue)
        }
    }

    /// A body spells it in three members, of which the first may stand alone.
    package static func read(_ name: String, givenIn body: JSONObject, _ giving: Giving) -> Self? {
        guard let code = body[name]?.stringValue.flatMap({ RegionCode($0) }) else { return nil }
        guard case .members(let members) = giving.role,
            let standard = members.first(where: { $0.name == "\(name)_source" })?.defaultValue,
            let source = RegionSource.read(given: body["\(name)_source"] ?? standard)
        else { preconditionFailure("a region is given as what is no observation") }
        return Self(
            code: code, source: source,
            observedAt: body["\(name)_at"].flatMap { Instant.read(given: $0) } ?? .unstated)
    }

    package static func read(given _: JSONValue) -> Self? { nil }
}

extension Giving {
    /// A region, how it became known, and when.
    ///
    /// - Parameter sources: Which may be given; the first is meant where none is.
    static func observation(
        of name: String, _ means: String, from sources: [RegionSource], _ sourceMeans: String
    ) -> Self {
        let shape =
            sources.count == RegionSource.allCases.count
            ? RegionSource.shape : Shape.choice(sources.map(\.rawValue))
        return Self(
            role: .members([
                .optional(name, .text(.region), means),
                .optional(
                    "\(name)_source", shape, default: sources.first.map { .string($0.rawValue) }, sourceMeans),
                .optional("\(name)_at", .instant, "When the region was observed; now when absent."),
            ]), shape: nil)
    }
}
