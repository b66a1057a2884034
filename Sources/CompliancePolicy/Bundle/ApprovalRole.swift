package import GateVocabulary

/// Who has to sign which part of a bundle before a gateway in production puts it in force.
///
/// A signature counts for the role it was made as. A page that changes needs the signatures of its own roles again:
/// ``compliance``, and the role whose ``PolicyBundle/pages(signedAs:)`` the page belongs to.
package enum ApprovalRole: String, CaseIterable, Sendable, Hashable {
    /// The whole bundle with its version.
    case compliance
    /// `critical.yaml`: what may break through Do Not Disturb.
    case security
    /// The pages of mandatory types: what a law obliges the company to send, and what it therefore passes.
    case legal
}

/// A verified signature of one role under one bundle.
package struct Approval: Hashable, Sendable {
    package var role: ApprovalRole
    /// Name of the pinned key that signed.
    package var key: String

    package init(role: ApprovalRole, key: String) {
        self.role = role
        self.key = key
    }
}

extension PolicyBundle {
    /// The pages a role signs one by one, sorted; `nil` for ``ApprovalRole/compliance``, which signs the bundle.
    ///
    /// A mandatory type that is removed, or is mandatory no longer, changes the list, so that it needs `legal` too.
    package func pages(signedAs role: ApprovalRole) -> [String]? {
        switch role {
        case .compliance: nil
        case .security: ["critical.yaml"]
        case .legal: types.values.filter { $0.mandatory != nil }.map { "types/\($0.id).yaml" }.sorted()
        }
    }

    /// Reviews of mandatory types that were due on or before a day: what was agreed to has not been looked at since.
    package func lapsedReviews(at now: Instant) -> [PolicyProblem] {
        types.values.sorted { $0.id < $1.id }.compactMap { type in
            guard let review = type.mandatory?.reviewOn, review.instant <= now else { return nil }
            let file = "types/\(type.id).yaml"
            return PolicyProblem(
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
