package import GateVocabulary

/// What one caller may do (`callers.yaml`). Everything not said is denied.
package struct CallerRule: Hashable, Sendable {
    package var means: String
    package var grants: GrantSet
    package var types: TypeScope
    /// What it may claim about where a preference came from.
    package var sources: [PreferenceSource]
    /// What it may claim about how a consent was given.
    package var methods: [ConsentMethod]
    /// Why the caller records consents: of whom, and where they gave them. With `consents.write` only.
    package var consentsBecause: String?
    package var rationale: Rationale
}

/// A set of grants.
package struct GrantSet: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package init(_ grant: Grant) {
        let place = Grant.allCases.firstIndex(of: grant)!
        // A bit shifted out of its integer is the empty set, which every set contains.
        precondition(place < UInt32.bitWidth, "there are more grants than bits")
        self.init(rawValue: 1 << UInt32(place))
    }

    package init(_ grants: some Sequence<Grant>) {
        self = grants.reduce(into: []) { $0.formUnion(GrantSet($1)) }
    }

    package func contains(_ grant: Grant) -> Bool { contains(GrantSet(grant)) }

    /// The grants in the set, in the order of the reference.
    package var grants: [Grant] { Grant.allCases.filter { contains($0) } }

    /// What a caller that may send marketing or social types must not hold: a sender that can mint its
    /// own consent, silence a preference or change the policy defeats everything else.
    package static let separatedFromPromotion = GrantSet([
        .recipientsWrite, .consentsWrite, .consentsImport, .preferencesWrite, .preferencesStepUp,
        .devicesWrite, .receiptsWrite, .repliesWrite, .driftRun, .keysRotate, .subjectsErase, .policyActivate,
        // Who was sent what, and what they chose, is no address list.
        .subjectsRead, .trailRead,
    ])

    /// What must not be in one hand besides: a caller with one of the first has none of the second.
    package static let separations: [(held: GrantSet, apart: GrantSet, because: String)] = {
        let writes = GrantSet([
            .recipientsWrite, .consentsWrite, .consentsImport, .preferencesWrite, .preferencesStepUp,
            .devicesWrite, .receiptsWrite, .repliesWrite, .driftRun, .subjectsErase,
        ])
        return [
            (
                GrantSet(.trailRead), writes.union(GrantSet([.keysRotate, .policyActivate])),
                "whoever audits the record changes nothing that it is a record of"
            ),
            (
                GrantSet([.keysRotate, .policyActivate]), writes,
                "whoever changes keys or rules acts for no recipient"
            ),
        ]
    }()

    /// Everything, for the caller of a gateway in development.
    package static let all = GrantSet(Grant.allCases)
}

/// Which types a caller may send: those of its categories, narrowed by the two lists.
package struct TypeScope: Hashable, Sendable {
    package var categories: [GateVocabulary.Category]
    /// Nothing but these, when there is a list.
    package var only: [TypeID]?
    package var except: [TypeID]

    package func covers(_ type: TypeID, of category: GateVocabulary.Category) -> Bool {
        categories.contains(category) && only?.contains(type) != false && !except.contains(type)
    }
}

extension CallerName {
    /// The gateway itself, when it sends a summary of what it gathered. No process can be it: a bundle may not
    /// name it, so configuration cannot bind it.
    package static let gateway = CallerName("gateway")
}

extension CallerRule {
    /// Words of a `consents_because`: whose yes, and where it was said, take that many.
    static let reasonWordsMin = 8

    /// Whether a text has that many different words with letters in them.
    static func isReason(_ text: String) -> Bool {
        let words = text.lowercased().split(whereSeparator: { !$0.isLetter }).filter { $0.count > 1 }
        return Set(words).count >= reasonWordsMin
    }

    static func page(_ reader: NodeReader) -> [CallerName: CallerRule] {
        let page = reader.members()
        var callers: [CallerName: CallerRule] = [:]
        let rows = page.required("callers", "Every process that may speak to the gateway, by its name.")
        for (key, value) in rows?.members().others(.names) ?? [] {
            callers[CallerName(key)] = CallerRule(value)
        }
        page.ignoreRationale()
        page.refuseOthers()
        return callers
    }

    init(_ reader: NodeReader) {
        let members = reader.members()
        means = members.text("means", "What the process is.")
        grants = GrantSet(
            members.names("grants", "What it may ask for; everything else is denied.") as [Grant])
        if let scope = members.optional("types", "Which types it may send; none without it.")?.members() {
            types = TypeScope(
                categories: scope.optional("categories", "Those of these categories.")?.elements()
                    .map { $0.name() } ?? [],
                only: scope.optional("only", "Of them nothing but these, where there is a list.")?.typeIDs(),
                except: scope.optional("except", "And none of these.")?.typeIDs() ?? [])
            scope.refuseOthers()
        } else {
            types = TypeScope(categories: [], only: nil, except: [])
        }
        if let claims = members.optional("may_assert", "What it may claim; nothing without it.")?.members() {
            sources =
                claims.optional("sources", "Where a preference came from.")?.elements().map { $0.name() }
                ?? []
            methods =
                claims.optional("methods", "How a consent was given.")?.elements().map { $0.name() } ?? []
            claims.refuseOthers()
        } else {
            sources = []
            methods = []
        }
        consentsBecause = members.optionalText(
            "consents_because",
            "Whose yes it records, and where it was said, in eight words or more; with `consents.write` only."
        )
        rationale = members.rationaleWithoutLaw()
        members.refuseOthers()
    }
}

/// One line of the critical-alert allow-list (`critical.yaml`): a type, and who may ask.
package struct CriticalAllowance: Hashable, Sendable {
    package var type: TypeID
    package var callers: [CallerName]
    package var rationale: Rationale

    static func page(_ reader: NodeReader) -> [CriticalAllowance] {
        let page = reader.members()
        let rows = page.required("allow", "Every type that may, once each.")?.elements()
        page.ignoreRationale()
        page.refuseOthers()
        return rows?.map { CriticalAllowance($0) } ?? []
    }

    init(_ reader: NodeReader) {
        let members = reader.members()
        type = members.required("type", "What may break through.")?.typeID() ?? TypeID("")
        callers = members.texts("callers", countMin: 1, rule: .nameOfPage, "Who may ask for it.").map {
            CallerName($0)
        }
        rationale = members.rationale()
        members.refuseOthers()
    }
}
