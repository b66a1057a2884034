package import CanonicalJSON
package import GateRecords

/// Counts of the parts of a line of an import.
package struct ImportCounts: ShownRecord {
    package var recipients = 0
    package var devices = 0
    package var addresses = 0
    package var consents = 0
    package var withdrawals = 0
    package var preferences = 0

    package init() {}

    package var total: Int { recipients + devices + addresses + consents + withdrawals + preferences }

    package static let shownName = "ImportCounts"
    package static let shownMeans = "How many of each."

    package static let fields = Fields<Self> { fields in
        fields.joined("addresses", \.addresses, "Phone numbers and e-mail addresses.")
        fields.joined("consents", \.consents, "Consents.")
        fields.joined("devices", \.devices, "Devices.")
        fields.joined("preferences", \.preferences, "Choices, opt-outs among them.")
        fields.joined("recipients", \.recipients, "People.")
        fields.joined("withdrawals", \.withdrawals, "Withdrawals of consents.")
    }
}

/// A part of a line of an import that was not recorded.
package struct ImportRefusal: ShownRecord {
    package var pointer: JSONPointer
    package var reason: ProblemName
    package var detail: String

    package init(_ pointer: JSONPointer, _ reason: ProblemName, _ detail: String) {
        (self.pointer, self.reason, self.detail) = (pointer, reason, detail)
    }

    package static let shownName = "ImportRefusal"
    package static let shownMeans = "A part of the line that was not recorded; the others were."

    package static let fields = Fields<Self> { fields in
        fields.joined("detail", \.detail, "What is wrong with it.")
        fields.joined("pointer", "Which part of the line (RFC 6901).") { $0.pointer.shortened() }
        fields.joined(
            "reason", "The name of the problem that its own route would answer with.",
            shape: .choice(ProblemName.allCases.map(\.rawValue))
        ) { $0.reason.rawValue }
    }
}

/// What became of one line of `POST /v1/import`.
package struct ImportAnswer: ShownRecord {
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

    package static let shownName = "PersonImported"
    package static let shownMeans =
        "What became of a line. What is recorded is durable, in one entry; what is refused stands with its place and why."

    package static let fields = Fields<Self> { fields in
        fields.joined(
            "kept",
            "Which parts are registered otherwise and stay so, as RFC 6901 pointers; `replace` lets them give way.",
            shape: .list(of: .anyText, countMax: 64)
        ) { $0.kept.map { $0.shortened() } }
        fields.joined("recorded", \.recorded, "What was recorded.")
        fields.joined("refused", \.refused, "What was not.")
        fields.joined("status", "In a line of a stream.", shape: .integer(200...200)) { _ in 200 }
        fields.joined("trail", \.trail, "The evidence; absent where nothing was recorded.")
        fields.joined("unchanged", \.unchanged, "What was so before.")
    }
}
