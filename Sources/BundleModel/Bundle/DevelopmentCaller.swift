package import GateVocabulary

/// The caller of a gateway in development: it may do everything, which no caller of a real bundle may.
///
/// `sendgate serve --dev` adds a page of its own to the bundle it was given, so that what the caller may do is part
/// of the canonical form, the digest and the archive, and every decision made for it can be replayed from
/// them. The bundle's own callers stay exactly as strict as they are: separation of duties is checked for all
/// of them and waived for this one alone. A production gateway refuses a bundle that has the page.
package enum DevelopmentCaller {
    /// Where the page stands. It is never written by hand.
    package static let page = "development.yaml"

    /// Adds the page, and lists it on the cover page.
    ///
    /// - Returns: `documents` unchanged when they have the page already, or no cover page that can list it:
    ///   ``PolicyBundle/read(documents:)`` says what is wrong with those.
    package static func adding(
        _ name: CallerName, to documents: [String: PolicyNode]
    ) -> [String: PolicyNode] {
        guard documents[page] == nil, var cover = documents["bundle.yaml"],
            case .mapping(var members) = cover.value,
            let files = members.firstIndex(where: { $0.key == "files" }),
            case .list(let listed) = members[files].value.value
        else { return documents }
        members[files].value.value = .list(listed + [PolicyNode(.text(page))])
        cover.value = .mapping(members)
        var documents = documents
        documents["bundle.yaml"] = cover
        documents[page] = PolicyNode(
            .mapping([
                .init(key: "caller", value: PolicyNode(.text(name.text))),
                .init(
                    key: "because",
                    value: PolicyNode(.text("Whoever runs a gateway with --dev may try everything."))),
            ]))
        return documents
    }

    /// Takes back what ``adding(_:to:)`` added.
    package static func removed(from documents: [String: PolicyNode]) -> [String: PolicyNode] {
        var documents = documents
        guard documents.removeValue(forKey: page) != nil, var cover = documents["bundle.yaml"],
            case .mapping(var members) = cover.value,
            let files = members.firstIndex(where: { $0.key == "files" }),
            case .list(let listed) = members[files].value.value
        else { return documents }
        members[files].value.value = .list(listed.filter { !$0.isText(page) })
        cover.value = .mapping(members)
        documents["bundle.yaml"] = cover
        return documents
    }

    static func read(_ reader: NodeReader) -> (name: CallerName, rule: CallerRule) {
        let members = reader.members()
        let name = CallerName(members.text("caller", byteCountMax: 128))
        let because = members.text("because")
        members.refuseOthers()
        return (
            name,
            CallerRule(
                means: "The person at the keyboard of a gateway in development.", grants: .all,
                types: TypeScope(categories: GateVocabulary.Category.allCases, only: nil, except: []),
                sources: PreferenceSource.allCases, methods: ConsentMethod.allCases, consentsBecause: because,
                rationale: Rationale(because: because, law: [], reviewed: .first))
        )
    }
}

extension PolicyNode {
    fileprivate func isText(_ text: String) -> Bool {
        if case .text(let own) = value { own == text } else { false }
    }
}
