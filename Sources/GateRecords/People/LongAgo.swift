package import GateVocabulary

extension Instant {
    /// Before any decision: what was decided then is decided again at the first occasion.
    package static let longAgo = Instant(milliseconds: 0)
}
