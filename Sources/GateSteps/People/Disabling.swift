import GateVocabulary
import RecipientModel

/// Who switches notifications off soon after one says something about it: what S0 watches as the disable rate.
extension StepContext {
    /// How long a send has a part in what its recipient switches off afterwards: 24 hours, in seconds (S0).
    private static let disablingSeconds: Int64 = 86_400

    /// Somebody switched a category off, or all push.
    ///
    /// - Parameter category: `nil` for all push: every category they were sent lately has a part in it.
    func observeDisabling(
        by means: DisabledBy, of category: Category? = nil, subject: SubjectID, at now: Instant
    ) throws {
        let forwards = try view.forwards(
            of: subject, since: now.advanced(bySeconds: -Self.disablingSeconds),
            limit: LoadedForwards.countMax)
        let recent = Category.allCases.filter { sent in forwards.contains { $0.category == sent } }
        if let category {
            return observe(
                .disabled(means, category: category, isAfterSend: recent.contains(category)))
        }
        if recent.isEmpty { observe(.disabled(means, category: nil, isAfterSend: false)) }
        for sent in recent { observe(.disabled(means, category: sent, isAfterSend: true)) }
    }

    /// The same where a consent to a category ended.
    func observeDisabling(_ event: ConsentEvent, _ recorded: Recorded, at now: Instant) throws {
        guard recorded.noEffect == nil, event.state == .withdrawn || event.state == .refused,
            let category = Category(rawValue: event.purpose.text)
        else { return }
        try observeDisabling(by: .preference, of: category, subject: event.subject, at: now)
    }
}
