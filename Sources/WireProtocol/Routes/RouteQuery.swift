import CanonicalJSON
import GateRecords
package import GateVocabulary

/// The query of a route: its parameters as the reference lists them, and their values.
package protocol RouteQuery: Sendable {
    static var parameters: [Parameter] { get }
    /// - Parameter arguments: Notes every value that is not what its parameter says.
    init(_ arguments: inout RouteArguments)
}

/// A route that knows no query parameter.
package struct NoQuery: RouteQuery {
    package static var parameters: [Parameter] { [] }
    package init(_ arguments: inout RouteArguments) {}
}

/// A parameter that may be left out, with how its value is read.
package struct QueryParameter<Value: Sendable>: Sendable {
    let name: String
    let shape: Shape
    let means: String
    /// Completes "expected …".
    let expectation: String
    /// What counts where it is left out; `nil` where that means something of its own.
    let defaultValue: JSONValue?
    let read: @Sendable (String) -> Value?

    package var parameter: Parameter {
        var components = SchemaComponents()
        var schema = components.schema(of: shape)
        if let defaultValue { schema["default"] = defaultValue }
        return Parameter(name: name, place: .query, schema: schema, means: means)
    }
}

extension QueryParameter where Value == Int64 {
    init(_ name: String, in range: ClosedRange<Int64>, default value: Int64, _ means: String) {
        self.init(
            name: name, shape: .integer(range), means: means,
            expectation: "an integer from \(range.lowerBound) to \(range.upperBound)",
            defaultValue: .integer(value)
        ) { text in
            // One spelling: no sign, no leading zero.
            guard text.utf8.allSatisfy(\.isDigit),
                text.utf8.count == 1 || text.utf8.first != UInt8(ascii: "0"),
                let integer = Int64(text), range.contains(integer)
            else { return nil }
            return integer
        }
    }
}

extension QueryParameter where Value == SendID {
    init(_ name: String, _ means: String) {
        self.init(
            name: name, shape: .uuid, means: means, expectation: TextRule.uuid.expectation,
            defaultValue: nil
        ) { TextRule.uuid.accepts($0) ? SendID(uuidText: $0) : nil }
    }
}

extension QueryParameter where Value == Instant {
    init(_ name: String, _ means: String) {
        self.init(
            name: name, shape: .text(.instant), means: means,
            expectation: TextRule.instant.expectation
                + ", with `+` as `%2B` where a client would make it a space",
            defaultValue: nil
        ) { Instant(rfc3339: $0) }
    }
}

extension QueryParameter where Value == SubjectID {
    init(_ name: String, _ means: String) {
        self.init(
            name: name, shape: .text(.pseudonym), means: means, expectation: TextRule.pseudonym.expectation,
            defaultValue: nil
        ) { TextRule.pseudonym.accepts($0) ? SubjectID(hexadecimal: $0) : nil }
    }
}

extension QueryParameter where Value == String {
    /// The language of sentences.
    static let locale = QueryParameter(
        name: "locale", shape: .text(.locale),
        means:
            "The language of `explanation` and its like. English without it; where the bundle does not have the language, the one that its `languages` names.",
        expectation: TextRule.locale.expectation, defaultValue: .string("en")
    ) { TextRule.locale.accepts($0) ? $0 : nil }
}

/// `?locale=`, of a route that answers in sentences.
package struct LocaleQuery: RouteQuery, Hashable {
    /// A BCP 47 tag; `nil` for English.
    package var locale: String?

    package static let parameters = [QueryParameter.locale.parameter]

    package init(_ arguments: inout RouteArguments) { locale = arguments.value(QueryParameter.locale) }
}

/// `GET /v1/drift/findings?after=&limit=`
package struct DriftFindingsQuery: RouteQuery, Hashable {
    /// Only people after this one; `nil` begins with the first.
    package var after: SubjectID?
    /// People looked at, 1 to ``WireLimits/driftPersonCountMax``.
    package var limit: Int64

    private static let afterParameter = QueryParameter<SubjectID>("after", "The `next` of the page before.")
    private static let limitParameter = QueryParameter<Int64>(
        "limit", in: 1...WireLimits.driftPersonCountMax, default: WireLimits.driftPersonCountMax,
        "How many people are looked at, of whom most have nothing to tell.")
    package static let parameters = [afterParameter.parameter, limitParameter.parameter]

    package init(_ arguments: inout RouteArguments) {
        after = arguments.value(Self.afterParameter)
        limit = arguments.value(Self.limitParameter) ?? WireLimits.driftPersonCountMax
    }
}

/// `GET /v1/events?after=&limit=`
package struct EventsQuery: RouteQuery, Hashable {
    /// The newest cursor the caller has seen; 0 for everything still kept.
    package var after: Int64
    /// 1 to ``WireLimits/eventCountMax``.
    package var limit: Int64

    private static let afterParameter = QueryParameter<Int64>(
        "after", in: 0...CanonicalJSON.integerMax, default: 0, "The newest cursor already seen.")
    private static let limitParameter = QueryParameter<Int64>(
        "limit", in: 1...WireLimits.eventCountMax, default: WireLimits.eventCountDefault, "At most so many.")
    package static let parameters = [afterParameter.parameter, limitParameter.parameter]

    package init(_ arguments: inout RouteArguments) {
        after = arguments.value(Self.afterParameter) ?? 0
        limit = arguments.value(Self.limitParameter) ?? WireLimits.eventCountDefault
    }
}

/// `GET …/consents?as_of=&known_at=`: the ledger as it stood at one moment, as far as it was known at another.
package struct ConsentsQuery: RouteQuery, Hashable {
    /// Events up to this `event_time`; `nil` for all.
    package var asOf: Instant?
    /// Events the gate had heard of by then; `nil` for all.
    package var knownAt: Instant?

    private static let asOfParameter = QueryParameter<Instant>("as_of", "Events up to this `event_time`.")
    private static let knownAtParameter = QueryParameter<Instant>(
        "known_at", "Events the gate had heard of by then.")
    package static let parameters = [asOfParameter.parameter, knownAtParameter.parameter]

    package init(asOf: Instant?, knownAt: Instant?) {
        self.asOf = asOf
        self.knownAt = knownAt
    }

    package init(_ arguments: inout RouteArguments) {
        asOf = arguments.value(Self.asOfParameter)
        knownAt = arguments.value(Self.knownAtParameter)
    }
}

/// `GET …/decisions?limit=&before=&locale=`, newest first.
package struct DecisionsQuery: RouteQuery, Hashable {
    /// Only older sends than this one; `nil` begins with the newest.
    package var before: SendID?
    /// 1 to ``WireLimits/decisionCountMax``.
    package var limit: Int64
    /// A BCP 47 tag; `nil` for English.
    package var locale: String?

    private static let limitParameter = QueryParameter<Int64>(
        "limit", in: 1...WireLimits.decisionCountMax, default: WireLimits.decisionCountDefault,
        "At most so many, newest first.")
    private static let beforeParameter = QueryParameter<SendID>(
        "before", "Older ones than this send: the `next` of the page before.")
    package static let parameters = [
        limitParameter.parameter, beforeParameter.parameter, QueryParameter.locale.parameter,
    ]

    package init(before: SendID? = nil, limit: Int64, locale: String? = nil) {
        self.before = before
        self.limit = limit
        self.locale = locale
    }

    package init(_ arguments: inout RouteArguments) {
        before = arguments.value(Self.beforeParameter)
        limit = arguments.value(Self.limitParameter) ?? WireLimits.decisionCountDefault
        locale = arguments.value(QueryParameter.locale)
    }
}
