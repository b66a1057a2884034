package import GateSteps
package import GateVocabulary

/// The questions that public pages may ask of the gateway: the state of one link, and its two changes.
///
/// Each question is answered once, from any thread. A question is refused as ``LinkAnswer/busy`` rather than queued:
/// producers never wait for a page.
package protocol UnsubscribeHandler: AnyObject, Sendable {
    /// The languages of the policy in force.
    var languages: ReaderLanguages { get }
    /// Who writes, as recipients know the company: ``PolicyBundle/brand`` of the policy in force.
    var brand: String { get }
    /// Whether one of the gateway's keys made the token. Looks nothing up: the person may be erased.
    func isAuthentic(_ token: String) -> Bool
    /// Answers with the state of a link, and changes nothing.
    func standing(of token: String, reply: @escaping @Sendable (LinkAnswer) -> Void)
    func mute(_ token: String, reply: @escaping @Sendable (LinkAnswer) -> Void)
    func undo(_ token: String, reply: @escaping @Sendable (LinkAnswer) -> Void)
}

/// What became of a request about an unsubscribe link.
package enum LinkAnswer: Hashable, Sendable {
    /// A token that is forged, cut short, of another version, or of an erased person: the answer does not tell which.
    case unknown
    case known(LinkStanding)
    /// The mute cannot be taken back: it is too late, or a newer choice was recorded.
    case tooLate(LinkStanding)
    /// Nothing was done; the same may be asked again soon.
    case busy
}
