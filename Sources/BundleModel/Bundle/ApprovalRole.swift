package import CanonicalJSON
package import GateVocabulary

/// Who has to sign which part of a bundle before a gateway in production puts it in force.
///
/// A signature counts for the role it was made as. A page that changes needs the signatures of its own roles again:
/// ``compliance``, and the role whose ``PolicyBundle/parts(signedAs:)`` the page belongs to.
package enum ApprovalRole: String, CaseIterable, Sendable, Hashable {
    /// The whole bundle with its version.
    case compliance
    /// `critical.yaml`, what may break through Do Not Disturb, and `callers.yaml`, who may do what.
    case security
    /// What says how the law is read: the pages of mandatory types with the words they are told in, permissions, regions,
    /// channels, and what each consent text asks for; and each text of a security or transactional type that has a word
    /// which sells.
    case legal
}

/// A verified signature of one role under one bundle.
package struct Approval: Hashable, Sendable {
    package var role: ApprovalRole
    /// Name of the pinned key that signed.
    package var key: String
    /// Ed25519 over the role's statement about the bundle, 64 bytes: what an auditor checks without the folder.
    package var signature: [UInt8]

    package init(role: ApprovalRole, key: String, signature: [UInt8]) {
        self.role = role
        self.key = key
        self.signature = signature
    }
}

extension PolicyBundle {
    /// The pages, and parts of pages, that a role signs one by one; `nil` for ``ApprovalRole/compliance``, which signs the
    /// bundle.
    ///
    /// A part is named after a `#`: `messages/en.yaml#card.blocked`. A mandatory type that is removed, or is mandatory no
    /// longer, changes the list, so that it needs `legal` too.
    package func parts(signedAs role: ApprovalRole) -> [String: JSONValue]? {
        let pages: Set<String>
        switch role {
        case .compliance: return nil
        case .security: pages = ["callers.yaml", "critical.yaml"]
        case .legal:
            pages = Set(["categories.yaml", "channels.yaml", "regions.yaml", Notice.purposesPage])
                .union(documents.keys.filter { $0.hasPrefix("notices/") })
                .union(types.values.filter { $0.mandatory != nil }.map { "types/\($0.id).yaml" })
        }
        var parts = documents.filter { pages.contains($0.key) }.mapValues(\.json)
        guard role == .legal else { return parts }
        // In a body that says nothing, a duty is told by the constant text of its tier. The way out is a duty of its own.
        let keys = Set(types.values.filter { $0.mandatory != nil }.map(\.messageKey))
            .union(["generic", "unsubscribe"])
        for (path, page) in documents where path.hasPrefix("messages/") {
            for (key, text) in page.json.objectValue ?? JSONObject() where keys.contains(key) {
                parts["\(path)#\(key)"] = text
            }
        }
        for text in sellingTexts { parts["\(text.file)#\(text.key)"] = text.value }
        return parts
    }

    /// Reviews of mandatory types that were due on or before a day: what was agreed to has not been looked at since.
    package func lapsedReviews(at now: Instant) -> [PolicyDiagnostic] {
        types.values.sorted { $0.id < $1.id }.compactMap { type in
            guard let review = type.mandatory?.reviewOn, review.instant <= now else { return nil }
            let file = "types/\(type.id).yaml"
            return PolicyDiagnostic(
                file: file, at: location(file, ["mandatory", "review"]),
                "`mandatory.review` was \(review), and the duty has not been reviewed since",
                hint: "have it reviewed, write the next date, and sign the page as `legal`")
        }
    }
}

extension PolicyBundle {
    /// Of the pages as they lie in the folder: what a reviewer sees and signs. Differs from ``digest`` in development
    /// only, where a page is added.
    package var reviewedDigest: PolicyDigest {
        developmentCaller == nil ? digest : Self.digest(of: DevelopmentCaller.removed(from: documents))
    }
}
