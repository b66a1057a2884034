package import CanonicalJSON

/// Counts of the parts of a line of an import.
package struct ImportCounts: WireAnswer, Hashable {
    package var recipients = 0
    package var devices = 0
    package var addresses = 0
    package var consents = 0
    package var withdrawals = 0
    package var preferences = 0

    package init() {}

    package var total: Int { recipients + devices + addresses + consents + withdrawals + preferences }

    package static let name = "ImportCounts"
    package static let means = "How many of each."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("addresses", answer, \.addresses, "Phone numbers and e-mail addresses.")
        fields.required("consents", answer, \.consents, "Consents.")
        fields.required("devices", answer, \.devices, "Devices.")
        fields.required("preferences", answer, \.preferences, "Choices, opt-outs among them.")
        fields.required("recipients", answer, \.recipients, "People.")
        fields.required("withdrawals", answer, \.withdrawals, "Withdrawals of consents.")
    }
}

/// A part of a line of an import that was not recorded.
package struct ImportRefusal: WireAnswer, Hashable {
    package var pointer: JSONPointer
    package var reason: ProblemName
    package var detail: String

    package init(_ pointer: JSONPointer, _ reason: ProblemName, _ detail: String) {
        (self.pointer, self.reason, self.detail) = (pointer, reason, detail)
    }

    package static let name = "ImportRefusal"
    package static let means = "A part of the line that was not recorded; the others were."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required("detail", answer, \.detail, "What is wrong with it.")
        fields.required("pointer", answer, { $0.pointer.shortened() }, "Which part of the line (RFC 6901).")
        fields.required(
            "reason", as: .choice(ProblemName.allCases.map(\.rawValue)), answer, \.reason.rawValue,
            "The name of the problem that its own route would answer with.")
    }
}

/// What became of one line of `POST /v1/import`.
package struct ImportAnswer: WireAnswer, Hashable {
    package var recorded: ImportCounts
    /// Parts that were so before.
    package var unchanged: ImportCounts
    /// Parts that are registered otherwise, and stay so.
    package var kept: [JSONPointer]
    package var refused: [ImportRefusal]
    /// `nil` where nothing was recorded.
    package var trail: TrailReference?

    package init(
        recorded: ImportCounts, unchanged: ImportCounts, kept: [JSONPointer], refused: [ImportRefusal],
        trail: TrailReference?
    ) {
        (self.recorded, self.unchanged) = (recorded, unchanged)
        (self.kept, self.refused, self.trail) = (kept, refused, trail)
    }

    package static let name = "PersonImported"
    package static let means =
        "What became of a line. What is recorded is durable, in one entry; what is refused stands with its place and why."

    package static func show<Fields: AnswerFields<Self> & ~Copyable>(
        _ answer: borrowing Fields.Source, to fields: inout Fields
    ) {
        fields.required(
            "kept", as: .list(of: .anyText, countMax: 64), answer, { $0.kept.map { $0.shortened() } },
            "Which parts are registered otherwise and stay so, as RFC 6901 pointers; `replace` lets them give way."
        )
        fields.required("recorded", answer, \.recorded, "What was recorded.")
        fields.required("refused", answer, \.refused, "What was not.")
        fields.required("status", as: .integer(200...200), answer, { _ in 200 }, "In a line of a stream.")
        fields.optional("trail", answer, \.trail, "The evidence; absent where nothing was recorded.")
        fields.required("unchanged", answer, \.unchanged, "What was so before.")
    }
}
