package import GateVocabulary

extension Instant {
    /// Before any decision: what was decided then is decided again at the first occasion.
    package static let longAgo = Instant(milliseconds: 0)

    /// Of a moment that a caller left out, which the step that is asked takes for its own. Neither a row nor an entry can hold it.
    package static let unstated = Instant(milliseconds: .min)
}
