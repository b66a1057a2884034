package import GateSteps

/// What pages for the public may ask of the gate: how one link stands, and what it does.
///
/// Each question is answered once, from any thread. A question is refused as ``LinkAnswer/busy`` rather than kept
/// waiting: producers never wait for a page.
package protocol UnsubscribeDesk: AnyObject, Sendable {
    /// Changes nothing.
    func standing(of token: String, reply: @escaping @Sendable (LinkAnswer) -> Void)
    func mute(_ token: String, reply: @escaping @Sendable (LinkAnswer) -> Void)
    func undo(_ token: String, reply: @escaping @Sendable (LinkAnswer) -> Void)
}

package enum LinkAnswer: Hashable, Sendable {
    /// Forged, cut short, of another version, or of somebody who was erased: all are one.
    case unknown
    case known(LinkStanding)
    /// The mute cannot be taken back: it is too late, or something else was said since.
    case tooLate(LinkStanding)
    /// Nothing was done; the same may be asked again soon.
    case busy
}
